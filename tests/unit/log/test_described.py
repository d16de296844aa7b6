"""A fetched tail of a log with an answer to DescribeProducers says what the whole log would say of what is open."""

from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tools.forms.broker import ProducerEntry, replay
from tests.tools.forms.history import histories
from tests.tools.forms.model import Batch, History, Segment
from tests.tools.log_evidence import (
    LinkedPartition,
    batches_of,
    certain,
    linked,
    section_row,
    sections_and_text,
    snapshot_row,
)
from tests.unit.log.test_copies import DEEP, data, log, marker
from txn_analysis.kafka.problems import ProblemKind

Row = dict[str, Any]


def open_starts(entries: Mapping[int, ProducerEntry]) -> dict[int, int]:
    return {pid: entry.txn_start_offset for pid, entry in entries.items() if entry.txn_start_offset is not None}


def fetched(
    history: History,
    batches: Sequence[Batch],
    first_offset: int,
    answer: Mapping[int, ProducerEntry],
    answered_from: int,
) -> LinkedPartition:
    """Some batches in one file, and what the leader answered when the log went up to `answered_from` at least."""
    tail = History(history.topic, history.partition, (Segment(first_offset, tuple(batches)),))
    sections, text = sections_and_text(tail, DEEP)
    described: Row = {
        "input_id": "described",
        "section_index": 0,
        "kind": "described_producers",
        "topic": history.topic,
        "partition": history.partition,
        "file_base_offset": first_offset,
        "stated": str(answered_from),
        "capture_rank": 0,
        "is_start_proven": True,
        "is_end_proven": True,
        "input_problem": None,
    }
    rows = [snapshot_row(described, pid, entry) | {"last_offset": None} for pid, entry in answer.items()]
    scanned = [certain(part) for part in batches_of(sections, text, range_bytes=1 << 20)]
    return linked([*map(section_row, sections), described], scanned, rows)


def opened(found: LinkedPartition) -> dict[int, tuple[int, bool, int | None]]:
    return {
        txn.producer_id: (txn.txn_start_offset, txn.is_txn_start_exact, txn.coordinator_epoch)
        for txn in found.transactions
        if txn.outcome == "open"
    }


def disagreements(found: LinkedPartition) -> list[str]:
    return [problem.reason for problem in found.health.problems if problem.kind == ProblemKind.SNAPSHOT_DISAGREES]


@given(history=histories(), share=st.floats(0, 1), earlier=st.integers(0, 3))
@settings(max_examples=200, deadline=None)
def test_the_tail_and_the_answer_say_what_the_whole_log_says(history: History, share: float, earlier: int) -> None:
    """Asked at any moment, and fetched from the lowest open start or from some batches before it, to a later end."""
    batches = history.batches
    if not batches:
        return
    asked = batches[: round(share * len(batches))]
    end = asked[-1].last_offset + 1 if asked else batches[0].base_offset
    answer = replay(asked).snapshot()
    stable = min([*open_starts(answer).values(), end])
    number = max(0, next((k for k, b in enumerate(batches) if b.base_offset >= stable), len(batches)) - earlier)
    first = batches[number].base_offset if number < len(batches) else end
    found = fetched(history, batches[number:], first, answer, end)
    whole = replay(batches).snapshot()
    assert opened(found) == {
        pid: (start, True, whole[pid].coordinator_epoch) for pid, start in open_starts(whole).items()
    }
    assert not disagreements(found)


def test_what_began_below_the_log_start_is_open_by_the_answer_alone() -> None:
    """Its first segments are deleted: the leader still holds it."""
    answer = replay([data(0), data(1)]).snapshot()
    found = fetched(log(data(0)), [data(5, producer=9)], 5, answer, 6)
    assert opened(found)[7] == (0, True, None)


def test_a_start_of_which_the_log_knows_nothing_disagrees() -> None:
    answer = replay([data(5)]).snapshot()
    found = fetched(log(data(0)), [data(5, producer=9)], 5, answer | replay([data(5, producer=9)]).snapshot(), 6)
    assert "producer 7: open start is 5 there and None in the log" in " ".join(disagreements(found))


def test_what_is_open_in_the_log_and_was_not_in_the_answer_disagrees() -> None:
    """A marker that the leader had when it was asked is not among what was fetched."""
    found = fetched(log(data(0)), [data(5), data(6)], 5, replay([data(5), marker(6)]).snapshot(), 7)
    assert "producer 7: open start is None there and 5 in the log" in " ".join(disagreements(found))


def test_what_began_after_the_answer_is_no_difference() -> None:
    found = fetched(log(data(0)), [data(5), marker(6), data(7)], 5, replay([data(5)]).snapshot(), 6)
    assert opened(found)[7][:2] == (7, True)
    assert not disagreements(found)


def test_a_producer_that_the_answer_does_not_name_had_no_end_marker() -> None:
    found = fetched(log(data(0)), [data(5), data(6, producer=9)], 5, replay([data(5)]).snapshot(), 6)
    assert [t.coordinator_epoch_basis for t in found.transactions] == ["none_seen", "none_seen"]
