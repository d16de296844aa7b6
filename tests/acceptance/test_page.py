"""The page of the capture that `make demo` audits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.acceptance.captures import SEGMENTS, Variant
from tests.browser.chromium import opened_in
from txn_analysis.questions import loaded_report
from txn_analysis.report.html.page import html_report
from txn_analysis.storage.opening import open_warehouse

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Browser

    from txn_analysis.report.model import AuditReport
    from txn_analysis.report.pictures import Pictures

DEMO = Variant("kafka-4.2/capture-1", SEGMENTS)


@pytest.fixture(scope="module")
def report(audit_of: Callable[[Variant], AuditReport]) -> AuditReport:
    return audit_of(DEMO)


@pytest.fixture(scope="module")
def pictures(
    no_spark: Any,
    warehouse_of: Callable[[Variant], str],
    report: AuditReport,
) -> Pictures:
    return loaded_report.pictures(open_warehouse(no_spark, warehouse_of(DEMO)), report)


def test_pictures_end_where_the_report_ends(report: AuditReport, pictures: Pictures) -> None:
    partitions = {(item.topic, item.partition): item for item in report.partitions}
    ends = {
        (t.topic, t.partition): (t.points[-1].end_offset, t.points[-1].last_stable_offset) for t in pictures.partitions
    }
    assert ends["ledger.events", 1] == (177, 135)
    assert ends["orders", 0] == (205, 161)
    assert all(stable == partitions[place].last_stable_offset for place, (_, stable) in ends.items())
    assert list(ends)[:4] == [("orders", 0), ("orders", 2), ("payments", 0), ("ledger.events", 1)]


def test_pictures_show_the_states_that_led_to_the_findings(pictures: Pictures) -> None:
    states = {timeline.transactional_id: [c.state for c in timeline.changes] for timeline in pictures.ids}
    assert states["billing-worker-17"][-2:] == ["PrepareAbort", "CompleteAbort"]
    assert states["payout-batch-1"][-2:] == ["Ongoing", "PrepareCommit"]


def test_run_is_the_last_one_of_its_cluster(report: AuditReport, pictures: Pictures) -> None:
    last = pictures.runs[-1]
    assert (last.run_id, last.hanging_count, last.hidden_record_count) == (report.run.run_id, 4, 161)


@pytest.mark.browser
def test_page_of_the_demo_passes_in_a_browser(
    browser: Browser, report: AuditReport, pictures: Pictures, tmp_path: Path
) -> None:
    opened = opened_in(browser, tmp_path)(html_report(report, pictures))
    page = opened.page
    assert page.locator("h1").inner_text().upper().startswith("HANGING: 4 TRANSACTIONS ON 4 PARTITIONS")
    assert page.locator("figure[id^=log-]").count() == len(pictures.partitions)
    assert opened.violations() == ""
    assert opened.complaints == []
