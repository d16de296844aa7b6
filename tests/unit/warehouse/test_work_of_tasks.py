"""What a task of Spark unpickles: its own work, however many files there are."""

import pickle
from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.sql import SparkSession

from txn_analysis.spark.workers import columns_of, in_tasks, work_for_tasks, work_in
from txn_analysis.warehouse.data_files import DataFile
from txn_analysis.warehouse.spark_tasks import in_shares

SIZES = pa.schema([("size", pa.int64())])


def sizes(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for work in work_in(batches):
        yield pa.RecordBatch.from_pydict({"size": [len(pickle.dumps(work))]})


@pytest.mark.parametrize("count", [0, 1, 100])
def test_each_task_has_one_piece_of_work(spark: SparkSession, count: int) -> None:
    work = work_for_tasks(spark, [["orders"] * 10 for _ in range(count)])
    assert work.rdd.glom().map(len).collect() == [1] * count
    assert [row.size for row in in_tasks(work, sizes, columns_of(SIZES)).collect()] == [
        len(pickle.dumps(["orders"] * 10))
    ] * count


def test_what_a_task_unpickles_of_the_files_of_a_table_does_not_grow_with_them(spark: SparkSession) -> None:
    unpickled = []
    for count in (100, 100_000):
        files = [DataFile("runs", "r", f"run_id=r/{n:032}.parquet", 1 << 20, 1) for n in range(count)]
        shares, function = in_shares(spark, files, lambda _: iter(()))
        (share,) = shares.limit(1).collect()
        unpickled.append(len(cloudpickle.dumps(function)) + len(share.value))  # type: ignore[no-untyped-call]  # PySpark's
    assert unpickled[1] <= 1.1 * unpickled[0]
