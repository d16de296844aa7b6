"""An audit whose warehouse is in memory: what the steps ask of storage is its interface, and nothing more."""

from pathlib import Path

import pyarrow as pa
import pytest

from tests.tools.captures import PARAMETERS, SEGMENTS
from tests.tools.in_memory import MemoryWarehouse, audited
from tests.tools.repository import CASES
from txn_analysis.questions.loaded_report import load_report
from txn_analysis.settings import Settings
from txn_analysis.tables import ABORT_PLAN, FINDINGS

PATHS = [str(CASES / "kafka-4.2/capture-1" / part) for part in SEGMENTS]


def test_an_audit_and_its_report_again_need_no_disk_and_no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    warehouse = MemoryWarehouse()
    settings = Settings.model_validate({"warehouse": "memory"} | PARAMETERS)
    report = audited(monkeypatch, PATHS, warehouse)
    assert [item.topic_partition for item in report.hanging] == [
        "ledger.events-1",
        "orders-0",
        "orders-2",
        "payments-0",
    ]
    assert load_report(warehouse, settings).hanging == report.hanging


def test_nothing_depends_on_how_much_is_judged_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, divided = MemoryWarehouse(), MemoryWarehouse()
    report = audited(monkeypatch, PATHS, whole)
    monkeypatch.setattr("txn_analysis.pipeline.judging.MOST_AT_ONCE", 1)
    monkeypatch.setattr("txn_analysis.pipeline.run.bucket_count", lambda _: 5)
    assert audited(monkeypatch, PATHS, divided) == report
    for table in (FINDINGS, ABORT_PLAN):
        rows, others = (pa.Table.from_batches(each.batches(table)).sort_by("finding_id") for each in (whole, divided))
        assert rows.to_pylist() == others.to_pylist()


def test_a_brokers_files_of_the_state_are_divided_as_finely_as_their_dumps(monkeypatch: pytest.MonkeyPatch) -> None:
    dumps, files = (
        printed_bytes(monkeypatch, CASES / "kafka-4.2/capture-1" / part) for part in ("transaction-state", "log-dirs")
    )
    assert 0.8 < files / dumps < 1.25


def printed_bytes(monkeypatch: pytest.MonkeyPatch, folder: Path) -> int:
    """How many bytes of text the files of the state below a folder count as."""
    known: list[int] = []

    def bucket_count(size_bytes: int) -> int:
        known.append(size_bytes)
        return 1

    monkeypatch.setattr("txn_analysis.pipeline.run.bucket_count", bucket_count)
    audited(monkeypatch, folder.rglob("*__transaction_state-*"))
    return max(known)
