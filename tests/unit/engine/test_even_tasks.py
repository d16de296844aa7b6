"""How rows are divided among Spark's tasks: each task has its share of the bytes."""

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from txn_analysis.engine import on_spark
from txn_analysis.engine.buckets import Buckets, numbers_for_parts
from txn_analysis.engine.on_spark import OnSpark

KEY = ["topic", "partition"]
PARTITIONS, PRODUCERS, BUCKETS = 20_000, 1_000_000, 320  # of 20 GiB
SIZE_BYTES = (np.random.default_rng(7).pareto(1.5, PARTITIONS) * 500_000).astype(np.int64).clip(1_000, 20_000_000)
PLACES = [("orders" if n % 2 else "payments", n) for n in range(PARTITIONS)]


@pytest.fixture(params=[16, 64], ids=["16 cores", "64 cores"])
def engine(request: pytest.FixtureRequest, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> OnSpark:
    monkeypatch.setattr(on_spark, "cores_of", lambda *_: request.param)
    return OnSpark(spark, BUCKETS)


def fullest_against_mean(engine: OnSpark, buckets: np.ndarray, size_bytes: np.ndarray) -> float:
    shares = np.bincount(buckets % engine.task_count, size_bytes, engine.task_count)
    return float(shares.max() / shares.mean())


def test_each_task_has_its_share_of_the_bytes_of_partitions(engine: OnSpark) -> None:
    sizes = dict(zip(PLACES, SIZE_BYTES.tolist(), strict=True))
    buckets = Buckets.dealing(sizes, engine.bucket_count, engine.task_count)
    columns = [pa.array([topic for topic, _ in PLACES]), pa.array([n for _, n in PLACES], pa.int32())]
    assert fullest_against_mean(engine, buckets.of(columns), SIZE_BYTES) <= 1.2
    assert fullest_against_mean(engine, Buckets(engine.bucket_count).of(columns), SIZE_BYTES) > 1.2  # by hash alone


def test_each_task_has_its_share_of_a_million_producers(engine: OnSpark) -> None:
    buckets = Buckets(engine.bucket_count).of([pa.array(np.arange(PRODUCERS))])
    assert fullest_against_mean(engine, buckets, np.ones(PRODUCERS)) <= 1.2


def test_a_task_gets_the_buckets_that_were_dealt_to_it(spark: SparkSession) -> None:
    engine, rows = OnSpark(spark, 12), pa.table({"topic": ["orders"] * 40, "partition": range(40)})
    sizes = {("orders", n): n for n in range(40)}
    parts = engine.in_parts(KEY, sizes, data=engine.made(rows)).select("bucket", f.spark_partition_id()).collect()
    assert {(bucket, part) for bucket, part in parts} == {
        (n, n % engine.task_count) for n in range(engine.bucket_count)
    }


@pytest.mark.parametrize(("buckets", "tasks"), [(12, 4), (320, 64)])
def test_spark_4_0_gets_numbers_whose_hashes_lead_to_the_same_tasks(
    spark: SparkSession, buckets: int, tasks: int
) -> None:
    numbers = numbers_for_parts(spark, buckets, tasks)
    frame = spark.createDataFrame([*enumerate(numbers)], "bucket INT, number INT").repartition(tasks, "number")
    parts = frame.select("bucket", f.spark_partition_id()).collect()
    assert len(set(numbers)) == buckets
    assert all(part == bucket % tasks for bucket, part in parts)


def test_an_older_spark_divides_in_the_same_way(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(DataFrame, "repartitionById", raising=False)
    engine, rows = OnSpark(spark, 12), pa.table({"topic": ["orders"] * 40, "partition": range(40)})
    parts = engine.in_parts(KEY, None, data=engine.made(rows)).select(f.spark_partition_id()).collect()
    assert {part for (part,) in parts} == {*range(engine.task_count)}
