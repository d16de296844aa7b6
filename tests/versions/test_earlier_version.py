"""A warehouse that an earlier version made: its runs answer as they did, and it takes new audits by either writer."""

from __future__ import annotations

import json
import shutil
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.captures import PARAMETERS
from tests.by_spark import only_by_spark
from tests.plan.test_plan_versions import TomorrowsRecord
from tests.table_rows import row_of
from tests.versions.captures import COMPACTED, EAST, FIRST, LATER, parts_of
from txn_analysis.errors import WarehouseError
from txn_analysis.kafka.sections import ProblemKind
from txn_analysis.pipeline import steps as pipeline
from txn_analysis.plan import plan_versions
from txn_analysis.questions import kafka_transactions as queries
from txn_analysis.questions import verify as repairs
from txn_analysis.questions.explain import explain
from txn_analysis.questions.filters import Filters
from txn_analysis.questions.loaded_report import load_report
from txn_analysis.runs.ended_transactions import ended_listed
from txn_analysis.runs.run_tables import run_tables
from txn_analysis.settings import Settings
from txn_analysis.storage.frames import collected
from txn_analysis.storage.local.delta_folder import DeltaFolder
from txn_analysis.storage.on_spark.tables import committed
from txn_analysis.storage.on_spark.types import frame_of
from txn_analysis.storage.opening import open_warehouse
from txn_analysis.storage.table_versions import differences
from txn_analysis.tables import (
    ABORT_PLAN,
    ALL_TABLES,
    ENDED_TRANSACTIONS,
    FINDINGS,
    PARTITION_HEALTH,
    RUNS,
    TRANSACTIONS,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from txn_analysis.report.model import AuditReport
    from txn_analysis.storage.warehouse import Warehouse
    from txn_analysis.tables import Table

ARCHIVE = Path(__file__).parent / "warehouse-ececed8.tar.gz"
HANGING = ["ledger.events-1", "orders-0", "orders-2", "payments-0"]
# What the earlier version did not fold; a run over its folds says NULL, or a bound that is farther away.
UNKNOWN_IN_OLD_FOLDS = {"bare_markers", "first_appended_after_ms"}
# Names of the ingests of one warehouse; `ended` tells what they stand for.
OF_ONE_WAREHOUSE = {"linked_pieces"}
RESULTS = (TRANSACTIONS, PARTITION_HEALTH, FINDINGS, ABORT_PLAN)


def settings(warehouse: Warehouse, cluster: str = EAST, capture: str | None = None) -> Settings:
    return Settings.model_validate(PARAMETERS | {"warehouse": warehouse.root, "cluster": cluster, "capture": capture})


def audited(warehouse: Warehouse, capture: Path) -> str:
    """The run that today's code makes of a capture of the cluster."""
    report = pipeline.audit(warehouse.spark, parts_of(capture), settings(warehouse, capture=capture.name))
    return report.run.run_id


def made_earlier(spark: SparkSession, folder: Path) -> Warehouse:
    with tarfile.open(ARCHIVE) as packed:
        packed.extractall(folder, filter="data")
    return open_warehouse(spark, str(folder / "warehouse"))


@pytest.fixture(scope="module")
def untouched(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """As it was made; nothing is ever written to it."""
    return made_earlier(spark, tmp_path_factory.mktemp("untouched"))


@pytest.fixture(scope="module")
def fresh(
    spark: SparkSession, empty_warehouse: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Warehouse, list[str]]:
    """A new warehouse, and its runs of both captures of the cluster."""
    folder = shutil.copytree(empty_warehouse, tmp_path_factory.mktemp("fresh") / "warehouse")
    warehouse = open_warehouse(spark, str(folder))
    return warehouse, [audited(warehouse, capture) for capture in (FIRST, LATER)]


@pytest.fixture(scope="module", params=["our writer", pytest.param("Spark's writer", marks=pytest.mark.cluster)])
def upgraded(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Warehouse]:
    """It took a later capture of one cluster, and the first one again; runs of the other cluster are as they were."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "Spark's writer":
            only_by_spark(patch)
        warehouse = made_earlier(spark, tmp_path_factory.mktemp("upgraded"))
        audited(warehouse, LATER)
        audited(warehouse, FIRST)
        yield warehouse


def stored(warehouse: Warehouse, table: Table, run_ids: list[str]) -> list[str]:
    rows = [row for row in collected(committed(warehouse, table)) if row["run_id"] in run_ids]
    # What is declared no more stays in old tables, and is NULL in new rows.
    assert all(row[name] is None for row in rows for name in row.keys() - set(table.names))
    names = set(table.names) - UNKNOWN_IN_OLD_FOLDS - OF_ONE_WAREHOUSE
    known = [{name: row[name] for name in names} for row in rows]
    return sorted(json.dumps(row, sort_keys=True) for row in known)


@pytest.mark.parametrize("table", RESULTS, ids=lambda table: table.name)
def test_new_runs_are_those_of_a_new_warehouse(
    upgraded: Warehouse, fresh: tuple[Warehouse, list[str]], table: Table
) -> None:
    new, run_ids = fresh
    expected = stored(new, table, run_ids)
    assert expected
    assert stored(upgraded, table, run_ids) == expected


def ended(warehouse: Warehouse, cluster: str, run_id: str | None = None) -> list[str]:
    """The ended transactions of a run, the cluster's last one where none is named."""
    names = [column.name for column in ENDED_TRANSACTIONS.columns if column.name != "ingest_id"]
    rows = ended_listed(run_tables(warehouse, cluster, run_id).finished(), *names)
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


def test_what_ended_in_new_runs_is_what_ended_in_those_of_a_new_warehouse(
    upgraded: Warehouse, fresh: tuple[Warehouse, list[str]]
) -> None:
    new, run_ids = fresh
    for run_id in run_ids:
        expected = ended(new, EAST, run_id)
        assert expected
        assert ended(upgraded, EAST, run_id) == expected


def test_what_ended_in_an_old_run_is_told_before_and_after(untouched: Warehouse, upgraded: Warehouse) -> None:
    """An earlier version kept it in `transactions`."""
    before = ended(untouched, COMPACTED)
    assert before
    assert ended(upgraded, COMPACTED) == before


def report(warehouse: Warehouse) -> AuditReport:
    """The old run of the cluster that was not audited again."""
    return load_report(warehouse, settings(warehouse, COMPACTED))


def answers(warehouse: Warehouse) -> tuple[AuditReport, str, str]:
    """What `report` and `find-hanging` say of that run, and why `abort-plan` does not print its plan."""
    tables = run_tables(warehouse, COMPACTED)
    hanging = queries.find_hanging(tables.findings(), Filters())
    with pytest.raises(WarehouseError) as refused:
        tables.abort_plan()
    return report(warehouse), hanging.text(), str(refused.value)


def test_old_runs_answer_before_and_after(untouched: Warehouse, upgraded: Warehouse) -> None:
    before = answers(untouched)
    assert before[2].endswith("was made by an earlier version, which did not say producer_may_return: audit again")
    assert [f.topic_partition for f in before[0].hanging] == HANGING
    assert answers(upgraded) == before


def test_what_an_earlier_version_held_back_is_printed_without_it(spark: SparkSession, tmp_path: Path) -> None:
    """Its run was told to plan that transaction all the same, by an option that is gone."""
    warehouse = made_earlier(spark, tmp_path)
    before = answers(warehouse)
    held = f"UPDATE delta.`{warehouse.path(FINDINGS)}` SET hold = 'ask first' WHERE topic = 'orders' AND partition = 0"
    told = f"""UPDATE delta.`{warehouse.path(RUNS)}`
        SET parameters = replace(parameters, '{{', '{{"include_committable": true, ')"""
    for changed in (held, told):
        (count,) = spark.sql(changed).collect()
        assert count[0] > 0
    after, *others = answers(warehouse)
    assert after.run.parameters["include_committable"] is True
    assert (after.findings, *others) == (before[0].findings, *before[1:])
    assert "hold" not in after.findings[0].model_dump()
    assert run_tables(warehouse, COMPACTED).finished().run_id == after.run.run_id


def test_problems_of_old_runs_have_no_kind(untouched: Warehouse, upgraded: Warehouse) -> None:
    for warehouse in (untouched, upgraded):
        problems = [problem for item in report(warehouse).partitions for problem in item.problems]
        assert [(p.offset, p.kind, p.reason) for p in problems] == [(1, None, "file 0 has no batch for offset 1")]


def test_reading_changes_nothing(untouched: Warehouse) -> None:
    there = [table for table in ALL_TABLES if Path(untouched.path(table)).exists()]
    before = untouched.versions(there)
    answers(untouched)
    assert untouched.versions(there) == before


def test_old_tables_differ_and_new_runs_bring_them_up_to_date(untouched: Warehouse, upgraded: Warehouse) -> None:
    def outdated(warehouse: Warehouse) -> set[str]:
        there = (t for t in ALL_TABLES if Path(warehouse.path(t)).exists())
        return {
            t.name for t in there if differences(DeltaFolder(Path(warehouse.path(t))).definition, warehouse.path(t), t)
        }

    assert {FINDINGS.name, ABORT_PLAN.name, PARTITION_HEALTH.name} <= outdated(untouched)
    assert outdated(upgraded) == set()


@pytest.mark.parametrize("table", [FINDINGS, ABORT_PLAN], ids=lambda table: table.name)
def test_a_rule_that_the_earlier_version_did_not_know_is_taken(upgraded: Warehouse, table: Table) -> None:
    row = row_of(table, run_id="tomorrow", rule="a_rule_of_tomorrow")
    upgraded.replace_rows([row], table, run_id="tomorrow")
    upgraded.replace_by(frame_of(upgraded.spark, [row], table), None, table, run_id="tomorrow")
    kept = upgraded.frame(table).where("run_id = 'tomorrow'").select("rule").collect()
    assert [row["rule"] for row in kept] == ["a_rule_of_tomorrow"]


def test_plans_of_runs_before_a_new_requirement_are_verified_and_not_printed(
    upgraded: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan_versions, "AbortRecord", TomorrowsRecord)
    (later,) = upgraded.listed(RUNS, "run_id", cluster=[EAST], capture=[LATER.name])
    outcomes = repairs.verify(repairs.nights(upgraded, EAST, later["run_id"]))
    assert [outcome.record.topic_partition for outcome in outcomes] == HANGING
    with pytest.raises(WarehouseError, match=r"did not say producer_may_return, rack: audit again$"):
        run_tables(upgraded, COMPACTED).abort_plan()


def test_what_an_earlier_version_reconstructed_is_not_judged(upgraded: Warehouse) -> None:
    of_old_run = settings(upgraded, COMPACTED, COMPACTED)
    what = r"/warehouse: run-\w+ was reconstructed by an earlier version: reconstruct again \(jobs/reconstruct.py\)"
    with pytest.raises(WarehouseError, match=what):
        pipeline.find_hanging(upgraded.spark, of_old_run)
    again = r"/warehouse: run-\w+ was judged by an earlier version: audit its files again$"
    with pytest.raises(WarehouseError, match=again):
        explain(run_tables(upgraded, COMPACTED).finished(), Filters())


def test_reconstructed_again_it_is_judged_by_kinds(spark: SparkSession, tmp_path: Path) -> None:
    """Steps of their own, without an ingest before them, in which tables are made.

    Records of the state are gone: that none of them was a commit whose marker was lost is the operator's word.
    """
    warehouse = made_earlier(spark, tmp_path)
    steps = settings(warehouse, COMPACTED, COMPACTED).model_copy(update={"no_records_lost": True})
    pipeline.reconstruct(spark, steps)
    run = pipeline.find_hanging(spark, steps)
    found = load_report(warehouse, steps, run.run_id)
    assert [f.topic_partition for f in found.hanging] == HANGING
    assert {p.kind for item in found.partitions for p in item.problems} == {ProblemKind.HOLE_IN_FILE}
