"""Whole runs by Spark's tasks, of captures that this process would judge: the reports are equal but for who judged."""

import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.proof.hostile.subjects import Files, real_cases, simulated
from tests.tools.captures import PARAMETERS, SEGMENTS, VARIANTS, AuditOf, Variant, WarehouseOf, all_but_last, run_audit
from tests.tools.harness import history_of, items_of
from tests.tools.inputs import InputReader
from tests.tools.repository import CASES
from tests.tools.sessions import opened
from tests.tools.stories.answer import answers_of
from tests.tools.table_rows import listed
from txn_analysis.engine import memory
from txn_analysis.engine.on_spark import OnSpark
from txn_analysis.errors import ConfigError
from txn_analysis.kafka.problems import ProblemKind
from txn_analysis.pipeline.run import parameters, start_run
from txn_analysis.report.model import AuditReport
from txn_analysis.report.text_report import text_report
from txn_analysis.settings import EngineName, Settings
from txn_analysis.tables import ENDED_TRANSACTIONS, PARTITION_HEALTH, TRANSACTIONS
from txn_analysis.warehouse.opening import open_warehouse

# Dumps with their payloads and without, exports, logs that are cut at snapshots, folders of brokers; and one night
# beside the night before it, as copies of several brokers.
WHOLE = (
    *(VARIANTS[k] for k in (0, 1, 2, 3, 7, 9, 11, 12, 13, 14)),
    Variant("kafka-4.2/capture-2", ("../capture-1/segments", *SEGMENTS, "producer-snapshots")),
)
# Spark's tasks judge all other dumps as one job, odd captures included.
# A count of partitions that the logs contradict, and one that the ids prove.
COUNTS = (3, None)


def without_engine(report: AuditReport) -> AuditReport:
    """The report as it is printed of the tables."""
    return report.model_copy(update={"run": report.run.model_copy(update={"engine": None})})


def assert_alike(spark: SparkSession, warehouse: str, paths: list[str], **settings: Any) -> AuditReport:
    """By both engines: the report, and every row of the tables that were written of it."""
    found = []
    for engine in (EngineName.LOCAL, EngineName.SPARK):
        report = run_audit(spark, warehouse, paths, **{"capture": "one"} | settings | {"engine": engine})
        assert report.run.engine is engine
        found.append((without_engine(report), rows_of_run(spark, warehouse, report)))
    assert found[0] == found[1]
    return found[0][0]


def rows_of_run(spark: SparkSession, warehouse: str, report: AuditReport) -> list[list[str]]:
    stored, run_id = open_warehouse(spark, warehouse), report.run.run_id
    asked = ((TRANSACTIONS, "run_id"), (PARTITION_HEALTH, "run_id"), (ENDED_TRANSACTIONS, "ingest_id"))
    return [sorted(map(repr, listed(stored, table, **{name: [run_id]}))) for table, name in asked]


@pytest.mark.cluster
@pytest.mark.parametrize("variant", WHOLE, ids=lambda v: v.name)
def test_a_real_capture(spark: SparkSession, warehouse: str, variant: Variant) -> None:
    cluster = f"both engines, {variant.name}"
    assert assert_alike(spark, warehouse, variant.paths, cluster=cluster, **dict(variant.settings)).partitions


@pytest.mark.cluster
def test_all_real_dumps_as_one_job(spark: SparkSession, reader: InputReader) -> None:
    """Each capture as it was copied, alone and with the nights before it; and two generated clusters with theirs."""
    given = [
        (captures, judged, subject.settings)
        for subject in (*real_cases(), *(simulated(f"both engines, {number}") for number in range(2)))
        for judged, files in subject.captures.items()
        for captures in ({judged: files}, subject.captures)
    ]
    demo = files_at(VARIANTS[2].paths)
    given += [({"demo": demo}, "demo", PARAMETERS | {"transaction_state_partitions": stated}) for stated in COUNTS]
    given += [({"odd": files}, "odd", PARAMETERS) for files in (tomorrow(), contradicting())]
    histories = [
        history_of(items_of(reader, captures, judged), Settings.model_validate(settings))
        for captures, judged, settings in given
    ]
    here, there = answers_of(histories), answers_of(histories, OnSpark(spark, 2))
    assert here == there
    assert sum(len(answer.findings) for answer in here) > len(histories)


def files_at(paths: list[str]) -> Files:
    return {str(file): file.read_bytes() for path in paths for file in sorted(Path(path).iterdir())}


