"""End markers of one producer in one partition, and which of them are one and the same.

Pure Python over the markers of a log that was chosen; a marker of a transaction that held no data here counts like any.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

COMMIT, ABORT = "COMMIT", "ABORT"


class EndMarker(NamedTuple):
    """One COMMIT or ABORT marker in a log; `kind` is None where a shallow dump does not print it.

    `at_ms` is the broker's time of its append; `has_data` says that the producer wrote transactional data between it
    and the marker before, `data_epoch` with which producer epoch at most, as far as that data was seen.
    """

    offset: int
    kind: str | None
    at_ms: int | None
    producer_epoch: int | None
    coordinator_epoch: int | None
    has_data: bool = True
    data_epoch: int | None = None


class MarkerRun(NamedTuple):
    """Markers of one kind and epoch with no data of the producer between them: a marker, and its repetitions."""

    markers: tuple[EndMarker, ...]

    @property
    def kind(self) -> str | None:
        """Of all of them."""
        return self.markers[0].kind

    def is_continued_by(self, marker: EndMarker) -> bool:
        """The next marker repeats them."""
        last = self.markers[-1]
        is_alike = (marker.kind, marker.producer_epoch) == (last.kind, last.producer_epoch)
        return is_alike and not marker.has_data


def runs_of(markers: Iterable[EndMarker]) -> list[MarkerRun]:
    """The markers of one producer in one partition by offset, repetitions together; each offset counts once."""
    runs: list[MarkerRun] = []
    for marker in sorted({m.offset: m for m in sorted(markers, key=_data_last)}.values()):
        if runs and runs[-1].is_continued_by(marker):
            runs[-1] = MarkerRun((*runs[-1].markers, marker))
        else:
            runs.append(MarkerRun((marker,)))
    return runs


def _data_last(marker: EndMarker) -> bool:
    return marker.has_data
