"""The picture of what ended when; how it looks, the golden page shows."""

from tests.tools import report_rows as rows
from txn_analysis.report.html.bar_drawings import ended_drawing
from txn_analysis.report.html.page import html_report
from txn_analysis.report.pictures import Pictures


def test_without_an_end_there_is_no_picture() -> None:
    assert ended_drawing(()) is None
    report = rows.report(rows.finding())
    assert 'id="ended"' not in html_report(report, Pictures(ended=()))
