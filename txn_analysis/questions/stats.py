"""The answer of `ended --by`: what transactions did, by application, transactional id or topic, from one run's tables.

One transaction on one partition counts once, as `ended_transactions` has it: one that wrote to three partitions counts
three times. Sizes and ends are those of the log, counted by `ended.sql`; why an abort came, and how long its marker
took, are known where the records of its id are left (`judge.endings`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import nsmallest
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.judge.applications import ConnectGroups, application_of
from txn_analysis.judge.endings import Ended
from txn_analysis.logic import minus
from txn_analysis.questions.ended import SQL, asked_ended, with_records
from txn_analysis.questions.filters import Filters
from txn_analysis.questions.stats_answer import CAUSES, By, Group, LongTransaction, StatsAnswer, cannot_say
from txn_analysis.report.pictures import EndedSlice
from txn_analysis.runs.ask import ask, views_in
from txn_analysis.runs.past_run import PastRun
from txn_analysis.runs.run_tables import RunTables

MOST_LONGEST = 10
_MOST_SLICES = 48
_PART_ROWS = 1 << 20  # of transactions whose first batches are looked for at a time
_DECISIONS_AT_ONCE = 1 << 14
_PARTS_HELD = 16  # of so many transactions, until they are added up
_KEY = ("topic", "producer_id")
_MADE = {"name", "framework", "unexplained_abort_count"}  # of the others, and so are means
_HOW = {
    name: {"min_": "min", "max_": "max"}.get(name[:4], "sum")
    for name in (*Group._fields, "marker_wait_sum_ms")
    if name not in _MADE and not name.startswith("mean_")
}
_ROWS = pa.schema([("topic", pa.string()), *((name, pa.int64()) for name in ("producer_id", *_HOW))])


def stats_of(tables: RunTables, filters: Filters, by: By, limit: int) -> StatsAnswer:
    """What the wanted transactions of a run did.

    Args:
        tables: the run.
        filters: which are wanted: topics, partitions, producer ids, patterns of transactional ids, and when they ended.
        by: how they are put together.
        limit: at most so many groups.
    """
    run = tables.finished
    asked = {**asked_ended(run, filters), "most": str(MOST_LONGEST)}
    (bounds,) = _ask(run, "bounds", asked).to_pylist()
    count = bounds["untimed_count"] // _PART_ROWS + 1
    parts = [{**asked, "parts": str(count), "part": str(part)} for part in range(count)]
    did = [*(_ask(run, "did", part) for part in parts), _ask(run, "bare", asked), _ask(run, "still", asked)]
    longest = [LongTransaction(**row) for part in parts for row in _ask(run, "longest", part).to_pylist()]
    decided, longest_by_coordinator = _decided(run, asked)
    rows = _together([*did, decided])  # adding up by producer first would hold many times as much
    groups = _groups(_named(run, rows, by), by, tables.connect_groups)
    (summed,) = _added_up(rows, []).to_pylist()
    total, is_in_window = _group(summed, {}), (filters.since_ms, filters.until_ms) != (None, None)
    return StatsAnswer(
        run_id=run.run_id,
        by=by,
        since_ms=filters.since_ms,
        until_ms=filters.until_ms,
        total=total,
        groups=tuple(groups[:limit]),
        left_out_count=max(len(groups) - limit, 0),
        longest=tuple(nsmallest(MOST_LONGEST, longest, key=_longest_first)),
        longest_by_coordinator=longest_by_coordinator,
        over_time=_slices(run, asked, bounds),
        cannot_say=tuple(cannot_say(total, has_state=tables.has_state, is_in_window=is_in_window)),
    )


def _ask(run: PastRun, view: str, asked: Mapping[str, str]) -> pa.Table:
    return ask(run, f"SELECT * FROM {view}", views_in(SQL, **asked))  # noqa: S608 ours


def _longest_first(one: LongTransaction) -> tuple[Any, ...]:
    return -one.duration_ms, one.topic, one.partition, one.txn_start_offset


def _together(parts: Iterable[pa.Table]) -> pa.Table:
    """The rows of all parts, each of which has some of the columns of `_ROWS`."""
    return pa.concat_tables([_ROWS.empty_table(), *parts], promote_options="permissive")


def _added_up(rows: pa.Table, by: Sequence[str]) -> pa.Table:
    """The rows of each group as one; without a group one row of all, which is there even where there is no row."""
    group_rows = rows.group_by([*by], use_threads=False).aggregate([*_HOW.items()])
    columns = [group_rows[name] for name in by]
    columns += [
        pc.fill_null(group_rows[f"{name}_{how}"], 0) if how == "sum" else group_rows[f"{name}_{how}"]
        for name, how in _HOW.items()
    ]
    return pa.table(columns, names=[*by, *_HOW])


def _decided(run: PastRun, asked: Mapping[str, str]) -> tuple[pa.Table, tuple[LongTransaction, ...]]:
    """Rows of `_ROWS`, of what the coordinator's records say: causes of aborts, and how long markers took.

    And the longest of these transactions, by its clock.
    """
    longest: list[LongTransaction] = []
    counted = [_ROWS.empty_table()]
    explained = with_records(run, asked)
    for some in iter(lambda: [*islice(explained, _DECISIONS_AT_ONCE)], []):
        longest = nsmallest(MOST_LONGEST, [*longest, *_timed(some)], key=_longest_first)
        counted.append(_added_up(pa.Table.from_pylist([*map(_row, some)], _ROWS), _KEY))
        if len(counted) == _PARTS_HELD:
            counted = [_added_up(_together(counted), _KEY)]
    return _together(counted), tuple(longest)


def _timed(some: Iterable[Ended]) -> Iterator[LongTransaction]:
    for ended, name, ending in some:
        if ending.took_ms is not None:
            ended_fields = {field: getattr(ended, field) for field in LongTransaction._fields[:-2]}
            yield LongTransaction(**ended_fields, transactional_id=name, duration_ms=ending.took_ms)


def _row(one: Ended) -> dict[str, Any]:
    ended, _, ending = one
    cause = {CAUSES[ending.cause.name]: 1} if ended.outcome == "ABORT" and ending.cause.name in CAUSES else {}
    waited_ms = minus(ended.end_timestamp_ms, ending.decided_ms)
    of_marker = _measured("decided_count", "marker_wait", waited_ms)
    lasted = _measured("coordinator_timed_count", "coordinator_duration", ending.took_ms)
    return {"topic": ended.topic, "producer_id": ended.producer_id, **cause, **of_marker, **lasted}


def _measured(counted: str, name: str, ms: int | None) -> dict[str, int]:
    return {} if ms is None else {counted: 1, f"{name}_sum_ms": ms, f"min_{name}_ms": ms, f"max_{name}_ms": ms}


def slices_of(tables: RunTables) -> tuple[EndedSlice, ...]:
    """How many ended when, in slices of one length from the first end marker to the last; none without a time."""
    asked = {"wanted": "TRUE", "own": "TRUE"}
    (bounds,) = _ask(tables.finished, "bounds", asked).to_pylist()
    return _slices(tables.finished, asked, bounds)


def _slices(run: PastRun, asked: Mapping[str, str], bounds: Mapping[str, Any]) -> tuple[EndedSlice, ...]:
    first_ms, last_ms = bounds["first_ms"], bounds["last_ms"]
    if first_ms is None:
        return ()
    step_ms = (last_ms - first_ms) // _MOST_SLICES + 1
    rows = _ask(run, "slices", {**asked, "first_ms": str(first_ms), "step_ms": str(step_ms)})
    counts = {slice_: outcome_counts for slice_, *outcome_counts in zip(*rows.to_pydict().values(), strict=True)}
    starts = range(first_ms, last_ms + 1, step_ms)
    return tuple(EndedSlice(start, start + step_ms, *counts.get(n, (0, 0, 0))) for n, start in enumerate(starts))


def _named(run: PastRun, rows: pa.Table, by: By) -> pa.Table:
    """The rows with a `name`: their topic, or the transactional id of their producer, NULL where no record has it."""
    if by is By.TOPIC:
        return rows.append_column("name", rows["topic"])
    ids = ask(run, "SELECT producer_id, transactional_id AS name FROM ids")
    return rows.append_column("name", ids["name"].take(pc.index_in(rows["producer_id"], ids["producer_id"])))


def _groups(rows: pa.Table, by: By, connect: ConnectGroups) -> list[Group]:
    frameworks: dict[str | None, str | None] = {}
    if by is By.APPLICATION:
        every = pc.unique(rows["name"])
        owners = [None if name is None else application_of(name, connect) for name in every.to_pylist()]
        frameworks = {owner.name: owner.framework for owner in owners if owner is not None}
        owner_names = pa.array([None if owner is None else owner.name for owner in owners], pa.string())
        rows = rows.drop_columns("name").append_column("name", owner_names.take(pc.index_in(rows["name"], every)))
    groups = [_group(row, frameworks) for row in _added_up(rows, ["name"]).to_pylist()]
    return sorted(groups, key=lambda one: (-one.ended_count, -one.empty_count, one.name is None, one.name or ""))


def _group(row: Mapping[str, Any], frameworks: Mapping[str | None, str | None]) -> Group:
    return Group(
        **{"name": None} | {column: row[column] for column in Group._fields if column in row},
        framework=frameworks.get(row.get("name")),
        unexplained_abort_count=row["aborted_count"] - sum(row[column] for column in CAUSES.values()),
        mean_duration_ms=_mean(row["duration_sum_ms"], row["timed_count"]),
        mean_coordinator_duration_ms=_mean(row["coordinator_duration_sum_ms"], row["coordinator_timed_count"]),
        mean_marker_wait_ms=_mean(row["marker_wait_sum_ms"], row["decided_count"]),
    )


def _mean(total: int, number: int) -> int | None:
    return round(total / number) if number else None
