"""Record batches as Fetch gives them: which are whole, where they lie, and which are end markers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from txn_analysis.kafka.batch_headers import CONTROL, Headers, HeaderWalk

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True)
class RawBatches:
    """Whole batches that follow each other.

    Attributes:
        data: their bytes.
        first_offset: base offset of the first one.
        next_offset: the offset after the last one.
        marked: the producers that have control batches among them.
    """

    data: bytes
    first_offset: int
    next_offset: int
    marked: frozenset[int]


def whole_batches(data: bytes, below: int | None = None) -> RawBatches | None:
    """The whole batches at the front of some bytes; None without one.

    Args:
        data: as fetched: the last batch may be cut.
        below: batches that reach this offset are left out, and all behind them.
    """
    blocks = list(_blocks(data))
    if not blocks:
        return None
    found = Headers.joined(blocks)
    count = len(found) if below is None else int((found.last_offset < below).sum())
    if not count:
        return None
    found = found.part(0, count)
    is_control = ~found.is_legacy & (found.number("attributes") & CONTROL > 0)
    return RawBatches(
        data=data[: int(found.position[-1] + found.size[-1])],
        first_offset=int(found.base_offset[0]),
        next_offset=int(found.last_offset[-1]) + 1,
        marked=frozenset(found.number("producer_id")[is_control].tolist()),
    )


def _blocks(data: bytes) -> Iterator[Headers]:
    return HeaderWalk(lambda start, end: data[start:end], 0, len(data)).blocks()
