"""Where an open transaction stands: new, gone or still there against the night before, and whether people accepted it.

A report tells of every one but those in progress, which come and go. One is the same in two runs where producer
and partition are the same and its offsets overlap: a start that is not exact may move between two nights.

A decision of people names a finding, a date and the evidence that it was made of. It changes no verdict and no plan. It
counts for a run whose files were copied before its date, as long as the evidence is what it was: `EVIDENCE`, and
nothing that a night more changes by itself, such as how late a transaction is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from enum import StrEnum
from itertools import chain
from operator import attrgetter
from typing import NamedTuple

from txn_analysis.columns.arrays import by_key
from txn_analysis.tables import Finding
from txn_analysis.tables.finding_rows import FindingRows
from txn_analysis.tables.keeping import Decision
from txn_analysis.verdict import Verdict

TOLD = tuple(verdict for verdict in Verdict if verdict is not Verdict.IN_PROGRESS)
"""The verdicts of which a report tells somebody."""


class ToldFinding(NamedTuple):
    """An open transaction of an earlier run, with the verdict that it had there; `last_offset` is null if unknown."""

    run_id: str
    finding_id: str
    verdict: Verdict
    rule: str
    topic: str
    partition: int
    producer_id: int
    txn_start_offset: int
    last_offset: int | None
    transactional_id: str | None

    @property
    def topic_partition(self) -> str:
        """Kafka's own spelling, such as `orders-3`."""
        return f"{self.topic}-{self.partition}"


class StillOpen(NamedTuple):
    """A finding that the night before told of as well.

    `night_count` is in how many runs in a row, this one included; where `is_counted_whole` is false, it may be more.
    `first_run_id` is the first of them, made of files that were copied at `first_as_of_ms`.
    """

    finding_id: str
    night_count: int
    is_counted_whole: bool
    first_run_id: str
    first_as_of_ms: int


class Since(NamedTuple):
    """A run against the one before it, of the same cluster: its run, its capture, and when that was copied.

    `new` and `still` are findings of this run, by id: those that the run before did not tell of, and those that it did.
    `gone` are findings of the run before that this one does not tell of any more; `verify` says what ended them.
    """

    run_id: str
    capture: str
    as_of_ms: int
    new: tuple[str, ...]
    still: tuple[StillOpen, ...]
    gone: tuple[ToldFinding, ...]

    def without(self, accepted: Collection[str]) -> Since:
        """The same without findings that are accepted; what is gone nobody needs to accept."""
        if not accepted:
            return self
        still = tuple(one for one in self.still if one.finding_id not in accepted)
        return self._replace(new=tuple(name for name in self.new if name not in accepted), still=still)

    def of_topics(self, topics: Collection[str], findings: Iterable[Finding | ToldFinding]) -> Since:
        """The same of some topics alone; `findings` are those of the run that are on them."""
        ids = {finding.finding_id for finding in findings}
        return self._replace(
            new=tuple(name for name in self.new if name in ids),
            still=tuple(one for one in self.still if one.finding_id in ids),
            gone=tuple(one for one in self.gone if one.topic in topics),
        )


class Night(NamedTuple):
    """An earlier run: when its files were copied, and what it told of."""

    run_id: str
    capture: str
    as_of_ms: int
    findings: tuple[ToldFinding, ...]


def since(findings: Iterable[Finding | ToldFinding], nights: Iterator[Night], *, is_all: bool) -> Since | None:
    """What a run tells against the nights behind it; None without one.

    Args:
        findings: all of the run.
        nights: the runs behind it, newest first. No more of them is taken than the oldest finding needs.
        is_all: whether these are all that there are; else a count that reaches their end may be too small.
    """
    last = next(nights, None)
    if last is None:
        return None
    shown = sorted((finding for finding in findings if finding.verdict in TOLD), key=_ORDER)
    places = _by_place(last.findings)
    there = {id(one) for finding in shown for one in _same(finding, places)}
    gone = sorted((one for one in last.findings if id(one) not in there), key=_ORDER)
    counted = {one.finding_id: one for one in _counted(shown, chain([last], nights), is_all=is_all)}
    names = [finding.finding_id for finding in shown]
    new = tuple(name for name in names if name not in counted)
    still = tuple(counted[name] for name in names if name in counted)
    return Since(last.run_id, last.capture, last.as_of_ms, new, still, tuple(gone))


