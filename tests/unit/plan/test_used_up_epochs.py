"""A fence at the last epochs gives the id another producer id: no epoch above the recorded one ever appears."""

from typing import Any

import pytest

from tests.tools import report_rows as rows
from txn_analysis.plan.abort_plan import abort_plan
from txn_analysis.plan.plan_file import what_was_checked
from txn_analysis.report.build import build_report
from txn_analysis.report.html.page import html_report
from txn_analysis.report.text_report import text_report
from txn_analysis.settings import Settings


@pytest.mark.parametrize(
    ("columns", "shows"),
    [
        pytest.param({"producer_epoch": 32_763}, "an epoch above 32763", id="a-timeout-and-a-fence-leave-one"),
        pytest.param({"producer_epoch": 32_764}, "an epoch above 32764 (or another producer id than 3)", id="by-two"),
        pytest.param({"producer_epoch": 32_766}, "an epoch above 32766 (or another producer id than 3)", id="used-up"),
        pytest.param(
            {"producer_epoch": 5, "coordinator_producer_id": 3, "coordinator_producer_epoch": 32_766},
            "an epoch above 5 (or another producer id than 3)",
            id="used-up-since-it-wrote",
        ),
        pytest.param(
            {"producer_epoch": 5, "coordinator_producer_id": 9, "coordinator_producer_epoch": 0},
            "an epoch above 5 (or another producer id than 3)",
            id="rotates-with-what-is-in-progress",
        ),
    ],
)
def test_what_proves_the_fence_can_come_true(columns: dict[str, Any], shows: str) -> None:
    found = rows.live_finding(**columns)
    (record,) = plan = abort_plan([found], Settings(), rows.AS_OF_MS)
    report = build_report(rows.run(), [rows.input_file()], [], [found])
    assert f"must show {shows} and not list payments-0" in record.precondition
    assert f"must show {shows} and not list the partition" in what_was_checked(plan, record.not_before_ms)
    assert f"must show {shows}, and must not list payments-0" in " ".join(text_report(report).split())
    assert f"must show {shows}, and must not list payments-0" in html_report(report)
