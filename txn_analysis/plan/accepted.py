"""Open transactions that people accepted: which of a run's findings that holds for, and which came back.

A decision names a finding, a date and the evidence that it was made of. It changes no verdict and no plan. It counts
for a run whose files were copied before its date, as long as the evidence is what it was: `EVIDENCE`, and nothing that
a night more changes by itself, such as how late a transaction is.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from txn_analysis.tables.accepted import Decision
from txn_analysis.tables.finding_rows import FindingRows

if TYPE_CHECKING:
    from collections.abc import Iterable

    from txn_analysis.tables import Finding

EVIDENCE = ("verdict", "rule", "producer_epoch", "last_offset", "transactional_id", "must_end_producer")
"""What a decision rests on: the answer and the rule that gave it, what the producer wrote last, whose it is, and
whether its client may write there again."""


class Standing(StrEnum):
    """Whether a decision counts for a run."""

    ACCEPTED = "accepted"
    EVIDENCE_CHANGED = "evidence_changed"
    EXPIRED = "expired"


class AcceptedFinding(NamedTuple):
    """A finding of a run that somebody accepted, by its id; where `standing` is not `accepted`, it counts again.

    The decision holds for files copied before `until_ms`, epoch milliseconds. `changed` names the evidence that is not
    what it was. `source` is the file that the decision stands in, or `warehouse`.
    """

    finding_id: str
    standing: Standing
    until_ms: int
    reason: str
    accepted_by: str | None
    source: str
    changed: tuple[str, ...]


class Decided(NamedTuple):
    """A decision, and where it stands."""

    decision: Decision
    source: str


def accepted_findings(
    findings: Iterable[Finding], decisions: Iterable[Decided], as_of_ms: int | None
) -> tuple[AcceptedFinding, ...]:
    """What decisions say of the findings of a run, in the order of its findings.

    Args:
        findings: of the run.
        decisions: about its cluster. Of two about one finding the first counts that is still good, else the last one.
        as_of_ms: when its files were copied; where that is not known, no decision counts.
    """
    by_place: dict[tuple[str, int, int, int], list[Decided]] = {}
    for one in decisions:
        by_place.setdefault(one.decision.place, []).append(one)
    found = []
    for finding in findings if by_place else ():
        about = by_place.get((*finding.producer_place, finding.txn_start_offset), [])
        said = [_said_of(finding, one, as_of_ms) for one in about if one.decision.until_ms is not None]
        if said:
            found.append(next((one for one in said if one.standing is Standing.ACCEPTED), said[-1]))
    return tuple(found)


def _said_of(finding: Finding, decided: Decided, as_of_ms: int | None) -> AcceptedFinding:
    decision, source = decided
    assert decision.until_ms is not None
    changed = tuple(name for name in EVIDENCE if getattr(finding, name) != getattr(decision, name))
    is_over = as_of_ms is None or as_of_ms >= decision.until_ms
    standing = Standing.EXPIRED if is_over else Standing.EVIDENCE_CHANGED if changed else Standing.ACCEPTED
    said = decision.until_ms, decision.reason, decision.accepted_by
    return AcceptedFinding(finding.finding_id, standing, *said, source, changed)


def decision_about(
    finding: Finding, cluster: str, until_ms: int | None, reason: str, accepted_by: str | None
) -> Decision:
    """The decision about a finding as it is now; `decision_number` is 0 before it is written."""
    place = *finding.producer_place, finding.txn_start_offset
    evidence = {name: getattr(finding, name) for name in EVIDENCE}
    said = until_ms, reason, accepted_by, finding.run_id
    return Decision(finding.finding_id, 0, cluster, *place, *said, **evidence)


def unaccepted(findings: Iterable[Finding], accepted: Iterable[AcceptedFinding]) -> FindingRows:
    """The findings that nobody accepted, or that came back."""
    named = {one.finding_id for one in accepted if one.standing is Standing.ACCEPTED}
    rows = FindingRows.of(findings)
    return rows.where([name not in named for name in rows.column("finding_id").to_pylist()]) if named else rows