def _counted(
    findings: Iterable[Finding | ToldFinding], nights: Iterable[Night], *, is_all: bool
) -> Iterator[StillOpen]:
    """In how many nights in a row each finding is there, of those that the first of the nights has."""
    there, first = [*findings], dict[str, StillOpen]()
    for number, night in enumerate(nights, start=2):
        places = _by_place(night.findings)
        seen = [finding for finding in there if _same(finding, places)]
        kept = {finding.finding_id for finding in seen}
        for name in (finding.finding_id for finding in there):
            if name in kept:
                first[name] = StillOpen(name, number, is_all, night.run_id, night.as_of_ms)
            elif name in first:
                yield first[name]._replace(is_counted_whole=True)
        there = seen
        if not there:
            return
    yield from (first[finding.finding_id] for finding in there)


_ORDER = attrgetter("topic", "partition", "txn_start_offset", "producer_id")
_Places = dict[tuple[str, int, int], list[ToldFinding]]


def _by_place(findings: Iterable[ToldFinding]) -> _Places:
    return by_key(findings, attrgetter("topic", "partition", "producer_id"))


def _same(finding: Finding | ToldFinding, places: _Places) -> list[ToldFinding]:
    """Of earlier findings those that are the same transaction."""
    others = places.get((finding.topic, finding.partition, finding.producer_id), [])
    return [one for one in others if _overlap(_span(finding), _span(one))]


def _span(one: Finding | ToldFinding) -> tuple[int, int | None]:
    return one.txn_start_offset, one.last_offset


def _overlap(one: tuple[int, int | None], other: tuple[int, int | None]) -> bool:
    """Two spans of offsets share one; an end that is not known is above everything."""
    return (other[1] is None or one[0] <= other[1]) and (one[1] is None or other[0] <= one[1])


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
    by_place = by_key(decisions, attrgetter("decision.place"))
    accepted = []
    for finding in findings if by_place else ():
        about = by_place.get((*finding.producer_place, finding.txn_start_offset), [])
        about_it = [_acceptance_of(finding, one, as_of_ms) for one in about if one.decision.until_ms is not None]
        if about_it:
            accepted.append(next((one for one in about_it if one.standing is Standing.ACCEPTED), about_it[-1]))
    return tuple(accepted)


def _acceptance_of(finding: Finding, decided: Decided, as_of_ms: int | None) -> AcceptedFinding:
    decision, source = decided
    assert decision.until_ms is not None
    changed = tuple(name for name in EVIDENCE if getattr(finding, name) != getattr(decision, name))
    is_over = as_of_ms is None or as_of_ms >= decision.until_ms
    standing = Standing.EXPIRED if is_over else Standing.EVIDENCE_CHANGED if changed else Standing.ACCEPTED
    words = decision.until_ms, decision.reason, decision.accepted_by
    return AcceptedFinding(finding.finding_id, standing, *words, source, changed)


def decision_about(
    finding: Finding, cluster: str, until_ms: int | None, reason: str, accepted_by: str | None
) -> Decision:
    """The decision about a finding as it is now; `decision_number` is 0 before it is written."""
    place = *finding.producer_place, finding.txn_start_offset
    evidence = {name: getattr(finding, name) for name in EVIDENCE}
    words = until_ms, reason, accepted_by, finding.run_id
    return Decision(finding.finding_id, 0, cluster, *place, *words, **evidence)


def unaccepted(findings: Iterable[Finding], accepted: Iterable[AcceptedFinding]) -> FindingRows:
    """The findings that nobody accepted, or that came back."""
    named = {one.finding_id for one in accepted if one.standing is Standing.ACCEPTED}
    rows = FindingRows.of(findings)
    return rows.where([name not in named for name in rows.column("finding_id").to_pylist()]) if named else rows
