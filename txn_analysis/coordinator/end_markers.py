"""End markers of one producer in one partition, and which of them are one and the same.

Pure Python over the markers of a log that was chosen; a marker of a transaction that held no data here counts like any.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

from txn_analysis.kafka.transactions import TopicPartition
from txn_analysis.logic import more, proven

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

COMMIT, ABORT = "COMMIT", "ABORT"
ENDED_COLUMNS = (
    *("topic", "partition", "producer_id", "outcome"),
    *("end_offset", "end_timestamp_ms", "end_producer_epoch", "coordinator_epoch", "max_producer_epoch"),
)
"""The columns of an ended row of `transactions` that say its marker."""


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

    @property
    def is_of_version_2(self) -> bool:
        """It shows transaction version 2: a COMMIT of a higher producer epoch than the data that it ends (KIP-890).

        Under version 1 a timeout and a fencing raise the epoch of an ABORT as well.
        """
        return self.kind == COMMIT and proven(more(self.producer_epoch, self.data_epoch))

    @classmethod
    def of_ended(cls, row: Mapping[str, Any]) -> EndMarker:
        """The marker of an ended row of `transactions`."""
        kind = row["outcome"] if row["outcome"] in {COMMIT, ABORT} else None
        epochs = row["end_producer_epoch"], row["coordinator_epoch"]
        return cls(row["end_offset"], kind, row["end_timestamp_ms"], *epochs, data_epoch=row["max_producer_epoch"])

    @classmethod
    def bare(cls, row: Mapping[str, Any]) -> EndMarker:
        """A marker without data, from `bare_markers`."""
        epochs = row["producer_epoch"], row["coordinator_epoch"]
        return cls(row["offset"], row["marker"], row["timestamp_ms"], *epochs, has_data=False)


def markers_of(
    ended: Iterable[Mapping[str, Any]], health: Iterable[Mapping[str, Any]]
) -> dict[tuple[TopicPartition, int], list[EndMarker]]:
    """By partition and producer id, every end marker of some logs, as `on_spark.markers.end_markers` on Spark.

    In: `ended`, ended rows of `transactions`; `health`, rows of `partition_health`.
    """
    found: defaultdict[tuple[TopicPartition, int], list[EndMarker]] = defaultdict(list)
    for row in ended:
        found[TopicPartition(row["topic"], row["partition"]), row["producer_id"]].append(EndMarker.of_ended(row))
    for row in health:
        for bare in row["bare_markers"]:
            found[TopicPartition(row["topic"], row["partition"]), bare["producer_id"]].append(EndMarker.bare(bare))
    return dict(found)


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
