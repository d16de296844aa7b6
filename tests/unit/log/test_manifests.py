"""Order, Leader, End and Reach, each with what would fool a weaker form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from tests.tools.records import sections_of
from txn_analysis.judge.manifest_proof import ManifestProof, WholeCopy
from txn_analysis.kafka.names import LEADER_EPOCH, STATE_TOPIC, TOPIC_ID
from txn_analysis.kafka.transactions import TopicPartition
from txn_analysis.tables.inputs import CopiedFile, Manifest

SKEW_MS, BEGAN_MS = 1_000, 1_800_000_000_000
ORDERS, OTHERS, STATE = TopicPartition("orders", 0), TopicPartition("others", 0), TopicPartition(STATE_TOPIC, 0)
FIRST, SECOND, LAST = "first.log", "second.log", "state.log"

Row = dict[str, Any]


def section(input_id: str, where: TopicPartition, kind: str = "log", **said: Any) -> Row:
    place = {"topic": where.topic, "partition": where.partition, "path": input_id, "grammar": "binary"}
    at = {"section_index": 0, "capture_rank": 0, "file_base_offset": 0, "end_offset": 10, "leader_epoch": 3}
    return {"input_id": input_id, "kind": kind} | place | at | said


def entry(path: str, number: int, where: TopicPartition, **said: Any) -> CopiedFile:
    """The copying of a file took one second; a minute lies between two."""
    at_ms = 60_000 * number
    return CopiedFile(
        input_id=path,
        path=path,
        is_given=True,
        sequence=number,
        topic=where.topic,
        partition=where.partition,
        leader_id=1,
        leader_epoch=3,
        is_leader_confirmed=True,
        is_end_confirmed=True,
        began_ms=BEGAN_MS + at_ms,
        ended_ms=BEGAN_MS + at_ms + 1_000,
        began_monotonic_ms=at_ms,
    )._replace(**said)


@dataclass(frozen=True)
class Copy:
    """Two logs and then the state, copied off one broker; `said` changes entries, by path."""

    said: Mapping[str, Row] = field(default_factory=dict)
    of_copy: Row = field(default_factory=dict)
    sections: tuple[Row, ...] = (
        section(FIRST, ORDERS),
        section(SECOND, OTHERS),
        section(LAST, STATE, "state"),
    )
    others: tuple[Manifest, ...] = ()

    def copying(self) -> ManifestProof:
        places = {FIRST: ORDERS, SECOND: OTHERS, LAST: STATE}
        files = [
            entry(path, n, where)._replace(**self.said.get(path, {})) for n, (path, where) in enumerate(places.items())
        ]
        manifest = Manifest("txn-capture.json", "broker", None, 1, is_complete=True, files=tuple(files))
        return ManifestProof([manifest._replace(**self.of_copy), *self.others], sections_of(self.sections), SKEW_MS)

    def but(self, path: str, **said: Any) -> Copy:
        return replace(self, said={**self.said, path: said})

    def whole(self, where: TopicPartition = ORDERS) -> WholeCopy | None:
        return self.copying().whole.get(where)

    def reach(self, where: TopicPartition = ORDERS, **last_ms: int) -> int | None:
        return self.copying().reach_ms(where, {ORDERS: last_ms.get("orders"), OTHERS: last_ms.get("others")})


COPY = Copy()


def is_last(copy: Copy) -> bool:
    return copy.copying().order.is_proven


# Order.


def test_the_state_was_copied_last() -> None:
    assert is_last(COPY)
    assert COPY.copying().order.disproof is None


@pytest.mark.parametrize(("early_ms", "expected"), [(0, True), (57_999, True), (58_000, False), (60_000, False)])
def test_it_began_more_than_the_skew_after_every_log_had_ended(early_ms: int, expected: bool) -> None:
    at_ms = 120_000 - early_ms
    early = COPY.but(LAST, began_ms=BEGAN_MS + at_ms, ended_ms=BEGAN_MS + at_ms + 1, began_monotonic_ms=at_ms)
    assert is_last(early) is expected
    assert (early.copying().order.disproof is None) is expected


def test_a_log_that_no_manifest_names_leaves_the_order_open() -> None:
    beside = replace(COPY, sections=(*COPY.sections, section("beside.log", ORDERS)))
    assert not is_last(beside)
    assert beside.copying().order.disproof is None


def test_the_clock_was_set_back_while_a_log_was_read() -> None:
    """The state began a minute before the log ended; by a clock that was set back, it looks later."""
    back = COPY.but(SECOND, ended_ms=BEGAN_MS + 62_000).but(LAST, began_ms=BEGAN_MS + 90_000, began_monotonic_ms=1_000)
    assert not is_last(back)


def test_a_clock_that_falls_from_one_file_to_the_next_proves_nothing() -> None:
    assert not is_last(COPY.but(FIRST, began_ms=BEGAN_MS + 60_001, ended_ms=BEGAN_MS + 60_002))


@pytest.mark.parametrize(("drift_ms", "expected"), [(SKEW_MS, True), (SKEW_MS + 1, False), (-SKEW_MS - 1, False)])
def test_the_wall_clock_keeps_step_with_the_monotonic_one(drift_ms: int, expected: bool) -> None:
    assert is_last(COPY.but(LAST, began_monotonic_ms=120_000 + drift_ms)) is expected


@pytest.mark.parametrize("name", ["began_ms", "ended_ms", "sequence", "began_monotonic_ms"])
def test_what_is_unknown_proves_nothing(name: str) -> None:
    assert not is_last(COPY.but(FIRST, **{name: None}))


def test_a_kit_that_was_killed_proves_nothing_and_speaks_against_others() -> None:
    assert not is_last(replace(COPY, of_copy={"is_complete": False}))
    assert not COPY.of_copy
    early = COPY.but(LAST, began_ms=BEGAN_MS, ended_ms=BEGAN_MS + 1, began_monotonic_ms=0, sequence=0)
    assert replace(early, of_copy={"is_complete": False}).copying().order.disproof is not None


def another(clock: str, broker_id: int | None, *files: CopiedFile) -> Manifest:
    return Manifest("other.json", clock, None, broker_id, is_complete=True, files=files)


def test_two_brokers_clocks_prove_no_order_and_can_disprove_one() -> None:
    beside = (*COPY.sections, section("third.log", OTHERS))
    early = replace(COPY, sections=beside, others=(another("broker", 2, entry("third.log", 0, OTHERS)),))
    late = replace(early, others=(another("broker", 2, entry("third.log", 3, OTHERS)),))
    assert (is_last(early), early.copying().order.disproof) == (False, None)
    assert late.copying().order.disproof is not None


def test_a_collectors_clock_is_never_compared_with_a_brokers() -> None:
    beside = (*COPY.sections, section("third.log", OTHERS))
    late = replace(COPY, sections=beside, others=(another("collector", None, entry("third.log", 3, OTHERS)),))
    assert (is_last(late), late.copying().order.disproof) == (False, None)


# Leader.


def test_a_leader_that_was_confirmed() -> None:
    found = COPY.whole()
    assert found is not None
    assert (found.leader_epoch, found.began_ms) == (3, BEGAN_MS)


@pytest.mark.parametrize(
    "said",
    [
        {"is_leader_confirmed": False},
        {"leader_id": None},
        {"leader_epoch": None},
        {"leader_id": 2},
        {"is_end_confirmed": False},
        {"end_offset": 11},
        {"topic": "payments"},
        {"partition": None},
    ],
    ids=str,
)
def test_what_an_entry_does_not_say_it_does_not_prove(said: Row) -> None:
    assert COPY.but(FIRST, **said).whole() is None
    assert COPY.but(FIRST, **said).reach() is None


@pytest.mark.parametrize(
    "shown",
    [
        section("follower.log", ORDERS, leader_epoch=4),
        section("leader-epoch-checkpoint", ORDERS, LEADER_EPOCH, stated="4", leader_epoch=None),
        section("yesterday.log", ORDERS, leader_epoch=4, capture_rank=1),
    ],
    ids=["a replica's batch", "a checkpoint", "an earlier capture"],
)
def test_a_demoted_leader_whose_files_go_on_is_void_where_anything_knows_a_higher_epoch(shown: Row) -> None:
    assert replace(COPY, sections=(*COPY.sections, shown)).whole() is None


def test_an_entry_of_a_killed_copy_can_know_it() -> None:
    other = another("broker", 2, entry("x.log", 0, ORDERS, leader_epoch=4, input_id=None))
    assert replace(COPY, others=(other._replace(is_complete=False),)).whole() is None


def test_the_epoch_of_an_older_topic_of_its_name_is_none_of_it() -> None:
    own = section("partition.metadata", ORDERS, TOPIC_ID, stated="new", leader_epoch=None)
    old = own | {"input_id": "old", "stated": "old", "capture_rank": 1}
    before = section("yesterday.log", ORDERS, leader_epoch=9, capture_rank=1)
    assert replace(COPY, sections=(*COPY.sections, own, old, before)).whole() is not None


def test_another_topic_id_makes_it_void() -> None:
    metadata = section("partition.metadata", ORDERS, TOPIC_ID, stated="new", leader_epoch=None)
    copy = replace(COPY, sections=(*COPY.sections, metadata))
    assert copy.but(FIRST, topic_id="new").whole() is not None
    assert copy.but(FIRST, topic_id="old").whole() is None


# End.


@pytest.mark.parametrize(("begins", "expected"), [(10, True), (11, False)])
def test_a_new_leaders_high_watermark_that_is_behind_is_no_end(begins: int, expected: bool) -> None:
    """No batch of its epoch was read: the end lies at or above the epoch's start, or the log goes on."""
    checkpoint = section("leader-epoch-checkpoint", ORDERS, LEADER_EPOCH, stated="3", file_base_offset=begins)
    old = section(FIRST, ORDERS, leader_epoch=2)
    copy = replace(COPY, sections=(old, *COPY.sections[1:], checkpoint | {"leader_epoch": None}))
    assert (copy.whole() is not None) is expected
    assert replace(COPY, sections=(old, *COPY.sections[1:])).whole() is None


