"""The answer of `ended --by`: what transactions did, by application, transactional id or topic, from one run's tables.

One transaction on one partition counts once, as `ended_transactions` has it: one that wrote to three partitions counts
three times. Sizes and ends are those of the log, counted by `stats.sql`; why an abort came, and how long its marker
took, are known where the records of its id are left (`judge.endings`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from heapq import nsmallest
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.judge.applications import application_of
from txn_analysis.questions.ended import EndedFilters, with_records
from txn_analysis.questions.stats_answer import CAUSES, By, Group, LongTransaction, StatsAnswer, cannot_say
from txn_analysis.report.pictures import EndedSlice
from txn_analysis.runs.ask import ask, is_one_of, views_in
from txn_analysis.runs.asked_states import merged, named_producers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from txn_analysis.judge.applications import ConnectGroups
    from txn_analysis.judge.endings import Ended
    from txn_analysis.questions.ended import Window
    from txn_analysis.questions.filters import Filters
    from txn_analysis.runs.asked_states import NamedProducers
    from txn_analysis.runs.run_tables import RunTables

MOST_LONGEST = 10
_MOST_SLICES = 48
_PART_ROWS = 1 << 20  # of transactions whose first batches are looked for at a time
_DECISIONS_AT_ONCE = 1 << 14
_MERGED_ROWS = 1 << 18
_SQL = Path(__file__).with_name("stats.sql")
_KEY = ("topic", "producer_id")
_SUMS = (
    *("committed_count", "aborted_count", *CAUSES.values(), "unknown_outcome_count"),
    *("empty_count", "empty_commit_count", "open_count", "start_unseen_count", "backwards_count"),
    *("sized_count", "record_count", "size_bytes", "timed_count", "duration_sum_ms"),
    *("decided_count", "marker_wait_sum_ms", "coordinator_timed_count", "coordinator_duration_sum_ms"),
)
_OF_MEASURES = ("duration_ms", "coordinator_duration_ms", "marker_wait_ms")
_HOW = {
    **dict.fromkeys(_SUMS, "sum"),
    **{f"min_{name}": "min" for name in _OF_MEASURES},
    **{f"max_{name}": "max" for name in ("record_count", "size_bytes", *_OF_MEASURES)},
}
_ROWS = pa.schema([("topic", pa.string()), *((name, pa.int64()) for name in ("producer_id", *_HOW))])


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
    own = {"producer_id": named.of_ids(filters.has_id).to_pylist()} if filters.transactional_id_patterns else {}
    asked = {name: is_one_of(of) for name, of in (("rows", filters.rows), ("own", own), ("places", filters.places))}
    opened = f"{asked['rows']} AND {asked['own']}"
    bare = is_one_of({"producer_id": filters.producer_ids} if filters.producer_ids else {})
    wanted = _Wanted(
        tables,
        {
            "places": asked["places"],
            "opened": opened,
            "wanted": f"{opened} AND {window.sql}",
            "bare": f"{bare} AND {asked['own']} AND {window.sql}",
            "most": MOST_LONGEST,
        },
    )
    decided, longest_by_coordinator = _decided(tables, filters, window, named)
    rows = pa.concat_tables([wanted.counted(), decided])
    groups = _groups(rows, by, named, tables.connect_groups)
    total = _group(_added_up(rows, []), None, None)
    return StatsAnswer(
        run_id=run.run_id,
        by=by,
        since_ms=window.since_ms,
        until_ms=window.until_ms,
        total=total,
        groups=tuple(groups[:limit]),
        left_out_count=max(len(groups) - limit, 0),
        longest=wanted.longest(named),
        longest_by_coordinator=longest_by_coordinator,
        over_time=slices_of(tables, wanted.values["wanted"]),
        cannot_say=tuple(cannot_say(total, has_state=tables.has_state, is_in_window=window.is_bounded)),
    )


@dataclass(frozen=True)
class _Wanted:
    """Which rows of a run are wanted, as `stats.sql` takes it."""

    tables: RunTables
    values: dict[str, Any]

    def _ask(self, view: str, **more: Any) -> pa.Table:
        return ask(self.tables.finished, f"SELECT * FROM {view}", views_in(_SQL, **self.values, **more))  # noqa: S608 ours

    @cached_property
    def _part_count(self) -> int:
        untimed_count: int = self._ask("bounds")["untimed_count"][0].as_py()
        return untimed_count // _PART_ROWS + 1

    def _each_part(self, view: str) -> Iterator[pa.Table]:
        return (self._ask(view, parts=self._part_count, part=part) for part in range(self._part_count))

    def counted(self) -> pa.Table:
        """Rows of `_ROWS`, of what the logs say."""
        parts = [*self._each_part("did"), self._ask("bare"), self._ask("still")]
        return _added_up(pa.concat_tables([_whole(part) for part in parts]), _KEY)

    def longest(self, named: NamedProducers) -> tuple[LongTransaction, ...]:
        """The longest of all, by the client's clock."""
        rows = pa.concat_tables(self._each_part("longest"))
        ids = _ids_of(rows["producer_id"], named).to_pylist()
        found = (LongTransaction(**row, transactional_id=own) for row, own in zip(rows.to_pylist(), ids, strict=True))
        return tuple(nsmallest(MOST_LONGEST, found, key=_longest_first))


