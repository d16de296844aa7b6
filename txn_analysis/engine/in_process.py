"""The engine of small audits: this process, which takes one bucket of keys after another."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from txn_analysis.columns.arrays import matching, together, tuples_of
from txn_analysis.columns.memory import give_back_memory
from txn_analysis.columns.values import BatchFunction, GroupFunction, each_of_kind, packed, unpacked
from txn_analysis.engine.buckets import Buckets
from txn_analysis.engine.engine import Engine, KeySizes, joined_schema, kind_schema, no_search_for_cycles
from txn_analysis.settings import EngineName
from txn_analysis.tables import Table
from txn_analysis.warehouse.delta_tables import Warehouse

_JOINED_AT_ONCE = 2_048
_DIVIDED_BYTES = 16 << 20
"""Of rows that are divided at once: what a bucket gets of few hardly packs, and is mostly a message's head."""


class HeldRows(NamedTuple):
    """Rows that are made when they are asked for."""

    schema: pa.Schema
    batches: Callable[[], Iterator[pa.RecordBatch]]

    @property
    def table(self) -> pa.Table:
        """All of them."""
        return pa.Table.from_batches(self.batches(), self.schema)


class InProcess(Engine[HeldRows]):
    """Nothing is started for its steps.

    Args:
        warehouse: whose tables are read.
        bucket_count: into how many buckets keys are divided; those that wait for their turn are packed.
    """

    name = EngineName.LOCAL

    def __init__(self, warehouse: Warehouse | None = None, bucket_count: int = 1) -> None:
        self._warehouse = warehouse
        self._bucket_count = bucket_count

    def table(self, table: Table, *names: str, **one_of: Collection[Any]) -> HeldRows:
        """As of `Engine`."""
        if self._warehouse is None:
            raise ValueError(table.name)
        warehouse, schema = self._warehouse, pa.schema([table.arrow_schema.field(name) for name in names])
        return HeldRows(schema, lambda: (b.cast(schema) for b in warehouse.batches(table, *names, **one_of)))

    def made(self, rows: pa.Table) -> HeldRows:
        """As of `Engine`."""
        return HeldRows(rows.schema, lambda: iter(rows.to_batches()))

    def together(self, *rows: HeldRows) -> HeldRows:
        """As of `Engine`."""
        return HeldRows(rows[0].schema, lambda: (batch for each in rows for batch in each.batches()))

    def mapped(self, rows: HeldRows, function: BatchFunction, schema: pa.Schema) -> HeldRows:
        """As of `Engine`."""
        return HeldRows(schema, lambda: function(rows.batches()))

    def grouped(
        self,
        key: Sequence[str],
        function: GroupFunction,
        schema: pa.Schema,
        size_bytes: KeySizes | None = None,  # noqa: ARG002 one bucket is taken after another here
        **inputs: HeldRows,
    ) -> HeldRows:
        """As of `Engine`."""
        if self._bucket_count == 1:
            return HeldRows(schema, lambda: _made_of({name: each.table for name, each in inputs.items()}, function))
        return HeldRows(schema, lambda: self._by_bucket(key, function, inputs))

    def _by_bucket(
        self, key: Sequence[str], function: GroupFunction, inputs: Mapping[str, HeldRows]
    ) -> Iterator[pa.RecordBatch]:
        buckets: list[defaultdict[str, list[bytes]]] = [defaultdict(list) for _ in range(self._bucket_count)]
        for name, rows in inputs.items():
            for some in together(filter(len, rows.batches()), lambda batch: batch.nbytes, _DIVIDED_BYTES):
                divided = pa.concat_batches(some)
                bucket_of = Buckets(self._bucket_count).of([divided[column] for column in key])
                for bucket in np.unique(bucket_of).tolist():
                    bucket_rows = divided.filter(pa.array(bucket_of == bucket))
                    buckets[bucket][name].append(packed([bucket_rows], rows.schema))
        while buckets:
            parts = buckets.pop()
            if parts:
                tables = {n: pa.Table.from_batches(_batches(parts[n]), rows.schema) for n, rows in inputs.items()}
                yield from _made_of(tables, function)

    def of_kind(self, rows: HeldRows, kind: str, *names: str) -> HeldRows:
        """As of `Engine`."""
        schema = kind_schema(rows.schema, kind, names)
        return HeldRows(schema, lambda: each_of_kind(rows.batches(), kind, schema.names))

    def matched(self, rows: HeldRows, known: pa.Table, key: Sequence[str], schema: pa.Schema) -> HeldRows:
        """As of `Engine`."""
        match = matching(known, key, schema.names)
        return HeldRows(schema, lambda: (batch.cast(schema) for batch in map(match, rows.batches()) if len(batch)))

    def joined(self, left: HeldRows, right: HeldRows, key: Sequence[str]) -> HeldRows:
        """As of `Engine`."""
        schema = joined_schema(left.schema, right.schema, key)
        return HeldRows(schema, lambda: _joined(left.table, right.table, key, schema))

    @contextmanager
    def kept(self, rows: HeldRows) -> Iterator[HeldRows]:
        """As of `Engine`; packed, as they are read several times, and are as many as there are keys."""
        if self._bucket_count == 1:
            yield self.made(rows.table)
            return
        streams = [packed([batch], rows.schema) for batch in rows.batches()]
        give_back_memory()
        yield HeldRows(rows.schema, lambda: _batches(streams))

    def collected(self, rows: HeldRows) -> pa.Table:
        """As of `Engine`."""
        return rows.table

    def write(self, rows: HeldRows, function: BatchFunction, table: Table, **slice_of: str) -> None:
        """As of `Engine`."""
        if self._warehouse is None:
            raise ValueError(table.name)
        self._warehouse.replace(function(rows.batches()), table, **slice_of)


def _joined(left: pa.Table, right: pa.Table, key: Sequence[str], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Some rows at a time, as those of the right may be large."""
    right = right.combine_chunks()  # a take copies all chunks of a column
    places = {values: place for place, values in enumerate(tuples_of(right, key))}
    for some in left.to_batches(_JOINED_AT_ONCE):
        beside = right.take(pa.array([places.get(values) for values in tuples_of(some, key)], pa.int64()))
        columns = [*some.columns, *(beside[name] for name in schema.names[some.num_columns :])]
        yield from pa.table(columns, schema=schema).to_batches()


def _batches(streams: Sequence[bytes]) -> Iterator[pa.RecordBatch]:
    return (batch for stream in streams for batch in unpacked(stream).to_batches())


def _made_of(tables: Mapping[str, pa.Table], function: GroupFunction) -> Iterator[pa.RecordBatch]:
    with no_search_for_cycles():
        return iter(function(tables).to_batches())
