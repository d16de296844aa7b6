"""An audit whose warehouse is in memory: what the steps ask of storage is its interface, and nothing more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.acceptance.captures import CASES, PARAMETERS, SEGMENTS
from tests.storage.in_memory import MemoryWarehouse
from txn_analysis.pipeline import steps
from txn_analysis.questions.loaded_report import load_report
from txn_analysis.settings import Settings

if TYPE_CHECKING:
    import pytest

PATHS = [str(CASES / "kafka-4.2/capture-1" / part) for part in SEGMENTS]


def no_session() -> None:
    raise AssertionError("Spark was started")


def test_an_audit_and_its_report_again_need_no_disk_and_no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    warehouse = MemoryWarehouse()
    monkeypatch.setattr("txn_analysis.pipeline.steps.open_warehouse", lambda *_: warehouse)
    settings = Settings.model_validate({"warehouse": "memory"} | PARAMETERS)
    report = steps.audit(no_session, PATHS, settings)  # type: ignore[arg-type]  # nobody may call it
    assert [item.topic_partition for item in report.hanging] == [
        "ledger.events-1",
        "orders-0",
        "orders-2",
        "payments-0",
    ]
    assert [finding.shown for finding in load_report(warehouse, settings).hanging] == [*report.hanging]
