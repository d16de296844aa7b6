"""`commit_may_be_missing`: a commit's marker may be lost or was never sent, and its decision compacted away.

Compaction of `__transaction_state` is normal, so this is common where old transactions are looked at once, and rare in
nightly audits, whose earlier captures keep what compaction takes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txn_analysis.judge.rules.rule import Rule
from txn_analysis.verdict import Verdict

if TYPE_CHECKING:
    from txn_analysis.judge.facts import Facts
    from txn_analysis.logic import Truth


def when(facts: Facts) -> Truth:
    """A decision may be gone, and nobody says that no record was ever lost."""
    return facts.loss.is_possible


def evidence(facts: Facts) -> list[str | None]:
    """Why a decision may be gone."""
    return [facts.coordinator_says, *facts.loss.doubts, facts.log_followed]


def missing(facts: Facts) -> list[str]:
    """The history, or the operator's word."""
    gone = "the records of __transaction_state that are gone, from an earlier copy"
    return [facts.or_word(gone, "no_records_lost")]


def why_not(facts: Facts) -> str:
    """The history is whole, or the operator's word is given."""
    if facts.loss.doubts:
        return "the operator says that no acknowledged record was ever lost (--no-records-lost)"
    return "no record that could have decided it is gone"


COMMIT_MAY_BE_MISSING = Rule(
    name="commit_may_be_missing",
    verdict=Verdict.INCONCLUSIVE,
    meaning="a commit's marker may be lost, and its decision compacted away",
    when=when,
    evidence=evidence,
    missing=missing,
    why_not=why_not,
    reason="The coordinator has nothing for this partition, but its older records are gone: one of them may have been "
    "a commit whose marker was lost (an unclean election, a lost disk) or never sent. An abort would then destroy "
    "acknowledged data.",
    remedy="If no acknowledged record of these topics or of `__transaction_state` was ever lost (the runbook says how "
    "to know), say so with `--no-records-lost`. Nightly audits into one warehouse keep what compaction takes, and need "
    "no such word.",
)
