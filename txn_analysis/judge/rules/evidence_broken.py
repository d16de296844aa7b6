"""`evidence_broken`: the log is not proven whole from the transaction's start to its end.

Every file begins at position 0, positions and offsets chain, no batch is invalid or contested, no copy contradicts
another, and no snapshot disagrees. Compaction never passes an open transaction, so no hole is legal here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txn_analysis.judge.rules.rule import Rule
from txn_analysis.verdict import Verdict

if TYPE_CHECKING:
    from txn_analysis.judge.facts import Facts
    from txn_analysis.logic import Truth


def when(facts: Facts) -> Truth:
    """Something of its log is missing or broken."""
    return len(facts.open.evidence_gaps) > 0 or facts.may_be_a_dead_leaders


def evidence(facts: Facts) -> list[str | None]:
    """Where it begins."""
    return [f"open from offset {facts.open.txn_start_offset} as far as the files show"]


def missing(facts: Facts) -> list[str]:
    """What is missing of its log."""
    unreplicated = ["a replica that has its data too: it lies above the high watermark that its own folder records"]
    return [*facts.open.evidence_gaps, *(unreplicated if facts.may_be_a_dead_leaders else ())]


def why_not(_: Facts) -> str:
    """The log of its partition is whole."""
    return "the log is proven whole from the start of the transaction to its end"


EVIDENCE_BROKEN = Rule(
    name="evidence_broken",
    verdict=Verdict.INCONCLUSIVE,
    meaning="the log is not proven whole from the transaction's start to its end",
    when=when,
    evidence=evidence,
    missing=missing,
    why_not=why_not,
    reason="A missing or damaged part of the log could hold the end marker. A file that is not there, an invalid "
    "batch, a torn end, copies that contradict each other, or a forged line all count; so does a partition that an "
    "earlier capture has and this one does not. Where nothing but a hole of compaction is behind the start, an old "
    "broker's cleaner may have taken the end marker before its data (KAFKA-8351, KAFKA-13727, KAFKA-14055).",
    remedy="Copy all files of the partition again from its leader, with the newest producer snapshot, and audit "
    "again. The line of missing evidence names the offset.",
)
