"""The steps of the coordinator's side, as an engine runs them: from rows of `transaction_states` to what they say.

states -- by partition of the state --> chains and sums
states -- by transactional id --> histories -- by producer id, with end markers --> views and marker sums
"""

from __future__ import annotations

import pickle
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.columns.records import fields_of
from txn_analysis.coordinator.partition_count import IdSums, positive_hashes, sums_of_columns
from txn_analysis.coordinator.seen import of_producers
from txn_analysis.coordinator.state_records import chains_of, histories_of, producers_of, section_sums_of
from txn_analysis.coordinator.state_row import StateRow
from txn_analysis.engine.told import told, unpickled
from txn_analysis.tables import TRANSACTION_STATES

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from txn_analysis.coordinator.history import History
    from txn_analysis.coordinator.state_at_hand import StateAtHand
    from txn_analysis.coordinator.state_records import Placing
    from txn_analysis.engine.engine import BatchFunction, GroupFunction

STATE_COLUMNS = tuple(name for name in fields_of(StateRow) if name in TRANSACTION_STATES.names)
STATES = pa.schema(
    [
        *(TRANSACTION_STATES.arrow_schema.field(name) for name in STATE_COLUMNS),
        ("capture_rank", pa.int64()),
        ("input_moment_ms", pa.int64()),
        ("held_by", pa.int32()),
    ]
)
"""One row is one record of the coordinator that is evidence: in the fields of `StateRow`, and the partition of the
state that holds it, see `Placing.partition_of`."""
HISTORIES = pa.schema([("producer_ids", pa.list_(pa.int64())), ("history", pa.binary())])
"""One row is one transactional id: the producer ids that it has, or had, and its records in order, pickled."""
OF_PRODUCER = pa.schema([("producer_id", pa.int64()), ("value", pa.binary())])
"""One row is something of one producer, pickled: the history of an id that has, or had, it; an open transaction."""


def placed(placing: Placing) -> BatchFunction:
    """Rows of `STATES` from the same rows without `held_by`."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for rows in batches:
            hashes = rows.column("transactional_id_hash").cast(pa.int64())
            hashed = positive_hashes(hashes.fill_null(0).to_numpy(zero_copy_only=False)) % placing.state_count.used
            of_id = pa.array(hashed.astype(np.int32), mask=hashes.is_null().to_numpy(zero_copy_only=False))
            held_by = pc.coalesce(rows.column("state_partition"), of_id)
            yield pa.RecordBatch.from_arrays([*rows.columns, held_by], schema=STATES)

    return run


def id_sums(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Told: `IdSums` of rows that have `transactional_id_hash` and `state_partition`."""
    sums = IdSums()
    for rows in batches:
        known = pc.drop_null(rows.select(["transactional_id_hash", "state_partition"]))
        sums = sums.plus(sums_of_columns(*[column.to_numpy(zero_copy_only=False) for column in known.columns]))
    yield from told(sums).to_batches()


def chain_step(placing: Placing) -> GroupFunction:
    """By `held_by`, of `states`. Told: by partition of the state its `StateChain`, and `StateSums` of its files."""

    def run(tables: Mapping[str, pa.Table]) -> pa.Table:
        rows = StateRow.listed(tables["states"])
        return told((chains_of(rows, placing), section_sums_of(rows, placing)))

    return run


def history_step(placing: Placing) -> GroupFunction:
    """By `transactional_id`, of `states`: rows of `HISTORIES`."""

    def run(tables: Mapping[str, pa.Table]) -> pa.Table:
        histories = list(histories_of(StateRow.listed(tables["states"]), placing))
        producers = [sorted(producers_of(history)) for history in histories]
        return pa.table([producers, [*map(pickle.dumps, histories)]], schema=HISTORIES)

    return run


def by_producer_id(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of `OF_PRODUCER` from rows of `HISTORIES`: each history for each of its producer ids."""
    for rows in batches:
        number = pc.list_parent_indices(rows.column("producer_ids"))
        columns = [rows.column("producer_ids").flatten(), rows.column("history").take(number)]
        yield pa.RecordBatch.from_arrays(columns, schema=OF_PRODUCER)


def producer_step(state: StateAtHand, asked: Collection[int]) -> GroupFunction:
    """By `producer_id`, of `histories`, `opened` and `markers`. Told: `OfProducers`.

    Args:
        state: what was given of the state.
        asked: the producer ids of all open transactions.
    """

    def run(tables: Mapping[str, pa.Table]) -> pa.Table:
        rows = tables["histories"]
        histories: dict[int, list[History]] = {}
        values = unpickled(rows["value"].to_pylist())
        for producer_id, history in zip(rows["producer_id"].to_pylist(), values, strict=True):
            histories.setdefault(producer_id, []).append(history)
        opened = list(unpickled(tables["opened"]["value"].to_pylist()))
        return told(of_producers(histories, tables["markers"], opened, state, asked))

    return run


def added_up(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Told: the sum of what was told, of values that have `plus`."""
    values = [value for part in parts for value in unpickled(part.column("told").to_pylist())]
    yield from (told(reduce(type(values[0]).plus, values)).to_batches() if values else ())
