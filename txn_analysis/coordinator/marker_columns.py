"""End markers of the logs as columns: as many as transactions, so that nothing walks them one by one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.columns.arrays import ABSENT, Array, is_in, numbers, of_types, tuples_of
from txn_analysis.columns.values import BatchFunction
from txn_analysis.coordinator.history import ABORT, COMMIT, EndMarker
from txn_analysis.coordinator.state_columns import NO_TIME
from txn_analysis.kafka.transactions import TopicPartition
from txn_analysis.tables import ENDED_TRANSACTIONS, UsedBatchRange
from txn_analysis.tables.schema import given_schema

ENDED_COLUMNS = (
    *("topic", "partition", "producer_id", "outcome"),
    *("end_offset", "end_timestamp_ms", "end_producer_epoch", "coordinator_epoch", "max_producer_epoch"),
)
"""The columns of an ended row of `transactions` that say its marker."""

MARKERS = pa.schema(
    [
        ("audit", pa.int32()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("producer_id", pa.int64()),
        ("offset", pa.int64()),
        ("kind", pa.string()),
        ("at_ms", pa.int64()),
        ("producer_epoch", pa.int32()),
        ("coordinator_epoch", pa.int32()),
        ("has_data", pa.bool_()),
        ("data_epoch", pa.int32()),
    ]
)
"""One row is one end marker of one audit, in the fields of `EndMarker`, with its place.

One whose transaction began in another piece of the log can stand there a second time, without its data.
"""


def markers_of_ended(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Rows of `MARKERS` from ended rows of `transactions`, which have `audit` and `ENDED_COLUMNS`."""
    outcome = rows.column("outcome")
    kind = pc.if_else(pc.is_in(outcome, pa.array([COMMIT, ABORT])), outcome, pa.scalar(None, pa.string()))
    columns = [
        *(rows.column(name) for name in ("audit", "topic", "partition", "producer_id", "end_offset")),
        kind,
        *(rows.column(name) for name in ("end_timestamp_ms", "end_producer_epoch", "coordinator_epoch")),
        pa.repeat(pa.scalar(True), len(rows)),
        rows.column("max_producer_epoch"),
    ]
    return pa.RecordBatch.from_arrays(of_types(columns, MARKERS), schema=MARKERS)


