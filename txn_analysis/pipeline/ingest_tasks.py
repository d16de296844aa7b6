"""Runs readers over byte ranges in tasks, and sums up the batches that they give."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from txn_analysis.columns.memory import keep_pages
from txn_analysis.log.segments import UNCUT
from txn_analysis.log.summarize import summarize_parts
from txn_analysis.reading.inputs.accounting import ReadPiece
from txn_analysis.reading.log_dir.group_records import group_rows
from txn_analysis.reading.rows import read_ranges
from txn_analysis.reading.text.section import ScanRange
from txn_analysis.tables import (
    ABORTED_TRANSACTIONS,
    ENDED_TRANSACTIONS,
    GROUP_OFFSETS,
    LOG_BATCHES,
    LOG_PIECES,
    PRODUCER_SNAPSHOTS,
    TRANSACTION_STATES,
)
from txn_analysis.tables.batches import Batches, rows_of
from txn_analysis.warehouse.rows import NamedRows, RowTasks

PLACES = "places"
"""What tasks tell the driver, besides what readers do: where each piece lies, `ReadPiece`."""

_BATCHES_AT_ONCE = 20_000  # summed up; what a call costs by itself is little beside them
_TABLES = (
    LOG_BATCHES,
    LOG_PIECES,
    ENDED_TRANSACTIONS,
    GROUP_OFFSETS,
    TRANSACTION_STATES,
    PRODUCER_SNAPSHOTS,
    ABORTED_TRANSACTIONS,
)


def read_tasks(tasks: list[list[ScanRange]], ingest_id: str, *, is_on_spark: bool) -> RowTasks:
    """Fills the input tables from one look at the bodies of sections; tells PLACES, MOMENTS and REJECTED.

    Args:
        tasks: ranges of sections of READ_KINDS, all ranges of one of `__transaction_state` in order in one task; one
            task of Spark for each list.
        ingest_id: the ingest that reads them.
        is_on_spark: as of `RowTasks`.
    """
    return RowTasks(tasks, _TABLES, partial(_read_task, ingest_id=ingest_id), is_on_spark)


def _read_task(ranges: list[ScanRange], ingest_id: str) -> Iterator[NamedRows]:
    """Rows of the ranges of one task; the batches of small sections are summed up together."""
    keep_pages()
    pending, count = list[Batches](), 0
    for scanned in read_ranges(ranges, ingest_id):
        if not isinstance(scanned, Batches):
            yield scanned
            continue
        pending.append(scanned)
        count += len(scanned)
        if count >= _BATCHES_AT_ONCE:
            yield from _log_rows(pending)
            pending, count = [], 0
    yield from _log_rows(pending)


def _log_rows(parts: Sequence[Batches]) -> Iterator[NamedRows]:
    """Batches of some sections as rows, and their summaries."""
    filled = [batches for batches in parts if len(batches)]
    if not filled:
        return
    summaries = summarize_parts(filled, [UNCUT] * len(filled))
    yield LOG_BATCHES.name, rows_of(filled)
    yield LOG_PIECES.name, summaries.pieces
    yield ENDED_TRANSACTIONS.name, summaries.transactions
    yield PLACES, summaries.pieces.select(ReadPiece._fields)
    for batches in filled:
        if batches.groups is not None:
            yield GROUP_OFFSETS.name, group_rows(batches, batches.groups)
