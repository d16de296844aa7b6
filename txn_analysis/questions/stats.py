"""The answer of `stats`: what transactions did, by application, transactional id or topic, from the tables of one run.

One transaction on one partition counts once, as `ended_transactions` has it: one that wrote to three partitions counts
three times. Sizes and ends are those of the log; why an abort came, and how long its marker took, are known where the
records of its id are left (`judge.endings`).
"""

from __future__ import annotations

from collections import defaultdict
from heapq import nsmallest
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.columns.records import records_of
from txn_analysis.judge.applications import application_of
from txn_analysis.questions.ended import EndedFilters, with_records
from txn_analysis.questions.stats_answer import By, Group, LongTransaction, StatsAnswer, cannot_say
from txn_analysis.questions.stats_columns import (
    CAUSES,
    Window,
    added_up,
    by_producer,
    first_timestamps,
    rows_with,
    slices_of,
    spread,
)
from txn_analysis.runs.asked_states import named_producers
from txn_analysis.runs.past_run import ended_batches
from txn_analysis.tables import PARTITION_HEALTH, TRANSACTIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from txn_analysis.judge.applications import ConnectGroups
    from txn_analysis.judge.endings import EndedTransaction
    from txn_analysis.questions.filters import Filters
    from txn_analysis.runs.asked_states import NamedProducers
    from txn_analysis.runs.past_run import PastRun
    from txn_analysis.runs.run_tables import RunTables

MOST_LONGEST = 10
_LONGEST_FIRST = [
    ("duration_ms", "descending"),
    *((name, "ascending") for name in ("topic", "partition", "txn_start_offset")),
]
_SLAB_ROWS = 1 << 20  # of ended transactions, whose first batches are looked for at a time
_OF_ENDED = (
    *("topic", "partition", "producer_id", "txn_start_offset", "is_txn_start_exact", "outcome"),
    *("end_offset", "end_timestamp_ms", "record_count", "size_bytes"),
)
_DECISIONS_AT_ONCE = 1 << 14


def stats_of(tables: RunTables, filters: Filters, by: By, window: Window, limit: int) -> StatsAnswer:
    """What the wanted transactions of a run did.

    Args:
        tables: the run.
        filters: which are wanted: topics, partitions, producer ids and patterns of transactional ids.
        by: how they are put together.
        window: when they ended.
        limit: at most so many groups.
    """
    run = tables.finished
    named = named_producers(run)
    wanted = _Wanted(run, filters, named, window)
    found = _Longest(named)
    rows = by_producer([*_parts(wanted, found)])
    groups = _groups(rows, by, named, tables.connect_groups)
    total = _group(added_up(rows, []), None, None)
    return StatsAnswer(
        run_id=run.run_id,
        by=by,
        since_ms=window.since_ms,
        until_ms=window.until_ms,
        total=total,
        groups=tuple(groups[:limit]),
        left_out_count=max(len(groups) - limit, 0),
        longest=tuple(found.longest),
        longest_by_coordinator=tuple(found.by_coordinator),
        over_time=slices_of(lambda: wanted.ended("end_timestamp_ms", "outcome")),
        cannot_say=tuple(cannot_say(total, has_state=tables.has_state, is_in_window=window.is_bounded)),
    )


