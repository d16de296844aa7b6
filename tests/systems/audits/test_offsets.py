"""What is at an offset of the real captures, against a walk over the lines of their deep dumps."""

import re
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.tools.captures import SEGMENTS, RunOf, Variant, run_audit
from tests.tools.cases import cases
from tests.tools.repository import CASES
from tests.tools.sessions import no_session, opened
from txn_analysis.questions.offset import explain_offset
from txn_analysis.questions.offset_answer import Found, Gets, OffsetAnswer, offset_text
from txn_analysis.runs.run_tables import run_tables

LIVE = Variant("kafka-4.2/capture-1", SEGMENTS)
SHALLOW = Variant("kafka-4.2/capture-1", ("shallow", "transaction-state"))
OLD = Variant("kafka-2.8/capture-1", (*SEGMENTS, "producer-snapshots"))
VERSION_2 = Variant("kafka-4.2-tv2/capture-1", SEGMENTS)
TRADES = Variant("kafka-4.2-edge/capture-2", ("log-dirs", "segments/n1.accounts-0.txt"), (("verify", True),))
BUSY = Variant("kafka-4.3-busy/capture-1", ("log-dirs",), (("state_copied_last", True), ("no_records_lost", True)))

_BATCH = re.compile(
    r"^baseOffset: (\d+) lastOffset: (\d+) count: (\d+) .*? producerId: (-?\d+) .*? isTransactional: (true|false) "
    r"isControl: (true|false) ",
    re.MULTILINE,
)
_MARKER = re.compile(r" endTxnMarker: (COMMIT|ABORT) ")


@dataclass
class Walked:
    """What a walk over the lines of a dump finds at each offset, and how many records each offset's batch holds."""

    found: dict[int, Found] = field(default_factory=dict)
    open_starts: dict[str, int] = field(default_factory=dict)

    @property
    def last_stable_offset(self) -> int:
        return min([*self.open_starts.values(), len(self.found)])

    def count_above(self, kinds: set[Found]) -> int:
        return sum(kind in kinds for offset, kind in self.found.items() if offset >= self.last_stable_offset)


def walked(dump: Path) -> Walked:
    text, walk, data = dump.read_text(encoding="utf-8"), Walked(), defaultdict[str, list[int]](list)
    lines = [*_BATCH.finditer(text)]
    for at, line in enumerate(lines):
        offsets = range(int(line[1]), int(line[2]) + 1)
        if line[6] == "true":
            end = lines[at + 1].start() if at + 1 < len(lines) else len(text)
            (kind,) = _MARKER.findall(text, line.start(), end)
            ended = Found.COMMITTED_DATA if kind == "COMMIT" else Found.ABORTED_DATA
            walk.found |= dict.fromkeys(data.pop(line[4], []), ended) | dict.fromkeys(offsets, Found.END_MARKER)
            walk.open_starts.pop(line[4], None)
        elif line[5] == "true":
            data[line[4]] += offsets
            walk.open_starts.setdefault(line[4], offsets[0])
            walk.found |= dict.fromkeys(offsets, Found.OPEN_DATA)
        else:
            walk.found |= dict.fromkeys(offsets, Found.DATA)
    return walk


def dumps_of(variant: Variant) -> list[tuple[str, int, Path]]:
    files = sorted((CASES / variant.capture / "segments").glob("*.txt"))
    named = ((re.search(r"Dumping (?:\S*/)?(\S+)-(\d+)/", file.read_text(encoding="utf-8")), file) for file in files)
    return [(name[1], int(name[2]), file) for name, file in named if name is not None]


