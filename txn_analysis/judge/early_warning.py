"""Early warning: what does not hang yet and will, and whose; from the open transactions and the coordinator's state.

Counted by application (`judge.applications`), so that a thousand ids of one job are one line. What is kept is bounded:
of each kind the worst applications, and how many ids there are in all. `pipeline` brings the histories.
"""

from __future__ import annotations

import pickle
from collections import Counter, defaultdict
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from txn_analysis.columns.values import rows_of_values, unpickled
from txn_analysis.judge.finding import application_of
from txn_analysis.judge.warnings import (
    OF_ABORTS,
    OF_LAST_RECORDS,
    OPEN_TRANSACTION_NEAR_BOUND,
    WARNINGS,
    Abort,
    Known,
    LastRecord,
    is_near_bound,
)
from txn_analysis.kafka.transactions import ONGOING, PREPARE_ABORT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from txn_analysis.columns.values import BatchFunction
    from txn_analysis.coordinator.history import History
    from txn_analysis.judge.judgement import Judgement
    from txn_analysis.kafka.transactions import StateRecord
    from txn_analysis.settings import Settings

_last = attrgetter(*LastRecord._fields)

MOST_APPLICATIONS = 10
MANY = 3
"""From so many aborts of one kind on an id is warned of."""
_BY_KIND = {warning.kind: warning for warning in WARNINGS}
_ORDER = {warning.kind: number for number, warning in enumerate(WARNINGS)}


class Flagged(NamedTuple):
    """One warning about one id, with the application that the id seems to belong to; a higher score is worse."""

    kind: str
    application: str
    framework: str | None
    transactional_id: str
    score: int


class Warned(NamedTuple):
    """One kind of warning about the ids of one application: the worst of them, and how many there are."""

    kind: str
    application: str
    framework: str | None
    worst_id: str
    score: int
    id_count: int


@dataclass(frozen=True)
class WarningLine:
    """One warning as a report prints it: `subject` is what it is about, `example` its worst id, `count` how many."""

    kind: str
    subject: str
    example: str | None
    text: str
    count: int


class RaisedFrom(NamedTuple):
    """What the record before a PrepareAbort of the same id says of whether the coordinator raised its epoch."""

    state: str | None
    producer_id: int | None
    producer_epoch: int | None

    def is_raised_to(self, producer_id: int | None, producer_epoch: int | None) -> bool:
        """The transaction was going on, and its producer got a newer epoch."""
        if self.state != ONGOING or self.producer_epoch is None or producer_epoch is None:
            return False
        return producer_id is not None and self.producer_id == producer_id and producer_epoch > self.producer_epoch


_before = attrgetter(*RaisedFrom._fields)


def flagged(kind: str, transactional_id: str, score: int) -> Flagged:
    """A warning about an id, with whose it seems to be."""
    owner = application_of(transactional_id)
    return Flagged(kind, owner.name, owner.framework, transactional_id, score)


def of_last_record(transactional_id: str, last: LastRecord, known: Known) -> Iterator[Flagged]:
    """What the last record of an id that is not gone warns of."""
    for warning in OF_LAST_RECORDS:
        if warning.when(last, known) and (score := warning.score(last, known)) is not None:
            yield flagged(warning.kind, transactional_id, score)


def kind_of(abort: Abort) -> str | None:
    """What kind of abort it is, if it is one to be warned of: the first kind that holds."""
    return next((warning.kind for warning in OF_ABORTS if warning.when(abort)), None)


