"""Rivals: pieces of one dumped file that claim the same positions, because tasks read different lines of its text.

A client can print the batch lines that would follow its record. Where a task's part of the text ends between them and
the true lines, each of the two tasks follows its own, and only the positions show that they cannot both be the log's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from txn_analysis.log.pieces import LogPiece


class Cuts(NamedTuple):
    """Where the pieces of one file must end, beyond where they end anyway: before a batch that begins at or behind one
    of the offsets, and before one that ends behind one of the positions.
    """

    offsets: Sequence[int] = ()
    positions: Sequence[int] = ()

    @property
    def first(self) -> str:
        """The first of them, in words."""
        return f"offset {self.offsets[0]}" if self.offsets else f"position {self.positions[0]}"


UNCUT = Cuts()


class Placed(Protocol):
    """A piece of a file, as far as its place goes and the clock of its broker; see `LogPiece`."""

    @property
    def first_position(self) -> int: ...  # noqa: D102  of `LogPiece`, and so are the others

    @property
    def end_position(self) -> int: ...  # noqa: D102

    @property
    def text_start_bytes(self) -> int: ...  # noqa: D102

    @property
    def max_moment_ms(self) -> int | None: ...  # noqa: D102


_Piece = TypeVar("_Piece", bound=Placed)


def rival_positions(spans: Iterable[tuple[int, int]]) -> list[int] | None:
    """Where a piece of a file begins inside another one; None where none does.

    In: first and end position of each piece of the file, or of each part of its text that one task read.
    """
    found, reached = set(), -1
    for first, end in sorted(spans):
        if first < reached:
            found.add(first)
        reached = max(reached, end)
    return sorted(found) or None


def without_rivals(pieces: Sequence[LogPiece]) -> list[LogPiece]:
    """The pieces of one file, in the order of their positions, so that no two of them claim one.

    Of those that claim one, the one that reaches farthest stays, of several the last in the text, and is contested:
    either can be text of a client, from the first position that both claim on.
    """
    if len(pieces) < 2 or rival_positions((p.first_position, p.end_position) for p in pieces) is None:
        return sorted(pieces, key=_place)
    kept: list[LogPiece] = []
    for group in _groups(pieces):
        if len(group) > 1:
            first_offset = min(piece.first_offset for piece in group)
            kept += [piece._replace(contested_offset=first_offset) for piece in _farthest(group)]
        else:
            kept += group
    return kept


def certain_moment_ms(pieces: Sequence[Placed]) -> int | None:
    """The newest moment of a broker's clock in one file, of pieces without rivals."""
    if len(pieces) == 1:
        return pieces[0].max_moment_ms
    alone = (group[0].max_moment_ms for group in _groups(pieces) if len(group) == 1)
    return max((ms for ms in alone if ms is not None), default=None)


def _place(piece: Placed) -> tuple[int, int]:
    return piece.first_position, piece.text_start_bytes


def _groups(pieces: Sequence[_Piece]) -> Iterator[list[_Piece]]:
    """The pieces that claim positions of each other together, each other one by itself; in order of position."""
    group: list[_Piece] = []
    reached = -1
    for piece in sorted(pieces, key=_place):
        if group and piece.first_position >= reached:
            yield group
            group = []
        group.append(piece)
        reached = max(reached, piece.end_position) if len(group) > 1 else piece.end_position
    if group:
        yield group


def _farthest(rivals: Sequence[_Piece]) -> list[_Piece]:
    """The pieces that stay of those that claim one position, in order of position."""
    kept: list[_Piece] = []
    for piece in sorted(rivals, key=lambda p: (-p.end_position, -p.text_start_bytes)):
        if all(
            piece.end_position <= other.first_position or other.end_position <= piece.first_position for other in kept
        ):
            kept.append(piece)
    return sorted(kept, key=lambda p: p.first_position)
