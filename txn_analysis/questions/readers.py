"""What readers get of one partition from one offset on: records that are delivered, and offsets without one.

A `read_committed` consumer gets what lies below the last stable offset: batches outside of transactions, and those of
committed ones. Aborted data and end markers move its position and give it nothing (`Fetcher`, KIP-98).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.columns.arrays import ABSENT, Array, numbers
from txn_analysis.questions.linked_log import LinkedLog, joined
from txn_analysis.runs.ask import ask, is_one_of
from txn_analysis.runs.past_run import PastRun
from txn_analysis.tables.transactions import OPEN

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


def not_committed(run: PastRun, topic: str, partition: int) -> pa.Table:
    """The transactions of a partition in a finished run that are not committed: rows of `_OF_TRANSACTIONS`."""
    here = is_one_of({"topic": [topic], "partition": [partition]})
    parts = [
        f"SELECT {', '.join(_OF_TRANSACTIONS)} FROM {of} WHERE outcome <> 'COMMIT' AND {here}"  # noqa: S608 ours
        for of in ("ended_transactions", "transactions")
    ]
    return ask(run, " UNION ALL ".join(parts))


def _fates(batches: pa.Table) -> Array:
    """What becomes of each of some batches, beside which stands the last transaction that its producer began."""
    kinds = pc.index_in(batches["outcome"], pa.array([*_FATES]))
    is_in = batches["base_offset"].to_numpy() <= numbers(batches["end_offset"], _NEVER)
    is_data = batches["is_transactional"].to_numpy() & is_in
    of_its = np.array([*_FATES.values(), Fate.DELIVERED])[numbers(kinds, len(_FATES))]
    has_none = batches["is_control"].to_numpy() | (numbers(batches["record_count"], 1) == 0)
    return np.where(has_none, Fate.NO_RECORD, np.where(is_data, of_its, Fate.DELIVERED))


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
    _range_count: int = 0

    @classmethod
    def of(cls, log: LinkedLog, transactions: pa.Table, from_offset: int, last_stable_offset: int) -> Self:
        """Read the log once, from the lower of the two offsets on; `transactions` as `not_committed` gives them."""
        ahead, begun = cls(from_offset, last_stable_offset), transactions.sort_by("txn_start_offset")
        for batch in log.batches(min(from_offset, last_stable_offset), *_BATCH):
            rows = pa.Table.from_batches([batch]).sort_by("base_offset")
            last = rows.join_asof(begun, "base_offset", "producer_id", -_NEVER, "txn_start_offset", "producer_id")
            ahead._add(last, _fates(last))
        return ahead

    def _add(self, batch: pa.Table, fate: Array) -> None:
        base, last = batch["base_offset"].to_numpy(), batch["last_offset"].to_numpy()
        is_hidden = base >= self.last_stable_offset
        counts = numbers(batch["record_count"], ABSENT)
        self.has_all_counts &= not bool((is_hidden & (counts == ABSENT)).any())
        for one in Fate:
            self.hidden[one] += int(counts[is_hidden & (fate == one) & (counts > 0)].sum())
        is_ahead = ~is_hidden & (last >= self.from_offset)
        unknown = base[is_ahead & (fate == Fate.UNKNOWN)]
        if len(unknown):
            offset = int(max(unknown.min(), self.from_offset))
            self.unknown_offset = offset if self.unknown_offset is None else min(offset, self.unknown_offset)
        gives = is_ahead & (fate == Fate.DELIVERED)
        self._delivered.append(joined(np.stack([base[gives], last[gives] + 1])))
        skips = is_ahead & ~gives
        self._skipped.append(np.stack([base[skips], batch["size_bytes"].to_numpy()[skips].astype(np.int64)]))
        self._range_count += self._delivered[-1].shape[1]
        if self._range_count > 2 * _HELD_RANGES:
            self._delivered = [joined(np.concatenate(self._delivered, axis=1))]
            self._range_count = self._delivered[0].shape[1]

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
