"""What became of recommended aborts, as tables to print."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from txn_analysis.plan.repair import Repair
from txn_analysis.report.formats import Answer, Column
from txn_analysis.text.escape import escape
from txn_analysis.text.words import count, iso_utc

if TYPE_CHECKING:
    from collections.abc import Sequence

    from txn_analysis.plan.repair import Outcome
    from txn_analysis.questions.verify import Past, Unverified

_TRANSACTION = (
    Column("Topic"),
    Column("Partition"),
    Column("ProducerId"),
    Column("StartOffset"),
    Column("TransactionalId"),
)
VERIFY = (
    *_TRANSACTION,
    Column("Repair"),
    Column("MarkerOffset"),
    Column("LsoBefore"),
    Column("LsoAfter"),
    Column("RecommendedIn"),
    Column("Why"),
)
HISTORY = (
    *_TRANSACTION,
    Column("Rule"),
    Column("Cause"),
    Column("HangingSince"),
    Column("FirstSeenIn"),
    Column("RecommendedIn"),
    Column("Repair"),
    Column("EndedIn"),
    Column("Nights"),
    Column("Times"),
)


def verify_answer(outcomes: Sequence[Outcome]) -> Answer:
    """One row per recommended abort."""
    return Answer(
        VERIFY,
        tuple(
            (
                *_transaction(outcome),
                outcome.repair.value,
                outcome.marker_offset,
                outcome.last_stable_offset_before,
                outcome.last_stable_offset_after,
                outcome.record.run_id,
                outcome.why,
            )
            for outcome in outcomes
        ),
    )


def history_answer(past: Sequence[Past]) -> Answer:
    """One row per transaction that ever hung; `Nights` is how many runs saw it open."""
    return Answer(
        HISTORY,
        tuple(
            (
                *_transaction(item.outcome),
                item.outcome.record.rule,
                item.cause,
                _since(item),
                item.findings[0].run_id,
                item.recommended_in,
                item.outcome.repair.value,
                item.ended_in,
                len(item.findings),
                item.times,
            )
            for item in past
        ),
    )


def what_is_open(open_plan: Unverified) -> str:
    """That nothing later tells what became of a plan, and what would; one line."""
    number = count(open_plan.count, "abort")
    if not open_plan.is_dated:
        undated = f"run {escape(open_plan.run_id)} does not know when its files were copied"
        return f"could not tell what became of {number}: {undated}. Audit them again with --as-of TIME"
    later = f"no capture is later than that of run {escape(open_plan.run_id)}, which recommends them"
    return f"could not tell what became of {number}: {later}. Copy the files again, audit them, then verify"


def in_words(outcomes: Sequence[Outcome]) -> str:
    """How many of which kind, on one line."""
    if not outcomes:
        return "No earlier run has an abort still to be verified.\n"
    counts = Counter(outcome.repair for outcome in outcomes)
    return ", ".join(f"{counts[repair]} {repair.value}" for repair in Repair) + "\n"


def _transaction(outcome: Outcome) -> tuple[str, int, int, int, str | None]:
    record = outcome.record
    return record.topic, record.partition, record.producer_id, record.txn_start_offset, record.transactional_id


def _since(item: Past) -> str:
    """The latest moment at which its last record can have been written, by the brokers' clocks."""
    return iso_utc(item.findings[0].appended_before_ms)
