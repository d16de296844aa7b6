"""The picture of what ended when: bars that stand on each other, and the same numbers as a table."""

from __future__ import annotations

import re

from tests.report import rows
from txn_analysis.report.build import build_report
from txn_analysis.report.html.bar_drawings import ended_drawing
from txn_analysis.report.html.page import html_report
from txn_analysis.report.pictures import EndedSlice, Pictures

START_MS = 1_795_229_900_000
SLICES = (
    EndedSlice(START_MS, START_MS + 1000, 8, 2, 0),
    EndedSlice(START_MS + 1000, START_MS + 2000, 0, 0, 0),
    EndedSlice(START_MS + 2000, START_MS + 3000, 5, 0, 1),
)


def page(*slices: EndedSlice) -> str:
    return html_report(build_report(rows.run(), [], [rows.health()], [rows.finding()]), Pictures(ended=slices))


def test_bars_of_one_slice_stand_on_each_other_and_reach_as_high_as_their_number() -> None:
    drawing = ended_drawing(SLICES)
    assert drawing is not None
    committed, aborted, later, unknown = drawing.bars
    assert (committed.kind, aborted.kind, unknown.kind) == ("in_progress", "inconclusive", "suspect")
    assert committed.y == round(aborted.y + aborted.height, 1)
    assert committed.y + committed.height == drawing.frame.bottom == later.y + later.height
    assert aborted.y == drawing.frame.top
    assert round(committed.height / aborted.height) == 4
    assert committed.x == aborted.x < later.x == unknown.x
    assert later.x + later.width <= drawing.frame.right


def test_without_an_end_there_is_no_picture() -> None:
    assert ended_drawing(()) is None
    assert 'id="ended"' not in page()


def test_the_page_says_in_a_table_what_the_picture_shows() -> None:
    found = re.search(r'<figure id="ended">.*?</figure>', page(*SLICES), re.DOTALL)
    assert found is not None
    assert "13 committed, 2 aborted, 1 of which the dump does not print how they ended" in found[0]
    rows_of_table = re.findall(r"<tr><td>([^<]*)</td>" + r'<td class="number">(\d+)</td>' * 3, found[0])
    assert rows_of_table == [
        ("2026-11-21T02:58:20.000Z", "8", "2", "0"),
        ("2026-11-21T02:58:22.000Z", "5", "0", "1"),
    ]
    assert found[0].count("<title>") == found[0].count("<rect")
