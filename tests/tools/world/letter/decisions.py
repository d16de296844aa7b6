"""Decisions, and the markers that are their own, by the contract's text."""

from collections.abc import Iterator
from typing import NamedTuple

from tests.tools.world.letter.copies import NEVER_MS, Entry, History, Marker


class Decided(NamedTuple):
    """A decision on a partition: its time, its kind, when the id's next record and its Complete record were written."""

    at_ms: int
    word: str
    next_ms: int
    done_ms: int

    def fits(self, run: list[Marker], skew_ms: int) -> bool:
        """A marker, or its repetition, is of its kind and in its time."""
        in_time = any(self.at_ms - skew_ms <= m.at_ms <= self.done_ms + skew_ms for m in run)
        return in_time and all(m.may_be(self.word.upper()) for m in run)


def prepared(own: History, word: str, n: int, producer_id: int) -> Iterator[tuple[Entry, Entry | None]]:
    """Prepare records of a kind on a partition under a producer id, each with the record behind it."""
    for e, after in zip(own, (*own[1:], None), strict=False):
        is_its_own = producer_id in (e.row.producer_id, e.row.previous_producer_id)
        if e.word == f"Prepare{word}" and n in e.row.partitions and is_its_own:
            yield e, after


def decided(own: History, word: str, n: int, producer_id: int) -> list[Decided]:
    """The decisions of a kind; Prepare records of one list with no Complete between are one, of the later time."""
    asked = {e.row.offset: (e, after) for e, after in prepared(own, word, n, producer_id)}
    again: dict[frozenset[int], tuple[Entry, Entry | None]] = {}
    found: list[tuple[Entry, Entry | None]] = []
    for e in own:
        if e.word.startswith("Complete"):
            found += again.values()
            again = {}
        elif e.row.offset in asked and e.word == f"Prepare{word}":
            again[e.row.partitions] = asked[e.row.offset]
    return [
        Decided(e.at_ms, word, after.by_ms, after.by_ms if after.word == f"Complete{word}" else NEVER_MS)
        for e, after in (*found, *again.values())
        if after is not None
    ]


def runs_of(markers: list[Marker]) -> list[list[Marker]]:
    """Markers of one kind and epoch with no data between them, together."""
    runs: list[list[Marker]] = []
    for m in markers:
        if runs and m.repeats(runs[-1][-1]):
            runs[-1].append(m)
        else:
            runs.append([m])
    return runs


def without_marker(own: History, n: int, producer_id: int, markers: list[Marker], skew_ms: int) -> list[Decided]:
    """The decisions for which no marker is left: each marker takes the oldest one that it fits."""
    waiting = sorted(d for word in ("Commit", "Abort") for d in decided(own, word, n, producer_id))
    for run in runs_of(markers):
        served = next((d for d in waiting if d.fits(run, skew_ms)), None)
        if served is not None:
            waiting.remove(served)
    return waiting
