"""The page of the capture that `make demo` audits, and of a log that ended nothing yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.systems.browser.chromium import opened_in
from tests.tools.captures import SEGMENTS, AuditOf, Variant, WarehouseOf
from tests.tools.forms.dump_writer import Tool
from tests.tools.program import program
from tests.tools.sessions import no_session
from tests.tools.stories.histories import World, data, record
from tests.tools.world.texts import copy_of
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


def test_a_page_is_drawn_of_a_log_without_an_ended_transaction_whatever_is_read_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half the pages failed when the threads of a query, by chance, read one side of a join before the other began."""
    at_ms = 1_800_000_000_000
    world = World(logs={("orders", 0): [data(7, at_ms), data(7, at_ms + 5)]})
    world.states[0] = [record("a", "Empty", 7, at_ms + 9), record("a", "Empty", 7, at_ms + 7_200_000)]
    monkeypatch.chdir(tmp_path)
    for name, text in copy_of(world).files(Tool(deep=True)).items():
        (tmp_path / name).write_bytes(text)
    assert program("audit", *tmp_path.glob("*.txt"), "--transaction-state-partitions", "1").code == 3
    codes = {program("report", "-o", "night.html").code for _ in range(12)}
    assert codes == {3}
