"""What a report says of other nights: what is new, gone and still there, against the run before it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from txn_analysis.text.escape import clip, escape
from txn_analysis.text.words import count, iso_utc

if TYPE_CHECKING:
    from collections.abc import Iterator

    from txn_analysis.plan.since import StillOpen, ToldFinding
    from txn_analysis.report.figures import Reader
    from txn_analysis.report.model import AuditReport
    from txn_analysis.tables import Finding

_ID_WIDTH = 80


class SinceRow(NamedTuple):
    """One open transaction against the run before: `kind` is new, gone or still there, `text` is escaped.

    `finding_id` is None where it is no finding of the run.
    """

    kind: str
    text: str
    finding_id: str | None = None


def second_line(report: AuditReport) -> str | None:
    """How many are new, gone and still there; None where no run is before this one."""
    since = report.since
    if since is None:
        return None
    longest = max(since.still, key=lambda one: (one.night_count, not one.is_counted_whole), default=None)
    nights = f" (for up to {_nights(longest)})" if longest else ""
    return f"Since last run: {len(since.new)} new, {len(since.gone)} gone, {len(since.still)} still there{nights}."


def since_rows(report: AuditReport) -> Iterator[SinceRow]:
    """What is new, then what is gone, then what is still there, each with what is known of its nights."""
    since = report.since
    if since is None:
        return
    findings = {finding.finding_id: finding for finding in report.findings}
    for name in since.new:
        yield SinceRow("new", f"{_where(findings[name])}: {findings[name].verdict.value}", name)
    for one in since.gone:
        yield SinceRow("gone", f"{_where(one)}: was {one.verdict.value}")
    for still in since.still:
        said = f"{_nights(still)}, first in the files of {iso_utc(still.first_as_of_ms)}"
        yield SinceRow("still there", f"{_where(findings[still.finding_id])}: {said}", still.finding_id)


def history_command(reader: Reader) -> str:
    """What tells the history of everything that ever hung, and what ended it."""
    return f"txn-analysis verify --history{reader.options}"


def _where(one: Finding | ToldFinding) -> str:
    name = f"producer id {one.producer_id}" if one.transactional_id is None else clip(one.transactional_id, _ID_WIDTH)
    return f"{escape(one.topic_partition)} from offset {one.txn_start_offset}, {name}"


def _nights(one: StillOpen) -> str:
    return f"{count(one.night_count, 'night')}{'' if one.is_counted_whole else ' or more'}"
