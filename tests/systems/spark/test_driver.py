"""The driver holds one plan for each file and the findings; batches and transactions stay with the tasks."""

import shutil
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import SparkSession

from benchmarks.batches import Partition
from benchmarks.dumps import SHALLOW, write_segment
from txn_analysis.engine import memory
from txn_analysis.pipeline import steps as pipeline
from txn_analysis.settings import Settings

PRODUCERS = 20  # each can leave one transaction open, which is a finding
MORE = 8
TEXT_BYTES = 800_000
# Looser than what was seen (2 kB for a file, nothing for a batch), tighter than two numbers for each batch.
OF_A_FILE_BYTES = 4096
OF_A_FINDING_BYTES = 1024
OF_A_BATCH_BYTES = 2


class Audited(NamedTuple):
    batches: int
    files: int
    findings: int
    collected_bytes: int


def audited(spark: SparkSession, empty: Path, folder: Path, text_bytes: int, segments: int) -> Audited:
    """Audits a log of so much text, in so many segments, into a copy of an empty warehouse."""
    dumps = folder / "dumps"
    dumps.mkdir(parents=True)
    log = Partition(0, SHALLOW, producers=PRODUCERS)
    written = [write_segment(dumps, log, text_bytes // segments, is_deep=False) for _ in range(segments)]
    warehouse = str(shutil.copytree(empty, folder / "warehouse"))
    before = max(collected_bytes(spark), default=-1)
    report = pipeline.audit(spark, [str(dumps)], Settings(warehouse=warehouse))
    batches = sum(one["batches"] for one in written)
    # Spark forgets stages of long ago, so that sums over all of them cannot be compared.
    collected = sum(size_bytes for stage, size_bytes in collected_bytes(spark).items() if stage > before)
    return Audited(batches, segments, len(report.findings), collected)


def collected_bytes(spark: SparkSession) -> dict[int, int]:
    """What the tasks of each stage sent to the driver, as Spark itself counts it, by the number of the stage."""
    context: Any = spark.sparkContext._jsc.sc()
    context.listenerBus().waitUntilEmpty()
    jvm: Any = spark._jvm
    gateway: Any = spark.sparkContext._gateway
    nothing = jvm.java.util.ArrayList()
    quantiles = gateway.new_array(jvm.double, 0)
    stages = context.statusStore().stageList(nothing, False, False, quantiles, nothing)
    return {(one := stages.apply(k)).stageId(): one.resultSize() for k in range(stages.size())}


@pytest.mark.cluster
def test_what_reaches_the_driver_grows_with_files_and_findings_but_not_with_batches(
    spark: SparkSession, empty_warehouse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "MEMORY_BYTES", -1)  # in tasks, as if it were much
    small = audited(spark, empty_warehouse, tmp_path / "small", TEXT_BYTES, 2)
    large = audited(spark, empty_warehouse, tmp_path / "large", TEXT_BYTES * MORE, 2 * MORE)
    more = Audited(*(after - before for before, after in zip(small, large, strict=True)))
    allowed = more.files * OF_A_FILE_BYTES + more.findings * OF_A_FINDING_BYTES + more.batches * OF_A_BATCH_BYTES
    assert more.collected_bytes < allowed