def median_of(timeouts_ms: Iterable[int | None]) -> int | None:
    """The median, of two in the middle the lower one; None where none is known."""
    known = sorted(ms for ms in timeouts_ms if ms is not None)
    return known[(len(known) - 1) // 2] if known else None


def by_application(found: Iterable[Flagged]) -> list[Warned]:
    """All warnings about the ids of some applications, as one of each kind for each application."""
    groups: defaultdict[tuple[str, str, str | None], list[tuple[int, str]]] = defaultdict(list)
    for kind, application, framework, transactional_id, score in found:
        groups[kind, application, framework].append((-score, transactional_id))
    worst = {group: min(ids) for group, ids in groups.items()}
    return [Warned(*group, worst[group][1], -worst[group][0], len(ids)) for group, ids in groups.items()]


def worst_of(found: Iterable[Warned]) -> list[Warned]:
    """Of each kind the applications that are worst, in no order."""
    of_kind: defaultdict[str, list[Warned]] = defaultdict(list)
    for warned in found:
        of_kind[warned.kind].append(warned)
    return [w for own in of_kind.values() for w in sorted(own, key=_badness)[:MOST_APPLICATIONS]]


def _badness(warned: Warned) -> tuple[int, int, str, str]:
    return -warned.score, -warned.id_count, warned.application, warned.framework or ""


def warnings_of(found: Iterable[Warned]) -> list[WarningLine]:
    """The worst of all that was found, in the order of `WARNINGS`."""
    in_order = sorted(worst_of(found), key=lambda w: (_ORDER[w.kind], -w.score, w.application, w.framework or ""))
    return [_line(warned) for warned in in_order]


def _line(warned: Warned) -> WarningLine:
    whose = "" if warned.framework is None else f" ({warned.framework})"
    return WarningLine(
        kind=warned.kind,
        subject=warned.application,
        example=warned.worst_id,
        text=_BY_KIND[warned.kind].text.format(score=warned.score) + whose,
        count=warned.id_count,
    )


def open_warnings(judged: Iterable[Judgement], settings: Settings) -> list[WarningLine]:
    """Of the judged open transactions those that will soon be late."""
    near = [(-(j.facts.lateness.late_by_ms or 0), j.facts) for j in judged if is_near_bound(j.facts.lateness, settings)]
    return [
        WarningLine(
            kind=OPEN_TRANSACTION_NEAR_BOUND.kind,
            subject=facts.where,
            example=None if facts.coordinator is None else facts.coordinator.transactional_id,
            text=OPEN_TRANSACTION_NEAR_BOUND.text.format(start=facts.open.txn_start_offset, score=left_ms),
            count=1,
        )
        for left_ms, facts in sorted(near, key=lambda found: found[0])[:MOST_APPLICATIONS]
    ]


# Of records in memory.

_last_record = attrgetter(*LastRecord._fields)
_raised_from = attrgetter(*RaisedFrom._fields)


def warnings_of_id(history: History, known: Known) -> Iterator[Flagged]:
    """What one id is warned of: by its last record, and for being timed out, or fenced, many times."""
    name, last = history[-1].transactional_id, history[-1]
    if is_live(last):
        yield from of_last_record(name, LastRecord(*_last(last)), known)
    if sum(record.state == PREPARE_ABORT for record in history) >= MANY:
        for kind, count in Counter(_kinds(history)).items():
            if count >= MANY:
                yield flagged(kind, name, count)


def is_live(last: StateRecord) -> bool:
    """The last record of an id is known, and the id is not gone."""
    return not (last.is_tombstone or last.is_hidden)


def _kinds(history: History) -> Iterator[str]:
    for n, record in enumerate(history):
        if record.state == PREPARE_ABORT and n:
            later = history[n + 2] if n + 2 < len(history) else None
            after = (None, None) if later is None else (later.state, later.last_update_ms)
            abort = Abort(record.start_ms, record.timeout_ms, record.last_update_ms, *after)
            is_raised = RaisedFrom(*_before(history[n - 1])).is_raised_to(record.producer_id, record.producer_epoch)
            if is_raised and (kind := kind_of(abort)) is not None:
                yield kind


# The steps, as an engine runs them.

OF_APPLICATION = pa.schema([("application", pa.string()), ("flagged", pa.binary())])
"""One row is some warnings about ids of one application, pickled."""


def timeouts(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Told: of rows of `HISTORIES`, how many ids that are not gone have which timeout."""
    found = Counter[int]()
    for history in _histories(batches):
        if is_live(history[-1]) and (timeout_ms := history[-1].timeout_ms) is not None:
            found[timeout_ms] += 1
    yield from rows_of_values(found).to_batches()


def warnings_by_application(known: Known) -> BatchFunction:
    """Rows of `OF_APPLICATION` from rows of `HISTORIES`."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found: defaultdict[str, list[Flagged]] = defaultdict(list)
        for history in _histories(batches):
            for each in warnings_of_id(history, known):
                found[each.application].append(each)
        values = [pickle.dumps(own) for own in found.values()]
        yield pa.RecordBatch.from_arrays(
            [pa.array([*found], pa.string()), pa.array(values, pa.binary())], schema=OF_APPLICATION
        )

    return run


def worst_step(tables: Mapping[str, pa.Table]) -> pa.Table:
    """By `application`, of `warnings`. Told: `Warned` of the worst applications of each kind."""
    lists = unpickled(tables["warnings"]["flagged"].to_pylist())
    return rows_of_values(worst_of(by_application([each for own in lists for each in own])))


def _histories(batches: Iterator[pa.RecordBatch]) -> Iterator[History]:
    return (history for rows in batches for history in unpickled(rows.column("history").to_pylist()))
