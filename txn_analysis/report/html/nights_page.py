"""One HTML page from the nights of a warehouse: a calendar, with a link to the page of each night that has one."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from txn_analysis.report.html.rendering import rendered
from txn_analysis.report.night_calendar import MOST_MONTHS, WEEKDAYS, Answer, by_year, months, worst
from txn_analysis.text import count, iso_utc

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from txn_analysis.report.night_calendar import ClusterNights, Month

OPEN_MONTHS = 14
"""So many months of a cluster are open; older ones are folded, each year into one."""
MOST_CLUSTERS = 20
"""Of one page; it says how many more there are."""

_COLOURS = {
    Answer.HANGING: "hanging",
    Answer.COULD_NOT_TELL: "inconclusive",
    Answer.SUSPECT: "suspect",
    Answer.CLEAN: "in_progress",
    Answer.NOT_JUDGED: "unjudged",
}
"""By what the page's style calls a colour."""
_MEANINGS = {
    Answer.HANGING: "that many transactions hang: nobody can write their end marker any more",
    Answer.COULD_NOT_TELL: "none is known to hang, but the files do not tell of all",
    Answer.SUSPECT: "none hangs, but something is wrong with that many",
    Answer.CLEAN: "nothing hangs in what was read",
    Answer.NOT_JUDGED: "files were copied, and no audit of them was finished",
}


class Typed(NamedTuple):
    """Commands that the page prints: the one that makes it again, and the one that makes the page of a night."""

    again: str
    night: str | None = None


class ClusterView(NamedTuple):
    """One cluster as the page shows it: months that are open, and older ones by year, each with its summary."""

    nights: ClusterNights
    open: list[Month]
    folded: list[tuple[str, list[Month]]]
    left_out: int
    notes: list[str]


def nights_page(clusters: Sequence[ClusterNights], pages: Mapping[str, str], typed: Typed) -> str:
    """The whole page.

    Args:
        clusters: with their nights.
        pages: of each run that has a page in the same folder the name of its file.
        typed: the commands on it.
    """
    context = {
        "clusters": [_view(one) for one in clusters[:MOST_CLUSTERS]],
        "left_out": len(clusters) - len(clusters[:MOST_CLUSTERS]),
        "title": f"Nights of cluster {clusters[0].cluster}" if len(clusters) == 1 else _titled(clusters),
        "worst": _COLOURS[worst(clusters)],
        "pages": pages,
        "typed": typed,
        "colours": _COLOURS,
        "meanings": _MEANINGS,
        "weekdays": WEEKDAYS,
    }
    return rendered("nights.html.j2", context, ("page.css", "nights.css"))


def _titled(clusters: Sequence[ClusterNights]) -> str:
    return f"Nights of {count(len(clusters), 'cluster')}" if clusters else "No night yet"


def _view(one: ClusterNights) -> ClusterView:
    every = months(one.nights)
    shown = every[:MOST_MONTHS]
    older = [(_summary(year, some), some) for year, some in by_year(shown[OPEN_MONTHS:])]
    return ClusterView(one, shown[:OPEN_MONTHS], older, len(every) - len(shown), [*_notes(one)])


def _summary(year: int, some: Sequence[Month]) -> str:
    """What a folded year says."""
    days = [day for month in some for week in month.weeks for day in week if day is not None]
    kinds = Counter(day.worst for day in days)
    said = ", ".join(f"{answer} {kinds[answer]}" for answer in Answer if kinds[answer])
    return f"{year}: {count(len(some), 'month')}; days by their worst night: {said}"


def _notes(one: ClusterNights) -> list[str]:
    notes = [one.sentence]
    if one.told_from_ms is not None:
        notes.append(
            f"Before {iso_utc(one.told_from_ms)} a night shows what its run found, with what was accepted, and without "
            "what was new, gone and still there."
        )
    if one.pruned_run_count:
        taken = count(one.pruned_run_count, "run")
        notes.append(f"Age took {taken} of files that were copied before {iso_utc(one.pruned_before_ms)}.")
    return notes