@pytest.mark.parametrize(
    "variant", [LIVE, pytest.param(OLD, marks=pytest.mark.cluster), VERSION_2], ids=lambda variant: variant.capture
)
def test_every_offset_is_what_the_lines_of_the_dump_say(run_of: RunOf, variant: Variant) -> None:
    run = run_of(variant)
    for topic, partition, dump in dumps_of(variant)[:3]:
        walk = walked(dump)
        readable = {Found.COMMITTED_DATA, Found.DATA}
        for offset in range(0, len(walk.found), 13):
            answer = explain_offset(run, topic, partition, offset)
            stable = walk.last_stable_offset
            ahead = [o for o in range(offset, stable) if walk.found[o] in readable]
            assert (answer.found, answer.last_stable_offset) == (walk.found[offset], stable)
            assert (answer.lag_to_end, answer.lag_to_last_stable) == (len(walk.found) - offset, max(stable - offset, 0))
            assert answer.next_record_offset == min(ahead, default=None)
            waits = Gets.NOTHING_YET if offset >= stable else Gets.SKIPS
            assert answer.gets is (Gets.RECORD if offset in ahead else waits)
            bounded = answer.bounded_reader
            if bounded is not None:
                assert bounded.committed_record_count == walk.count_above(readable)
                assert bounded.aborted_record_count == walk.count_above({Found.ABORTED_DATA})
                assert bounded.open_record_count == walk.count_above({Found.OPEN_DATA})
            assert (bounded is None) == (not walk.open_starts)


def test_an_end_marker_as_the_last_offset_is_a_lag_of_one_and_no_hang(run_of: RunOf) -> None:
    answer = explain_offset(run_of(VERSION_2), "orders", 0, 32)
    assert (answer.found, answer.gets, answer.is_all_read) == (Found.END_MARKER, Gets.SKIPS, True)
    assert (answer.lag_to_end, answer.blocked_by) == (1, None)
    assert "a lag of 1 offset" in flat(answer)
    assert "nothing hangs" in flat(answer)


def test_polls_return_nothing_along_a_run_without_records(run_of: RunOf) -> None:
    answer = explain_offset(run_of(LIVE), "orders", 0, 118)
    assert answer.next_record_offset == 126
    assert answer.longest_run is not None
    assert (answer.longest_run.first_offset, answer.longest_run.offset_count) == (118, 8)


def test_what_compaction_removed_is_no_gap(run_of: RunOf) -> None:
    answer = explain_offset(run_of(BUSY), "__transaction_state", 1, 30_000)
    assert (answer.found, answer.gets, answer.is_told) == (Found.COMPACTED, Gets.SKIPS, True)
    assert answer.next_record_offset == 65_670


@cases(
    "offset found gets missing",
    {
        "below-the-log-start": (100, Found.DELETED, Gets.OUT_OF_RANGE, None),
        "not-copied": (300, Found.NOT_IN_FILES, Gets.UNKNOWN, "the offset is in no file"),
        "beyond-the-end": (450, Found.BEYOND_END, Gets.UNKNOWN, "the copied log ends at offset 450"),
        "above-an-open-start-that-is-gone": (360, Found.COMMITTED_DATA, Gets.NOTHING_YET, None),
    },
)
def test_what_the_files_do_not_tell_is_said(
    run_of: RunOf, offset: int, found: Found, gets: Gets, missing: str | None
) -> None:
    answer = explain_offset(run_of(TRADES), "trades", 0, offset)
    assert (answer.found, answer.gets, answer.is_told) == (found, gets, missing is None)
    assert missing is None or answer.missing[0].startswith(missing)


def test_a_bounded_reader_of_a_log_whose_start_is_gone_misses_at_least_what_is_there(run_of: RunOf) -> None:
    answer = explain_offset(run_of(TRADES), "trades", 0, 360)
    assert answer.bounded_reader is not None
    assert (answer.bounded_reader.ends_at_offset, answer.bounded_reader.is_whole) == (None, False)
    assert "at least 73 committed records above it" in flat(answer)


def test_a_shallow_dump_does_not_say_whether_a_record_is_delivered(run_of: RunOf) -> None:
    answer = explain_offset(run_of(SHALLOW), "orders", 0, 159)
    assert (answer.found, answer.gets, answer.is_told) == (Found.ENDED_DATA, Gets.UNKNOWN, False)
    assert "give one with --deep-iteration" in answer.missing[0]


