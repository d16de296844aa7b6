"""Pictures as charts; how they look, the golden page shows."""

from tests.tools import report_rows as rows
from txn_analysis.report.html.drawings import ended, nights
from txn_analysis.report.html.page import html_report
from txn_analysis.report.pictures import NightPoint, PartitionTimeline, Pictures

DAY_MS = 86_400_000
FIRST_MS = 1_795_230_000_000  # 2026-11-21T03:00:00Z


def timeline(*seen: tuple[int | None, int | None]) -> PartitionTimeline:
    points = tuple(NightPoint(FIRST_MS + n * DAY_MS, hidden, stable) for n, (hidden, stable) in enumerate(seen))
    return PartitionTimeline("orders", 0, True, (), (), points)


def test_without_an_end_there_is_no_picture() -> None:
    assert ended((), None) is None
    assert "What ended" not in html_report(rows.report(rows.finding()), Pictures(ended=()))


def test_one_night_has_nothing_to_be_compared_with() -> None:
    assert nights(timeline((3, 155))) is None


def test_a_night_that_could_not_tell_is_grey() -> None:
    chart = nights(timeline((5, 100), (None, 155)))
    assert chart is not None
    assert [mark.look for mark in chart.marks] == ["night", "night unknown"]
    assert "the last one found an unknown number of hidden records" in chart.words
    assert chart.words.endswith("Grey: the files did not say how many.")
