"""What is at risk, of findings alone: nothing is promised for a moment that has passed."""

from typing import Any, cast

from tests.report import rows
from txn_analysis.questions.at_risk import at_risk
from txn_analysis.questions.filters import Filters
from txn_analysis.runs.run_tables import RunTables
from txn_analysis.tables import FINDINGS, Finding

LISTED: rows.Row = {
    "verdict": "suspect",
    "rule": "coordinator_overdue",
    "coordinator_state": "Ongoing",
    "coordinator_start_ms": rows.AS_OF_MS - rows.HOUR_MS,
    "coordinator_timeout_ms": 60_000,
}


class Tables:
    """A run with a few findings."""

    as_of_ms = rows.AS_OF_MS

    def __init__(self, *findings: Finding) -> None:
        self.findings = findings

    def records(self, _: type, table: Any, *__: Any, **___: Any) -> list[Any]:
        return [*self.findings] if table is FINDINGS else []


def told(finding: Finding) -> list[tuple[str, str, str]]:
    answer, _ = at_risk(cast("RunTables", Tables(finding)), Filters(), 7 * 24 * rows.HOUR_MS, 10)
    return [(str(row[0]), str(row[1]), str(row[5])) for row in answer.rows]


def test_a_transaction_whose_time_was_over_is_overdue_now() -> None:
    found = told(rows.finding(**LISTED, transactional_id="etl-orders-0", blocks_partition=False))
    assert [(when, risk) for when, risk, _ in found] == [("now", "coordinator_overdue")]
    assert "its time was over at 2026-11-21T02:01:00.000Z" in found[0][2]


def test_what_the_timeout_of_a_flink_id_costs_is_said_before_it_comes() -> None:
    running = LISTED | {"coordinator_timeout_ms": 2 * rows.HOUR_MS, "verdict": "coordinated", "rule": "in_coordinator"}
    ((when, risk, what),) = told(rows.finding(**running, transactional_id="pay-sink-0-6", blocks_partition=False))
    assert (when, risk) == ("2026-11-21T04:00:00.000Z", "timed_out")
    assert "aborts it by 2026-11-21T04:00:10.000Z" in what
    assert "FLIP-572" in what


def test_one_transaction_on_several_partitions_is_one_row_of_the_text() -> None:
    overdue = LISTED | {"transactional_id": "wordcount-1", "blocks_partition": False}
    partitions = (rows.finding(finding_id=str(n), partition=n, **overdue) for n in range(9))
    answer, _ = at_risk(cast("RunTables", Tables(*partitions)), Filters(), rows.HOUR_MS, 20)
    assert len(answer.rows) == 9
    header, row = answer.text().splitlines()
    assert "Whom" in header
    assert "orders-0, orders-1, orders-2 and 6 more" in row
