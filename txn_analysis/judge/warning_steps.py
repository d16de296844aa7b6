"""The steps of early warnings, as an engine runs them: from histories of ids to the worst applications of each kind.

histories --> timeouts; histories, with the median of these --> warnings -- by application --> the worst of each kind
"""

from __future__ import annotations

import pickle
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

import pyarrow as pa

from txn_analysis.columns.values import rows_of_values, unpickled
from txn_analysis.judge.early_warning import by_application, is_live, warnings_of_id, worst_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from txn_analysis.columns.values import BatchFunction
    from txn_analysis.coordinator.history import History
    from txn_analysis.judge.early_warning import Flagged, Known

OF_APPLICATION = pa.schema([("application", pa.string()), ("flagged", pa.binary())])
"""One row is some warnings about ids of one application, pickled."""


def timeouts(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Values: of rows of `HISTORIES`, how many ids that are not gone have which timeout."""
    found = Counter[int]()
    for history in _histories(batches):
        if is_live(history[-1]) and (timeout_ms := history[-1].timeout_ms) is not None:
            found[timeout_ms] += 1
    yield from rows_of_values(found).to_batches()


def warnings_by_application(known: Known) -> BatchFunction:
    """Rows of `OF_APPLICATION` from rows of `HISTORIES`."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found: defaultdict[str, list[Flagged]] = defaultdict(list)
        for history in _histories(batches):
            for each in warnings_of_id(history, known):
                found[each.application].append(each)
        values = [pickle.dumps(own) for own in found.values()]
        yield pa.RecordBatch.from_arrays(
            [pa.array([*found], pa.string()), pa.array(values, pa.binary())], schema=OF_APPLICATION
        )

    return run


def worst_step(tables: Mapping[str, pa.Table]) -> pa.Table:
    """By `application`, of `warnings`. Values: `Warned` of the worst applications of each kind."""
    lists = unpickled(tables["warnings"]["flagged"].to_pylist())
    return rows_of_values(worst_of(by_application([each for own in lists for each in own])))


def _histories(batches: Iterator[pa.RecordBatch]) -> Iterator[History]:
    return (history for rows in batches for history in unpickled(rows.column("history").to_pylist()))
