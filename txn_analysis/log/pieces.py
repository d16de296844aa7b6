"""What folding says of a stretch of a log, as typed rows of `log_pieces`.

A piece knows of each producer its first fragment (`lead`), which may continue what an earlier piece left open, and its
last one (`tail`), which a later piece may continue.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from txn_analysis.columns.records import fields_of

if TYPE_CHECKING:
    from collections.abc import Iterable


class Fragment(NamedTuple):
    """Batches of one producer up to its end marker, or to the end of the piece; starts are None without data.

    Moments are a broker's clock around its first and its last batch; `hidden_...` counts the piece from its start on,
    whoever wrote it.
    """

    start_offset: int | None
    first_epoch: int | None
    max_epoch: int | None
    last_offset: int | None
    last_sequence: int | None
    record_count: int
    size_bytes: int
    last_timestamp_ms: int | None
    first_after_ms: int | None
    first_before_ms: int | None
    last_after_ms: int | None
    last_before_ms: int | None
    hidden_record_count: int
    hidden_bytes: int
    end_offset: int | None
    end_marker: str | None
    end_timestamp_ms: int | None
    end_epoch: int | None
    end_coordinator_epoch: int | None


class BareMarker(NamedTuple):
    """An end marker with none of its producer's transactional data since the marker before."""

    offset: int
    marker: str | None
    timestamp_ms: int | None
    producer_epoch: int | None
    coordinator_epoch: int | None


class ProducerEdges(NamedTuple):
    """What a piece says of one producer; `tail` is None where it is `lead` as well.

    `ended_...` is of the newest transaction that is whole inside.
    """

    producer_id: int
    lead: Fragment
    tail: Fragment | None
    first_batch_epoch: int | None
    is_one_epoch: bool
    producer_epoch: int | None
    last_sequence: int | None
    last_timestamp_ms: int | None
    marker_offset: int | None
    marker_timestamp_ms: int | None
    marker_coordinator_epoch: int | None
    ended_offset: int | None
    ended_last_timestamp_ms: int | None
    ended_coordinator_epoch: int | None
    max_ended_coordinator_epoch: int | None
    bare_markers: tuple[BareMarker, ...] = ()
    last_commit_offset: int | None = None


class LogPiece(NamedTuple):
    """One contiguous piece of one dumped copy of a segment; the table's comments say what each column counts.

    `is_used` is False where all of it may be text of a client, and nothing of it counts but its place.
    """

    input_id: str
    section_index: int
    topic: str
    partition: int
    first_position: int
    end_position: int
    first_offset: int
    last_offset: int
    text_start_bytes: int
    text_end_bytes: int
    last_hole_offset: int | None
    last_invalid_offset: int | None
    contested_offset: int | None
    doubtful_offset: int | None
    lacking_batch_count: int
    lacking_offset: int | None
    is_marker_printed: bool | None
    record_count: int
    size_bytes: int
    first_moment_ms: int | None
    last_moment_ms: int | None
    max_moment_ms: int | None
    last_timestamp_ms: int | None
    max_timestamp_ms: int | None
    first_leader_epoch: int | None
    leader_epoch: int | None
    content_digest: int
    producers: tuple[ProducerEdges, ...]
    last_empty_offset: int | None
    first_epoch_fall_offset: int | None
    is_used: bool = True

    @property
    def section(self) -> tuple[str, int]:
        """The input and the section that it is of."""
        return self.input_id, self.section_index

    @property
    def is_doubted(self) -> bool:
        """All of it may be text of a client."""
        return self.contested_offset is not None or self.doubtful_offset is not None

    def as_client_text(self) -> LogPiece:
        """What is left of it where it may be text of a client: its place, and nothing that its batches say."""
        return self._replace(
            is_used=False,
            producers=(),
            first_moment_ms=None,
            last_moment_ms=None,
            last_timestamp_ms=None,
            max_timestamp_ms=None,
            first_leader_epoch=None,
            leader_epoch=None,
            first_epoch_fall_offset=None,
        )


class _Placed(Protocol):
    @property
    def topic(self) -> str: ...

    @property
    def partition(self) -> int: ...


_Row = TypeVar("_Row", bound=_Placed)


def by_place(rows: Iterable[_Row]) -> dict[tuple[str, int], list[_Row]]:
    """Rows by the topic and the partition that they are of."""
    found: defaultdict[tuple[str, int], list[_Row]] = defaultdict(list)
    for row in rows:
        found[row.topic, row.partition].append(row)
    return dict(found)


PIECE_COLUMNS = tuple(name for name in fields_of(LogPiece) if name != "is_used")
"""The columns of `log_pieces` that linking needs."""
