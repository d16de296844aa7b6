"""What readers get of one partition from one offset on: records that are delivered, and offsets without one.

A `read_committed` consumer gets what lies below the last stable offset: batches outside of transactions, and those of
committed ones. Aborted data and end markers move its position and give it nothing (`Fetcher`, KIP-98).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.columns.arrays import ABSENT, Array, numbers
from txn_analysis.questions.linked_log import joined
from txn_analysis.runs.ask import ask, is_one_of
from txn_analysis.tables.transactions import OPEN

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Self

    from txn_analysis.questions.linked_log import LinkedLog
    from txn_analysis.runs.past_run import PastRun

_NEVER = np.iinfo(np.int64).max
_BATCH = ("base_offset", "last_offset", "record_count", "producer_id", "is_transactional", "is_control", "size_bytes")
_OF_TRANSACTIONS = ("producer_id", "txn_start_offset", "end_offset", "outcome")
_HELD_RANGES = 1 << 17


class Fate(IntEnum):
    """What becomes of the records of a batch."""

    DELIVERED = 0  # outside of transactions, or of a committed one
    ABORTED = 1
    UNKNOWN = 2  # its transaction ended, and the dump does not say how
    OPEN = 3
    NO_RECORD = 4  # an end marker, or a batch whose records compaction removed


_FATES = {"ABORT": Fate.ABORTED, "ended": Fate.UNKNOWN, OPEN: Fate.OPEN}


class Fates:
    """The transactions of one partition that are not committed: by producer and offset, what becomes of their data."""

    def __init__(self, rows: pa.Table) -> None:
        """Rows of `_OF_TRANSACTIONS`, in any order; those of committed transactions are left out."""
        kinds = pa.array([*_FATES])
        rows = rows.filter(pc.is_in(rows["outcome"], kinds))
        self._producers = pa.array(np.unique(numbers(rows["producer_id"], ABSENT)))
        starts, ends = numbers(rows["txn_start_offset"], ABSENT), numbers(rows["end_offset"], _NEVER)
        self._starts = np.unique(starts)
        keys = self._keys(rows["producer_id"], starts)
        order = np.argsort(keys, kind="stable")
        kind = pc.index_in(rows["outcome"], kinds)
        fates = np.array([*_FATES.values()], np.int64)[numbers(kind, 0)] if len(rows) else np.array([], np.int64)
        self._sorted, self._begin, self._end, self._fate = keys[order], starts[order], ends[order], fates[order]

    def _keys(self, producers: pa.Array | pa.ChunkedArray, offsets: Array) -> Array:
        """Numbers that order by producer and, among the starts, by offset; those of other producers come first."""
        code = numbers(pc.index_in(producers, self._producers), ABSENT)
        return code * (len(self._starts) + 1) + np.searchsorted(self._starts, offsets, "right")

    def of(self, batch: pa.RecordBatch) -> Array:
        """The fate of each batch, of the columns `_BATCH`."""
        base = batch["base_offset"].to_numpy()
        fate = np.full(len(batch), int(Fate.DELIVERED))
        if len(self._sorted):
            keys = self._keys(batch["producer_id"], base)
            place = np.maximum(np.searchsorted(self._sorted, keys, "right") - 1, 0)
            # The key of the found start has the same producer where no whole producer lies between the two.
            step = len(self._starts) + 1
            is_same = (self._sorted[place] // step == keys // step) & (self._sorted[place] <= keys)
            is_in = is_same & (base >= self._begin[place]) & (base <= self._end[place])
            is_data = batch["is_transactional"].to_numpy(zero_copy_only=False)
            fate = np.where(is_in & is_data, self._fate[place], fate)
        has_none = batch["is_control"].to_numpy(zero_copy_only=False) | (numbers(batch["record_count"], 1) == 0)
        return np.where(has_none, int(Fate.NO_RECORD), fate)


def fates_of(run: PastRun, topic: str, partition: int) -> Fates:
    """The transactions of a partition in a finished run."""
    here = is_one_of({"topic": [topic], "partition": [partition]})
    parts = [
        f"SELECT {', '.join(_OF_TRANSACTIONS)} FROM {of} WHERE outcome <> 'COMMIT' AND {here}"  # noqa: S608 ours
        for of in ("ended_transactions", "transactions")
    ]
    return Fates(ask(run, " UNION ALL ".join(parts)).combine_chunks())


class Run(NamedTuple):
    """Offsets in a row that give a `read_committed` consumer no record; `size_bytes` are those of its batches."""

    first_offset: int
    last_offset: int
    size_bytes: int

    @property
    def offset_count(self) -> int:
        """How many offsets it has."""
        return self.last_offset - self.first_offset + 1


@dataclass
class Ahead:
    """What lies ahead of a `read_committed` consumer that stands at an offset.

    Attributes:
        from_offset: where it stands.
        last_stable_offset: up to where it can read.
        hidden: by fate, the records at or above the last stable offset.
        has_all_counts: every batch there says how many it holds.
        unknown_offset: the first offset, of those that it can read, whose transaction ended nobody knows how.
    """

    from_offset: int
    last_stable_offset: int
    hidden: Counter[Fate] = field(default_factory=Counter)
    has_all_counts: bool = True
    unknown_offset: int | None = None
    _delivered: list[Array] = field(default_factory=list)
    _skipped: list[Array] = field(default_factory=list)
    _held: int = 0

    @classmethod
    def of(cls, log: LinkedLog, fates: Fates, from_offset: int, last_stable_offset: int) -> Self:
        """Read the log once, from the lower of the two offsets on."""
        ahead = cls(from_offset, last_stable_offset)
        for batch in log.batches(min(from_offset, last_stable_offset), *_BATCH):
            ahead._add(batch, fates.of(batch))
        return ahead

    def _add(self, batch: pa.RecordBatch, fate: Array) -> None:
        base, last = batch["base_offset"].to_numpy(), batch["last_offset"].to_numpy()
        is_hidden = base >= self.last_stable_offset
        counts = numbers(batch["record_count"], ABSENT)
        self.has_all_counts &= not bool((is_hidden & (counts == ABSENT)).any())
        for one in Fate:
            self.hidden[one] += int(counts[is_hidden & (fate == one) & (counts > 0)].sum())
        is_ahead = ~is_hidden & (last >= self.from_offset)
        unknown = base[is_ahead & (fate == Fate.UNKNOWN)]
        if len(unknown):
            found = int(max(unknown.min(), self.from_offset))
            self.unknown_offset = found if self.unknown_offset is None else min(found, self.unknown_offset)
        gives = is_ahead & (fate == Fate.DELIVERED)
        self._delivered.append(joined(np.stack([base[gives], last[gives] + 1])))
        skips = is_ahead & ~gives
        self._skipped.append(np.stack([base[skips], batch["size_bytes"].to_numpy()[skips].astype(np.int64)]))
        self._held += self._delivered[-1].shape[1]
        if self._held > 2 * _HELD_RANGES:
            self._delivered = [joined(np.concatenate(self._delivered, axis=1))]
            self._held = self._delivered[0].shape[1]

    def runs(self) -> Iterator[Run]:
        """The runs without a record that begin at or above `from_offset`, below the last stable offset, in order.

        A batch whose transaction ended nobody knows how counts as one without a record: see `unknown_offset`.
        """
        if self.from_offset >= self.last_stable_offset:
            return
        none = np.empty((2, 0), np.int64)
        begin, end = joined(np.concatenate([none, *self._delivered], axis=1))
        bases, sizes = np.concatenate([none, *self._skipped], axis=1)
        firsts = np.concatenate([[self.from_offset], np.maximum(end, self.from_offset)])
        lasts = np.concatenate([begin, [self.last_stable_offset]]) - 1
        which = np.searchsorted(begin, bases, "right")
        size_of = np.bincount(which, sizes, len(firsts)).astype(np.int64)
        for first, last, size in zip(firsts.tolist(), lasts.tolist(), size_of.tolist(), strict=True):
            if last >= first:
                yield Run(first, last, size)


def longest(runs: Iterable[Run]) -> Run | None:
    """The run with most offsets, the first of several; None without one."""
    return max(runs, key=lambda run: run.offset_count, default=None)
