"""What this product says of log directories, read and judged without Spark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.kafka_log.program import NONE, Producer
from tests.log_dir.reading import plans, rows_of, scans_of, sorted_files
from tests.torture.harness import Item, history_of
from tests.torture.inputs import ReadInput
from txn_analysis.config import Settings
from txn_analysis.core.answer import answers_of
from txn_analysis.reading.broker_files import BrokerFile, PassedOver
from txn_analysis.reading.sections import LOG, SNAPSHOT
from txn_analysis.reconstruct.segments import HOLES
from txn_analysis.tables import PRODUCER_SNAPSHOTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tests.kafka_log.program import Told
    from tests.kafka_log.requests import Story
    from txn_analysis.core.answer import Answer
    from txn_analysis.core.history import History
    from txn_analysis.reading.plan import PlannedInput

Row = dict[str, Any]


@dataclass(frozen=True)
class Audited:
    """What an audit says of one log, in the fields of `program.Said`.

    `doubts` say why the evidence is not whole: of the open transactions, and of the log beside what compaction leaves.
    """

    log_start_offset: int
    log_end_offset: int
    last_stable_offset: int
    has_late_transaction: bool
    producers: dict[int, Producer]
    doubts: frozenset[str]


def audit(stories: Sequence[Story], told: Sequence[Told]) -> list[Audited]:
    """Judge the folders that stories left."""
    histories = [_history(story, one) for story, one in zip(stories, told, strict=True)]
    return [_audited(history, answer) for history, answer in zip(histories, answers_of(histories), strict=True)]


def _history(story: Story, told: Told) -> History:
    settings = Settings(as_of_ms=told.living.now_ms, transaction_max_timeout_ms=story.max_timeout_ms)
    return history_of([Item(item, 0) for item in _inputs(told.folder)], settings)


def _inputs(folder: Path) -> list[ReadInput]:
    """Every file that is evidence; each other one is known to be none.

    Raises:
        AssertionError: a file that Kafka wrote is not understood.
    """
    unknown = {file.path: what for file, what in sorted_files(folder).items() if not _is_known(what)}
    assert not unknown, unknown
    found = [_read(plan) for plan in plans(folder)]
    refused = {item.planned.path: item.planned.problem for item in found if item.planned.problem}
    assert not refused, refused
    return found


def _is_known(what: object) -> bool:
    return isinstance(what, BrokerFile | PassedOver)


def _read(plan: PlannedInput) -> ReadInput:
    kind = plan.sections[0].kind if plan.sections else None
    absent = dict.fromkeys(PRODUCER_SNAPSHOTS.schema.names)
    place = {"input_id": plan.input_id, "section_index": 0}
    records = [absent | row | place for row in rows_of(plan)] if kind == SNAPSHOT else []
    return ReadInput(plan, scans_of(plan) if kind == LOG else [], records)


def _audited(history: History, answer: Answer) -> Audited:
    (health,) = answer.health
    oldest = min(answer.findings, key=lambda finding: finding.txn_start_offset, default=None)
    idle_ms = oldest.idle_ms if oldest else None
    return Audited(
        max(health["log_start_offset"] or 0, min(s["file_base_offset"] for s in history.sections if s["kind"] == LOG)),
        health["end_offset"],
        health["last_stable_offset"],
        idle_ms is not None and idle_ms > history.settings.late_after_ms,
        {row["producer_id"]: _producer(row) for row in health["producers"]},
        frozenset(_doubts(health, answer)),
    )


def _doubts(health: Row, answer: Answer) -> Iterator[str]:
    for problem in health["problems"]:
        if problem["kind"] not in HOLES:
            yield problem["reason"]
    for judgement in answer.judgements:
        yield from judgement.facts.open.evidence_gaps


def _producer(row: Row) -> Producer:
    fields = ("producer_id", "producer_epoch", "coordinator_epoch", "last_sequence", "last_timestamp_ms")
    known = [row[name] for name in (*fields, "txn_start_offset")]
    return Producer(*(NONE if value is None else value for value in known))
