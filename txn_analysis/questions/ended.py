"""The answer of `ended`: ended transactions of one run, and why each of them ended."""

from __future__ import annotations

from dataclasses import dataclass
from heapq import nsmallest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.columns.arrays import ABSENT, counted, known, numbers, place_in, together
from txn_analysis.errors import ConfigError
from txn_analysis.judge.applications import FLINK, framework_of
from txn_analysis.judge.endings import (
    ENDINGS,
    TIMEOUT,
    UNEXPLAINED,
    EndedTransaction,
    IdHistory,
    ended_with,
    explains_before_ms,
)
from txn_analysis.report.formats import Answer, Column, answer_of
from txn_analysis.runs.ask import ask, asked_batches, is_one_of, views_in
from txn_analysis.runs.asked_states import histories

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from txn_analysis.columns.arrays import Array
    from txn_analysis.judge.endings import Ended
    from txn_analysis.questions.filters import Filters
    from txn_analysis.runs.past_run import PastRun

ENDED_COLUMNS = (
    Column("Topic", of="transaction.topic"),
    Column("Partition", of="transaction.partition"),
    Column("StartOffset", of="transaction.txn_start_offset"),
    Column("EndOffset", of="transaction.end_offset"),
    Column("Outcome", of="transaction.outcome"),
    Column("EndTimeMs", of="transaction.end_timestamp_ms"),
    Column("ProducerId", of="transaction.producer_id"),
    Column("TransactionalId", of="transactional_id"),
    Column("Cause", of="ending.cause.name"),
    Column("Confidence", of="ending.cause.confidence.value"),
    Column("Stale", of="ending.stale_because"),
    Column("EvidenceFor", of=lambda one: list(one.ending.cause.evidence_for)),
    Column("EvidenceAgainst", of=lambda one: list(one.ending.cause.evidence_against)),
)
_IN_TEXT = len(ENDED_COLUMNS) - 2
SQL = Path(__file__).with_name("ended.sql")
_KEY = ("topic", "partition", "producer_id")
_STORED = ", ".join(name for name in EndedTransaction._fields if name != "previous_end_ms")
_NEWEST_FIRST = "end_timestamp_ms DESC NULLS LAST, topic, `partition`, end_offset DESC"
_HELD_ROWS = 1 << 15
_NO_TIME = np.iinfo(np.int64).min
_RECORDS_AT_ONCE = 1 << 16
_ROWS_OF_A_RECORD = 8  # a record is held as an object, a row in columns


class Window(NamedTuple):
    """From `since_ms` to before `until_ms`; None is no bound, and without any a row without a time is in it as well."""

    since_ms: int | None = None
    until_ms: int | None = None

    @property
    def is_bounded(self) -> bool:
        """Some times are not in it."""
        return self != (None, None)

    @property
    def sql(self) -> str:
        """That a row ended in it, as a condition."""
        bounds = ((">=", self.since_ms), ("<", self.until_ms))
        return " AND ".join(["TRUE", *(f"end_timestamp_ms {sign} {ms}" for sign, ms in bounds if ms is not None)])


ALL_TIMES = Window()


@dataclass(frozen=True)
class EndedFilters:
    """Which ended transactions are wanted; None asks for all. The newest `limit` of a window are shown."""

    outcome: str | None
    cause: str | None
    is_stale: bool
    limit: int
    window: Window = ALL_TIMES

    def __post_init__(self) -> None:
        """Refuses a cause that does not exist.

        Raises:
            ConfigError: it names the causes.
        """
        if self.cause is not None and self.cause not in ENDINGS:
            raise ConfigError(f"--cause {self.cause}: unknown; the causes of an end are {', '.join(ENDINGS)}")

    @property
    def sql(self) -> str:
        """The wanted outcome and times as a condition."""
        return f"{is_one_of({} if self.outcome is None else {'outcome': (self.outcome,)})} AND {self.window.sql}"


