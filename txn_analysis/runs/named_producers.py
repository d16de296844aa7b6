"""The producer ids that the coordinator's records of a run name: under which transactional ids, and since when."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.kafka.transactions import NAMED
from txn_analysis.tables import TRANSACTION_STATES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from txn_analysis.runs.past_run import PastRun

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
    seen = _seen(run)
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


def _seen(run: PastRun) -> pa.Table:
    """Each pair of a transactional id and a producer id, or none, with its earliest time and its records."""
    merged, waiting = _NOTHING, list[pa.Table]()
    for batch in _of_each_batch(run):
        waiting.append(batch)
        if sum(map(len, waiting)) >= max(_MERGED_ROWS, len(merged)):
            merged, waiting = _merged([merged, *waiting]), []
    return _merged([merged, *waiting])


def _of_each_batch(run: PastRun) -> Iterator[pa.Table]:
    for batch in run.evidence.batches(TRANSACTION_STATES, "transactional_id", *NAMED, *_TIMES):
        times, one = pc.min_element_wise(*(batch[name] for name in _TIMES)), pa.array([1] * len(batch), pa.int64())
        none, zero = pa.nulls(len(batch), pa.int64()), pa.array([0] * len(batch), pa.int64())
        # The record is counted once, in a row without a producer.
        named = [(none, one), *((batch[name], zero) for name in NAMED)]
        parts = [[batch["transactional_id"], producers, times, count] for producers, count in named]
        rows = pa.concat_tables([pa.table(part, schema=_SEEN) for part in parts])
        yield _merged([rows.filter(pc.is_valid(rows["transactional_id"]))])


def _merged(parts: list[pa.Table]) -> pa.Table:
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
_NOTHING = _SEEN.empty_table()
