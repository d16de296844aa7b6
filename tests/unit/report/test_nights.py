"""What reports say of other nights."""

from tests.tools import report_rows as rows
from tests.unit.plan.test_since import LIVE, LOST, compared, night
from txn_analysis.plan.standing import Since
from txn_analysis.report.build import build_report
from txn_analysis.report.html.page import html_report
from txn_analysis.report.model import AuditReport
from txn_analysis.report.text_report import text_report


def report_of(since: Since | None, *topics: str) -> AuditReport:
    return build_report(rows.run(), [], [rows.health()], [LOST, LIVE], topics, since=since)


ONE_OF_EACH = compared([LOST, LIVE], night(2, LOST, rows.inconclusive()), night(1, LOST), is_all=False)


def test_without_an_earlier_run_nothing_is_said() -> None:
    assert "Since last run" not in text_report(report_of(None))
    assert "Since last run" not in html_report(report_of(None))


def test_of_one_topic_its_own_are_counted() -> None:
    assert text_report(report_of(ONE_OF_EACH, "payments")).splitlines()[1] == (
        "Since last run: 1 new, 0 gone, 0 still there."
    )


def test_hostile_names_of_what_is_gone_stay_text() -> None:
    evil = rows.finding(finding_id="evil", topic="<b>\x1b", partition=7, producer_id=1, transactional_id="<i>\n")
    report = report_of(compared([LOST, LIVE], night(1, evil)))
    assert "<b>" not in html_report(report)
    assert "\x1b" not in text_report(report)