def ended_answer(run: PastRun, filters: Filters, wanted: EndedFilters) -> tuple[Answer, int]:
    """The wanted ended transactions, newest first, and how many more there are."""
    asked = asked_ended(run, filters, wanted.sql)
    if filters.transactional_id_patterns or wanted.cause is not None or wanted.is_stale:
        # Most transactions ended before the first record that is left of their ids: their columns alone say so.
        shown, number = _newest_that_fit(with_records(run, asked), filters, wanted)
        if not wanted.is_stale and wanted.cause in {None, UNEXPLAINED}:
            others, more = _newest(run, "without_records", asked, wanted.limit)
            shown, number = sorted([*shown, *others], key=_newest_first)[: wanted.limit], number + more
    else:
        shown, number = _newest(run, "wanted", asked, wanted.limit)
    return answer_of(ENDED_COLUMNS, shown, _IN_TEXT), number - len(shown)


def asked_ended(run: PastRun, filters: Filters, wanted: str) -> dict[str, str]:
    """What the views of `ended.sql` take.

    Args:
        run: whose ended transactions are asked about.
        filters: which are wanted.
        wanted: what else is asked of them, as a condition.
    """
    ids, producer_condition = {}, "TRUE"
    if filters.transactional_id_patterns:
        every = ask(run, "SELECT DISTINCT transactional_id FROM pairs", views_in(SQL))["transactional_id"]
        ids = {"transactional_id": [*filter(filters.has_id, every.to_pylist())]}
        theirs = f"SELECT DISTINCT producer_id FROM pairs WHERE {is_one_of(ids)}"  # noqa: S608 ours
        producer_condition = is_one_of({"producer_id": ask(run, theirs, views_in(SQL))["producer_id"].to_pylist()})
    return {
        "rows": is_one_of(filters.rows),
        "places": is_one_of(filters.places),
        "wanted": f"{is_one_of(filters.rows)} AND {wanted}",
        "whose": is_one_of(ids),
        "own": producer_condition,
        "explains_ms": str(explains_before_ms(run.settings.max_clock_skew_ms)),
    }


def cost_of_timeouts(answer: Answer) -> str | None:
    """What timeouts among some ended transactions can have lost; None where none is of an id like Flink's."""
    rows = (dict(zip((column.name for column in answer.columns), row, strict=True)) for row in answer.rows)
    ids = (str(row["TransactionalId"] or "") for row in rows if row["Cause"] == TIMEOUT)
    is_flinks = any(framework_of(one)[0] is FLINK for one in ids)
    return f"of an id like Flink's {FLINK.costs}" if is_flinks else None


def with_records(run: PastRun, asked: Mapping[str, str]) -> Iterator[Ended]:
    """Every wanted transaction that a record may explain, with its cause; some producers after the others."""
    views = views_in(SQL, **asked)
    sizes = {row["producer_id"]: row for row in ask(run, "SELECT * FROM sizes", views).to_pylist()}
    for producers in _groups(sizes):
        of_them = f"SELECT {_STORED} FROM with_records WHERE {is_one_of({'producer_id': producers})}"  # noqa: S608 ours
        yield from _explained(run, ask(run, of_them, views))


def _newest(run: PastRun, of: str, asked: Mapping[str, str], limit: int) -> tuple[list[Ended], int]:
    """The newest transactions of a view, with their causes, and how many there are."""
    views = views_in(SQL, **asked)
    number: int = ask(run, f"SELECT count(*) AS number FROM {of}", views)["number"][0].as_py()  # noqa: S608 ours
    rows = ask(run, f"SELECT {_STORED} FROM {of} ORDER BY {_NEWEST_FIRST} LIMIT {limit}", views)  # noqa: S608 ours
    ended = counted(rows["producer_id"])
    of_them = f"SELECT producer_id, state_record_count FROM producers WHERE {is_one_of({'producer_id': ended})}"  # noqa: S608 ours
    records = dict.fromkeys(ended, 0) | dict(zip(*ask(run, of_them, views).to_pydict().values(), strict=True))
    transactions: list[Ended] = []
    for producers in _groups({one: {"ended_count": n, "state_record_count": records[one]} for one, n in ended.items()}):
        transactions += _explained(run, rows.filter(pc.is_in(rows["producer_id"], pa.array(producers, pa.int64()))))
    return sorted(transactions, key=_newest_first), number


