"""Each way of giving a capture is audited once, whichever tests ask for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import pytest

from tests.acceptance.captures import PARAMETERS, Variant, run_audit
from txn_analysis import Settings, audit
from txn_analysis.runs.run_tables import run_tables
from txn_analysis.storage.opening import open_warehouse

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from txn_analysis.report.model import AuditReport
    from txn_analysis.runs.past_run import PastRun
    from txn_analysis.runs.run_tables import RunTables


@pytest.fixture(scope="session")
def audit_of(spark: SparkSession, warehouse: str) -> Callable[[Variant], AuditReport]:
    """Audits a capture, each variant once, into a cluster named after it."""
    reports: dict[str, AuditReport] = {}

    def audited(variant: Variant) -> AuditReport:
        if variant.name not in reports:
            settings = dict(variant.settings)
            reports[variant.name] = run_audit(spark, warehouse, variant.paths, cluster=variant.name, **settings)
        return reports[variant.name]

    return audited


@pytest.fixture(scope="module")
def run_of(
    spark: SparkSession, warehouse: str, audit_of: Callable[[Variant], AuditReport]
) -> Callable[[Variant], PastRun]:
    """The finished run of a capture, as questions ask it."""

    def finished(variant: Variant) -> PastRun:
        run_id = audit_of(variant).run.run_id
        return run_tables(open_warehouse(spark, warehouse), variant.name, run_id).finished

    return finished


def _no_session() -> NoReturn:
    raise AssertionError("Spark was asked for")


@pytest.fixture(scope="module")
def tables_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Variant], RunTables]:
    """The tables of a run over a capture, audited in this process, without Spark; each variant once."""
    root = str(tmp_path_factory.mktemp("without-spark"))
    runs: dict[Variant, str] = {}

    def finished(variant: Variant) -> RunTables:
        if variant not in runs:
            settings = Settings(**PARAMETERS | dict(variant.settings), warehouse=root, cluster=variant.name)
            runs[variant] = audit(None, variant.paths, settings).run.run_id
        return run_tables(open_warehouse(_no_session, root), variant.name, runs[variant])

    return finished
