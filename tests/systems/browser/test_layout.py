"""The page on a phone, on a desk and on paper: no cell is squeezed, and what hangs can be read at a glance."""

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

PHONE = {"width": 390, "height": 844}
DESK = {"width": 1280, "height": 900}
# Letter without Chromium's own margins, in pixels of 1/96 inch.
PAPER = {"width": 740, "height": 980}
LATE_MS = rows.AS_OF_MS - 3 * rows.HOUR_MS
BIG = 123_456_789_012
BROKEN_NUMBERS = """() => [...document.querySelectorAll("td.number")].filter((cell) => {
    const range = document.createRange();
    const text = [...cell.childNodes].find((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
    if (!text) return false;
    range.selectNodeContents(text);
    return new Set([...range.getClientRects()].filter((r) => r.width).map((r) => Math.round(r.top))).size > 1;
}).length"""
LINES = """(element) => {
    const lines = [];
    const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const [text, parent] = [walker.currentNode, walker.currentNode.parentElement];
        if (!text.data.trim() || parent.closest("summary") || !parent.checkVisibility()) continue;
        const range = document.createRange();
        range.selectNodeContents(text);
        for (const rect of range.getClientRects()) if (rect.width > 1) lines.push((rect.top + rect.bottom) / 2);
    }
    lines.sort((one, other) => one - other);
    return lines.filter((line, index) => !index || line - lines[index - 1] > 5).length;
}"""
HEIGHTS = """(words) => words.filter((word) => word.checkVisibility())
    .map((word) => [word.innerText, word.getClientRects()[0].height])"""
ROWS = "main > section > table tr:not(.more, .alike)"


def ten_findings() -> str:
    """Ten hanging transactions of ordinary length, whose producers must be ended first."""
    cause = {"name": "late_write_joined_next_transaction", "confidence": "certain", "evidence_for": ["x"] * 6}
    impact = {"hidden_since_ms": LATE_MS, "hidden_share": 0.271}
    findings = [
        rows.live_finding(
            topic="ledger.events", partition=number, finding_id=str(number), transactional_id=f"ledger-writer-{number}",
            cause=cause, impact=impact, blocks_partition=True, evidence=["a fact of the evidence"] * 5,
            txn_start_offset=BIG, last_offset=BIG + 1,
        )
        for number in range(10)
    ]  # fmt: skip
    held = {"hidden_record_count": 98_765_432, "hidden_bytes": 3_210_000_000, "last_stable_offset": BIG}
    health = [rows.health(topic="ledger.events", partition=number, end_offset=2 * BIG, **held) for number in range(10)]
    found = build_report(rows.run(verdict_counts={"hanging": 10}), [rows.input_file()], health, findings)
    return html_report(found, reader=Reader(" --warehouse /data/audit"))


def long_names() -> str:
    """Names as long as a table shows them."""
    name, client = "a-topic-of-sixty-characters-and-more." + "x" * 30, "an-id-" + "y" * 60
    cause = {"name": "late_write_joined_next_transaction", "confidence": "certain"}
    impact = {"hidden_since_ms": LATE_MS, "pending_groups": [f"a-group-of-consumers-{n}" for n in range(9)]}
    bounds = {"appended_after_ms": rows.AS_OF_MS - 58_000, "appended_before_ms": rows.AS_OF_MS - 56_000}
    found = rows.finding(topic=name, transactional_id=client, cause=cause, impact=impact,
                         rule="stale_data_in_live_transaction", verdict="suspect", **bounds)  # fmt: skip
    health = rows.health(topic=name, last_stable_offset=BIG, end_offset=2 * BIG, hidden_record_count=9_876_543_210)
    return html_report(build_report(rows.run(verdict_counts={"suspect": 1}), [], [health], [found]))


def printed(page: Page) -> Page:
    """The page as it is laid out on paper."""
    page.emulate_media(media="print")
    page.set_viewport_size({"width": PAPER["width"], "height": PAPER["height"]})
    return page


@pytest.mark.parametrize("text", [ten_findings(), long_names()], ids=["ten", "long-names"])
@pytest.mark.parametrize("medium", ["phone", "desk", "paper"])
def test_no_row_is_taller_than_eight_lines_and_no_number_is_broken(open_page: OpenPage, text: str, medium: str) -> None:
    page = open_page(text, viewport=PHONE if medium == "phone" else DESK).page
    if medium == "paper":
        printed(page)
    lines = page.locator(ROWS).evaluate_all(f"(rows) => rows.map({LINES})")
    assert len(lines) >= 4
    assert max(lines) <= 8
    assert page.evaluate(BROKEN_NUMBERS) == 0


@pytest.mark.parametrize("kind", ["moment", "typed"])
def test_times_and_options_are_not_broken_at_their_hyphens(open_page: OpenPage, kind: str) -> None:
    page = open_page(ten_findings(), viewport=PHONE).page
    heights = page.locator(f".{kind}").evaluate_all(HEIGHTS)
    assert len(heights) >= 4
    assert [text for text, height in heights if len(text) <= 36 and height >= 30] == []
    assert page.locator("pre").first.inner_text().startswith("txn-analysis abort-plan --run run-1 --warehouse")


def test_a_finding_takes_sixteen_lines_and_folds_its_evidence(open_page: OpenPage) -> None:
    page = open_page(ten_findings(), viewport=DESK).page
    finding = page.locator("#finding-1")
    assert finding.evaluate(LINES) <= 16  # one names whom to stop, three are the fence that asks first
    assert "fence" in finding.inner_text()
    assert "a fact of the evidence" not in finding.inner_text()
    finding.locator("details.evidence summary").click()
    assert "a fact of the evidence" in finding.inner_text()


def test_ten_findings_take_three_pages_of_paper(open_page: OpenPage) -> None:
    page = printed(open_page(ten_findings(), viewport=DESK).page)
    assert page.locator("#finding-10").is_visible()
    height = page.evaluate("document.getElementById('findings').getBoundingClientRect().height")
    assert height <= 3 * PAPER["height"]


def test_paper_has_the_evidence_of_what_was_opened(open_page: OpenPage) -> None:
    page = open_page(ten_findings(), viewport=DESK).page
    page.locator("#expand").click()
    printed(page)
    assert page.locator("#finding-10 details.evidence").inner_text().count("a fact of the evidence") == 5


@pytest.mark.parametrize("viewport", [PHONE, DESK], ids=["phone", "desk"])
def test_the_application_that_a_long_id_looks_like_makes_no_row_wider_than_the_page(
    open_page: OpenPage, viewport: dict[str, int]
) -> None:
    page = open_page(
        html_report(rows.report(rows.finding(transactional_id="x" * 120 + "-0-1"))), viewport=viewport
    ).page
    assert "looks like Flink: xxx" in page.locator("tbody.finding td.line").first.inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