def _groups(sizes: Mapping[int, Mapping[str, int]]) -> Iterator[list[int]]:
    """Producer ids, as many at a time as their transactions and the coordinator's records of them can be held of."""

    def size(producer_id: int) -> int:
        one = sizes[producer_id]
        return one["ended_count"] // _ROWS_OF_A_RECORD + one["state_record_count"]

    return together(sorted(sizes), size, _RECORDS_AT_ONCE)


def _explained(run: PastRun, rows: pa.Table) -> Iterator[Ended]:
    by_producer = histories(run, set(rows["producer_id"].unique().to_pylist()))
    of_producer = {
        producer_id: {name: IdHistory(records) for name, records in ids.items()}
        for producer_id, ids in by_producer.items()
    }
    for one in with_previous_ends(run, rows):
        yield ended_with(one, of_producer.get(one.producer_id, {}), run.settings.max_clock_skew_ms)


def _newest_that_fit(transactions: Iterable[Ended], filters: Filters, wanted: EndedFilters) -> tuple[list[Ended], int]:
    """The transactions whose end is as it is asked for: the newest ones, and how many there are."""
    number = 0

    def fitting() -> Iterator[Ended]:
        nonlocal number
        for one in transactions:
            fits_cause = wanted.cause in {None, one.ending.cause.name}
            fits_stale = not wanted.is_stale or one.ending.stale_because is not None
            if fits_cause and fits_stale and filters.has_id(one.transactional_id):
                number += 1
                yield one

    return nsmallest(wanted.limit, fitting(), key=_newest_first), number


def _newest_first(one: Ended) -> tuple[Any, ...]:
    end_ms = one.transaction.end_timestamp_ms
    return end_ms is None, -(end_ms or 0), one.transaction.topic_partition, -one.transaction.end_offset


def with_previous_ends(run: PastRun, rows: pa.Table) -> Iterator[EndedTransaction]:
    """Ended transactions, each with the time of its producer's end marker before its own.

    Args:
        run: whose they are.
        rows: some of its ended transactions.
    """
    values = {name: rows[name].unique() for name in _KEY}
    keys, offsets = np.unique(_codes(rows, values)), np.unique(rows["end_offset"].to_numpy())
    steps = len(offsets) + 1

    def places(some: Any, side: Literal["left", "right"]) -> Array:
        """Of each row a number in the order of keys and, within one, of offsets; to the right it is of the next one."""
        of_offset = np.searchsorted(offsets, some["end_offset"].to_numpy(), side)
        placed: Array = place_in(keys, _codes(some, values)) * steps + of_offset
        return placed

    asked, asked_at = np.unique(places(rows, "left"), return_inverse=True)
    previous, times_ms = np.full(len(asked), ABSENT), np.full(len(asked), _NO_TIME)
    names = ", ".join((*_KEY, "end_offset", "end_timestamp_ms"))
    for batch in asked_batches(run, f"SELECT {names} FROM ended_transactions WHERE {is_one_of(values)}"):  # noqa: S608 ours
        # Before all later ones that are asked for, the nearest asked one has an end of its own.
        place, offset = places(batch, "right"), batch["end_offset"].to_numpy()
        at = np.minimum(np.searchsorted(asked, place), len(asked) - 1)
        is_nearer = (asked[at] >= place) & (asked[at] // steps == place // steps) & (offset > previous[at])
        nearer = np.flatnonzero(is_nearer)
        nearer = nearer[np.argsort(offset[nearer])]  # the last one counts
        previous[at[nearer]] = offset[nearer]
        times_ms[at[nearer]] = numbers(batch["end_timestamp_ms"], _NO_TIME)[nearer]
    listed = (row for batch in rows.to_batches(_HELD_ROWS) for row in batch.to_pylist())
    for row, before_ms in zip(listed, times_ms[asked_at].tolist(), strict=True):
        yield EndedTransaction(**row, previous_end_ms=known(before_ms, _NO_TIME))


def _codes(rows: Any, values: Mapping[str, pa.Array]) -> Array:
    """A number for the key of each row, whose columns have some values alone."""
    codes = np.zeros(len(rows), np.int64)
    for name, of_column in values.items():
        codes = codes * len(of_column) + pc.index_in(rows[name], of_column).to_numpy()
    return codes
