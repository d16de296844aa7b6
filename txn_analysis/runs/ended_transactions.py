"""The ended transactions of a run: those of the pieces that its logs were linked from, and those that span pieces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.columns.arrays import is_in
from txn_analysis.log.transactions import LinkedPiece
from txn_analysis.tables import ENDED_TRANSACTIONS
from txn_analysis.tables.transactions import ENDED_OUTCOMES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from txn_analysis.runs.past_run import PastRun

LINKED_PIECE_KEY = LinkedPiece._fields
"""The columns of `ended_transactions` that say which piece holds a transaction whole."""


def ended_batches(
    run: PastRun, *names: str, outcomes: Collection[str] = ENDED_OUTCOMES, **one_of: Collection[Any]
) -> Iterator[pa.RecordBatch]:
    """The ended transactions of a run, one batch after another.

    Args:
        run: whose they are.
        names: of the columns that are wanted.
        outcomes: only those that ended like this.
        one_of: as of `Stored.batches`.
    """
    stored = run.warehouse.batches(
        ENDED_TRANSACTIONS, *ended_columns(*names), ingest_id=ended_ingests(run), outcome=outcomes, **one_of
    )
    for batch in ended_filter(run)(stored):
        if len(batch):
            yield batch.select([*names])


def ended_columns(*names: str) -> tuple[str, ...]:
    """Columns of `ended_transactions`, with those that say which rows are a run's."""
    return tuple(dict.fromkeys((*names, *LINKED_PIECE_KEY)))


def ended_ingests(run: PastRun) -> list[str]:
    """Which slices of `ended_transactions` have rows of a run: its own, and those of its pieces."""
    return sorted({run.run_id, *(piece.ingest_id for piece in run.linked_pieces)})


def ended_filter(run: PastRun) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Of rows of `ended_transactions` those of a run."""
    pieces, run_id = run.linked_pieces, run.run_id

    def own(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            of_piece = pa.array(is_in(batch, LINKED_PIECE_KEY, pieces))
            yield batch.filter(pc.or_(pc.equal(batch["ingest_id"], run_id), of_piece))

    return own


def ended_listed(run: PastRun, *names: str, **one_of: Collection[Any]) -> list[dict[str, Any]]:
    """The ended transactions of a run as plain data, where there are few; arguments as of `ended_batches`."""
    return [row for batch in ended_batches(run, *names, **one_of) for row in batch.to_pylist()]
