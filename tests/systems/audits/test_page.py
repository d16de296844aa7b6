"""The page of the capture that `make demo` audits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.systems.browser.chromium import opened_in
from tests.tools.captures import SEGMENTS, AuditOf, Variant, WarehouseOf
from tests.tools.sessions import no_session
from txn_analysis.questions import loaded_report
from txn_analysis.report.html.page import html_report
from txn_analysis.warehouse.opening import open_warehouse

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser

    from txn_analysis.report.model import AuditReport
    from txn_analysis.report.pictures import Pictures

DEMO = Variant("kafka-4.2/capture-1", SEGMENTS)


@pytest.fixture(scope="module")
def report(audit_of: AuditOf) -> AuditReport:
    return audit_of(DEMO)


@pytest.fixture(scope="module")
def pictures(warehouse_of: WarehouseOf, report: AuditReport) -> Pictures:
    return loaded_report.pictures(open_warehouse(no_session, warehouse_of(DEMO)), report)


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
