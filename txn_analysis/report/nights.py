"""What a report says of other nights and of people: what is new, gone and still there, and what is accepted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from txn_analysis.kafka.address import Address
from txn_analysis.plan.standing import AcceptedFinding, Since, Standing, StillOpen, ToldFinding
from txn_analysis.report.figures import Reader
from txn_analysis.report.finding_text import command_beside, name_of
from txn_analysis.report.model import AuditReport
from txn_analysis.text import clip, count, escape, iso_utc

_ID_WIDTH = 80
_REASON_WIDTH = 300


class NightRow(NamedTuple):
    """One open transaction: `kind` is new, gone or still there against the run before, or what became of a decision.

    `text` is escaped.

    `finding_id` is None where it is no finding of the run.
    """

    kind: str
    text: str
    finding_id: str | None = None


def second_line(report: AuditReport) -> str | None:
    """How many are new, gone, still there and accepted; None where no run is before this one, and none is accepted."""
    accepted = len(report.counted_accepted)
    decided = [f"{accepted} accepted"] if accepted else []
    if returned := len(report.accepted) - accepted:
        decided.append(f"{returned} no longer accepted")
    since = _unaccepted_since(report)
    if since is None:
        return f"Decided by people: {', '.join(decided)}." if decided else None
    counted = f"{len(since.new)} new", f"{len(since.gone)} gone", f"{len(since.still)} still there"
    return f"Since last run: {', '.join((*counted, *decided))}."


def title(report: AuditReport) -> str:
    """What stands above these rows."""
    return "Accepted" if report.since is None else "Since last run"


def night_rows(report: AuditReport, *, shows_accepted: bool) -> Iterator[NightRow]:
    """What is new, gone and still there, then what is no longer accepted, and at last what is, where it is shown."""
    since = _unaccepted_since(report)
    if since is None and not report.accepted:
        return
    findings = {one.finding_id: one for one in report.findings.records(ToldFinding)}
    if since is not None:
        for name in since.new:
            yield NightRow("new", f"{_where(findings[name])}: {findings[name].verdict.value}", name)
        for one in since.gone:
            yield NightRow("gone", f"{_where(one)}: was {one.verdict.value}")
        for still in since.still:
            how_long = f"{_nights(still)}, first in the files of {iso_utc(still.first_as_of_ms)}"
            yield NightRow("still there", f"{_where(findings[still.finding_id])}: {how_long}", still.finding_id)
    for kind, is_counted in (("came back", False), ("accepted", True)):
        for decided in report.accepted if shows_accepted or not is_counted else ():
            if (decided.standing is Standing.ACCEPTED) is is_counted:
                txn = findings[decided.finding_id]
                yield NightRow(kind, f"{_where(txn)}: {txn.verdict.value}, {_decision(decided)}", txn.finding_id)


def _unaccepted_since(report: AuditReport) -> Since | None:
    """What is new and still there, without what is accepted."""
    return None if report.since is None else report.since.without({one.finding_id for one in report.counted_accepted})


def _decision(decided: AcceptedFinding) -> str:
    by = f" by {clip(decided.accepted_by, _ID_WIDTH)}" if decided.accepted_by is not None else ""
    decision = f"accepted until {iso_utc(decided.until_ms)}{by}: {clip(decided.reason, _REASON_WIDTH)}"
    if decided.standing is Standing.EVIDENCE_CHANGED:
        return f"{decision}; since then changed: {', '.join(decided.changed)}"
    return f"{decision}; that moment has passed" if decided.standing is Standing.EXPIRED else decision


def history_command(report: AuditReport, reader: Reader) -> str | None:
    """What tells the history of everything that ever hung, and what ended it; None where no run is before this one."""
    return None if report.since is None else command_beside(report, reader, "verify --history")


def _where(one: ToldFinding) -> str:
    return f"{escape(str(Address.of_transaction(one)))}, {name_of(one, _ID_WIDTH)}"


def _nights(one: StillOpen) -> str:
    return f"{count(one.night_count, 'night')}{'' if one.is_counted_whole else ' or more'}"
