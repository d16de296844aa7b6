"""Lines of early warnings, an application each and the worst ones first, and the steps by which an engine finds them.

last records --> timeouts
last records and the median of these, aborted ids --> warnings -- by application --> the worst of each kind

Reports print kinds in the order of `WARNINGS`, and count by application (`application_of`), so that a thousand ids of
one job are one line. What is kept is bounded: of each kind the worst applications, and how many ids there are in all.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.columns.arrays import by_key, counted
from txn_analysis.columns.values import BatchFunction, rows_of_values, unpickled
from txn_analysis.coordinator.history import History
from txn_analysis.coordinator.state_records import NEWEST_RECORDS, histories_in, live
from txn_analysis.judge.applications import application_of, leaders
from txn_analysis.judge.early_warning import (
    MANY,
    OF_LAST_RECORDS,
    OPEN_TRANSACTION_NEAR_BOUND,
    WARNINGS,
    Known,
    is_near_bound,
    kinds_of_aborts,
)
from txn_analysis.judge.judgement import Judgement
from txn_analysis.kafka.transactions import TopicPartition
from txn_analysis.logic import plus
from txn_analysis.text import iso_utc

_MOST_APPLICATIONS = 10
_BY_KIND = {warning.kind: warning for warning in WARNINGS}
_ORDER = {warning.kind: number for number, warning in enumerate(WARNINGS)}


class Warned(NamedTuple):
    """One kind of warning about the ids of one application: the worst of them, and how many there are.

    A higher score is worse. `at_ms` is when it happens that is warned of; None where no clock says that.
    """

    kind: str
    application: str
    framework: str | None
    worst_id: str
    score: int
    at_ms: int | None = None
    id_count: int = 1


@dataclass(frozen=True)
class WarningLine:
    """One warning as a report prints it: `subject` is what it is about, `example` its worst id, `count` how many.

    `at_ms` is when it happens to that one; None where no clock says that.
    """

    kind: str
    subject: str
    example: str | None
    text: str
    count: int
    at_ms: int | None = None


def _warned(kind: str, transactional_id: str, score: int, at_ms: int | None = None) -> Warned:
    """A warning about an id, with whose it seems to be."""
    owner = application_of(transactional_id)
    return Warned(kind, owner.name, owner.framework, transactional_id, score, at_ms)


def _by_application(warned_of: Iterable[Warned]) -> list[Warned]:
    """All warnings about the ids of some applications, as one of each kind for each application."""
    groups = by_key(warned_of, attrgetter("kind", "application", "framework"))
    worst = (min(ids, key=lambda each: (-each.score, each.worst_id)) for ids in groups.values())
    return [one._replace(id_count=len(ids)) for one, ids in zip(worst, groups.values(), strict=True)]


def _worst_of(warned_of: Iterable[Warned]) -> list[Warned]:
    """Of each kind the applications that are worst, in no order."""
    of_kinds = by_key(warned_of, attrgetter("kind")).values()
    return [w for of_one in of_kinds for w in sorted(of_one, key=_badness)[:_MOST_APPLICATIONS]]


def _badness(warned: Warned) -> tuple[int, int, str, str]:
    return -warned.score, -warned.id_count, warned.application, warned.framework or ""


def warnings_of(warned_of: Iterable[Warned]) -> list[WarningLine]:
    """The worst of all that was found, in the order of `WARNINGS`."""
    in_order = sorted(_worst_of(warned_of), key=lambda w: (_ORDER[w.kind], -w.score, w.application, w.framework or ""))
    return [_line(warned) for warned in in_order]


def _line(warned: Warned) -> WarningLine:
    whose = "" if warned.framework is None else f" ({warned.framework})"
    return WarningLine(
        kind=warned.kind,
        subject=warned.application,
        example=warned.worst_id,
        text=_BY_KIND[warned.kind].text.format(score=warned.score, at=iso_utc(warned.at_ms)) + whose,
        count=warned.id_count,
        at_ms=warned.at_ms,
    )


class NearBound(NamedTuple):
    """An open transaction that will be late in so many milliseconds."""

    in_ms: int
    where: TopicPartition
    start_offset: int
    transactional_id: str | None


def near_bound(judged: Iterable[Judgement]) -> list[NearBound]:
    """Those of judged open transactions that will soon be late."""
    return [
        NearBound(-(case.late_by_ms or 0), case.where, case.txn.txn_start_offset, case.id and case.id.transactional_id)
        for case in (one.case for one in judged)
        if is_near_bound(case) and not case.is_recent
    ]


def soonest(near: Iterable[NearBound]) -> list[NearBound]:
    """The first of them, in order."""
    return sorted(near, key=lambda one: one[:3])[:_MOST_APPLICATIONS]


def open_warnings(near: Iterable[NearBound], as_of_ms: int | None) -> list[WarningLine]:
    """What open transactions that will soon be late are warned of.

    Args:
        near: the transactions.
        as_of_ms: when the files were copied; None where no broker's clock speaks.
    """
    return [_open_line(one, plus(as_of_ms, one.in_ms)) for one in near]


def _open_line(one: NearBound, at_ms: int | None) -> WarningLine:
    at = iso_utc(at_ms)
    return WarningLine(
        kind=OPEN_TRANSACTION_NEAR_BOUND.kind,
        subject=str(one.where),
        example=one.transactional_id,
        text=OPEN_TRANSACTION_NEAR_BOUND.text.format(start=one.start_offset, score=one.in_ms, at=at),
        count=1,
        at_ms=at_ms,
    )


def _warnings_of_last(last: pa.StructArray, known: Known) -> Iterator[Warned]:
    """What live ids are warned of by their last records, which nothing later hides."""
    for warning in OF_LAST_RECORDS:
        warned = last.filter(pc.fill_null(warning.when(last, known), False))
        columns = warned.field("transactional_id"), warning.score(warned, known), warning.at(warned, known)
        for one in zip(*(column.to_pylist() for column in columns), strict=True):
            yield _warned(warning.kind, *one)


def _warnings_of_aborts(history: History) -> Iterator[Warned]:
    """What an id is warned of for being timed out, or fenced, `MANY` times."""
    for kind, count in Counter(kinds_of_aborts(history)).items():
        if count >= MANY:
            yield _warned(kind, history[-1].transactional_id, count)


_OF_LAST = (
    *("transactional_id", "is_tombstone", "is_hidden", "state"),
    *("producer_epoch", "timeout_ms", "last_update_ms", "start_ms"),
)
LAST_RECORDS = pa.schema([*map(NEWEST_RECORDS.field, _OF_LAST)])
"""One row is the newest record of a transactional id, as far as it can be warned of."""
OF_APPLICATION = pa.schema([("application", pa.string()), ("flagged", pa.binary())])
"""One row is some warnings about ids of one application, pickled."""


def timeouts_and_leaders(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Values: of rows of `LAST_RECORDS`, how many live ids have which timeout, and which are of Connect's leaders."""
    counts, names = Counter[int](), list[str]()
    for rows in map(live, batches):
        counts.update(counted(rows["timeout_ms"].drop_null()))
        names += leaders(rows["transactional_id"])
    yield from rows_of_values((counts, names)).to_batches()