def tomorrow() -> Files:
    """The newest record of one id has an unknown status, and one of another partition an unknown type of key."""
    case = CASES / "kafka-4.4-tomorrow"
    files = files_at([str(case / "capture-1/segments"), str(case / "capture-2/state-printed")])
    for name, text in files.items():
        before, newest, after = text.rpartition(b'"transactionalId":"fraud-scorer"')
        if newest:
            files[name] = before + newest + after.replace(b'Status":1', b'Status":8', 1)
        elif "state-printed" in name and b"settlement" not in text:
            files[name] = text.replace(b'"type":"0"', b'"type":"9"', 1)
    return files


def contradicting() -> Files:
    """Of two copies of one log: one batch is another one, and the last one is not there yet."""
    own = (CASES / "kafka-4.2/capture-1/segments/n1.orders-0.txt").read_bytes()
    shorter = own.rpartition(b"\nbaseOffset: ")[0]
    return {"own.txt": own, "other.txt": re.sub(rb"crc: \d+", b"crc: 1", shorter, count=1) + b"\n"}


def written(folder: Path, files: Files) -> list[str]:
    for number, text in enumerate(files.values()):
        (folder / f"{number}.txt").write_bytes(text)
    return [str(folder)]


@pytest.mark.cluster
@pytest.mark.parametrize("stated", COUNTS)
def test_other_counts_of_partitions(spark: SparkSession, warehouse: str, stated: int | None) -> None:
    settings: dict[str, Any] = {"transaction_state_partitions": stated, "cluster": f"counted, {stated}"}
    assert assert_alike(spark, warehouse, VARIANTS[2].paths, **settings).findings


@pytest.mark.cluster
@pytest.mark.parametrize("number", range(2))
def test_a_generated_capture(spark: SparkSession, warehouse: str, tmp_path: Path, number: int) -> None:
    """A cluster with idempotent and transactional producers, restarts and late writes; some nights of it."""
    subject = simulated(f"both engines, {number}")
    settings = {"cluster": tmp_path.name} | dict(subject.settings)
    judged = all_but_last(spark, warehouse, tmp_path, subject.captures, settings)
    assert assert_alike(spark, warehouse, [str(tmp_path / judged)], capture=judged, **settings).partitions


@pytest.mark.cluster
def test_records_of_tomorrow_and_undecodable_ones(spark: SparkSession, warehouse: str, tmp_path: Path) -> None:
    report = assert_alike(spark, warehouse, written(tmp_path, tomorrow()), cluster=tmp_path.name)
    rules = {finding.transactional_id: finding.rule for finding in report.findings}
    assert rules["fraud-scorer"] == rules[None] == "state_incomplete"


@pytest.mark.cluster
def test_copies_that_contradict_each_other(spark: SparkSession, warehouse: str, tmp_path: Path) -> None:
    report = assert_alike(spark, warehouse, written(tmp_path, contradicting()), cluster=tmp_path.name)
    assert {p.kind for item in report.partitions for p in item.problems} == {ProblemKind.COPIES_DIFFER}


def test_the_demo_by_sparks_tasks_prints_the_same_but_for_one_line(spark: SparkSession, warehouse: str) -> None:
    """As `make demo` and `make demo-spark` do."""
    settings = {"cluster": "demo", "capture": "demo"}
    printed = [
        text_report(run_audit(spark, warehouse, VARIANTS[2].paths, engine=engine, **settings)).splitlines()
        for engine in (EngineName.AUTO, EngineName.SPARK)
    ]
    differing = [pair for pair in zip(*printed, strict=True) if pair[0] != pair[1]]
    assert differing == [("judged by         this process", "judged by         Spark's tasks")]


def test_what_this_process_may_not_hold_is_refused(
    warehouse_of: WarehouseOf, audit_of: AuditOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    audit_of(VARIANTS[2])
    warehouse = warehouse_of(VARIANTS[2])
    settings = {"warehouse": warehouse, "cluster": VARIANTS[2].name, "engine": "local"}
    run = start_run(opened(warehouse), Settings.model_validate(PARAMETERS | settings))
    assert run.engine.name is EngineName.LOCAL
    monkeypatch.setattr(memory, "MEMORY_BYTES", 1_000)
    run = start_run(opened(warehouse), Settings.model_validate(PARAMETERS | settings))
    with pytest.raises(ConfigError, match=r"^--engine local: there are [0-9.]+ kB to judge, earlier captures included"):
        _ = run.engine


def test_either_engine_is_the_same_run() -> None:
    named = {name: parameters(Settings(engine=name)) for name in EngineName}
    assert named == dict.fromkeys(EngineName, parameters(Settings()))
