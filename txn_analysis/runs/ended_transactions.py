"""The ended transactions of a run: those of the pieces that its logs were linked from, and those that span pieces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.columns.equal_runs import is_in
from txn_analysis.log.transactions import LinkedPiece
from txn_analysis.tables import ENDED_TRANSACTIONS
from txn_analysis.tables.transactions import ENDED_OUTCOMES

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

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
    pieces = run.linked_pieces
    ingests = {run.run_id, *(piece.ingest_id for piece in pieces)}
    asked = [*dict.fromkeys((*names, *LINKED_PIECE_KEY))]
    stored = run.warehouse.batches(ENDED_TRANSACTIONS, *asked, ingest_id=sorted(ingests), outcome=outcomes, **one_of)
    for batch in stored:
        is_own = pc.or_(pc.equal(batch["ingest_id"], run.run_id), pa.array(is_in(batch, LINKED_PIECE_KEY, pieces)))
        if len(kept := batch.select([*names]).filter(is_own)):
            yield kept


def ended_listed(run: PastRun, *names: str, **one_of: Collection[Any]) -> list[dict[str, Any]]:
    """The ended transactions of a run as plain data, where there are few; arguments as of `ended_batches`."""
    return [row for batch in ended_batches(run, *names, **one_of) for row in batch.to_pylist()]
