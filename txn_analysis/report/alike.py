"""Open transactions that repeat: one application, one cause. A report shows one, and how many more there are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any, NamedTuple

from txn_analysis.kafka.address import Address
from txn_analysis.report.figures import all_hidden_by, all_hidden_records, by_damage
from txn_analysis.report.model import AuditReport
from txn_analysis.tables import Finding
from txn_analysis.tables.finding_rows import FindingRows
from txn_analysis.text import clip, count, escape, listed
from txn_analysis.verdict import Verdict

FEW = 3
"""So many of one group are shown each by itself; the script of the page has the same number."""
_OWNER_WIDTH = 80
_MOST_PLACES = 5
_MOST_BLOCKS = 20
_MOST_ROWS = 50


class _Member(NamedTuple):
    verdict: Verdict
    rule: str
    cause_name: str | None
    application: str | None
    topic: str
    partition: int
    txn_start_offset: int
    transactional_id: str | None
    producer_id: int
    is_producer_live: bool
    producer_may_return: bool


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
        """The same as `summary`, and how many are not on the page; escaped."""
        left_out = len(self.findings) - self.shown
        return f"{self.summary(report)}{f'; {left_out} of them not on this page' if left_out else ''}"

    @property
    def others(self) -> str:
        """Where those behind the first are, as far as there is room, and how many of their ids to fence; escaped."""
        first, *others = self.findings.records(_Member)
        places = [escape(str(Address.of_transaction(one))) for one in others]
        is_hanging = first.verdict is Verdict.HANGING
        can_write = (one for one in others if one.is_producer_live or one.producer_may_return)
        ids = {one.transactional_id for one in can_write if is_hanging}
        ids.discard(first.transactional_id)
        fenced = f". Fence {count(len(ids), 'other id')} as well: the script prints how" if ids else ""
        return f"{listed(places, _MOST_PLACES)}{fenced}"

    def summary(self, report: AuditReport) -> str:
        """How many more there are than the first, and what they hide; escaped."""
        more = len(self.findings) - 1
        partitions = len(self.findings.topic_partitions)
        hidden = all_hidden_records(all_hidden_by(report, self.findings))
        whose = f"of {self.owner} with the same verdict, rule and cause"
        return (
            f"{more} more {whose}; together {count(len(self.findings), 'transaction')} on "
            f"{count(partitions, 'partition')}, {hidden}"
        )


def alike(findings: Iterable[Finding], most: int, most_of_one: int) -> list[Alike]:
    """What repeats, in the order of the worst of each; of all together at most `most` are shown.

    Args:
        findings: in the order in which they are read.
        most: so many are shown.
        most_of_one: so many of one group, unless there is room: one application must not hide all others.
    """
    groups = _groups(FindingRows.of(findings))
    shown = [0] * len(groups)
    for at_most in (1, most_of_one, most):
        left = most - sum(shown)
        for number, (_, members) in enumerate(groups):
            added = max(min(len(members), at_most, shown[number] + left) - shown[number], 0)
            shown[number] += added
            left -= added
    return [Alike(*group, number) for group, number in zip(groups, shown, strict=True) if number]


class Shown(NamedTuple):
    """What of the open transactions has room in a text: a block each, or a row each; and what has none.

    `groups` are by the finding that stands for them.
    """

    blocks: FindingRows
    rows: list[Finding]
    left_out: FindingRows
    groups: Mapping[str, Alike]


def shown_of(report: AuditReport) -> Shown:
    """Which findings a text of a report shows, by damage: what hangs in blocks, what is beyond them in rows."""
    ordered = by_damage(report, report.unaccepted)
    number_hanging = ordered.verdict_counts[Verdict.HANGING]
    # Where not each has room, what repeats gives room to others.
    is_long = number_hanging > _MOST_BLOCKS or len(ordered) - number_hanging > _MOST_ROWS
    groups = {group.findings[0].finding_id: group for group in repeated(ordered, of_one_id=not is_long)}
    repeats = {name for group in groups.values() for name in _ids(group.findings)[1:]}
    single = ordered.where([name not in repeats for name in _ids(ordered)])
    hanging = single.of_verdict(Verdict.HANGING)
    others = single.of_verdict(*(verdict for verdict in Verdict if verdict is not Verdict.HANGING))
    # Thousands that hang leave room for what must not be aborted.
    more = hanging[_MOST_BLOCKS : _MOST_BLOCKS + _MOST_ROWS // 2]
    rows = others[: _MOST_ROWS - len(more)]
    seen = {*_ids(hanging[: _MOST_BLOCKS + len(more)]), *_ids(rows)}
    left_out = ordered.where([name not in seen for name in _ids(ordered)])
    return Shown(hanging[:_MOST_BLOCKS], [*more, *rows], left_out, groups)


def _ids(findings: FindingRows) -> list[str]:
    ids: list[str] = findings.column("finding_id").to_pylist()
    return ids


def repeated(findings: FindingRows, *, of_one_id: bool) -> list[Alike]:
    """The groups of more than `FEW`, of which a text shows the first; in the order of the worst of each.

    Args:
        findings: in their order.
        of_one_id: only what one transactional id has open, as Streams does; of what hangs each is shown.
    """
    return [Alike(*group, 1) for group in _groups(findings, of_one_id=of_one_id) if len(group[1]) > FEW]


def _groups(findings: FindingRows, *, of_one_id: bool = False) -> list[tuple[str, FindingRows]]:
    """The owner and the members of each group, where those of one transactional id follow each other."""
    groups: dict[tuple[Any, ...], dict[str | int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for place, one in enumerate(findings.records(_Member)):
        name, producer_id = one.transactional_id, one.producer_id
        owner: tuple[str, str | int] = ("producer id", producer_id) if name is None else ("transactional id", name)
        if of_one_id and (name is None or one.verdict is Verdict.HANGING):
            continue
        if one.application is not None and not of_one_id:
            owner = "application", one.application
        groups[one.verdict, one.rule, one.cause_name, *owner][producer_id if name is None else name].append(place)
    return [
        (f"{kind} {clip(str(name), _OWNER_WIDTH)}", findings.at([*chain.from_iterable(places.values())]))
        for (*_, kind, name), places in groups.items()
    ]
