"""What reports say of other nights."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.plan.test_since import LIVE, LOST, compared, night
from tests.report import rows
from txn_analysis.report.build import build_report
from txn_analysis.report.html.page import html_report
from txn_analysis.report.text_report import text_report

if TYPE_CHECKING:
    from txn_analysis.plan.standing import Since
    from txn_analysis.report.model import AuditReport


def report_of(since: Since | None, *topics: str) -> AuditReport:
    return build_report(rows.run(), [], [rows.health()], [LOST, LIVE], topics, since=since)


ONE_OF_EACH = compared([LOST, LIVE], night(2, LOST, rows.inconclusive()), night(1, LOST), is_all=False)


def test_the_second_line_says_what_is_new() -> None:
    second = text_report(report_of(ONE_OF_EACH)).splitlines()[1]
    assert second == "Since last run: 1 new, 1 gone, 1 still there (for up to 3 nights or more)."


def test_without_an_earlier_run_nothing_is_said() -> None:
    assert "Since last run" not in text_report(report_of(None))
    assert "Since last run" not in html_report(report_of(None))


def test_each_is_named_and_the_history_is_one_command_away() -> None:
    text = text_report(report_of(ONE_OF_EACH), 200)
    assert "new               payments-0 from offset 187, inventory-sync: hanging" in text
    assert "gone              orders-0 from offset 161, billing-worker-17: was inconclusive" in text
    assert "orders-2 from offset 155, producer id 987654321: 3 nights or more, first in the files of 1970" in text
    assert "history           txn-analysis verify --history" in text


def test_the_page_leads_from_each_to_its_row() -> None:
    page = html_report(report_of(ONE_OF_EACH))
    assert '<a href="#since-title">Since last run: 1 new, 1 gone' in page
    assert '<a href="#finding-1">orders-2 from offset 155' in page
    assert "was inconclusive" in page


def test_of_one_topic_its_own_are_counted() -> None:
    assert text_report(report_of(ONE_OF_EACH, "payments")).splitlines()[1] == (
        "Since last run: 1 new, 0 gone, 0 still there."
    )


def test_hostile_names_of_what_is_gone_stay_text() -> None:
    evil = rows.finding(finding_id="evil", topic="<b>\x1b", partition=7, producer_id=1, transactional_id="<i>\n")
    report = report_of(compared([LOST, LIVE], night(1, evil)))
    assert "<b>" not in html_report(report)
    assert "\x1b" not in text_report(report)
