"""Pictures of the last nights, of one partition."""

from txn_analysis.report.html.bar_drawings import nights_drawing
from txn_analysis.report.pictures import NightPoint, PartitionTimeline

DAY_MS = 86_400_000
FIRST_MS = 1_795_230_000_000  # 2026-11-21T03:00:00Z


def timeline(*nights: tuple[int | None, int | None]) -> PartitionTimeline:
    points = tuple(NightPoint(FIRST_MS + n * DAY_MS, hidden, stable) for n, (hidden, stable) in enumerate(nights))
    return PartitionTimeline("orders", 0, True, (), (), points)


def test_one_night_has_nothing_to_be_compared_with() -> None:
    assert nights_drawing(timeline((3, 155))) is None


def test_a_night_that_could_not_tell_is_grey() -> None:
    drawing = nights_drawing(timeline((5, 100), (None, 155)))
    assert drawing is not None
    assert [bar.kind for bar in drawing.bars] == ["run", "unknown"]
    assert "the last one found an unknown number of hidden records" in drawing.description
    assert drawing.description.endswith("Grey: the files did not say how many.")