def _longest_first(one: LongTransaction) -> tuple[Any, ...]:
    return -one.duration_ms, one.topic, one.partition, one.txn_start_offset


def _whole(some: pa.Table) -> pa.Table:
    """Rows of `_ROWS`, of which some columns are known."""
    none = pa.nulls(len(some), pa.int64())
    columns = [some[name] if name in some.column_names else none for name in _ROWS.names]
    return pa.table([column.cast(field.type) for column, field in zip(columns, _ROWS, strict=True)], schema=_ROWS)


def _added_up(rows: pa.Table, by: Sequence[str]) -> pa.Table:
    """The rows of each group as one; without a group one row of all, which is there even where there is no row."""
    found = rows.group_by([*by], use_threads=False).aggregate([*_HOW.items()])
    columns = [found[name] for name in by]
    columns += [
        pc.fill_null(found[f"{name}_{how}"], 0) if how == "sum" else found[f"{name}_{how}"]
        for name, how in _HOW.items()
    ]
    return pa.table(columns, names=[*by, *_HOW])


def _decided(
    tables: RunTables, filters: Filters, window: Window, named: NamedProducers
) -> tuple[pa.Table, tuple[LongTransaction, ...]]:
    """Rows of `_ROWS`, of what the coordinator's records say: causes of aborts, and how long markers took.

    And the longest of these transactions, by its clock.
    """
    longest: list[LongTransaction] = []

    def parts() -> Iterator[pa.Table]:
        nonlocal longest
        wanted = EndedFilters(None, None, is_stale=False, limit=1, window=window)
        explained = with_records(tables.finished, filters, wanted, named)
        for some in iter(lambda: [*islice(explained, _DECISIONS_AT_ONCE)], []):
            longest = nsmallest(MOST_LONGEST, [*longest, *_timed(some)], key=_longest_first)
            yield _by_producer([pa.Table.from_pylist([*map(_row, some)], _ROWS)])

    counted = merged(parts(), _by_producer, _MERGED_ROWS)
    return _ROWS.empty_table() if counted is None else counted, tuple(longest)


def _timed(some: Iterable[Ended]) -> Iterator[LongTransaction]:
    for ended, name, ending in some:
        if ending.took_ms is not None:
            own = {field: getattr(ended, field) for field in LongTransaction._fields[:-2]}
            yield LongTransaction(**own, transactional_id=name, duration_ms=ending.took_ms)


def _row(one: Ended) -> dict[str, Any]:
    ended, _, ending = one
    row: dict[str, Any] = {"topic": ended.topic, "producer_id": ended.producer_id}
    if ended.outcome == "ABORT" and ending.cause.name in CAUSES:
        row[CAUSES[ending.cause.name]] = 1
    if ending.decided_ms is not None and ended.end_timestamp_ms is not None:
        row |= _measured("decided_count", "marker_wait", ended.end_timestamp_ms - ending.decided_ms)
    if ending.took_ms is not None:
        row |= _measured("coordinator_timed_count", "coordinator_duration", ending.took_ms)
    return row


def _by_producer(parts: list[pa.Table]) -> pa.Table:
    return _added_up(pa.concat_tables(parts).select(_ROWS.names), _KEY).select(_ROWS.names)


def _measured(counted: str, name: str, ms: int) -> dict[str, int]:
    return {counted: 1, f"{name}_sum_ms": ms, f"min_{name}_ms": ms, f"max_{name}_ms": ms}


def slices_of(tables: RunTables, wanted: str = "TRUE") -> tuple[EndedSlice, ...]:
    """How many ended when, in slices of one length from the first end marker to the last; none without a time.

    Args:
        tables: the run.
        wanted: a condition on its ended transactions, in SQL.
    """
    (bounds,) = ask(tables.finished, "SELECT * FROM bounds", views_in(_SQL, wanted=wanted)).to_pylist()
    first_ms, last_ms = bounds["first_ms"], bounds["last_ms"]
    if first_ms is None:
        return ()
    step_ms = (last_ms - first_ms) // _MOST_SLICES + 1
    views = views_in(_SQL, wanted=wanted, first_ms=first_ms, step_ms=step_ms)
    counts = {
        slice_: own
        for slice_, *own in zip(*ask(tables.finished, "SELECT * FROM slices", views).to_pydict().values(), strict=True)
    }
    starts = range(first_ms, last_ms + 1, step_ms)
    return tuple(EndedSlice(start, start + step_ms, *counts.get(n, (0, 0, 0))) for n, start in enumerate(starts))


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
    summed = _added_up(rows.append_column("name", names), ["name"])
    found = [
        _group(summed.slice(place, 1), name, frameworks.get(name))
        for place, name in enumerate(summed["name"].to_pylist())
    ]
    return sorted(found, key=lambda one: (-one.ended_count, -one.empty_count, one.name is None, one.name or ""))


def _group(row: pa.Table, name: str | None, framework: str | None) -> Group:
    (own,) = row.to_pylist()
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
