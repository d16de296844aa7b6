"""Nights as a calendar: what the run of each answered, what was new, gone and still there, month by month."""

from __future__ import annotations

from calendar import Calendar
from collections import Counter, defaultdict
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from txn_analysis.text import count

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

MOST_MONTHS = 132
"""Of one cluster on a page; it says how many older ones there are."""
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MOST_OF_A_DAY = 3
_MOST_UNDATED = 20
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Answer(StrEnum):
    """What the run of a night says, the worst first."""

    HANGING = "hanging"
    COULD_NOT_TELL = "could not tell"
    SUSPECT = "suspect"
    CLEAN = "nothing hangs"
    NOT_JUDGED = "not judged"


SEVERITY = {answer: place for place, answer in enumerate(Answer)}


class Against(NamedTuple):
    """How many open transactions are new, gone and still there against the run before."""

    new: int
    gone: int
    still: int


class CalendarNight(NamedTuple):
    """One capture, by the last run that judged it.

    Attributes:
        capture: its name.
        copied_ms: when its files were copied, by the brokers' clocks; None where that is not known.
        run_id: None where no run has judged it.
        answer: what the run says.
        number: how many transactions hang, or are suspect.
        against: what is new, gone and still there; None where the run is held against no other, or is too old here.
        accepted: how many findings people accepted; the other figures leave them out.
    """

    capture: str
    copied_ms: int | None
    run_id: str | None
    answer: Answer
    number: int = 0
    against: Against | None = None
    accepted: int = 0

    @property
    def words(self) -> str:
        """The answer, with its number where it has one."""
        return f"{self.number} {self.answer}" if self.answer in {Answer.HANGING, Answer.SUSPECT} else str(self.answer)

    @property
    def details(self) -> list[str]:
        """What is new, gone, still there and accepted, as far as there is any."""
        named = (*zip(self.against or (), ("new", "gone", "still"), strict=False), (self.accepted, "accepted"))
        return [f"{number} {word}" for number, word in named if number]

    @property
    def clock(self) -> str:
        """Hours and minutes of the copy."""
        return "" if (moment := self.copied_on) is None else f"{moment:%H:%M}"

    @property
    def copied_on(self) -> datetime | None:
        """The moment of the copy; None where no calendar has it."""
        if self.copied_ms is None:
            return None
        try:
            return _EPOCH + timedelta(milliseconds=self.copied_ms)
        except OverflowError:
            return None


class ClusterNights(NamedTuple):
    """The captures of one cluster, oldest first.

    Attributes:
        cluster: its name.
        nights: of each capture one.
        told_from_ms: of nights before, only the answer as the run found it is known here; None where of all more is.
        pruned_run_count: how many runs age took.
        pruned_before_ms: all of them were of files that were copied before; None where it took none.
    """

    cluster: str
    nights: tuple[CalendarNight, ...]
    told_from_ms: int | None = None
    pruned_run_count: int = 0
    pruned_before_ms: int | None = None

    @property
    def last(self) -> CalendarNight | None:
        """The newest night that was judged; None without any."""
        return next((night for night in reversed(self.nights) if night.run_id is not None), None)

    @property
    def sentence(self) -> str:
        """How many nights there are, of which kind, and on how many days nothing was copied."""
        kinds = Counter(night.answer for night in self.nights)
        said = ", ".join(f"{answer} {kinds[answer]}" for answer in Answer if kinds[answer])
        days = {moment.date() for night in self.nights if (moment := night.copied_on) is not None}
        missing = (max(days) - min(days)).days + 1 - len(days) if days else 0
        return f"{count(len(self.nights), 'night')}: {said}.{_on_days(missing)}"

    @property
    def undated(self) -> list[CalendarNight]:
        """Nights that no calendar has; some of them."""
        return [night for night in self.nights if night.copied_on is None][:_MOST_UNDATED]

    @property
    def undated_count(self) -> int:
        """How many nights no calendar has."""
        return sum(night.copied_on is None for night in self.nights)


def _on_days(missing: int) -> str:
    return f" On {count(missing, 'day')} between them nothing was copied." if missing else ""


class Day(NamedTuple):
    """One day of a month, in UTC.

    Attributes:
        on: the day.
        nights: what is shown of it: the worst ones, in the order of their copying.
        more: how many others there are, and of which kind; empty without any.
        is_missing: nothing was copied, although something was before and after.
    """

    on: date
    nights: tuple[CalendarNight, ...] = ()
    more: str = ""
    is_missing: bool = False

    @property
    def worst(self) -> Answer | None:
        """The worst that a night of it says; None without any."""
        return min((night.answer for night in self.nights), key=SEVERITY.__getitem__, default=None)


class Month(NamedTuple):
    """One month: weeks from Monday on, with None for a day of another month; `gap` says which months lack behind it."""

    name: str
    weeks: list[list[Day | None]]
    gap: str
    year: int


def months(nights: Sequence[CalendarNight]) -> list[Month]:
    """The months that have a night, the newest first; see `MOST_MONTHS`."""
    days: defaultdict[date, list[CalendarNight]] = defaultdict(list)
    for night in nights:
        if (moment := night.copied_on) is not None:
            days[moment.date()].append(night)
    if not days:
        return []
    first, last = min(days), max(days)
    known = sorted({(day.year, day.month) for day in days}, reverse=True)
    return [
        Month(_name(*place), [*_weeks(*place, days, first, last)], _gap(place, older), place[0])
        for place, older in zip(known, [*known[1:], None], strict=True)
    ]


def _weeks(
    year: int, month: int, days: dict[date, list[CalendarNight]], first: date, last: date
) -> Iterator[list[Day | None]]:
    for week in Calendar().monthdayscalendar(year, month):
        on = [date(year, month, number) if number else None for number in week]
        yield [None if day is None else _day(day, days.get(day, []), is_within=first < day < last) for day in on]


def _day(day: date, nights: Sequence[CalendarNight], *, is_within: bool) -> Day:
    worst = sorted(nights, key=lambda night: (SEVERITY[night.answer], -(night.copied_ms or 0)))
    shown = sorted(worst[:_MOST_OF_A_DAY], key=lambda night: night.copied_ms or 0)
    rest = Counter(night.answer for night in worst[_MOST_OF_A_DAY:])
    more = ", ".join(f"{rest[answer]} {answer}" for answer in Answer if rest[answer])
    return Day(day, tuple(shown), f"{rest.total()} more: {more}" if more else "", is_within and not nights)


def _name(year: int, month: int) -> str:
    return f"{_MONTHS[month - 1]} {year}"


def _gap(place: tuple[int, int], older: tuple[int, int] | None) -> str:
    """That nothing was copied in the months between two."""
    if older is None:
        return ""
    months = (place[0] - older[0]) * 12 + place[1] - older[1] - 1
    return f"Nothing was copied in the {count(months, 'month')} before {_name(*place)}." if months else ""


_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip


def by_year(some: Iterable[Month]) -> list[tuple[int, list[Month]]]:
    """Months in their order, those of one year together."""
    years: dict[int, list[Month]] = {}
    for month in some:
        years.setdefault(month.year, []).append(month)
    return [*years.items()]


def worst(clusters: Iterable[ClusterNights]) -> Answer:
    """The worst that the last night of any cluster says."""
    last = (one.last for one in clusters)
    return min((night.answer for night in last if night is not None), key=SEVERITY.__getitem__, default=Answer.CLEAN)
