"""What this product says of log directories, read and judged without Spark."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tests.proof.kafka.log.program import NONE, Producer, Told
from tests.proof.kafka.log.requests import Story
from tests.tools.harness import Item, history_of
from tests.tools.log_dirs.at_hand import inputs_of
from tests.tools.stories.answer import Answer, answers_of
from tests.tools.stories.history import History
from txn_analysis.kafka.names import LOG
from txn_analysis.kafka.problems import HOLES
from txn_analysis.settings import Settings

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
    return history_of([Item(item, 0) for item in inputs_of(told.folder)], settings)


def _audited(history: History, answer: Answer) -> Audited:
    (health,) = answer.health
    oldest = min(answer.findings, key=lambda finding: finding.txn_start_offset, default=None)
    idle_ms = oldest.idle_ms if oldest else None
    return Audited(
        max(health["log_start_offset"] or 0, min(s["file_base_offset"] for s in history.sections if s["kind"] == LOG)),
        health["end_offset"],
        health["last_stable_offset"],
        idle_ms is not None and idle_ms > history.settings.late_after_ms,
        {row["producer_id"]: producer_of(row) for row in health["producers"]},
        frozenset(doubts_of(health, answer)),
    )


def doubts_of(health: Row, answer: Answer) -> Iterator[str]:
    """Why the evidence of one partition is not whole, but for what compaction leaves."""
    for problem in health["problems"]:
        if problem["kind"] not in HOLES:
            yield problem["reason"]
    place = health["topic"], health["partition"]
    for judgement in answer.judgements:
        if judgement.case.txn.topic_partition == place:
            yield from judgement.case.txn.evidence_gaps or ()


def producer_of(row: Row) -> Producer:
    """One producer of `partition_health`."""
    fields = ("producer_id", "producer_epoch", "coordinator_epoch", "last_sequence", "last_timestamp_ms")
    known = [row[name] for name in (*fields, "txn_start_offset")]
    return Producer(*(NONE if value is None else value for value in known))
