"""The answer of `ended`: ended transactions of one run, and why each of them ended."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.columns.arrays import counted, together
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
from txn_analysis.runs.ask import asked_batches, is_one_of
from txn_analysis.runs.asked_states import histories, named_producers, record_counts

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from numpy.typing import NDArray

    from txn_analysis.judge.endings import Ended
    from txn_analysis.questions.filters import Filters
    from txn_analysis.runs.asked_states import NamedProducers
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
_KEY = ("topic", "partition", "producer_id")
_STORED = tuple(name for name in EndedTransaction._fields if name != "previous_end_ms")
_NEWEST_FIRST = [("end_timestamp_ms", "descending"), ("topic", "ascending"), ("partition", "ascending")]
_HELD_ROWS = 1 << 15
_UNKNOWN = np.iinfo(np.int64).min
_DATED = ("producer_id", "end_timestamp_ms")
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
    if filters.transactional_id_patterns or wanted.cause is not None or wanted.is_stale:
        shown, number = _of_a_cause(run, filters, wanted)
    else:
        last, number = newest(_batches(run, _STORED, wanted.sql, **filters.rows), wanted.limit)
        shown = sorted(_explained_of(run, last), key=_newest_first)
    return answer_of(ENDED_COLUMNS, shown, _IN_TEXT), number - len(shown)


def _batches(
    run: PastRun, names: Iterable[str], where: str = "TRUE", **one_of: Collection[Any]
) -> Iterator[pa.RecordBatch]:
    these = f"{where} AND {is_one_of(one_of)}"
    return asked_batches(run, f"SELECT {', '.join(names)} FROM ended_transactions WHERE {these}")  # noqa: S608 ours


def cost_of_timeouts(answer: Answer) -> str | None:
    """What timeouts among some ended transactions can have lost; None where none is of an id like Flink's."""
    name, cause = (
        next(n for n, c in enumerate(answer.columns) if c.name == word) for word in ("TransactionalId", "Cause")
    )
    ids = (str(row[name] or "") for row in answer.rows if row[cause] == TIMEOUT)
    is_flinks = any(framework_of(one)[0] is FLINK for one in ids)
    return f"of an id like Flink's {FLINK.costs}" if is_flinks else None


def _of_a_cause(run: PastRun, filters: Filters, wanted: EndedFilters) -> tuple[list[Ended], int]:
    """The newest transactions that have the wanted cause or id, and how many there are.

    Most transactions ended before the first record that is left of their ids: their columns alone say so.
    """
    named = named_producers(run)
    shown, number = _newest_that_fit(with_records(run, filters, wanted, named), filters, wanted)
    if wanted.is_stale or wanted.cause not in {None, UNEXPLAINED}:
        return shown, number
    last, more = newest(_before_records(run, filters, wanted, named), wanted.limit)
    return sorted([*shown, *_explained_of(run, last, named.record_counts)], key=_newest_first)[
        : wanted.limit
    ], number + more


def with_records(run: PastRun, filters: Filters, wanted: EndedFilters, named: NamedProducers) -> Iterator[Ended]:
    """Every transaction that a record may explain, with its cause; some producers after the others.

    Args:
        run: whose they are.
        filters: which are wanted.
        wanted: of its fields the outcome and the window.
        named: the producers of the run.
    """
    producers = named.of_ids(filters.has_id)
    counts = Counter[int]()
    for batch in _batches(run, _DATED, wanted.sql, **filters.rows) if len(producers) else ():
        counts.update(counted(batch.filter(_has_records(run, batch, named))["producer_id"]))
    for producer_ids in _groups({p: counts[p] for p in producers.to_pylist() if counts[p]}, named.record_counts):
        asked = _batches(run, _STORED, wanted.sql, **filters.places, producer_id=producer_ids)
        rows = [batch.filter(_has_records(run, batch, named)) for batch in asked]  # most ended before any record
        yield from _explained(run, pa.Table.from_batches(rows).combine_chunks())


def _before_records(
    run: PastRun, filters: Filters, wanted: EndedFilters, named: NamedProducers
) -> Iterator[pa.RecordBatch]:
    """The rows that no record explains, of producers whose transactional id is wanted."""
    ids = named.first_ids.to_pylist()
    is_id = pa.array([filters.has_id(name) for name in ids], pa.bool_())
    for batch in _batches(run, _STORED, wanted.sql, **filters.rows):
        place = pc.index_in(batch["producer_id"], named.producer_ids)
        is_wanted = pc.fill_null(is_id.take(place), filters.has_id(None))
        yield batch.filter(pc.and_not(is_wanted, _has_records(run, batch, named)))


def _has_records(run: PastRun, rows: pa.RecordBatch | pa.Table, named: NamedProducers) -> pa.Array:
    """Whether the ids of each row's producer have records old enough to explain its end; see `ending_of`."""
    first_ms = named.first_ms.take(pc.index_in(rows["producer_id"], named.producer_ids))
    since_ms = pc.subtract(first_ms, explains_before_ms(run.settings.max_clock_skew_ms))
    return pc.fill_null(pc.greater_equal(rows["end_timestamp_ms"], since_ms), fill_value=False)


def _explained_of(run: PastRun, rows: pa.Table | None, records: Mapping[int, int] | None = None) -> Iterator[Ended]:
    """Some ended transactions at hand, with their causes; `records` is what `record_counts` says, where it is known."""
    if rows is None:
        return
    counts = counted(rows["producer_id"])
    for producer_ids in _groups(counts, record_counts(run, counts) if records is None else records):
        is_theirs = pc.is_in(rows["producer_id"], pa.array(producer_ids, pa.int64()))
        yield from _explained(run, rows.filter(is_theirs).combine_chunks())


