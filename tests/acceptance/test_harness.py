"""The harness of the torture suite answers as the audit on Spark does, row by row."""

from __future__ import annotations

import json
import random
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.acceptance.captures import CASES, PARAMETERS, SEGMENTS, VARIANTS, Variant, rows_of, run_audit
from tests.torture.harness import Answer, audit_files
from tests.torture.mutations import Given, Mutator
from tests.torture.subjects import real_cases, simulated
from txn_analysis.kafka.sections import ProblemKind
from txn_analysis.pipeline import steps as pipeline
from txn_analysis.pipeline.judging import judge
from txn_analysis.pipeline.run import start_run
from txn_analysis.report.model import FindingItem, PartitionItem
from txn_analysis.settings import Settings
from txn_analysis.storage import frames
from txn_analysis.storage.opening import open_warehouse
from txn_analysis.tables import PARTITION_HEALTH, TRANSACTIONS

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from tests.torture.inputs import InputReader
    from txn_analysis.pipeline.run import Run
    from txn_analysis.report.model import AuditReport

# The harness reads texts; brokers' own files give the rows of dumps (tests/log_dir).
OF_DUMPS = [v for v in VARIANTS if "log-dirs" not in v.parts]
# A simulated cluster with all kinds of damage, and a real case with captures behind the judged one.
MUTATED = (("simulated", 3), ("real", 2))
# The name of a run is not the core's; what an open transaction costs is asked of Spark's tables as well.
NOT_ASKED_HERE = {"finding_id": "", "impact": None}


def as_reported(answer: Answer) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Findings and partitions of the harness as the report prints them."""
    findings = [FindingItem.model_validate(row | NOT_ASKED_HERE).model_dump(mode="json") for row in answer.findings]
    partitions = [PartitionItem.model_validate(row).model_dump(mode="json") for row in answer.health]
    return _sorted(findings), _sorted(partitions)


def _sorted(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: (row["topic"], row["partition"], row.get("txn_start_offset"), str(row)))


def assert_alike(report: AuditReport, answer: Answer) -> None:
    findings, partitions = as_reported(answer)
    assert _sorted([row | NOT_ASKED_HERE for row in rows_of(report)]) == findings
    reported = [item.model_copy(update={"impact": None}) for item in report.partitions]
    assert _sorted([item.model_dump(mode="json") for item in reported]) == partitions


@pytest.mark.parametrize("variant", OF_DUMPS, ids=lambda v: v.name)
def test_real_captures(reader: InputReader, audit_of: Callable[[Variant], AuditReport], variant: Variant) -> None:
    folders = [Path(path) for path in variant.paths]
    files = {str(file): file.read_bytes() for folder in folders for file in folder.rglob("*") if file.is_file()}
    settings = Settings.model_validate(PARAMETERS | dict(variant.settings))
    assert_alike(audit_of(variant), audit_files(reader, {"capture": files}, settings))


# Dumps and an export; with the right count of partitions of the state, and with wrong ones, which the logs contradict;
# where the state alone fits into memory, and where nothing does.
IN_TASKS = (
    (OF_DUMPS[2], None, "nothing"),
    (OF_DUMPS[2], 4, "state"),
    (OF_DUMPS[1], 4, "nothing"),
    (OF_DUMPS[1], 4, "state"),
    (OF_DUMPS[2], 3, "nothing"),
    (OF_DUMPS[-1], 1, "nothing"),
)


@pytest.mark.parametrize(("variant", "stated", "fits"), IN_TASKS, ids=lambda v: getattr(v, "name", str(v)))
def test_what_is_too_large_for_memory_is_judged_alike_in_tasks(
    spark: SparkSession,
    warehouse: str,
    audit_of: Callable[[Variant], AuditReport],
    monkeypatch: pytest.MonkeyPatch,
    variant: Variant,
    stated: int | None,
    fits: str,
) -> None:
    audit_of(variant)
    settings = PARAMETERS | dict(variant.settings) | {"transaction_state_partitions": stated}
    named = {"warehouse": warehouse, "cluster": variant.name}
    run = pipeline.reconstruct(spark, Settings.model_validate(settings | named))
    in_memory = judge(run)
    text_bytes = sum(item["text_bytes"] for item in run.evidence.inputs)
    monkeypatch.setattr(frames, "AT_HAND_BYTES", text_bytes - 1 if fits == "state" else -1)
    in_tasks = judge(replace(run))  # what was counted in memory is counted again
    assert in_tasks.findings == in_memory.findings
    assert in_tasks.record.state_coverage == in_memory.record.state_coverage
    assert in_tasks.record.warnings == in_memory.record.warnings


@pytest.mark.parametrize("fits", ["state", "nothing"])
def test_records_of_tomorrow_and_undecodable_ones_are_judged_alike_in_tasks(
    spark: SparkSession, warehouse: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fits: str
) -> None:
    """The newest record of one id has an unknown status, and one of another partition an unknown type of key."""
    case = CASES / "kafka-4.4-tomorrow"
    for file in (case / "capture-2/state-printed").iterdir():
        text = file.read_text(encoding="utf-8")
        before, newest, after = text.rpartition('"transactionalId":"fraud-scorer"')
        if newest:
            text = before + newest + after.replace('Status":1', 'Status":8', 1)
        elif "settlement" not in text:
            text = text.replace('"type":"0"', '"type":"9"', 1)
        (tmp_path / file.name).write_text(text, encoding="utf-8")
    run_audit(spark, warehouse, [str(case / "capture-1/segments"), str(tmp_path)], cluster=tmp_path.name)
    run = pipeline.reconstruct(
        spark, Settings.model_validate(PARAMETERS | {"warehouse": warehouse, "cluster": tmp_path.name})
    )
    in_memory = judge(run)
    rules = {finding.transactional_id: finding.rule for finding in in_memory.findings}
    assert rules["fraud-scorer"] == rules[None] == "state_incomplete"
    assert '"newer": ' in in_memory.record.state_coverage
    text_bytes = sum(item["text_bytes"] for item in run.evidence.inputs)
    monkeypatch.setattr(frames, "AT_HAND_BYTES", text_bytes - 1 if fits == "state" else -1)
    in_tasks = judge(replace(run))
    assert in_tasks.findings == in_memory.findings
    assert in_tasks.record.state_coverage == in_memory.record.state_coverage
    assert in_tasks.record.warnings == in_memory.record.warnings


# By what linking looks at, which is not the state: dumps with their payloads and without, logs that are cut at
# snapshots, folders of brokers, both together; and one night beside the night before it, as copies of several brokers.
LINKED = (
    *(VARIANTS[k] for k in (0, 3, 7, 10, 11, 13, 14)),
    Variant("kafka-4.2/capture-2", ("../capture-1/segments", *SEGMENTS, "producer-snapshots")),
)


@pytest.mark.parametrize("variant", LINKED, ids=lambda v: v.name)
def test_what_is_too_large_for_memory_is_linked_alike_in_tasks(
    spark: SparkSession,
    warehouse: str,
    audit_of: Callable[[Variant], AuditReport],
    monkeypatch: pytest.MonkeyPatch,
    variant: Variant,
) -> None:
    audit_of(variant)
    named = {"warehouse": warehouse, "cluster": variant.name}
    run = start_run(
        open_warehouse(spark, warehouse), Settings.model_validate(PARAMETERS | dict(variant.settings) | named)
    )
    assert_linked_alike_in_tasks(run, monkeypatch)


def test_copies_that_contradict_each_other_are_compared_alike_in_tasks(
    spark: SparkSession, warehouse: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two copies of one log: one batch is another one, and the last one is not there yet."""
    of_log = CASES / OF_DUMPS[2].capture / "segments/n1.orders-0.txt"
    own, other = of_log.read_text(encoding="utf-8"), tmp_path / of_log.name
    shorter = own.rpartition("\nbaseOffset: ")[0]
    other.write_text(re.sub(r"crc: \d+", "crc: 1", shorter, count=1) + "\n", encoding="utf-8")
    run_audit(spark, warehouse, [str(of_log), str(other)], cluster=tmp_path.name)
    named = {"warehouse": warehouse, "cluster": tmp_path.name}
    run = start_run(open_warehouse(spark, warehouse), Settings.model_validate(PARAMETERS | named))
    (health,) = run.health()
    assert {problem["kind"] for problem in health["problems"]} == {ProblemKind.COPIES_DIFFER}
    assert_linked_alike_in_tasks(run, monkeypatch)


