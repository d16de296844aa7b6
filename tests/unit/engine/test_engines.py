"""Both engines run the same step on the same rows, and give the same."""

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import accumulate, pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from txn_analysis.engine.buckets import Buckets, bucket_count
from txn_analysis.engine.engine import Engine
from txn_analysis.engine.in_process import InProcess
from txn_analysis.engine.on_spark import OnSpark

DATA = pa.schema(
    [("topic", pa.string()), ("partition", pa.int32()), ("size", pa.int64()), ("ids", pa.list_(pa.int64()))]
)
SEEN = pa.schema(
    [("topic", pa.string()), ("partition", pa.int32()), ("sizes", pa.list_(pa.int64())), ("marks", pa.int64())]
)
KEYS = st.tuples(st.sampled_from(["a", "b", None]), st.integers(-1, 3))
ROWS = st.lists(st.tuples(KEYS, st.integers(-5, 5), st.lists(st.integers(0, 3), max_size=2)), max_size=12)


def table(rows: list[tuple[tuple[str | None, int], int, list[int]]]) -> pa.Table:
    return pa.Table.from_pylist(
        [{"topic": t, "partition": p, "size": size, "ids": ids} for (t, p), size, ids in rows], schema=DATA
    )


def of_keys(tables: Mapping[str, pa.Table]) -> pa.Table:
    """Of each partition its sizes, and how many rows the other input has of it."""
    sizes: dict[tuple[str, int], list[int]] = {}
    for row in tables["data"].to_pylist():
        sizes.setdefault((row["topic"], row["partition"]), []).append(row["size"])
    marks = Counter((row["topic"], row["partition"]) for row in tables["marks"].to_pylist())
    rows = [{"topic": t, "partition": p, "sizes": sorted(own), "marks": marks[t, p]} for (t, p), own in sizes.items()]
    return pa.Table.from_pylist(rows, schema=SEEN)


def doubled(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield pa.RecordBatch.from_pylist([row | {"size": 2 * row["size"]} for row in batch.to_pylist()], schema=DATA)


def answer(engine: Engine[Any], data: pa.Table, marks: pa.Table) -> list[Any]:
    rows = engine.mapped(engine.together(engine.made(data), engine.made(marks)), doubled, DATA)
    found = engine.grouped(["topic", "partition"], of_keys, SEEN, data=rows, marks=engine.made(marks))
    with engine.kept(found) as kept:
        told = engine.collected(kept).to_pylist()
        assert sorted(map(str, engine.collected(kept).to_pylist())) == sorted(map(str, told))
    return sorted(map(str, told))


def test_every_key_is_whole_in_one_group(spark: SparkSession) -> None:
    source = random.Random(1)
    keys = [(topic, partition) for topic in ("a", "b", None) for partition in range(-1, 4)]
    data, marks = (
        table([(source.choice(keys), source.randint(-5, 5), [n % 3] * (n % 4)) for n in range(count)])
        for count in (60, 20)
    )
    for buckets in (3, 200):  # a task for each bucket; more buckets than tasks
        assert answer(OnSpark(spark, buckets), data, marks) == answer(InProcess(), data, marks)
    assert answer(InProcess(bucket_count=3), data, marks) == answer(InProcess(), data, marks)


@given(ROWS, st.integers(1, 9))
def test_rows_of_one_key_have_one_bucket_whatever_lies_beside_them(rows: Any, count: int) -> None:
    whole = table(rows)
    buckets = Buckets(count)
    together: Any = buckets.of([whole["topic"].combine_chunks(), whole["partition"].combine_chunks()]) if rows else []
    for row, bucket in zip(rows, together, strict=True):
        alone = table([row])
        assert buckets.of([alone["topic"].combine_chunks(), alone["partition"].combine_chunks()])[0] == bucket
        assert 0 <= bucket < count


@pytest.mark.parametrize(("text_bytes", "count"), [(0, 8), (8 << 26, 8), ((8 << 26) + 1, 9), (1 << 40, 1 << 14)])
def test_buckets_grow_with_what_was_read(text_bytes: int, count: int) -> None:
    assert bucket_count(text_bytes, 8) == count


@given(ROWS, st.lists(st.integers(0, 5)))
def test_rows_of_many_small_batches_are_divided_as_those_of_one(rows: Any, sizes: list[int]) -> None:
    whole = table(rows)
    stops = [min(stop, whole.num_rows) for stop in accumulate(sizes)]
    parts = [whole.slice(start, stop - start) for start, stop in pairwise([0, *stops, whole.num_rows])]
    engine = InProcess(bucket_count=2)
    found = [
        engine.grouped(["topic", "partition"], lambda tables: tables["rows"], whole.schema, rows=given)
        for given in (engine.made(whole), engine.together(*map(engine.made, parts)))
    ]
    assert engine.collected(found[0]) == engine.collected(found[1])
