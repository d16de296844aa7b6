"""Dumps of `__transaction_state` that stand under each other's names: Kafka's hash of the ids tells, and names them."""

from pathlib import Path
from typing import Any

import pytest

from tests.tools.captures import by_place, rows_of, run_audit
from tests.tools.repository import CASES
from tests.tools.sessions import no_session
from txn_analysis.report.model import AuditReport
from txn_analysis.report.text_report import text_report

CAPTURE = CASES / "kafka-4.2/capture-1"
EVIL = "evil\n<b>&;$(rm -rf ~)"
ZERO, TWO = (b"Dumping __transaction_state-%d/00000000000000000000.log" % number for number in (0, 2))
NEW_NAMES = {ZERO: TWO, TWO: ZERO}
UNKNOWN_PRODUCER = ("orders", 2, 987654321)


@pytest.fixture(scope="module")
def report(warehouse: str, tmp_path_factory: pytest.TempPathFactory) -> AuditReport:
    """Partitions 0 and 2 of the state have swapped their names."""
    folder: Path = tmp_path_factory.mktemp("mislabelled")
    for file in (CAPTURE / "transaction-state").iterdir():
        header, rest = file.read_bytes().split(b"\n", 1)
        (folder / file.name).write_bytes(NEW_NAMES.get(header, header) + b"\n" + rest)
    paths = [str(CAPTURE / "segments"), *map(str, folder.glob("*.txt"))]
    return run_audit(no_session, warehouse, paths, cluster="mislabelled")


def covered(report: AuditReport) -> dict[int, dict[str, Any]]:
    return {p["partition"]: p for p in report.coverage.transaction_state["partitions"]}


def test_the_first_ids_that_lie_elsewhere_are_named_as_they_are(report: AuditReport) -> None:
    assert {number: p["misplaced_ids"] for number, p in covered(report).items()} == {
        0: ["order-service-1"],
        1: [],
        2: [EVIL, "inventory-sync", "order-service-3"],
        3: [],
    }


def test_the_problem_says_where_they_belong(report: AuditReport) -> None:
    assert covered(report)[0]["problems"] == [
        "121 records have ids that belong to another partition, such as 'order-service-1' (to 2)"
    ]
    assert {number: p["is_complete"] for number, p in covered(report).items()} == {0: False, 1: True, 2: False, 3: True}


def test_the_text_report_shows_them_on_one_line(report: AuditReport) -> None:
    text = text_report(report, width=400)
    assert f"such as '{EVIL}".replace("\n", r"\n") in text
    assert "not complete: 0, 2" in text


def test_nothing_hangs_by_such_a_state(report: AuditReport) -> None:
    rows = by_place(rows_of(report))
    assert {row["verdict"] for row in rows.values()} & {"hanging"} == set()
    assert rows[UNKNOWN_PRODUCER]["rule"] == "state_does_not_fit"
