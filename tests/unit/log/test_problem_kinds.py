"""Each flaw of the evidence has its kind, by which it is judged; the sentence beside it is for people."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.tools.forms.model import Batch
from tests.tools.log_evidence import batches_of, section_row, sections_and_text, snapshot_evidence, summarized
from tests.tools.records import sections_of
from tests.unit.log.test_copies import DEEP, TODAY, YESTERDAY, data, link, log, marker
from txn_analysis.kafka.names import BINARY
from txn_analysis.kafka.problems import ProblemKind
from txn_analysis.log.rebuild import PartitionEvidence, rebuild_producer_state
from txn_analysis.log.segments import log_sections
from txn_analysis.tables import BatchRangeSummary, Problem
from txn_analysis.tables.appends import NO_APPENDS
from txn_analysis.tables.inputs import InputSection

Row = dict[str, Any]
Problems = tuple[Problem, ...]

BATCHES = (data(0), marker(1), data(2), data(3))
WHOLE = log(*BATCHES)


def problems_of(
    *batches: Batch, section: Row | None = None, piece: Row | None = None, others: tuple[Row, ...] = ()
) -> Problems:
    """Of one file, with some fields of its section and of its piece as they are given."""
    sections, text = sections_and_text(log(*(batches or BATCHES)), DEEP)
    pieces = [p._replace(**(piece or {})) for p in summarized(batches_of(sections, text, range_bytes=10_000))]
    rows = [section_row(s) | (section or {}) for s in sections]
    return problems_in(sections_of([*rows, *others]), pieces)


def problems_in(sections: list[InputSection], pieces: list[BatchRangeSummary]) -> Problems:
    found = rebuild_producer_state(PartitionEvidence(log_sections(sections), pieces, {}, {}, None))
    return found.health.problems


def torn_inside() -> Problems:
    (first,), text = sections_and_text(log(data(0)), DEEP)
    (later,), later_text = sections_and_text(log(data(1)), DEEP)
    rows = [section_row(first, input_id="torn") | {"torn_bytes": 33}, section_row(later, input_id="later")]
    scanned = [
        *batches_of([first], text, range_bytes=10_000, input_id="torn"),
        *batches_of([later], later_text, range_bytes=10_000, input_id="later"),
    ]
    return problems_in(sections_of(rows), summarized(scanned))


def said_topic_id(topic_id: str) -> Row:
    fields = {"kind": "topic_id", "topic": "orders", "partition": 0, "file_base_offset": 0, "grammar": "binary"}
    return fields | {"input_id": f"said {topic_id}", "section_index": 0, "capture_rank": 0, "stated": topic_id}


def disagreeing() -> Problems:
    section, rows = snapshot_evidence(WHOLE, 3)
    rows[0]["current_txn_start_offset"] = 1
    return link((WHOLE, DEEP, TODAY), snapshots=((section, rows),)).health.problems


def copies(*given: tuple[Batch, ...], ranks: tuple[int, ...]) -> Problems:
    return link(*[(log(*batches), DEEP, rank) for batches, rank in zip(given, ranks, strict=True)]).health.problems


FLAWS: dict[ProblemKind, Callable[[], Problems]] = {
    ProblemKind.OFFSETS_IN_NO_FILE: lambda: copies((data(0),), (data(5),), ranks=(TODAY, TODAY)),
    ProblemKind.HOLE_IN_FILE: lambda: problems_of(data(0), data(2)),
    ProblemKind.BATCHES_MISSING: lambda: problems_of(piece={"first_position": 70}),
    ProblemKind.INVALID_BATCH: lambda: problems_of(data(0), replace(data(1), is_valid=False)),
    ProblemKind.CONTESTED_LINE: lambda: problems_of(piece={"contested_offset": 2}),
    ProblemKind.UNPROVEN_START: lambda: problems_of(section={"is_start_proven": False}),
    ProblemKind.UNPROVEN_END: lambda: problems_of(section={"is_end_proven": False}),
    ProblemKind.TEXT_NOT_UNDERSTOOD: lambda: problems_of(section={"text_end_bytes": 99_999, "grammar": BINARY}),
    ProblemKind.LINES_OF_OTHERS: lambda: problems_of(section={"text_end_bytes": 99_999}),
    ProblemKind.INPUT_PROBLEM: lambda: problems_of(section={"input_problem": "byte 9: cut off"}),
    ProblemKind.EMPTY_BATCH: lambda: problems_of(data(0), replace(data(1), record_count=0)),
    ProblemKind.LEADER_EPOCHS_FALL: lambda: problems_of(data(0, leader_epoch=3), data(1, leader_epoch=2)),
    ProblemKind.TORN_TAIL: torn_inside,
    ProblemKind.MAY_BE_HEADER_KEYS: lambda: problems_of(piece={"doubtful_offset": 2, "producers": NO_APPENDS}),
    ProblemKind.HEADER_KEYS_MAY_OPEN: lambda: problems_of(piece={"doubtful_offset": 2}),
    ProblemKind.COPIES_DIFFER: lambda: copies((data(0),), (data(0, crc=99),), ranks=(TODAY, TODAY)),
    ProblemKind.COPY_NOT_THE_LOG: lambda: copies(
        (data(0), data(1)), (data(0), data(1, leader_epoch=3)), ranks=(TODAY, YESTERDAY)
    ),
    ProblemKind.TAIL_IN_DOUBT: lambda: copies((data(1, leader_epoch=1),), (data(0),), ranks=(TODAY, YESTERDAY)),
    ProblemKind.ENDS_BEFORE_EARLIER_CAPTURE: lambda: copies(BATCHES[:3], BATCHES, ranks=(TODAY, YESTERDAY)),
    ProblemKind.ENDS_BEFORE_SNAPSHOT: lambda: (
        link((log(*BATCHES[:3]), DEEP, TODAY), snapshots=(snapshot_evidence(WHOLE, 4),)).health.problems
    ),
    ProblemKind.SNAPSHOT_DISAGREES: disagreeing,
    ProblemKind.NOT_IN_CAPTURE: lambda: copies((data(0),), ranks=(YESTERDAY,)),
    ProblemKind.SEVERAL_TOPIC_IDS: lambda: problems_of(others=(said_topic_id("a"), said_topic_id("b"))),
}


def test_evidence_without_a_flaw_has_no_problem() -> None:
    assert problems_of() == ()


@pytest.mark.parametrize("kind", ProblemKind)
def test_each_flaw_has_its_kind(kind: ProblemKind) -> None:
    assert [problem.kind for problem in FLAWS[kind]()] == [kind]


def test_what_reading_says_of_an_input_cannot_make_it_another_kind() -> None:
    """A path that was dumped may say anything, also what is said of offsets that compaction removed."""
    (problem,) = problems_of(section={"input_problem": "/logs/offsets 0 to 9 are in no file"})
    assert problem.kind == ProblemKind.INPUT_PROBLEM
