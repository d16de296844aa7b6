"""Audit of Kafka transaction health from files copied off the brokers.

These names are the library, and are kept stable; all others are the program's own. See docs/python.md.
"""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "2.0.0"

__all__ = [
    "AuditError",
    "AuditReport",
    "Capture",
    "Decision",
    "Forgotten",
    "Ingested",
    "Settings",
    "Verdict",
    "abort_plan",
    "accept",
    "audit",
    "captures",
    "findings",
    "forget",
    "ingest",
    "load_report",
    "prune",
    "query",
    "read",
    "register",
    "sources",
]

if TYPE_CHECKING:
    from txn_analysis import sources
    from txn_analysis.errors import AuditError
    from txn_analysis.library import (
        abort_plan,
        accept,
        audit,
        captures,
        findings,
        forget,
        ingest,
        load_report,
        prune,
        query,
        read,
    )
    from txn_analysis.pipeline.ingest import Ingested
    from txn_analysis.report.model import AuditReport
    from txn_analysis.runs.run_tables import Capture, Forgotten
    from txn_analysis.settings import Settings
    from txn_analysis.tables import Decision
    from txn_analysis.verdict import Verdict
    from txn_analysis.warehouse.catalog import register
else:
    _HOMES = {
        "AuditError": "errors",
        "AuditReport": "report.model",
        "Capture": "runs.run_tables",
        "Decision": "tables",
        "Forgotten": "runs.run_tables",
        "Ingested": "pipeline.ingest",
        "Settings": "settings",
        "register": "warehouse.catalog",
        "Verdict": "verdict",
    }

    def __getattr__(name: str) -> object:
        # Spark takes a second to import, which `txn-analysis --help` must not. No module beside this file may have one
        # of these names: once imported, it would take the place of the function.
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        if name == "sources":
            return import_module(f"{__name__}.sources")
        return getattr(import_module(f"{__name__}.{_HOMES.get(name, 'library')}"), name)
