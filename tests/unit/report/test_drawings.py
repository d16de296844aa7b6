"""Pictures as charts; how they look, the golden page shows."""

import pytest

from tests.tools import report_rows as rows
from txn_analysis.report.build import build_report
from txn_analysis.report.html.drawings import ended, nights, sections
from txn_analysis.report.html.page import html_report
from txn_analysis.report.model import AuditReport
from txn_analysis.report.pictures import (
    EndedSlice,
    IdTimeline,
    LogPoint,
    MarkerPoint,
    NightPoint,
    PartitionTimeline,
    Pictures,
    StateChange,
)

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


@pytest.mark.parametrize("first_offset", [0, 2**60, 2**63 - 1000])
def test_offsets_that_no_double_holds_are_drawn_as_small_ones_are(first_offset: int) -> None:
    """A log of 200 offsets: Kafka's are 64 bits wide, and the nearest doubles up there lie 256 apart."""
    begin, end, stable = (first_offset + n for n in (10, 210, 155))
    log = (LogPoint(FIRST_MS, begin, begin), LogPoint(FIRST_MS + DAY_MS, end, stable))
    markers = tuple(MarkerPoint(FIRST_MS, first_offset + n, "COMMIT", 1) for n in (60, 110))
    open_here = rows.health(end_offset=end, last_stable_offset=stable, open_transaction_count=1)
    report = build_report(rows.run(as_of_ms=FIRST_MS + DAY_MS), [], [open_here], [])
    pictures = Pictures((PartitionTimeline("orders", open_here.partition, True, log, markers),))
    (chart,) = (one for section in sections(report, pictures, None) if section.name == "log" for one in section.charts)
    labels = [int(label.replace(",", "")) for _, label in chart.frame.y.ticks_of(chart.frame.y)]
    assert labels == [n for n in range(begin, end + 1) if n % 50 == 0]
    left, right = chart.frame.x.start, chart.frame.x.stop
    places = [float(mark.path[1:].split(" ")[0]) for mark in chart.marks if mark.look == "ring"]
    assert places == [pytest.approx(left + (right - left) * n / 200, abs=0.1) for n in (51, 101)]


def test_a_bar_of_less_than_a_second_is_said_in_milliseconds() -> None:
    chart = ended([EndedSlice(FIRST_MS + n, FIRST_MS + n + 40, 1, 0, 0) for n in (0, 40)], None)
    assert chart is not None
    assert chart.words.endswith("; a bar is 40 ms.")


def report_on(partitions: int) -> AuditReport:
    numbers = range(partitions)
    found = [rows.finding(partition=n, transactional_id=f"id-{n}", finding_id=f"finding-{n}") for n in numbers]
    return build_report(rows.run(), [], [rows.health(partition=n, open_transaction_count=1) for n in numbers], found)


def test_the_pictures_say_how_many_partitions_and_ids_they_leave_out() -> None:
    drawn = PartitionTimeline("orders", 0, True, (LogPoint(FIRST_MS, 155, 155),), ())
    pictures = Pictures((drawn,), (IdTimeline("id-0", (StateChange(FIRST_MS, "Empty", 1, 0, 0),)),))
    all_of_1, some_of_3 = ({one.name: one.note for one in sections(report_on(n), pictures, None)} for n in (1, 3))
    assert (all_of_1["log"], "drawn" in all_of_1["id"]) == ("", False)
    assert some_of_3["log"] == "1 of 3 partitions with open transactions are drawn, the worst ones."
    assert some_of_3["id"].endswith(" 1 of 3 ids with open transactions are drawn, the worst ones.")


def test_the_table_of_what_is_blocked_says_how_many_it_leaves_out() -> None:
    assert "The table has" not in html_report(report_on(300))
    cut = "301 partitions, 3612 records hidden. The table has 300 of them, those with most hidden records. The first"
    assert cut in html_report(report_on(301))