def test_a_segment_that_was_not_given_is_missing_from_the_whole() -> None:
    missing = entry("rolled.log", 3, ORDERS, input_id=None, is_given=False)
    files = (*COPY.copying().manifests[0].files, missing)
    assert replace(COPY, of_copy={"files": files}).whole() is None


# Reach.


def test_by_a_brokers_clock_the_log_was_whole_when_its_first_byte_was_read() -> None:
    assert COPY.reach() == BEGAN_MS
    assert COPY.reach(OTHERS) == BEGAN_MS + 60_000


def test_without_the_order_there_is_no_reach() -> None:
    assert COPY.but(LAST, began_monotonic_ms=None).reach() is None


def by_collector(**said: Any) -> Copy:
    return replace(COPY, of_copy={"clock": "collector", "broker_id": None} | said)


def test_by_a_collectors_clock_it_is_the_last_moment_of_what_was_read_before() -> None:
    copy = by_collector()
    assert copy.reach(OTHERS, orders=5, others=99) == 5
    assert copy.reach(ORDERS, orders=5, others=99) is None


def test_what_ended_within_the_skew_was_not_read_before() -> None:
    late = by_collector().but(FIRST, ended_ms=BEGAN_MS + 59_000)
    assert late.reach(OTHERS, orders=5) is None
