"""Whoever watches a stage is told how far the jobs of Spark are."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from txn_analysis.spark import jobs
from txn_analysis.spark.jobs import followed

TASKS = 4


def test_the_share_of_tasks_that_are_done(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "_EVERY_S", 0.01)
    told: list[float] = []
    has_moved = threading.Event()

    def tell(share: float) -> None:
        told.append(share)
        if 0 < share < 1:
            has_moved.set()
            (tmp_path / "go on").touch()

    def last_one_waits(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for part in parts:
            deadline = time.monotonic() + 60
            while part.column(0)[0].as_py() == TASKS - 1 and not (tmp_path / "go on").exists():
                assert time.monotonic() < deadline, "nobody was told of the tasks before it"
                time.sleep(0.01)
            yield part

    with followed(tell):
        spark.range(0, TASKS, 1, TASKS).mapInArrow(last_one_waits, "id bigint").collect()
    assert has_moved.is_set()
    assert told == sorted(told)


def test_nobody_wants_to_know() -> None:
    before = threading.active_count()
    with followed(None):
        assert threading.active_count() == before