def markers_of_health(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Rows of `MARKERS` from the `bare_markers` of rows of `partition_health` with their `audit` and place."""
    bare = rows.column("bare_markers")
    place, fields = pc.list_parent_indices(bare), bare.flatten()
    columns = [
        *(rows.column(name).take(place) for name in ("audit", "topic", "partition")),
        *(fields.field(name) for name in ("producer_id", "offset", "marker", "timestamp_ms")),
        *(fields.field(name) for name in ("producer_epoch", "coordinator_epoch")),
        pa.repeat(pa.scalar(False), len(fields)),
        pa.nulls(len(fields), pa.int32()),
    ]
    return pa.RecordBatch.from_arrays(of_types(columns, MARKERS), schema=MARKERS)


BATCH_RANGES = given_schema(ENDED_TRANSACTIONS, *UsedBatchRange._fields)
"""One row is one batch range that the logs of an audit were built from."""
MARKERS_IN_RANGES = pa.schema([*MARKERS, *(field for field in BATCH_RANGES if field.name not in MARKERS.names)])
"""One row is one of `MARKERS`, with the batch range that it is in."""


def markers_in_ranges(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of `MARKERS_IN_RANGES` from rows of `ended_transactions`, which have its columns and `ENDED_COLUMNS`."""
    for rows in batches:
        columns = [*markers_of_ended(rows).columns, *(rows[name] for name in UsedBatchRange._fields)]
        yield pa.RecordBatch.from_arrays(columns, schema=MARKERS_IN_RANGES)


def markers_of_cut_sections(used: frozenset[tuple[Any, ...]]) -> BatchFunction:
    """Rows of `MARKERS` from what ended in sections that had to be cut, in batch ranges that logs were linked from."""
    key = "audit", *UsedBatchRange._fields[1:]
    return lambda batches: (markers_of_ended(rows.filter(pa.array(is_in(rows, key, used)))) for rows in batches)


_LATEST = 2**63 - 1

Key = tuple[TopicPartition, int]
"""A partition and a producer id."""


def markers_since(markers: pa.Table, since_ms: Mapping[Key, int]) -> dict[Key, list[EndMarker]]:
    """The end markers of some producers in some partitions: those of a time or later, and those of no known time.

    Args:
        markers: rows of `MARKERS`, of any producers.
        since_ms: by partition and producer id, from when on they are wanted.
    """
    markers_of: dict[Key, list[EndMarker]] = {key: [] for key in since_ms}
    earliest_ms: dict[int, int] = {}
    for (_, producer_id), ms in since_ms.items():
        earliest_ms[producer_id] = min(ms, earliest_ms.get(producer_id, ms))
    producers, earliest = (pa.array(values, pa.int64()) for values in (earliest_ms.keys(), earliest_ms.values()))
    of_producer = pc.take(earliest, pc.index_in(markers["producer_id"], producers))
    wanted = markers.filter(pc.greater_equal(pc.fill_null(markers["at_ms"], _LATEST), of_producer))
    names = ("topic", "partition", "producer_id", *EndMarker._fields)
    for topic, partition, producer_id, *fields in tuples_of(wanted, names):
        key, marker = (TopicPartition(topic, partition), producer_id), EndMarker._make(fields)
        if key in markers_of and (marker.at_ms is None or marker.at_ms >= since_ms[key]):
            markers_of[key].append(marker)
    return markers_of


# What columns hold where a row of Kafka's says nothing; no epoch is below 0.
_ANY_EPOCH = 2**31
IS_ABORT, IS_COMMIT, IS_UNPRINTED = 0, 1, 2


class MarkerColumns(NamedTuple):
    """Markers of some producers, each once, in the order of producer, partition and offset.

    Attributes:
        producers: their ids, in order; `producer` is an index into it.
        places: the partitions as `topic-partition`, in no order; `place` is an index into it.
        producer: of each marker.
        place: of each marker.
        offset: of each marker.
        kind: `IS_ABORT`, `IS_COMMIT` or `IS_UNPRINTED`.
        at_ms: `NO_TIME` where it is not known.
        producer_epoch: -1 where it is not known, and so is `coordinator_epoch`.
        coordinator_epoch: of each marker.
        starts_run: it does not repeat the marker before: the same kind and epoch without data of the producer between.
        is_of_version_2: of each producer, that one of its markers shows transaction version 2: a COMMIT of a higher
            producer epoch than the data that it ends (KIP-890). Under version 1 a timeout and a fencing raise the epoch
            of an ABORT as well.
    """

    producers: Array
    places: pa.Array
    producer: Array
    place: Array
    offset: Array
    kind: Array
    at_ms: Array
    producer_epoch: Array
    coordinator_epoch: Array
    starts_run: Array
    is_of_version_2: Array

    @property
    def run(self) -> Array:
        """Of each marker the number of its run: of a marker with its repetitions."""
        return np.cumsum(self.starts_run) - 1


def columns_of(markers: pa.Table) -> MarkerColumns:
    """Rows of `MARKERS` as columns."""
    producers, producer = np.unique(numbers(markers["producer_id"], 0), return_inverse=True)
    names = names_of_places(markers["topic"], markers["partition"])
    places = pc.unique(names)
    place = numbers(pc.index_in(names, places), ABSENT)
    offset, at_ms = numbers(markers["offset"], -1), numbers(markers["at_ms"], NO_TIME)
    kind = numbers(pc.index_in(markers["kind"], pa.array([ABORT, COMMIT])), IS_UNPRINTED)
    epoch = numbers(markers["producer_epoch"], ABSENT)
    coordinator_epoch = numbers(markers["coordinator_epoch"], ABSENT)
    has_data = markers["has_data"].to_numpy().astype(bool)
    shows_version_2 = (kind == IS_COMMIT) & (epoch > numbers(markers["data_epoch"], _ANY_EPOCH))
    is_of_version_2 = np.bincount(producer, shows_version_2, len(producers)) > 0
    order = np.lexsort((has_data, offset, place, producer))
    # Of one offset the last one counts, which has the data.
    same = _alike(producer[order], place[order], offset[order])
    order = order[np.append(~same, True)[-len(order) :]] if len(order) else order
    repeats = _alike(producer[order], place[order], kind[order], epoch[order]) & ~has_data[order][1:]
    starts_run = np.append(True, ~repeats)[: len(order)]
    return MarkerColumns(
        producers=producers,
        places=places,
        producer=producer[order],
        place=place[order],
        offset=offset[order],
        kind=kind[order],
        at_ms=at_ms[order],
        producer_epoch=epoch[order],
        coordinator_epoch=coordinator_epoch[order],
        starts_run=starts_run,
        is_of_version_2=is_of_version_2,
    )


def _alike(*columns: Array) -> Array:
    """Of each value but the last, whether the next one is the same in all columns."""
    alike: Array = np.logical_and.reduce([column[1:] == column[:-1] for column in columns])
    return alike


def names_of_places(topic: pa.Array | pa.ChunkedArray, partition: pa.Array | pa.ChunkedArray) -> Any:
    """Partitions as `topic-partition`, as Kafka calls their folders."""
    return pc.binary_join_element_wise(topic, partition.cast(pa.string()), "-")
