"""Pictures of the last nights, of one partition."""

from __future__ import annotations

from txn_analysis.report.html.bar_drawings import nights_drawing
from txn_analysis.report.pictures import NightPoint, PartitionTimeline

DAY_MS = 86_400_000
FIRST_MS = 1_795_230_000_000  # 2026-11-21T03:00:00Z


def timeline(*nights: tuple[int | None, int | None]) -> PartitionTimeline:
    points = tuple(NightPoint(FIRST_MS + n * DAY_MS, hidden, stable) for n, (hidden, stable) in enumerate(nights))
    return PartitionTimeline("orders", 0, True, (), (), points)


def test_one_night_has_nothing_to_be_compared_with() -> None:
    assert nights_drawing(timeline((3, 155))) is None


def test_a_night_that_hid_more_has_a_higher_bar_and_none_hid_nothing_without_a_place() -> None:
    drawing = nights_drawing(timeline((0, 100), (5, 155), (10, 155)))
    assert drawing is not None
    heights = [bar.height for bar in drawing.bars]
    assert 0 < heights[0] < heights[1] < heights[2]
    assert drawing.bars[1].title == "2026-11-22T03:00:00.000Z: 5 hidden records, last stable offset 155"


def test_the_words_say_since_when_the_last_stable_offset_stands() -> None:
    drawing = nights_drawing(timeline((0, 100), (5, 155), (10, 155)))
    assert drawing is not None
    assert drawing.description == (
        "3 nights; the last one found 10 hidden records, the one before 5 hidden records. The last stable offset has "
        "been 155 since 2026-11-22T03:00:00.000Z."
    )


def test_a_night_that_could_not_tell_is_grey() -> None:
    drawing = nights_drawing(timeline((5, 100), (None, 155)))
    assert drawing is not None
    assert [bar.kind for bar in drawing.bars] == ["run", "unknown"]
    assert "the last one found an unknown number of hidden records" in drawing.description
    assert drawing.description.endswith("Grey: the files did not say how many.")
