"""The coordinator's records that a finished run rests on, read batch by batch: few rows are kept."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.coordinator.state_records import histories_of
from txn_analysis.coordinator.state_row import StateRow
from txn_analysis.kafka.transactions import NAMED, STATE_COLUMNS
from txn_analysis.tables import TRANSACTION_STATES

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from txn_analysis.coordinator.history import History
    from txn_analysis.kafka.transactions import StateRecord
    from txn_analysis.runs.past_run import PastRun

_PLACED_BY = ("input_id", "ordinal", "offset", "transactional_id_hash")
_COLUMNS = tuple(dict.fromkeys((*STATE_COLUMNS, *_PLACED_BY)))
_ORDER = ("age", "is_dump", "place", "exported_in", "arrival")
_HELD_ROWS = 1 << 16


def current_states(run: PastRun, **one_of: Collection[Any]) -> pa.Table:
    """One row per transactional id: its last record in offset order; tombstoned ids are kept and marked.

    Args:
        run: whose evidence counts.
        one_of: `transactional_id`, where some are wanted; all otherwise.

    Returns:
        The columns of `transaction_states` that a history is made of, and those that say where a record stands.
    """
    dumped_rank = run.state_files.dumped_rank
    newest: pa.Table | None = None
    waiting: list[pa.Table] = []
    for batch in run.evidence.batches(TRANSACTION_STATES, *_COLUMNS, **one_of):
        waiting.append(_ordered(batch, dumped_rank))
        # As many as are kept at least, so that each row is sorted only a few times.
        if sum(map(len, waiting)) >= max(_HELD_ROWS, 0 if newest is None else len(newest)):
            newest, waiting = _newest([*([] if newest is None else [newest]), *waiting]), []
    parts = [*([] if newest is None else [newest]), *waiting]
    if not parts:
        return pa.schema([TRANSACTION_STATES.arrow_schema.field(name) for name in _COLUMNS]).empty_table()
    return _newest(parts).select([*_COLUMNS])


def placed(states: pa.Table, run: PastRun) -> Iterator[StateRecord]:
    """Rows of `current_states`; console records get the partition that their id hashes to."""
    for batch in states.to_batches(_HELD_ROWS):
        for row in _rows(batch):
            yield row.placed(run.placing.partition_of(row))


def _rows(batch: pa.RecordBatch) -> Iterator[StateRow]:
    return map(StateRow.of, batch.to_pylist())


def _ordered(batch: pa.RecordBatch, dumped_rank: int) -> pa.Table:
    """The records of known ids with what sorts those of one id; as `Placing.order_of`."""
    is_known = pc.and_not(pc.is_valid(batch["transactional_id"]), batch["is_undecodable"])
    known = pa.Table.from_batches([batch]).filter(is_known)
    is_console = pc.is_null(known["state_partition"])
    columns = {
        "age": pc.negate(pc.if_else(is_console, known["capture_rank"], dumped_rank)),
        "is_dump": pc.invert(is_console).cast(pa.int8()),
        "place": pc.coalesce(known["offset"], known["input_moment_ms"]),
        "exported_in": pc.if_else(is_console, known["input_id"], ""),
        "arrival": pc.if_else(is_console, known["ordinal"], 0),
    }
    for name in _ORDER:
        known = known.append_column(name, columns[name])
    return known


def _newest(parts: Iterable[pa.Table]) -> pa.Table:
    """Of each id the last record."""
    rows = pa.concat_tables(parts)
    order = pc.sort_indices(rows, [(name, "ascending") for name in ("transactional_id", *_ORDER)])
    ids = rows["transactional_id"].take(order).combine_chunks()
    if not len(ids):
        return rows
    is_last = pa.concat_arrays([pc.not_equal(ids[:-1], ids[1:]), pa.array([True])])
    return rows.take(order.filter(is_last)).combine_chunks()


def names_producers(run: PastRun, producer_ids: Collection[int]) -> set[int]:
    """Of some producer ids those that any record of the coordinator stands for."""
    return set(record_counts(run, producer_ids))


def record_counts(run: PastRun, producer_ids: Collection[int]) -> Counter[int]:
    """By producer id, how many records of the coordinator stand for it."""
    wanted, found = pa.array(sorted(producer_ids), pa.int64()), Counter[int]()
    for batch in run.evidence.batches(TRANSACTION_STATES, *NAMED):
        for name in NAMED:
            counts = batch[name].filter(pc.is_in(batch[name], wanted)).value_counts()
            found.update(dict(zip(counts.field("values").to_pylist(), counts.field("counts").to_pylist(), strict=True)))
    return found


def states_naming(run: PastRun, producer_ids: Collection[int], **one_of: Collection[Any]) -> list[StateRecord]:
    """The records that stand for one of some producer ids, and meet what else is asked."""
    wanted = pa.array(sorted(producer_ids), pa.int64())
    batches = run.evidence.batches(TRANSACTION_STATES, *_COLUMNS, **one_of)
    return [run.placing.record_of(row) for batch in batches for row in _rows(batch.filter(_names(batch, wanted)))]


def histories(run: PastRun, producer_ids: Collection[int]) -> dict[int, dict[str, History]]:
    """By producer id, the whole histories of the ids that have, or had in any record, that producer id.

    Args:
        run: whose evidence counts.
        producer_ids: those that are asked about.
    """
    wanted = pa.array(sorted(producer_ids), pa.int64())
    ids = set[str]()
    for batch in run.evidence.batches(TRANSACTION_STATES, "transactional_id", *NAMED):
        ids.update(pc.unique(batch["transactional_id"].filter(_names(batch, wanted))).to_pylist())
    found: defaultdict[int, dict[str, History]] = defaultdict(dict)
    for name, records in sorted(of_ids(run, ids - {None}).items()):
        named: set[Any] = {producer_id for record in records for producer_id in record.producer_ids}
        for producer_id in named.intersection(producer_ids):
            found[producer_id][name] = records
    return dict(found)


def of_ids(run: PastRun, transactional_ids: Collection[str]) -> dict[str, History]:
    """The records of some transactional ids, oldest first and each once."""
    if not transactional_ids:
        return {}
    wanted = sorted(transactional_ids)
    batches = run.evidence.batches(TRANSACTION_STATES, *_COLUMNS, transactional_id=wanted)
    rows = (row for batch in batches for row in _rows(batch))
    return {history[0].transactional_id: history for history in histories_of(rows, run.placing)}


def _names(batch: pa.RecordBatch, producer_ids: pa.Array) -> pa.Array:
    first, second, third = (pc.is_in(batch[name], producer_ids) for name in NAMED)
    return pc.or_(pc.or_(first, second), third)
