"""What will happen, of findings alone: nothing is promised for a moment that has passed."""

from tests.tools import report_rows as rows
from txn_analysis.report.build import build_report
from txn_analysis.report.model import AuditReport
from txn_analysis.report.text_report import text_report
from txn_analysis.report.upcoming import shown
from txn_analysis.tables import Finding

LISTED: rows.Row = {
    "verdict": "suspect",
    "rule": "coordinator_overdue",
    "coordinator_state": "Ongoing",
    "coordinator_start_ms": rows.AS_OF_MS - rows.HOUR_MS,
    "coordinator_timeout_ms": 60_000,
    "blocks_partition": False,
}
RUNNING = LISTED | {"coordinator_timeout_ms": 2 * rows.HOUR_MS, "verdict": "coordinated", "rule": "in_coordinator"}


def report(*findings: Finding) -> AuditReport:
    return build_report(rows.run(), [], [rows.health()], findings)


def test_what_is_stuck_or_overdue_has_no_moment_and_no_line() -> None:
    found = report(rows.finding(**LISTED, transactional_id="etl-orders-0"), rows.finding(finding_id="f9"))
    assert [(one.at_ms, one.risk.value, one.whom) for one in found.upcoming] == [
        (None, "partition_stuck", "orders-2"),
        (None, "coordinator_overdue", "orders-2"),
    ]
    assert "read_committed consumers stop at 155: 12 records" in found.upcoming[0].what
    assert "its time was over at 2026-11-21T02:01:00.000Z" in found.upcoming[1].what
    assert shown(found) == []


def test_what_the_timeout_of_a_flink_id_costs_is_said_before_it_comes() -> None:
    (line,) = shown(report(rows.finding(**RUNNING, transactional_id="pay-sink-0-6")))
    assert line.startswith("2026-11-21T04:00:00.000Z timed_out: orders-2 (pay-sink-0-6): ")
    assert "aborts it by 2026-11-21T04:00:10.000Z" in line
    assert line.endswith("what a completed checkpoint counts as delivered")


def test_one_transaction_on_several_partitions_is_one_line() -> None:
    running = RUNNING | {"transactional_id": "pay-sink-0-6"}
    found = report(*(rows.finding(finding_id=str(n), partition=n, **running) for n in range(9)))
    assert len(found.upcoming) == 9
    assert "timed_out: orders-0, orders-1, orders-2 and 6 more (pay-sink-0-6)" in text_report(found)
