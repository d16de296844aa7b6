"""The calendar of nights in a browser: on a phone, on a desk, on paper, by keyboard, for a screen reader."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.report.test_night_calendar import night, page_of
from txn_analysis.report.night_calendar import Against, Answer

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.browser.chromium import Opened

pytestmark = pytest.mark.browser

PHONE = {"width": 390, "height": 844}
DESK = {"width": 1280, "height": 900}
PAGES = {"run-1": "2026-11-20.html", "run-0": "2026-11-21.html"}


def nights(number: int) -> str:
    """So many nights of every kind, of which the last two have a page."""
    kinds = [*Answer][:4]
    found = (night(days, kinds[days % 4], number=12, against=Against(3, 12, 104)) for days in range(number - 1, -1, -1))
    return page_of(*found, pages=PAGES)


@pytest.mark.parametrize("is_dark", [False, True])
@pytest.mark.parametrize("number", [0, 10, *(pytest.param(n, marks=pytest.mark.cluster) for n in (1, 400))])
def test_nothing_is_wrong_for_whoever_cannot_see_it(
    open_page: Callable[..., Opened], number: int, is_dark: bool
) -> None:
    opened = open_page(nights(number), is_dark=is_dark)
    assert opened.violations() == ""
    assert opened.complaints == []
    assert len(opened.requests) == 1


@pytest.mark.parametrize("viewport", [PHONE, DESK])
@pytest.mark.parametrize("number", [1, 400])
def test_no_page_is_wider_than_its_screen(open_page: Callable[..., Opened], number: int, viewport: object) -> None:
    page = open_page(nights(number), viewport=viewport).page
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("viewport", [PHONE, DESK])
def test_a_month_stays_a_table_with_the_days_of_the_week(open_page: Callable[..., Opened], viewport: object) -> None:
    table = open_page(nights(10), viewport=viewport).page.get_by_role("table", name="November 2026")
    assert table.get_by_role("columnheader").count() == 7
    assert table.get_by_role("cell", name="21 12 hanging on 21 November 2026 3 new, 12 gone, 104 still").count() == 1


def test_a_phone_shows_a_day_a_line_and_its_weekday(open_page: Callable[..., Opened]) -> None:
    page = open_page(nights(2), viewport=PHONE).page
    shown = [cell.inner_text().split("\n")[0] for cell in page.locator("td:visible").all()]
    assert [line.split()[:2] for line in shown] == [["Fri", "20"], ["Sat", "21"]]


def test_the_keyboard_reaches_each_linked_night_and_each_folded_year(open_page: Callable[..., Opened]) -> None:
    page = open_page(nights(800)).page
    reached = []
    for _ in range(6):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.innerText"))
    linked = [" ".join(text.split()) for text in reached[:3]]
    assert linked[0] == "12 hanging on the last night"
    assert {*linked[1:]} == {"could not tell on 20 November 2026", "12 hanging on 21 November 2026"}
    assert [text[:5] for text in reached[3:5]] == ["2025:", "2024:"]
    page.locator("summary").first.focus()
    page.keyboard.press("Enter")
    assert page.get_by_role("table", name="September 2025").is_visible()


def test_a_month_is_not_torn_by_the_end_of_a_sheet(open_page: Callable[..., Opened]) -> None:
    page = open_page(nights(400)).page
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.querySelector('.month')).breakInside") == "avoid"
    assert page.pdf(format="A4").count(b"/Type /Page\n") <= 5
