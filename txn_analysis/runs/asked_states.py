"""The coordinator's records that a finished run rests on, read batch by batch: few rows are kept."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.columns.records import records_of
from txn_analysis.coordinator.history import History
from txn_analysis.coordinator.state_columns import InOrder
from txn_analysis.coordinator.state_records import (
    NEWEST_RECORDS,
    STATES,
    by_id,
    histories_in,
    histories_of,
    newest_records,
    with_held_by,
)
from txn_analysis.kafka.transactions import NAMED, SAID, StateRecord
from txn_analysis.runs.ask import ask, is_one_of
from txn_analysis.runs.past_run import PastRun
from txn_analysis.tables import CURRENT_STATES, TRANSACTION_STATES

_PLACED_BY = ("input_id", "ordinal", "offset", "leader_epoch", "transactional_id_hash")
_COLUMNS = tuple(dict.fromkeys((*SAID, *_PLACED_BY)))


def current_states(run: PastRun, **one_of: Collection[Any]) -> pa.Table:
    """One row per transactional id: its newest record, tombstones included, as the run wrote it.

    Of a run of 1.0.0, which wrote none, they are found among the records of its evidence.

    Args:
        run: which is finished.
        one_of: `transactional_id`, where some are wanted; all otherwise.

    Returns:
        Rows of `NEWEST_RECORDS`.
    """
    if run.has_current_states:
        return run.result_rows(CURRENT_STATES, *NEWEST_RECORDS.names, **one_of)
    return newest_records(*_in_order(run, **one_of))


def _in_order(run: PastRun, **one_of: Collection[Any]) -> tuple[pa.Table, InOrder]:
    """Records of the coordinator, and those of each id in their order."""
    placing = run.placing
    batches = run.evidence.batches(TRANSACTION_STATES, *_COLUMNS, **one_of)
    located = [with_held_by(batch, placing.partition_count, placing.text_exports) for batch in batches]
    rows = pa.Table.from_batches(located, located[0].schema if located else STATES)
    return rows, by_id(rows, np.zeros(len(rows), np.int64), np.full(len(rows), placing.dumped_rank))


def _records(batch: pa.RecordBatch, run: PastRun) -> list[StateRecord]:
    located = with_held_by(batch, run.placing.partition_count, run.placing.text_exports)
    lists = pc.coalesce(located["topic_partitions"], pa.scalar([], located["topic_partitions"].type))
    located = located.set_column(located.schema.get_field_index("topic_partitions"), "topic_partitions", lists)
    return records_of(
        StateRecord, located.drop_columns(["state_partition"]).rename_columns({"held_by": "state_partition"})
    )


def states_naming(run: PastRun, producer_ids: Collection[int], **one_of: Collection[Any]) -> list[StateRecord]:
    """The records that stand for one of some producer ids, and meet what else is asked."""
    wanted = pa.array(sorted(producer_ids), pa.int64())
    batches = run.evidence.batches(TRANSACTION_STATES, *_COLUMNS, **one_of)
    return [record for batch in batches for record in _records(batch.filter(_names(batch, wanted)), run)]


def histories(run: PastRun, producer_ids: Collection[int]) -> dict[int, dict[str, History]]:
    """By producer id, the whole histories of the ids that have, or had in any record, that producer id.

    Args:
        run: whose evidence counts.
        producer_ids: those that are asked about.
    """
    naming = " OR ".join(is_one_of({name: producer_ids}) for name in NAMED)
    ids = ask(run, f"SELECT DISTINCT transactional_id FROM transaction_states WHERE {naming}")["transactional_id"]  # noqa: S608 ours
    by_producer: defaultdict[int, dict[str, History]] = defaultdict(dict)
    for name, records in sorted(of_ids(run, {*ids.to_pylist()} - {None}).items()):
        named: set[Any] = {producer_id for record in records for producer_id in record.producer_ids}
        for producer_id in named.intersection(producer_ids):
            by_producer[producer_id][name] = records
    return dict(by_producer)


def of_ids(run: PastRun, transactional_ids: Collection[str]) -> dict[str, History]:
    """The records of some transactional ids, oldest first and each once."""
    if not transactional_ids:
        return {}
    rows, ordered = _in_order(run, transactional_id=sorted(transactional_ids))
    histories = histories_of(rows, np.zeros(len(rows), np.int64), ordered)["history"]
    return {history[0].transactional_id: history for history in histories_in(histories)}


def _names(batch: pa.RecordBatch, producer_ids: pa.Array) -> pa.Array:
    first, second, third = (pc.is_in(batch[name], producer_ids) for name in NAMED)
    return pc.or_(pc.or_(first, second), third)