def assert_linked_alike_in_tasks(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    in_memory = linked_rows(run)
    monkeypatch.setattr(frames, "AT_HAND_BYTES", -1)
    assert pipeline.reconstruct(run.warehouse.spark, run.settings).run_id == run.run_id
    assert linked_rows(run) == in_memory
    assert all(in_memory)


def linked_rows(run: Run) -> list[list[str]]:
    return [
        sorted(json.dumps(row, sort_keys=True, default=repr) for row in run.listed(table))
        for table in (TRANSACTIONS, PARTITION_HEALTH)
    ]


@pytest.mark.parametrize(("kind", "number"), MUTATED)
def test_mutated_captures(
    spark: SparkSession, warehouse: str, tmp_path: Path, reader: InputReader, kind: str, number: int
) -> None:
    given = mutated(kind, number)
    settings = given.settings | {"cluster": tmp_path.name, "skip_unrecognised": True}
    *_, judged = given.captures
    for name, files in given.captures.items():
        for path, data in files.items():
            file = tmp_path / name / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
        if name != judged:
            of_night = PARAMETERS | settings | {"warehouse": warehouse, "capture": name}
            pipeline.ingest(spark, [str(tmp_path / name)], Settings.model_validate(of_night))
    report = run_audit(spark, warehouse, [str(tmp_path / judged)], capture=judged, **settings)
    answer = audit_files(reader, given.captures, Settings.model_validate(given.settings), judged=judged)
    assert_alike(report, answer)


def mutated(kind: str, number: int) -> Given:
    source = random.Random(f"alike/{kind}/{number}")
    subject = simulated(f"alike/{number}") if kind == "simulated" else source.choice(real_cases()[:3])
    mutator = Mutator(source, subject)
    return mutator.taken_away(mutator.start())