class _Wanted(NamedTuple):
    """Which rows of a run are wanted."""

    run: PastRun
    filters: Filters
    named: NamedProducers
    window: Window

    @property
    def _producers(self) -> pa.Array | None:
        """Those of the wanted transactional ids; None where all are wanted."""
        return self.named.of_ids(self.filters.has_id) if self.filters.transactional_id_patterns else None

    def own(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of wanted transactional ids."""
        producers = self._producers
        for batch in batches:
            yield batch if producers is None else batch.filter(pc.is_in(batch["producer_id"], producers))

    def ended(self, *names: str) -> Iterator[pa.RecordBatch]:
        """The wanted ended transactions."""
        names = tuple(dict.fromkeys((*names, "producer_id", "end_timestamp_ms")))
        for batch in self.own(ended_batches(self.run, *names, **self.filters.rows)):
            yield batch.filter(self.window.has(batch["end_timestamp_ms"]))


def _parts(wanted: _Wanted, found: _Longest) -> Iterator[pa.Table]:
    for slab in _slabs(wanted.ended(*_OF_ENDED)):
        yield _of_ended(wanted.run, slab, found)
    yield from _of_decisions(wanted, found)
    yield from _of_markers(wanted)
    yield from _of_open(wanted)


def _slabs(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    held, number = list[pa.RecordBatch](), 0
    for batch in batches:
        held.append(batch)
        number += len(batch)
        if number >= _SLAB_ROWS:
            yield pa.Table.from_batches(held).combine_chunks()
            held, number = [], 0
    if number:
        yield pa.Table.from_batches(held).combine_chunks()


def _of_ended(run: PastRun, rows: pa.Table, found: _Longest) -> pa.Table:
    """Rows of `stats_columns.SCHEMA` from ended transactions."""
    took = pc.subtract(rows["end_timestamp_ms"].combine_chunks(), first_timestamps(run, rows))
    is_backwards = pc.fill_null(pc.less(took, 0), fill_value=False)
    durations = pc.if_else(is_backwards, pa.scalar(None, pa.int64()), took)
    found.add(rows, durations)
    sizes, records = (rows[name].combine_chunks() for name in ("size_bytes", "record_count"))
    outcomes = (("committed_count", "COMMIT"), ("aborted_count", "ABORT"), ("unknown_outcome_count", "ended"))
    return rows_with(
        {
            **{name: rows[name] for name in ("topic", "producer_id")},
            **{name: pc.equal(rows["outcome"], word) for name, word in outcomes},
            "start_unseen_count": pc.invert(rows["is_txn_start_exact"]),
            "undated_count": pc.is_null(rows["end_timestamp_ms"]),
            "backwards_count": is_backwards,
            **spread(("sized_count", "record_count", "max_record_count"), records),
            "size_bytes": pc.fill_null(sizes, 0),
            "max_size_bytes": sizes,
            **spread(("timed_count", "duration_sum_ms", "min_duration_ms", "max_duration_ms"), durations),
        }
    )


class _Longest:
    """The longest of all transactions that are added: by the coordinator's clock, and by the client's."""

    def __init__(self, named: NamedProducers) -> None:
        self.longest: list[LongTransaction] = []
        self.by_coordinator: list[LongTransaction] = []
        self._named = named

    def add_decided(self, ended: EndedTransaction, transactional_id: str | None, took_ms: int) -> None:
        """Look at one that the coordinator's clock timed."""
        values = {name: getattr(ended, name) for name in _OF_LONG}
        one = LongTransaction(**values, transactional_id=transactional_id, duration_ms=took_ms)
        self.by_coordinator = nsmallest(MOST_LONGEST, [*self.by_coordinator, one], key=_longest_first)

    def add(self, rows: pa.Table, durations: pa.Array) -> None:
        """Look among some more, with their durations."""
        own = rows.append_column("duration_ms", durations)
        own = own.append_column("transactional_id", _ids_of(own["producer_id"], self._named))
        own = own.filter(pc.is_valid(own["duration_ms"]))
        top = own.take(pc.select_k_unstable(own, min(MOST_LONGEST, len(own)), _LONGEST_FIRST))
        self.longest = nsmallest(MOST_LONGEST, [*self.longest, *records_of(LongTransaction, top)], key=_longest_first)


def _longest_first(one: LongTransaction) -> tuple[Any, ...]:
    return -one.duration_ms, one.topic, one.partition, one.txn_start_offset


_OF_LONG = ("topic", "partition", "txn_start_offset", "end_offset", "outcome", "end_timestamp_ms", "producer_id")


def _of_decisions(wanted: _Wanted, found: _Longest) -> Iterator[pa.Table]:
    """Causes of aborts, and how long markers took, of the transactions that a record explains."""
    columns: defaultdict[str, list[Any]] = defaultdict(list)
    every = EndedFilters(None, None, is_stale=False, limit=1)
    for one in with_records(wanted.run, wanted.filters, every, wanted.named):
        ended, end_ms = one.transaction, one.transaction.end_timestamp_ms
        if not wanted.window.has_one(end_ms):
            continue
        columns["topic"].append(ended.topic)
        columns["producer_id"].append(ended.producer_id)
        columns["cause"].append(one.ending.cause.name if ended.outcome == "ABORT" else None)
        decided_ms = one.ending.decided_ms
        columns["wait_ms"].append(None if decided_ms is None or end_ms is None else end_ms - decided_ms)
        columns["took_ms"].append(took_ms := one.ending.took_ms)
        if took_ms is not None:
            found.add_decided(ended, one.transactional_id, took_ms)
        if len(columns["topic"]) >= _DECISIONS_AT_ONCE:
            yield _decided(columns)
            columns.clear()
    if columns:
        yield _decided(columns)


def _decided(columns: dict[str, list[Any]]) -> pa.Table:
    cause, waits = pa.array(columns["cause"], pa.string()), pa.array(columns["wait_ms"], pa.int64())
    names = ("decided_count", "marker_wait_sum_ms", "min_marker_wait_ms", "max_marker_wait_ms")
    measure = "coordinator_duration"
    took = ("coordinator_timed_count", f"{measure}_sum_ms", f"min_{measure}_ms", f"max_{measure}_ms")
    return rows_with(
        {
            "topic": pa.array(columns["topic"], pa.string()),
            "producer_id": pa.array(columns["producer_id"], pa.int64()),
            **{column: pc.fill_null(pc.equal(cause, name), fill_value=False) for name, column in CAUSES.items()},
            **spread(names, waits),
            **spread(took, pa.array(columns["took_ms"], pa.int64())),
        }
    )


def _of_markers(wanted: _Wanted) -> Iterator[pa.Table]:
    """End markers without data before them."""
    asked = wanted.filters.places
    for batch in wanted.run.batches(PARTITION_HEALTH, "topic", "partition", "bare_markers", **asked):
        bare = pc.list_flatten(batch["bare_markers"])
        topics = batch["topic"].take(pc.list_parent_indices(batch["bare_markers"]))
        fields = {name: bare.field(name) for name in ("producer_id", "marker", "timestamp_ms")}
        rows = pa.RecordBatch.from_pydict({"topic": topics, **fields})
        if wanted.filters.producer_ids:
            rows = rows.filter(pc.is_in(rows["producer_id"], pa.array(wanted.filters.producer_ids, pa.int64())))
        for own in wanted.own([rows.filter(wanted.window.has(rows["timestamp_ms"]))]):
            is_commit = pc.fill_null(pc.equal(own["marker"], "COMMIT"), fill_value=False)
            one = pa.repeat(pa.scalar(1, pa.int64()), len(own))
            place = {name: own[name] for name in ("topic", "producer_id")}
            yield rows_with({**place, "empty_count": one, "empty_commit_count": is_commit})


def _of_open(wanted: _Wanted) -> Iterator[pa.Table]:
    """What is open at the end of the logs, whenever it began."""
    for own in wanted.own(wanted.run.batches(TRANSACTIONS, "topic", "producer_id", **wanted.filters.rows)):
        one = pa.repeat(pa.scalar(1, pa.int64()), len(own))
        yield rows_with({**{name: own[name] for name in ("topic", "producer_id")}, "open_count": one})


def _ids_of(producers: pa.Array | pa.ChunkedArray, named: NamedProducers) -> pa.Array:
    """The transactional id of each producer id, the first by name of several; NULL where no record has it."""
    found = named.first_ids.take(pc.index_in(producers, named.producer_ids))
    return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found


def _groups(rows: pa.Table, by: By, named: NamedProducers, connect: ConnectGroups) -> list[Group]:
    names = rows["topic"] if by is By.TOPIC else _ids_of(rows["producer_id"], named)
    frameworks: dict[str | None, str | None] = {}
    if by is By.APPLICATION:
        ids = pc.unique(names)
        owners = [None if name is None else application_of(name, connect) for name in ids.to_pylist()]
        own = pa.array([None if owner is None else owner.name for owner in owners], pa.string())
        frameworks = {owner.name: owner.framework for owner in owners if owner is not None}
        names = own.take(pc.index_in(names, ids))
    summed = added_up(rows.append_column("name", names), ["name"])
    found = [
        _group(summed.slice(place, 1), name, frameworks.get(name))
        for place, name in enumerate(summed["name"].to_pylist())
    ]
    return sorted(found, key=lambda one: (-one.ended_count, -one.empty_count, one.name is None, one.name or ""))


def _group(row: pa.Table, name: str | None, framework: str | None) -> Group:
    own: dict[str, Any] = {column: row[column][0].as_py() for column in row.column_names}
    explained = sum(own[column] for column in CAUSES.values())
    return Group(
        **{column: own[column] for column in Group._fields if column in own and column != "name"},
        name=name,
        framework=framework,
        unexplained_abort_count=own["aborted_count"] - explained,
        mean_duration_ms=_mean(own["duration_sum_ms"], own["timed_count"]),
        mean_coordinator_duration_ms=_mean(own["coordinator_duration_sum_ms"], own["coordinator_timed_count"]),
        mean_marker_wait_ms=_mean(own["marker_wait_sum_ms"], own["decided_count"]),
    )


def _mean(total: int, number: int) -> int | None:
    return round(total / number) if number else None
