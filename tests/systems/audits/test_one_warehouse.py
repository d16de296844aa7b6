"""Captures of one cluster are fed one after another, in any order: every run is right, and earlier runs stay.

The last of the three nights is after an administrator repaired one of four hanging transactions.
"""

import json

import pytest

from tests.tools.captures import by_place, rows_of, run_audit
from tests.tools.repository import CASES
from tests.tools.sessions import no_session, opened
from txn_analysis.errors import WarehouseError
from txn_analysis.questions import answers as queries
from txn_analysis.questions import loaded_report
from txn_analysis.questions import verify as repairs
from txn_analysis.questions.filters import Filters
from txn_analysis.report.model import AuditReport
from txn_analysis.runs.run_tables import run_tables
from txn_analysis.settings import Settings

Reports = dict[str, AuditReport]

# A later capture comes first, and an older one last.
CAPTURES = ("kafka-4.2/capture-2", "kafka-4.2/capture-3", "kafka-4.2/capture-1")
FIRST, SECOND, THIRD = sorted(CAPTURES)
PARTS = ("segments", "transaction-state", "producer-snapshots")
CLUSTER = "nights in any order"


@pytest.fixture(scope="module")
def reports(warehouse: str) -> Reports:
    """What each audit said when it was made."""
    return {
        capture: run_audit(
            no_session,
            warehouse,
            [str(path) for part in PARTS if (path := CASES / capture / part).exists()],
            cluster=CLUSTER,
            capture=capture,
        )
        for capture in CAPTURES
    }


@pytest.fixture(scope="module")
def run_of(reports: Reports) -> dict[str, str]:
    return {capture: report.run.run_id for capture, report in reports.items()}


def nights(warehouse: str, run_id: str) -> repairs.Nights:
    return repairs.nights(opened(warehouse), CLUSTER, run_id)


def expected_of(capture: str) -> dict[tuple[str, int, int], tuple[str, str]]:
    rows = json.loads((CASES / capture / "expected.json").read_text())["open_transactions"]
    return {place: (row["verdict"], row["rule"]) for place, row in by_place(rows).items()}


@pytest.mark.parametrize("capture", CAPTURES)
def test_each_night_has_its_answer_and_keeps_it(warehouse: str, reports: Reports, capture: str) -> None:
    report = reports[capture]
    found = {place: (row["verdict"], row["rule"]) for place, row in by_place(rows_of(report)).items()}
    assert found == expected_of(capture)
    again = loaded_report.load_report(opened(warehouse), Settings(cluster=CLUSTER), report.run.run_id)
    run = report.run.model_copy(update={"engine": None})  # the tables do not say which engine judged
    assert again == report.model_copy(update={"run": run})


def test_plan_of_a_later_capture_cannot_be_verified_by_an_earlier_one(warehouse: str, run_of: dict[str, str]) -> None:
    assert repairs.verify(nights(warehouse, run_of[FIRST])) == []
    assert repairs.verify(nights(warehouse, run_of[FIRST]), run_of[FIRST]) == []
    with pytest.raises(WarehouseError, match="is not behind"):
        repairs.verify(nights(warehouse, run_of[FIRST]), run_of[THIRD])


def test_a_plan_without_a_later_capture_is_not_verified_yet(warehouse: str, run_of: dict[str, str]) -> None:
    first = nights(warehouse, run_of[FIRST])
    for since in (None, run_of[FIRST]):
        found = repairs.unverified(first, repairs.verify(first, since), since)
        assert found == repairs.Unverified(run_of[FIRST], 4, is_dated=True)
    third = nights(warehouse, run_of[THIRD])
    assert repairs.unverified(third, repairs.verify(third)) is None  # what it recommends again was looked at


def test_only_what_is_new_since_a_run(warehouse: str, run_of: dict[str, str]) -> None:
    tables = run_tables(opened(warehouse), CLUSTER, run_of[SECOND])
    third = tables.of(run_of[THIRD]).findings()
    new = queries.find_hanging(tables.findings(), Filters(), since=third)
    assert [row[:2] for row in new.rows] == [("orders", 0)]
    assert queries.find_hanging(third, Filters(), since=tables.findings()).rows == ()