def warnings_of_last(known: Known) -> BatchFunction:
    """Rows of `OF_APPLICATION` from rows of `LAST_RECORDS`, of live ids."""
    return lambda batches: _of_applications(
        each for rows in map(live, batches) for each in _warnings_of_last(rows.to_struct_array(), known)
    )


def warnings_of_aborts(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of `OF_APPLICATION` from rows of `HISTORIES`, of ids that were aborted often."""
    return _of_applications(
        each for rows in batches for history in histories_in(rows["history"]) for each in _warnings_of_aborts(history)
    )


def _of_applications(warned_of: Iterable[Warned]) -> Iterator[pa.RecordBatch]:
    by_application = by_key([*warned_of], attrgetter("application"))
    columns = [
        pa.array([*by_application], pa.string()),
        pa.array(map(pickle.dumps, by_application.values()), pa.binary()),
    ]
    yield pa.RecordBatch.from_arrays(columns, schema=OF_APPLICATION)


def worst_step(tables: Mapping[str, pa.Table]) -> pa.Table:
    """By `application`, of `warnings`. Values: `Warned` of the worst applications of each kind."""
    lists = unpickled(tables["warnings"]["flagged"].to_pylist())
    return rows_of_values(_worst_of(_by_application([each for some in lists for each in some])))
