"""Files of a Kafka that does not exist yet: records with a field that no version knows prove what they name."""

import json
import re
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.tools.captures import run_audit
from tests.tools.cases import cases
from tests.tools.repository import CASES
from tests.tools.sessions import no_session
from txn_analysis.report.model import AuditReport
from txn_analysis.report.what_was_read import statements

CASE = CASES / "kafka-4.4-tomorrow"
NAMES = ("topic", "partition", "producer_id", "verdict", "rule", "transactional_id")


def audited(folder: Path, *paths: Path | str, **said: Any) -> AuditReport:
    """The audit of some paths in a warehouse of their own below a folder."""
    warehouse = tempfile.mkdtemp(dir=folder)
    return run_audit(no_session, warehouse, [str(CASE / path) for path in paths], **said)


def verdicts(report: AuditReport) -> set[tuple[Any, ...]]:
    found = json.loads(report.model_dump_json())["findings"]
    return {tuple(row[name] for name in NAMES) for row in found}


def expected(capture: str) -> set[tuple[Any, ...]]:
    rows = json.loads((CASE / capture / "expected.json").read_text())["open_transactions"]
    return {tuple(row[name] for name in NAMES) for row in rows}


def remarks(report: AuditReport) -> list[str]:
    return [one.text for one in statements(report) if "newer Kafka than this version knows" in one.text]


@cases(
    "capture paths",
    {
        "broker-files": ("capture-1", ["capture-1/log-dirs"]),
        "dump-without-the-field": ("capture-2", ["capture-1/segments", "capture-2/state-by-4.3"]),
        "dump-with-the-field": ("capture-2", ["capture-1/segments", "capture-2/state-printed"]),
    },
)
def test_what_its_records_name_counts_and_what_they_lack_does_not(
    tmp_path: Path, capture: str, paths: list[str]
) -> None:
    report = audited(tmp_path, *paths)
    assert verdicts(report) == expected(capture)
    assert len(remarks(report)) == 1


@pytest.mark.parametrize(("export", "capture"), [("console", "capture-1"), ("console-printed", "capture-2")])
def test_an_export_that_prints_the_field_proves_as_little_as_a_dump(tmp_path: Path, export: str, capture: str) -> None:
    """One that does not print it, prints no size either. (It was made later: what was open of others has ended.)"""
    report = audited(tmp_path, "capture-1/segments", export, transaction_state_complete=True)
    ids = {"billing-worker", "invoice-worker", "fraud-scorer"}
    assert {row for row in verdicts(report) if row[-1] in ids} == {row for row in expected(capture) if row[-1] in ids}
    assert len(remarks(report)) == (export == "console-printed")


def test_the_remark_counts_the_records_that_have_such_fields(tmp_path: Path) -> None:
    printed = sorted((CASE / "capture-2/state-printed").iterdir())
    count = sum(len(re.findall('"lastProducerEpoch":7', path.read_text())) for path in printed)
    (remark,) = remarks(audited(tmp_path, "capture-1/segments", "capture-2/state-printed"))
    assert f"{count} records of __transaction_state have fields that it does not know" in remark
