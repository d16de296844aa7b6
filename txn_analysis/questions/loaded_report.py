"""The report of a finished run again, from the tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from txn_analysis.questions.filters import Filters, check_seen
from txn_analysis.questions.timelines import pictures_of
from txn_analysis.report.build import build_report
from txn_analysis.runs.run_tables import run_tables
from txn_analysis.tables import FINDINGS, INPUTS, PARTITION_HEALTH

if TYPE_CHECKING:
    from txn_analysis.report.model import AuditReport
    from txn_analysis.report.pictures import Pictures
    from txn_analysis.settings import Settings
    from txn_analysis.storage.stored import Stored


def load_report(
    warehouse: Stored, settings: Settings, run_id: str | None = None, topics: tuple[str, ...] = ()
) -> AuditReport:
    """The report of a run; of the cluster's last one where none is named; of some topics, or of all.

    Raises:
        ConfigError: the run never saw one of the topics.
        WarehouseError: there is no such warehouse, or no such run.
    """
    tables = run_tables(warehouse, settings.cluster, run_id)
    run = tables.run
    check_seen(tables, Filters(topics))
    own = warehouse.listed(INPUTS, cluster=[run.cluster], capture=[run.capture])
    of_health = [name for name in PARTITION_HEALTH.names if name != "producers"]
    said = run.row() | {"forgotten_captures": tables.forgotten_captures}
    return build_report(said, own, tables.listed(PARTITION_HEALTH, *of_health), tables.listed(FINDINGS), topics)


def pictures(warehouse: Stored, report: AuditReport) -> Pictures:
    """The series behind the pictures of a report whose run is in the tables; see `timelines.pictures_of`."""
    return pictures_of(report, run_tables(warehouse, report.run.cluster, report.run.run_id))
