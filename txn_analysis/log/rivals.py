"""Rivals: batch ranges of one dump that claim the same positions, because tasks read different lines of its text.

A client can write text that looks like the batch lines after its record. Where one task's part of a dump ends between
such text and the true lines, one task follows the text and the next one the true lines. Only their positions show that
not both are the log's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from txn_analysis.tables import BatchRangeSummary


class Cuts(NamedTuple):
    """Where batch ranges of one file must end, beside where they end anyway.

    Before the first batch that begins at or after one of the offsets, or ends after one of the positions.
    """

    offsets: Sequence[int] = ()
    positions: Sequence[int] = ()

    @property
    def first(self) -> str:
        """The first of them, in words."""
        return f"offset {self.offsets[0]}" if self.offsets else f"position {self.positions[0]}"


UNCUT = Cuts()


_Range = TypeVar("_Range")


def rival_positions(places: Iterable[tuple[int, int]]) -> list[int] | None:
    """Where one of a file's batch ranges, or of the parts of its text that tasks read, begins inside another one; None
    where none does. A place is the first position and the end position.
    """
    found, reached = set(), -1
    for first, end in sorted(places):
        if first < reached:
            found.add(first)
        reached = max(reached, end)
    return sorted(found) or None


def without_rivals(pieces: Sequence[BatchRangeSummary]) -> list[BatchRangeSummary]:
    """The batch ranges of one file in order of position, without those that claim the positions of another one.

    Of ranges that claim the same positions, the one that reaches farthest is kept, of several the last in the text. It
    is contested: either can be text of a client, from the first position on that both claim.
    """
    kept: list[BatchRangeSummary] = []
    for group in _groups((p.first_position, p.end_position, p.text_start_bytes, p) for p in pieces):
        if len(group) > 1:
            first_offset = min(piece.first_offset for piece in group)
            kept += [piece._replace(contested_offset=first_offset) for piece in _farthest(group)]
        else:
            kept += group
    return kept


def certain_moment_ms(ranges: Iterable[tuple[int, int, int | None]]) -> int | None:
    """The largest moment of one file, of batch ranges without rivals; None without one.

    In: first position, end position and largest moment of each range.
    """
    groups = _groups((first, end, number, ms) for number, (first, end, ms) in enumerate(ranges))
    return max((group[0] for group in groups if len(group) == 1 and group[0] is not None), default=None)


def _groups(ranges: Iterable[tuple[int, int, int, _Range]]) -> list[list[_Range]]:
    """Batch ranges, each behind its first and its end position and a number of its own: those that claim the same
    positions together, and each other one alone, in order of position.
    """
    groups: list[list[_Range]] = []
    reached = -1
    for first, end, _, each in sorted(ranges, key=lambda placed: (placed[0], placed[2])):
        if first >= reached:
            groups.append([])
        groups[-1].append(each)
        reached = max(reached, end)
    return groups


def _farthest(rivals: Sequence[BatchRangeSummary]) -> list[BatchRangeSummary]:
    """Of batch ranges that claim the same positions those that are kept, in order of position."""
    kept: list[BatchRangeSummary] = []
    for one in sorted(rivals, key=lambda p: (-p.end_position, -p.text_start_bytes)):
        if all(one.end_position <= p.first_position or p.end_position <= one.first_position for p in kept):
            kept.append(one)
    return sorted(kept, key=lambda p: p.first_position)