def _groups(ended: Mapping[int, int], records: Mapping[int, int]) -> Iterator[list[int]]:
    """Producer ids, as many at a time as their transactions and the coordinator's records of them can be held of."""
    return together(sorted(ended), lambda one: ended[one] // _ROWS_OF_A_RECORD + records.get(one, 0), _RECORDS_AT_ONCE)


def _explained(run: PastRun, rows: pa.Table) -> Iterator[Ended]:
    known = histories(run, set(rows["producer_id"].unique().to_pylist()))
    of_producer = {
        producer_id: {name: IdHistory(records) for name, records in own.items()} for producer_id, own in known.items()
    }
    for one in with_previous_ends(run, rows):
        yield ended_with(one, of_producer.get(one.producer_id, {}), run.settings.max_clock_skew_ms)


def _newest_that_fit(found: Iterable[Ended], filters: Filters, wanted: EndedFilters) -> tuple[list[Ended], int]:
    """The transactions whose end is as it is asked for: the newest ones, and how many there are."""
    kept: list[Ended] = []
    number = 0
    for one in found:
        fits_cause = wanted.cause in {None, one.ending.cause.name}
        fits_stale = not wanted.is_stale or one.ending.stale_because is not None
        if fits_cause and fits_stale and filters.has_id(one.transactional_id):
            kept.append(one)
            number += 1
        if len(kept) > 2 * wanted.limit:
            kept = sorted(kept, key=_newest_first)[: wanted.limit]
    return sorted(kept, key=_newest_first)[: wanted.limit], number


def _newest_first(one: Ended) -> tuple[Any, ...]:
    end_ms = one.transaction.end_timestamp_ms
    return end_ms is None, -(end_ms or 0), one.transaction.topic_partition, -one.transaction.end_offset


def newest(parts: Iterable[pa.RecordBatch], limit: int) -> tuple[pa.Table | None, int]:
    """The rows that ended last, newest first, and how many there were; None where there was none."""
    held: list[pa.Table] = []
    number, since_ms = 0, None
    for part in (pa.Table.from_batches([batch]) for batch in parts):
        number += len(part)
        held.append(part if since_ms is None else part.filter(pc.greater_equal(part["end_timestamp_ms"], since_ms)))
        if sum(map(len, held)) > limit + _HELD_ROWS:
            held = [_newest(held, limit)]
            since_ms = held[0]["end_timestamp_ms"][-1].as_py()
    return (_newest(held, limit) if held else None), number


def _newest(parts: list[pa.Table], limit: int) -> pa.Table:
    rows = pa.concat_tables(parts)
    order = pc.sort_indices(rows, [*_NEWEST_FIRST, ("end_offset", "descending")])  # NULL comes last in either order
    return rows.take(order[:limit]).combine_chunks()


def with_previous_ends(run: PastRun, rows: pa.Table) -> Iterator[EndedTransaction]:
    """Ended transactions, each with the time of its producer's end marker before its own."""
    previous = _Previous(rows)
    asked = {name: rows[name].unique().to_pylist() for name in _KEY}
    for batch in _batches(run, (*_KEY, "end_offset", "end_timestamp_ms"), **asked):
        previous.add(batch)
    listed = (row for batch in rows.to_batches(_HELD_ROWS) for row in batch.to_pylist())
    for row, before_ms in zip(listed, previous.times_ms(), strict=True):
        yield EndedTransaction(**row, previous_end_ms=before_ms)


class _Previous:
    """Of each of some ends the nearest one before it, of its producer and partition, among those that are added."""

    def __init__(self, asked: pa.Table) -> None:
        self._topics, self._producers = (asked[name].unique() for name in ("topic", "producer_id"))
        self._partition_count = pc.max(asked["partition"]).as_py() + 1
        self._keys, self._ends = self._keys_of(asked), asked["end_offset"].to_numpy()
        self._found, self._times = np.full(len(asked), -1, np.int64), np.full(len(asked), _UNKNOWN)

    def _keys_of(self, rows: pa.Table | pa.RecordBatch) -> NDArray[np.int64]:
        """A number for each partition and producer of those that are asked about."""
        topic, producer = (
            pc.index_in(rows[name], known).to_numpy(zero_copy_only=False)
            for name, known in (("topic", self._topics), ("producer_id", self._producers))
        )
        place = topic.astype(np.int64) * self._partition_count + rows["partition"].to_numpy()
        keys: NDArray[np.int64] = place * len(self._producers) + producer
        return keys

    def add(self, rows: pa.RecordBatch) -> None:
        """Look among some more rows, of these topics, partitions and producers."""
        keys = np.concatenate([self._keys_of(rows), self._keys])
        ends = np.concatenate([rows["end_offset"].to_numpy(), self._ends])
        times = pc.fill_null(rows["end_timestamp_ms"], _UNKNOWN).to_numpy()
        order = np.lexsort((np.arange(len(keys)) < len(rows), ends, keys))  # who asks stands before an end of its own
        is_end = order < len(rows)
        place = np.maximum.accumulate(np.where(is_end, np.arange(len(order)), -1))[~is_end]
        asked, before = order[~is_end] - len(rows), order[place]
        is_own = (place >= 0) & (keys[before] == self._keys[asked])
        is_nearer = is_own & (ends[before] > self._found[asked])
        asked, before = asked[is_nearer], before[is_nearer]
        self._found[asked], self._times[asked] = ends[before], times[before]

    def times_ms(self) -> list[int | None]:
        """The times of those ends; None where there is none, or where it has none."""
        return [None if time_ms == _UNKNOWN else time_ms for time_ms in self._times.tolist()]