def test_where_consumers_wait_a_shallow_dump_tells_enough(run_of: RunOf) -> None:
    answer = explain_offset(run_of(SHALLOW), "orders", 0, 161)
    assert (answer.found, answer.gets, answer.is_told) == (Found.OPEN_DATA, Gets.NOTHING_YET, True)
    assert "and perhaps 20 more, whose dump does not say how they ended" in flat(answer)


OF_REPLICAS = (
    Variant("kafka-4.2-three-nodes/capture-1", ("log-dirs",)),
    Variant("kafka-4.2-lost-marker/capture-1", ("log-dirs",)),
    Variant("kafka-4.4-upgrade/capture-1", ("log-dirs",), (("state_copied_last", True), ("no_records_lost", True))),
)


@pytest.mark.parametrize("variant", [LIVE, TRADES, *OF_REPLICAS], ids=lambda variant: variant.capture)
def test_as_many_records_are_hidden_as_the_run_counted(run_of: RunOf, variant: Variant) -> None:
    """Also of several brokers' copies, which overlap, and some of which end in a truncated tail."""
    run, compared = run_of(variant), 0
    for health in run.health():
        if health.end_offset is None or health.open_transaction_count == 0 or health.hidden_record_count is None:
            continue
        bounded = explain_offset(run, health.topic, health.partition, health.end_offset - 1).bounded_reader
        assert bounded is not None
        counts = (bounded.committed_record_count, bounded.aborted_record_count, bounded.open_record_count)
        assert sum(filter(None, (*counts, bounded.unknown_record_count))) == health.hidden_record_count
        compared += 1
    assert compared


@pytest.mark.parametrize("variant", OF_REPLICAS, ids=lambda variant: variant.capture)
def test_no_offset_is_in_no_file_where_several_brokers_were_copied(run_of: RunOf, variant: Variant) -> None:
    run = run_of(variant)
    for health in run.health():
        if health.topic.startswith("_") or health.end_offset is None or health.first_offset is None:
            continue
        found = {
            explain_offset(run, health.topic, health.partition, offset).found
            for offset in range(health.first_offset, health.end_offset, 37)
        }
        assert found.isdisjoint({Found.NOT_IN_FILES, Found.BEYOND_END, Found.COMPACTED})


def test_how_a_file_was_read_in_parts_changes_no_answer(warehouse: str, run_of: RunOf) -> None:
    report = run_audit(no_session, warehouse, LIVE.paths, cluster="in-pieces", range_bytes=4096)
    in_pieces = run_tables(opened(warehouse), "in-pieces", report.run.run_id).finished
    for offset in range(0, 205, 51):
        answers = [explain_offset(run, "orders", 0, offset) for run in (run_of(LIVE), in_pieces)]
        assert answers[0] == answers[1].model_copy(update={"run_id": answers[0].run_id})


FORGED = ("kafka-2.8.payments-0", "kafka-4.2.payments-0")


@pytest.mark.parametrize("name", FORGED)
def test_lines_that_a_client_forged_are_at_no_offset(warehouse: str, name: str) -> None:
    """The key of a record imitates batches from offset 999,999 on, of a producer that does not exist."""
    report = run_audit(no_session, warehouse, [str(CASES / f"forged-payload/{name}.print-data-log.txt")], cluster=name)
    run = run_tables(opened(warehouse), name, report.run.run_id).finished
    answers = {offset: explain_offset(run, "payments", 0, offset) for offset in (100, 189, 230, 999_999)}
    assert {offset: answer.is_told for offset, answer in answers.items()} == {
        100: True,
        189: True,
        230: True,
        999_999: False,
    }
    assert {answer.transaction.producer_id for answer in answers.values() if answer.transaction} & {666} == set()


def flat(answer: OffsetAnswer) -> str:
    """The text on one line."""
    return " ".join(offset_text(answer).split())
