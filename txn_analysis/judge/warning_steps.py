"""The steps of early warnings, as an engine runs them: from histories of ids to the worst applications of each kind.

histories --> timeouts; histories, with the median of these --> warnings -- by application --> the worst of each kind
"""

from __future__ import annotations

import pickle
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.columns.arrays import counted
from txn_analysis.columns.values import rows_of_values, unpickled
from txn_analysis.coordinator.state_records import histories_in
from txn_analysis.judge.early_warning import MANY
from txn_analysis.judge.warning_lines import by_application, warnings_of_aborts, warnings_of_last, worst_of
from txn_analysis.kafka.transactions import PREPARE_ABORT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from txn_analysis.columns.arrays import Array
    from txn_analysis.columns.values import BatchFunction
    from txn_analysis.judge.early_warning import Known
    from txn_analysis.judge.warning_lines import Flagged

OF_APPLICATION = pa.schema([("application", pa.string()), ("flagged", pa.binary())])
"""One row is some warnings about ids of one application, pickled."""


def timeouts(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Values: of rows of `HISTORIES`, how many ids that are not gone have which timeout."""
    found = Counter[int]()
    for rows in batches:
        found.update(counted(_last_of_live(rows["history"]).field("timeout_ms").drop_null()))
    yield from rows_of_values(found).to_batches()


def warnings_by_application(known: Known) -> BatchFunction:
    """Rows of `OF_APPLICATION` from rows of `HISTORIES`."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found: defaultdict[str, list[Flagged]] = defaultdict(list)
        for rows in batches:
            lists = rows["history"]
            many = lists.filter(pa.array(_aborts_in(lists) >= MANY))
            of_last = warnings_of_last(_last_of_live(lists), known)
            of_aborts = (each for history in histories_in(many) for each in warnings_of_aborts(history))
            for each in (*of_last, *of_aborts):
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


def _last_of_live(histories: pa.ListArray) -> pa.StructArray:
    """The last record of each id that is not gone, and of which no later record is hidden."""
    last = histories.flatten().take(pa.array(np.cumsum(pc.list_value_length(histories).to_numpy()) - 1))
    return last.filter(pc.invert(pc.or_(last.field("is_tombstone"), last.field("is_hidden"))))


def _aborts_in(histories: pa.ListArray) -> Array:
    """How many decisions to abort each holds."""
    is_abort = pc.fill_null(pc.equal(histories.flatten().field("state"), PREPARE_ABORT), False)
    of = pc.list_parent_indices(histories).to_numpy()
    return np.bincount(of, is_abort.to_numpy(zero_copy_only=False), len(histories))
