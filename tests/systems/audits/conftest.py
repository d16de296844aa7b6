"""Each way of giving a capture is audited once, whichever tests ask for it."""

import shutil
from functools import cache
from pathlib import Path

import pytest

from tests.tools.captures import AuditOf, RunOf, TablesOf, Variant, WarehouseOf, run_audit
from tests.tools.sessions import no_session, opened
from txn_analysis.report.model import AuditReport
from txn_analysis.runs.run_tables import RunTables, run_tables


@pytest.fixture(scope="module")
def warehouse(empty_warehouse: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """One for the audits of a file, which keep apart by their clusters; with one for all, each would be slower."""
    return str(shutil.copytree(empty_warehouse, tmp_path_factory.mktemp("shared") / "warehouse"))


@pytest.fixture(scope="session")
def warehouse_of(empty_warehouse: Path, tmp_path_factory: pytest.TempPathFactory) -> WarehouseOf:
    """One for all ways of giving a capture, which share contents and keep apart by their clusters."""

    @cache
    def of_capture(_: str) -> str:
        return str(shutil.copytree(empty_warehouse, tmp_path_factory.mktemp("capture") / "warehouse"))

    return lambda variant: of_capture(variant.capture)


@pytest.fixture(scope="session")
def audit_of(warehouse_of: WarehouseOf) -> AuditOf:
    """Audits a capture, each variant once, into a cluster of its own."""
    reports: dict[Variant, AuditReport] = {}

    def audited(variant: Variant) -> AuditReport:
        if variant not in reports:
            same = sum(other.name == variant.name for other in reports)
            cluster = f"{variant.name} {same}" if same else variant.name
            settings = {"cluster": cluster} | dict(variant.settings)
            reports[variant] = run_audit(no_session, warehouse_of(variant), variant.paths, **settings)
        return reports[variant]

    return audited


@pytest.fixture(scope="module")
def tables_of(warehouse_of: WarehouseOf, audit_of: AuditOf) -> TablesOf:
    """The tables of the finished run of a capture."""

    def finished(variant: Variant) -> RunTables:
        run = audit_of(variant).run
        return run_tables(opened(warehouse_of(variant)), run.cluster, run.run_id)

    return finished


@pytest.fixture(scope="module")
def run_of(tables_of: TablesOf) -> RunOf:
    """The finished run of a capture, as questions ask it."""
    return lambda variant: tables_of(variant).finished
