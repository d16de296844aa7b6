"""Each way of giving a capture is audited once, whichever tests ask for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.acceptance.captures import Variant, run_audit
from txn_analysis.runs.run_tables import run_tables
from txn_analysis.storage.opening import open_warehouse

if TYPE_CHECKING:
    from collections.abc import Callable

    from txn_analysis.report.model import AuditReport
    from txn_analysis.runs.past_run import PastRun
    from txn_analysis.runs.run_tables import RunTables


@pytest.fixture(scope="session")
def audit_of(no_spark: Any, warehouse: str) -> Callable[[Variant], AuditReport]:
    """Audits a capture, each variant once, into a cluster of its own."""
    reports: dict[Variant, AuditReport] = {}

    def audited(variant: Variant) -> AuditReport:
        if variant not in reports:
            same = sum(other.name == variant.name for other in reports)
            cluster = f"{variant.name} {same}" if same else variant.name
            reports[variant] = run_audit(no_spark, warehouse, variant.paths, cluster=cluster, **dict(variant.settings))
        return reports[variant]

    return audited


@pytest.fixture(scope="module")
def tables_of(
    no_spark: Any, warehouse: str, audit_of: Callable[[Variant], AuditReport]
) -> Callable[[Variant], RunTables]:
    """The tables of the finished run of a capture."""

    def finished(variant: Variant) -> RunTables:
        run = audit_of(variant).run
        return run_tables(open_warehouse(no_spark, warehouse), run.cluster, run.run_id)

    return finished


@pytest.fixture(scope="module")
def run_of(tables_of: Callable[[Variant], RunTables]) -> Callable[[Variant], PastRun]:
    """The finished run of a capture, as questions ask it."""
    return lambda variant: tables_of(variant).finished
