"""Open transactions that repeat: one application, one cause. A page shows one of them, and how many more there are."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from txn_analysis.report.figures import all_hidden_by
from txn_analysis.tables.finding_rows import FindingRows
from txn_analysis.text.escape import clip
from txn_analysis.text.words import count
from txn_analysis.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable

    from txn_analysis.report.model import AuditReport
    from txn_analysis.tables import Finding

_OWNER_WIDTH = 80


class Alike(NamedTuple):
    """Open transactions of one owner with one verdict, rule and cause, the worst first.

    Attributes:
        owner: the application, else the transactional id, else the producer id; escaped.
        findings: all of them.
        shown: how many of them are shown, from the first on.
    """

    owner: str
    findings: FindingRows
    shown: int

    def sentence(self, report: AuditReport) -> str:
        """How many more there are than the first, and what they hide; escaped."""
        more = len(self.findings) - 1
        partitions = len(self.findings.topic_partitions)
        hidden = all_hidden_by(report, self.findings)
        unknown = hidden.count(None)
        records = count(sum(number or 0 for number in hidden), "record")
        whose = f"of {self.owner} with the same verdict, rule and cause"
        doubt = f", and an unknown number on {count(unknown, 'partition')}" if unknown else ""
        left_out = len(self.findings) - self.shown
        rest = f"; {left_out} of them not on this page" if left_out else ""
        return (
            f"{more} more {whose}; together {count(len(self.findings), 'transaction')} on "
            f"{count(partitions, 'partition')}, {records} hidden{doubt}{rest}"
        )


def alike(findings: Iterable[Finding], most: int, most_of_one: int) -> list[Alike]:
    """What repeats, in the order of the worst of each; of all together at most `most` are shown.

    Args:
        findings: in the order in which they are read.
        most: so many are shown.
        most_of_one: so many of one group, unless there is room: one application must not hide all others.
    """
    rows, groups = FindingRows.of(findings), dict[_Alike, list[int]]()
    for place, one in enumerate(rows.told(_Named)):
        groups.setdefault(_key(one), []).append(place)
    shown = dict.fromkeys(groups, 0)
    for at_most in (1, most_of_one, most):
        left = most - sum(shown.values())
        for key, members in groups.items():
            added = min(len(members), at_most, shown[key] + left) - shown[key]
            shown[key] += max(added, 0)
            left -= max(added, 0)
    return [Alike(_owner(key), rows.at(members), shown[key]) for key, members in groups.items() if shown[key]]


class _Named(NamedTuple):
    verdict: Verdict
    rule: str
    cause_name: str | None
    application: str | None
    transactional_id: str | None
    producer_id: int


_Alike = tuple[Verdict, str, str | None, str, str | int]


def _key(one: _Named) -> _Alike:
    return one.verdict, one.rule, one.cause_name, *_identity(one)


def _identity(finding: _Named) -> tuple[str, str | int]:
    if finding.application is not None:
        return "application", finding.application
    if finding.transactional_id is not None:
        return "transactional id", finding.transactional_id
    return "producer id", finding.producer_id


def _owner(key: _Alike) -> str:
    *_, kind, name = key
    return f"{kind} {clip(str(name), _OWNER_WIDTH)}"
