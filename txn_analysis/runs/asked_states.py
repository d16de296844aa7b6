"""The coordinator's records that a finished run rests on, read batch by batch: few rows are kept."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.coordinator.state_records import StateRow, histories_of
from txn_analysis.kafka.transactions import NAMED, STATE_COLUMNS
from txn_analysis.tables import TRANSACTION_STATES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

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
    batches = run.evidence.batches(TRANSACTION_STATES, *_COLUMNS, **one_of)
    newest = _merged((_ordered(batch, run.state_files.dumped_rank) for batch in batches), _newest, _HELD_ROWS)
    if newest is None:
        return pa.schema([TRANSACTION_STATES.arrow_schema.field(name) for name in _COLUMNS]).empty_table()
    return newest.select([*_COLUMNS])


def _merged(parts: Iterable[pa.Table], merge: Callable[[list[pa.Table]], pa.Table], held_rows: int) -> pa.Table | None:
    """All parts as one, by a function that also takes what it gave; None where there are none."""
    held, merged_rows = list[pa.Table](), 0
    for part in parts:
        held.append(part)
        # As many new ones as are kept at least, so that each row is looked at only a few times.
        if sum(map(len, held)) - merged_rows >= max(held_rows, merged_rows):
            held = [merge(held)]
            merged_rows = len(held[0])
    return merge(held) if held else None


def placed(states: pa.Table, run: PastRun) -> Iterator[StateRecord]:
    """Rows of `current_states`; console records get the partition that their id hashes to."""
    for batch in states.to_batches(_HELD_ROWS):
        for row in _rows(batch):
            yield row.placed(run.placing.partition_of(row))


def _rows(batch: pa.RecordBatch) -> list[StateRow]:
    unread = pa.nulls(len(batch))
    columns = {name: batch[name] if name in batch.schema.names else unread for name in StateRow._fields}
    return StateRow.listed(pa.table(columns))


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


def _newest(parts: list[pa.Table]) -> pa.Table:
    """Of each id the last record."""
    rows = pa.concat_tables(parts)
    order = pc.sort_indices(rows, [(name, "ascending") for name in ("transactional_id", *_ORDER)])
    ids = rows["transactional_id"].take(order).combine_chunks()
    if not len(ids):
        return rows
    is_last = pa.concat_arrays([pc.not_equal(ids[:-1], ids[1:]), pa.array([True])])
    return rows.take(order.filter(is_last)).combine_chunks()


def record_counts(run: PastRun, producer_ids: Collection[int]) -> Counter[int]:
    """By producer id, how many records of the coordinator stand for it."""
    wanted, found = pa.array(sorted(producer_ids), pa.int64()), Counter[int]()
    for batch in run.evidence.batches(TRANSACTION_STATES, *NAMED):
        for name in NAMED:
            found.update(counted(batch[name].filter(pc.is_in(batch[name], wanted))))
    return found


def counted(values: pa.Array | pa.ChunkedArray) -> Counter[int]:
    """How often each number occurs."""
    counts = values.value_counts()
    return Counter(dict(zip(counts.field("values").to_pylist(), counts.field("counts").to_pylist(), strict=True)))


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


_TIMES = ("recorded_ms", "last_update_ms")
_PAIR = ("transactional_id", "producer_id")
_MERGED_ROWS = 1 << 18


@dataclass(frozen=True)
class NamedProducers:
    """Producer ids that any record stands for, each once, in order.

    Attributes:
        producer_ids: the ids.
        first_ids: the first, by name, of the transactional ids that have, or had, each of them.
        first_ms: the earliest broker's time in any record of these transactional ids; NULL where none has one.
        record_counts: by producer id, how many records these transactional ids have.
        pairs: one row is one transactional id that has, or had, one producer id.
    """

    producer_ids: pa.Array
    first_ids: pa.Array
    first_ms: pa.Array
    record_counts: Mapping[int, int]
    pairs: pa.Table

    def of_ids(self, is_wanted: Callable[[str], bool]) -> pa.Array:
        """The producer ids that one of the wanted transactional ids has, or had."""
        ids = self.pairs["transactional_id"].combine_chunks()
        wanted = pa.array([name for name in ids.unique().to_pylist() if is_wanted(name)], pa.string())
        return self.pairs["producer_id"].filter(pc.is_in(ids, wanted)).combine_chunks().unique()


def named_producers(run: PastRun) -> NamedProducers:
    """The producers of a run, from one look at its coordinator's records; memory grows with ids and producers."""
    seen = _merged(_pairs(run), _by_pair, _MERGED_ROWS)
    if seen is None:
        seen = _SEEN.empty_table()
    of_id = seen.group_by("transactional_id").aggregate([("first_ms", "min"), ("record_count", "sum")])
    pairs = seen.filter(pc.is_valid(seen["producer_id"])).select([*_PAIR])
    joined = pairs.join(of_id, "transactional_id").sort_by([(name, "ascending") for name in reversed(_PAIR)])
    of_producer = joined.group_by("producer_id", use_threads=False).aggregate(
        [("transactional_id", "first"), ("first_ms_min", "min"), ("record_count_sum", "sum")]
    )
    names = ("producer_id", "transactional_id_first", "first_ms_min_min", "record_count_sum_sum")
    producer_ids, first_ids, first_ms, counts = (of_producer[name].combine_chunks() for name in names)
    record_counts = dict(zip(producer_ids.to_pylist(), counts.to_pylist(), strict=True))
    return NamedProducers(producer_ids, first_ids, first_ms, record_counts, pairs)


def _pairs(run: PastRun) -> Iterator[pa.Table]:
    """Each pair of a transactional id and a producer id, or none, with its earliest time and its records; batchwise."""
    for batch in run.evidence.batches(TRANSACTION_STATES, "transactional_id", *NAMED, *_TIMES):
        times, one = pc.min_element_wise(*(batch[name] for name in _TIMES)), pa.array([1] * len(batch), pa.int64())
        none, zero = pa.nulls(len(batch), pa.int64()), pa.array([0] * len(batch), pa.int64())
        # The record is counted once, in a row without a producer.
        named = [(none, one), *((batch[name], zero) for name in NAMED)]
        parts = [[batch["transactional_id"], producers, times, count] for producers, count in named]
        rows = pa.concat_tables([pa.table(part, schema=_SEEN) for part in parts])
        yield _by_pair([rows.filter(pc.is_valid(rows["transactional_id"]))])


def _by_pair(parts: list[pa.Table]) -> pa.Table:
    grouped = pa.concat_tables(parts).group_by([*_PAIR]).aggregate([("first_ms", "min"), ("record_count", "sum")])
    return grouped.select([*_PAIR, "first_ms_min", "record_count_sum"]).rename_columns(_SEEN.names).cast(_SEEN)


_SEEN = pa.schema(
    [
        ("transactional_id", pa.string()),
        ("producer_id", pa.int64()),
        ("first_ms", pa.int64()),
        ("record_count", pa.int64()),
    ]
)
