"""Small measurements of one thing each, in processes of their own; each prints its figures as one JSON object.

`python -m benchmarks.isolated session FOLDER` is a bare Spark session and one Delta write: what an audit cannot avoid.
`python -m benchmarks.isolated writing WAREHOUSE FOLDER` writes stored batches as a task does, or sends them to the JVM.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame, SparkSession

_COMMITS = 5
_WRITES = 10
_ROWS = 4_000_000
_ROWS_PER_BATCH = 100_000


def bare_session(folder: Path) -> dict[str, float]:
    """A session with Delta and Spark's own defaults, and one write of one row; timed from outside."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 its import is part of what is timed

    from tests.tools.delta_jars import delta_options  # noqa: PLC0415 the same

    spark = SparkSession.builder.master("local[*]").config(map=delta_options()).getOrCreate()
    spark.range(1).write.format("delta").save(str(folder / "bare"))
    spark.stop()
    return {}


def writing(warehouse: Path, folder: Path) -> dict[str, float]:
    """Seconds for each GB (of Arrow) of rows of `log_batches` in a Python worker, and for one Delta commit.

    Returns:
        `parquet_core_s_per_gb` is what a task takes to write them, checks included; `to_jvm_s_per_gb` is what handing
        them to Spark would take, on all cores, to a sink that drops them; `delta_commit_s` is a write of one row to a
        Delta table in a warm session.
    """
    from tests.tools.delta_jars import session_with_delta  # noqa: PLC0415 Spark takes a second to import

    spark = session_with_delta("local[*]")
    stored = max(warehouse.glob("log_batches/**/*.parquet"), key=lambda file: file.stat().st_size)
    frame, size_gb = _from_python(spark, stored)
    frame.limit(1).write.format("noop").mode("overwrite").save()  # starts the Python workers
    to_jvm = _seconds(lambda: frame.write.format("noop").mode("overwrite").save())
    place = str(folder / "delta")
    commits = [
        _seconds(lambda: spark.range(1).write.format("delta").mode("append").save(place)) for _ in range(_COMMITS + 1)
    ]
    spark.stop()
    return {
        "to_jvm_s_per_gb": to_jvm / size_gb,
        **_parquet(stored, folder),
        "delta_commit_s": statistics.median(commits[1:]),  # the first loads Delta
    }


def _parquet(stored: Path, folder: Path) -> dict[str, float]:
    from txn_analysis.storage.data_files import write_data_files  # noqa: PLC0415 as Spark
    from txn_analysis.storage.roots import disk_root  # noqa: PLC0415 as Spark
    from txn_analysis.tables import LOG_BATCHES  # noqa: PLC0415 as Spark

    rows = pq.ParquetFile(stored).read()
    whole = [rows[f.name] if f.name in rows.schema.names else pa.array(["x"] * len(rows)) for f in LOG_BATCHES.columns]
    (batch,) = pa.Table.from_arrays(whole, LOG_BATCHES.names).combine_chunks().to_batches()
    began = time.process_time()
    for _ in range(_WRITES):
        write_data_files([(LOG_BATCHES, batch)], disk_root(folder), {"ingest_id": "x"})
    seconds = (time.process_time() - began) / _WRITES
    return {
        "parquet_core_s_per_gb": seconds / (batch.nbytes / 1e9),
        "arrow_bytes_per_batch": batch.nbytes / batch.num_rows,
    }


def _from_python(spark: SparkSession, stored: Path) -> tuple[DataFrame, float]:
    """The rows of one file over and over, as many tasks as cores; and how many GB those are."""
    names = pq.read_schema(stored).names
    schema = spark.read.parquet(str(stored)).select(*names).schema
    tasks = spark.sparkContext.defaultParallelism
    rows = pq.read_table(stored)
    repeats = max(1, _ROWS // rows.num_rows // tasks)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        parts = pq.read_table(stored).to_batches(_ROWS_PER_BATCH)
        for _ in batches:
            for _ in range(repeats):
                yield from parts

    return spark.range(0, tasks, 1, tasks).mapInArrow(run, schema), rows.nbytes * repeats * tasks / 1e9


def _seconds(action: Callable[[], Any]) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def main() -> None:
    """Make one measurement and print it."""
    name, *folders = sys.argv[1:]
    measures: dict[str, Callable[..., dict[str, float]]] = {"session": bare_session, "writing": writing}
    print(json.dumps(measures[name](*map(Path, folders))))


if __name__ == "__main__":
    main()
