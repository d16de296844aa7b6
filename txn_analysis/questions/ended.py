"""The answer of `ended`: ended transactions of one run, and why each of them ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from heapq import nsmallest
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.columns.arrays import together
from txn_analysis.judge.applications import FLINK, framework_of
from txn_analysis.judge.endings import (
    TIMEOUT,
    UNEXPLAINED,
    Ended,
    EndedTransaction,
    IdHistory,
    ended_with,
    explains_before_ms,
)
from txn_analysis.questions.filters import Filters
from txn_analysis.report.formats import Answer, Column, answer_of
from txn_analysis.runs.ask import ask, asked_batches, is_one_of, views_in
from txn_analysis.runs.asked_states import histories
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
_KEY = ["topic", "partition", "producer_id"]
_STORED = [name for name in EndedTransaction._fields if name != "previous_end_ms"]
_RECORDS_AT_ONCE = 1 << 16
_ROWS_OF_A_RECORD = 8  # a record is held as an object, a row in columns
_HELD_ROWS = 1 << 15
_ENDS_AT_ONCE = 1 << 15
_ANY_DISTANCE = (1 << 63) - 1


def ended_answer(run: PastRun, filters: Filters, outcome: str | None, limit: int) -> tuple[Answer, int]:
    """The wanted ended transactions, newest first, and how many more there are.

    Args:
        run: whose ended transactions are asked about.
        filters: which are wanted.
        outcome: how they ended; None for any way.
        limit: at most so many are shown, the newest ones.
    """
    asked = asked_ended(run, filters, outcome)
    if not (filters.transactional_id_patterns or filters.cause or filters.is_stale):
        shown, number = _newest(run, "wanted", asked, limit)
        return answer_of(ENDED_COLUMNS, shown, _IN_TEXT), number - len(shown)
    # Most transactions ended before the first record that is left of their ids: their columns alone say so.
    none_explains = not filters.is_stale and filters.cause in {None, UNEXPLAINED}
    shown, number = _newest(run, "without_records", asked, limit) if none_explains else ([], 0)
    fitting = filter(filters.has_ended, with_records(run, asked))
    for some in together(fitting, lambda _: 1, _RECORDS_AT_ONCE):
        shown, number = nsmallest(limit, [*shown, *some], key=_newest_first), number + len(some)
    return answer_of(ENDED_COLUMNS, shown, _IN_TEXT), number - len(shown)


def asked_ended(run: PastRun, filters: Filters, outcome: str | None = None) -> dict[str, str]:
    """What the views of `ended.sql` take; arguments as of `ended_answer`."""
    ids, producer_condition = {}, "TRUE"
    if filters.transactional_id_patterns:
        every = ask(run, "SELECT DISTINCT transactional_id FROM pairs", views_in(SQL))["transactional_id"]
        ids = {"transactional_id": [*filter(filters.has_id, every.to_pylist())]}
        theirs = f"SELECT DISTINCT producer_id FROM pairs WHERE {is_one_of(ids)}"  # noqa: S608 ours
        producer_condition = is_one_of({"producer_id": ask(run, theirs, views_in(SQL))["producer_id"].to_pylist()})
    outcomes = {} if outcome is None else {"outcome": (outcome,)}
    return {
        "rows": is_one_of(filters.rows),
        "places": is_one_of(filters.places),
        "window": filters.window,
        "wanted": f"{is_one_of({**filters.rows, **outcomes})} AND {filters.window}",
        "whose": is_one_of(ids),
        "own": producer_condition,
        "explains_ms": str(explains_before_ms(run.settings.max_clock_skew_ms)),
        "stored": ", ".join(_STORED),
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

    def rows_of(producers: list[int]) -> pa.Table:
        return ask(run, f"SELECT * FROM with_records WHERE {is_one_of({'producer_id': producers})}", views)  # noqa: S608 ours

    return _explained(run, ask(run, "SELECT * FROM sizes", views), rows_of)


def _newest(run: PastRun, of: str, asked: Mapping[str, str], limit: int) -> tuple[list[Ended], int]:
    """The newest transactions of a view, with their causes, and how many there are."""
    asked = {**asked, "of": of, "limit": str(limit)}
    (reach,) = ask(run, "SELECT * FROM reach", views_in(SQL, **asked)).to_pylist()
    rows = ask(run, "SELECT * FROM newest", views_in(SQL, **asked, since_ms=reach["since_ms"] or "NULL"))
    sizes = rows.group_by("producer_id").aggregate([([], "count_all"), ("state_record_count", "min")])
    shown = _explained(run, sizes, lambda ids: rows.filter(pc.is_in(rows["producer_id"], pa.array(ids, pa.int64()))))
    return sorted(shown, key=_newest_first), reach["number"]


def _newest_first(one: Ended) -> tuple[Any, ...]:
    end_ms = one.transaction.end_timestamp_ms
    return end_ms is None, -(end_ms or 0), one.transaction.topic_partition, -one.transaction.end_offset


def _explained(run: PastRun, sizes: pa.Table, rows_of: Callable[[list[int]], pa.Table]) -> Iterator[Ended]:
    """Ended transactions with their causes, as many producers at a time as can be held with the records of their ids.

    Args:
        run: whose they are.
        sizes: by producer id how many there are, and how many records of the coordinator.
        rows_of: those of some producers.
    """
    weights = {
        producer_id: ended_count // _ROWS_OF_A_RECORD + (record_count or 0)
        for producer_id, ended_count, record_count in zip(*sizes.to_pydict().values(), strict=True)
    }
    for producers in together(sorted(weights), weights.__getitem__, _RECORDS_AT_ONCE):
        of_producer = {
            producer_id: {name: IdHistory(records) for name, records in ids.items()}
            for producer_id, ids in histories(run, producers).items()
        }
        for one in with_previous_ends(run, rows_of(producers)):
            yield ended_with(one, of_producer.get(one.producer_id, {}), run.settings.max_clock_skew_ms)


def with_previous_ends(run: PastRun, rows: pa.Table) -> Iterator[EndedTransaction]:
    """Ended transactions, each with the time of its producer's end marker before its own.

    Args:
        run: whose they are.
        rows: some of its ended transactions.
    """
    names = ", ".join((*_KEY, "end_offset AS below", "end_offset AS before_offset", "end_timestamp_ms AS before_ms"))
    theirs = is_one_of({name: rows[name].unique() for name in _KEY})
    ends = asked_batches(run, f"SELECT {names} FROM ended_transactions WHERE {theirs}")  # noqa: S608 ours
    below = pc.max_element_wise(pc.subtract(rows["end_offset"], 1), 0)  # no end is at 0, as data lies before it
    asked = rows.select(_STORED).append_column("below", below).sort_by("below")
    placed, nearest = asked.append_column("before_ms", pa.nulls(len(asked), pa.int64())), list[pa.Table]()
    for some in together(ends, len, _ENDS_AT_ONCE):
        every = pa.concat_tables([*nearest, pa.Table.from_batches(some)], promote_options="permissive")
        placed = asked.join_asof(every.sort_by("below"), "below", _KEY, -_ANY_DISTANCE)
        near = placed.select([*_KEY, "before_offset", "before_offset", "before_ms"]).rename_columns(every.column_names)
        nearest = [near.filter(near["below"].is_valid())]
    for batch in placed.select([*_STORED, "before_ms"]).to_batches(_HELD_ROWS):
        for row in batch.to_pylist():
            yield EndedTransaction(previous_end_ms=row.pop("before_ms"), **row)
