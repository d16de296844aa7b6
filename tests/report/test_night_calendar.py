"""Nights as a calendar: months, days, and what stands on each."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txn_analysis.report.html.nights_page import Typed, nights_page
from txn_analysis.report.night_calendar import (
    Against,
    Answer,
    CalendarNight,
    ClusterNights,
    Day,
    months,
)

DAY_MS = 86_400_000
HOUR_MS = 3_600_000
LAST_MS = 1_795_230_000_000  # 2026-11-21T03:00:00Z, a Saturday
TYPED = Typed("txn-analysis captures -o nights.html")


def night(days_before: int = 0, answer: Answer = Answer.CLEAN, **known: Any) -> CalendarNight:
    """One night that was judged; a test names what it is about."""
    copied_ms, name = LAST_MS - days_before * DAY_MS, f"night-{days_before}"
    return CalendarNight(name, copied_ms, f"run-{days_before}", answer)._replace(**known)


def page_of(*nights: CalendarNight, pages: dict[str, str] | None = None, **known: Any) -> str:
    return nights_page([ClusterNights("default", nights, **known)], pages or {}, TYPED)


def days_of(*nights: CalendarNight) -> dict[str, Day]:
    found = [day for month in months(nights) for week in month.weeks for day in week if day is not None]
    return {day.on.isoformat(): day for day in found}


def words(page: str) -> str:
    """What a person reads of a page."""
    body = page[page.index("<body>") :]
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", body))


def test_a_night_stands_on_the_day_of_its_copy_in_utc() -> None:
    late = night(copied_ms=LAST_MS - 3 * HOUR_MS - 1, capture="late")
    days = days_of(late, night())
    assert [one.capture for one in days["2026-11-20"].nights] == ["late"]
    assert [one.capture for one in days["2026-11-21"].nights] == ["night-0"]


def test_a_day_between_nights_without_a_copy_is_named() -> None:
    days = days_of(night(2), night(0))
    assert days["2026-11-20"].is_missing
    assert not days["2026-11-22"].is_missing
    assert "no copy" in page_of(night(2), night(0))


def test_months_without_a_night_are_one_sentence() -> None:
    newest, oldest = months([night(120), night()])
    assert (newest.name, oldest.name) == ("November 2026", "July 2026")
    assert newest.gap == "Nothing was copied in the 3 months before November 2026."


def test_a_clock_of_1970_makes_no_page_of_empty_years() -> None:
    assert len(months([night(copied_ms=0), night()])) == 2


def test_of_a_day_with_a_run_an_hour_the_worst_are_shown_and_the_others_counted() -> None:
    hours = [night(copied_ms=LAST_MS + n * HOUR_MS, capture=f"hour-{n}") for n in range(20)]
    hours[3] = hours[3]._replace(answer=Answer.HANGING, number=2)
    day = days_of(*hours)["2026-11-21"]
    assert [one.capture for one in day.nights] == ["hour-3", "hour-18", "hour-19"]
    assert day.more == "17 more: 17 nothing hangs"
    assert day.worst is Answer.HANGING


@pytest.mark.parametrize("answer", Answer)
def test_every_answer_is_worded_where_it_stands(answer: Answer) -> None:
    run_id = None if answer is Answer.NOT_JUDGED else "run-0"
    assert words(page_of(night(answer=answer, number=1, run_id=run_id))).count(str(answer)) >= 2


def test_a_night_whose_page_lies_beside_is_a_link_to_it() -> None:
    page = page_of(night(1), night(), pages={"run-0": "21 November.html"})
    assert page.count('href="21%20November.html"') == 2  # in the calendar, and above it as the last night


def test_the_first_lines_are_about_the_last_night_that_was_judged() -> None:
    page = page_of(night(1, Answer.HANGING, number=4), night(0, Answer.NOT_JUDGED, run_id=None))
    assert '<header class="hanging">' in page
    assert "copied at 2026-11-20T03:00:00.000Z : 4 hanging" in words(page)


def test_the_worst_last_night_of_several_clusters_colours_the_page() -> None:
    calm, bad = ClusterNights("eu", (night(),)), ClusterNights("us", (night(0, Answer.SUSPECT, number=1),))
    page = nights_page([calm, bad], {}, TYPED)
    assert "Nights of 2 clusters" in words(page)
    assert '<header class="suspect">' in page


def test_older_months_are_folded_by_year() -> None:
    page = page_of(*(night(days) for days in range(800, -1, -1)))
    assert re.findall(r"<summary>(\d+: \d+ months)", page) == ["2025: 9 months", "2024: 4 months"]


def test_a_calendar_of_ten_years_of_nights_stays_below_two_megabytes() -> None:
    page = page_of(*(night(days, Answer.HANGING, number=12, against=Against(1, 1, 12)) for days in range(3650, -1, -1)))
    assert len(page) < 2_000_000


def test_what_is_older_than_the_page_is_counted() -> None:
    nights = [night(days) for days in range(0, 31 * 140, 28)][::-1]
    assert re.search(r"\d+ older months not on this page", page_of(*nights))


def test_nights_without_a_day_are_listed() -> None:
    shown = words(page_of(*(night(copied_ms=None, capture=f"bare-{n}") for n in range(25)), night(copied_ms=2**62)))
    assert "capture bare-0" in shown
    assert "6 more" in shown


def test_what_age_took_and_what_is_not_known_of_old_nights_is_said() -> None:
    shown = words(page_of(night(), told_from_ms=LAST_MS, pruned_run_count=3, pruned_before_ms=LAST_MS - DAY_MS))
    assert "Before 2026-11-21T03:00:00.000Z a night shows what its run found" in shown
    assert "Age took 3 runs of files that were copied before 2026-11-20T03:00:00.000Z ." in shown


def test_an_empty_warehouse_has_a_page() -> None:
    assert "The warehouse has no capture." in words(nights_page([], {}, TYPED))


TAGS = re.compile(r"<(?!/?span)[a-z/!][^>]*>")
HOSTILE = st.text(
    alphabet=st.one_of(st.characters(codec="utf-8"), st.sampled_from("<>&\"'`{}%\n\x1b\u202e/=")), max_size=60
)


def tags_with(name: str) -> list[str]:
    own = ClusterNights(name, (night(copied_ms=None, capture=name), night()))
    return sorted(
        tag.split()[0].rstrip(">") for tag in TAGS.findall(nights_page([own], {"run-0": f"{name}.html"}, TYPED))
    )


PLAIN = tags_with("plain")


@given(HOSTILE)
def test_no_name_adds_a_tag(name: str) -> None:
    assert tags_with(name) == PLAIN


def test_the_page_has_no_script_and_names_no_other_place() -> None:
    page = page_of(night(), pages={"run-0": "night.html"})
    assert "<script" not in page
    assert "script-src" not in page
    assert "default-src &#x27;none&#x27;" in page or "default-src 'none'" in page
    assert re.findall(r"(?:https?:)?//[a-z]", page) == []
