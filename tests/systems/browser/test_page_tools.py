"""What the page offers to those who work with it: commands to copy, a filter to send on, groups of findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.tools import report_rows as rows
from txn_analysis.report.build import build_report
from txn_analysis.report.figures import Reader
from txn_analysis.report.html.page import html_report

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.systems.browser.chromium import OpenPage

pytestmark = pytest.mark.browser

PLAN = "txn-analysis abort-plan --run run-1 --warehouse /data/audit --format commands -o plan.sh"
REFUSED = "void (navigator.clipboard.writeText = () => Promise.reject(new Error('refused')))"
NOTHING_COPIES = "void (document.execCommand = () => false)"


def page_of_groups() -> str:
    """Twelve hanging transactions of one application, one of another, and one that is suspect."""
    cause = {"name": "old_epoch_left_open", "confidence": "certain"}
    repeated = [
        rows.live_finding(
            topic="bills", partition=n, finding_id=f"b{n}", transactional_id=f"billing-{n}", application="billing",
            cause=cause,
        )
        for n in range(12)
    ]  # fmt: skip
    other = rows.live_finding(topic="fraud", finding_id="f", transactional_id="fraud", application="fraud", cause=cause)
    suspect = rows.finding(verdict="suspect", rule="marker_overdue", topic="audit-log", finding_id="s")
    health = [rows.health(topic="bills", partition=n) for n in range(12)]
    counts = {"hanging": 13, "suspect": 1}
    found = build_report(rows.run(verdict_counts=counts), [rows.input_file()], health, [*repeated, other, suspect])
    return html_report(found, reader=Reader(" --warehouse /data/audit"))


def shown_partitions(page: Page) -> list[str]:
    return page.locator("tbody.finding:visible th").all_inner_texts()


def test_a_command_is_copied_by_keyboard(open_page: OpenPage) -> None:
    page = open_page(page_of_groups()).page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.locator(".now .command button").first.focus()
    page.keyboard.press("Enter")
    page.locator("#said", has_text="Copied").wait_for(state="attached")
    assert page.evaluate("navigator.clipboard.readText()") == PLAN


def test_a_command_is_copied_where_the_clipboard_is_refused(open_page: OpenPage) -> None:
    page = open_page(page_of_groups()).page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.evaluate("navigator.clipboard.writeText('before')")
    page.evaluate(REFUSED)
    page.locator(".now .command button").first.click()
    page.locator("#said", has_text="Copied").wait_for(state="attached")
    assert page.evaluate("navigator.clipboard.readText()") == PLAN


def test_a_command_that_nothing_copies_is_selected(open_page: OpenPage) -> None:
    page = open_page(page_of_groups()).page
    page.evaluate(f"{REFUSED}; {NOTHING_COPIES}")
    page.locator(".now .command button").first.click()
    page.locator("#said", has_text="press Ctrl+C").wait_for(state="attached")
    assert page.evaluate("getSelection().toString()") == PLAN


def test_every_command_has_a_button_that_names_it(open_page: OpenPage) -> None:
    page = open_page(page_of_groups()).page
    names = page.locator(".command button").evaluate_all("(all) => all.map((one) => one.getAttribute('aria-label'))")
    assert len(names) == page.locator("pre").count() > 10
    assert names[0] == f"Copy: {PLAN}"[: len("Copy: ") + 80]


def test_a_filter_is_in_the_address(open_page: OpenPage) -> None:
    page = open_page(page_of_groups()).page
    page.locator("#filter").fill("fraud old_epoch")
    page.locator("input[value=suspect]").uncheck()
    assert page.evaluate("location.hash") == "#filter=fraud+old_epoch&verdicts=hanging"
    page.locator("#filter").fill("")
    page.locator("input[value=suspect]").check()
    assert page.evaluate("location.hash") == ""


def test_an_address_with_a_filter_opens_filtered(open_page: OpenPage) -> None:
    opened = open_page(page_of_groups())
    page = opened.page
    page.goto(page.url.partition("#")[0] + "#filter=audit-log&verdicts=suspect")
    assert shown_partitions(page) == ["audit-log-2"]
    page.reload()
    assert page.locator("#filter").input_value() == "audit-log"
    assert not page.locator("input[value=hanging]").is_checked()
    assert shown_partitions(page) == ["audit-log-2"]
    assert opened.complaints == []


def test_findings_that_repeat_are_one_with_their_count(open_page: OpenPage) -> None:
    page = open_page(page_of_groups()).page
    assert shown_partitions(page) == ["bills-0", "fraud-0", "audit-log-2"]
    said = page.locator("tr.alike").inner_text()
    assert "11 more of application billing with the same verdict, rule and cause" in said
    assert "12 transactions on 12 partitions" in said
    button = page.locator("button.unfold")
    button.focus()
    page.keyboard.press("Enter")
    assert len(shown_partitions(page)) == 14
    assert button.get_attribute("aria-expanded") == "true"


def test_a_filter_finds_what_is_folded(open_page: OpenPage) -> None:
    page = open_page(page_of_groups()).page
    page.locator("#filter").fill("billing-7")
    assert shown_partitions(page) == ["bills-7"]


def test_a_link_to_a_finding_shows_it(open_page: OpenPage) -> None:
    page = open_page(page_of_groups()).page
    page.locator("#filter").fill("audit-log")
    page.evaluate("location.hash = '#finding-12'")
    page.locator("#finding-12[open]").wait_for()
    assert page.locator("#finding-12").is_visible()


def test_groups_are_whole_without_the_script(open_page: OpenPage) -> None:
    page = open_page(page_of_groups(), has_script=False).page
    assert len(shown_partitions(page)) == 14
    assert page.locator(".command button").count() == 0


@pytest.mark.parametrize("is_dark", [False, True])
def test_groups_and_buttons_are_accessible(open_page: OpenPage, is_dark: bool) -> None:
    opened = open_page(page_of_groups(), is_dark=is_dark)
    opened.page.locator("button.unfold").click()
    assert opened.violations() == ""
