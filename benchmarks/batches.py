"""Invented record batches of one partition as columns: many producers, short transactions, some left open."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

HEADER_BYTES = 61  # of a record batch of message format 2
CONTROL_BATCH_BYTES = 78  # its header, and the one record of an end marker
LEADER_EPOCH = 3
COORDINATOR_EPOCH = 7
PRODUCER_EPOCH = 0

_RECORD_BYTES = 110
_SEED = 1
_FIRST_PRODUCER_ID = 1000
_FIRST_TIMESTAMP_MS = 1_795_229_916_182
_MOST_BATCHES_PER_TRANSACTION = 7
_PATTERN_TRANSACTIONS = 20_000
_COMMITTED = 0.95
_SEQUENCE_NUMBERS = 2**31  # after the largest int32 Kafka begins at 0 again


@dataclass(frozen=True)
class Shape:
    """How large data batches are.

    Attributes:
        records: the smallest and the largest number of records.
        size_bytes: of a batch with so many records, header included.
    """

    records: tuple[int, int]
    size_bytes: Callable[[Ints], Ints]


def fixed_size(size_bytes: int) -> Shape:
    """Every data batch has one size, and as many records as fit."""
    records = max(1, (size_bytes - HEADER_BYTES) // _RECORD_BYTES)
    return Shape((records, records), lambda counts: np.full_like(counts, size_bytes))


@dataclass(frozen=True)
class Batches:
    """Consecutive batches of one partition, one element each; `position` counts from the start of the segment."""

    base_offset: Ints
    record_count: Ints
    base_sequence: Ints
    producer_id: Ints
    is_control: Flags
    is_commit: Flags
    position: Ints
    size_bytes: Ints
    timestamp_ms: Ints

    def __len__(self) -> int:
        return len(self.base_offset)


class Partition:
    """The log of one partition, made as it is asked for: the same number and the same calls give the same log."""

    def __init__(self, number: int, shape: Shape, *, producers: int = 200) -> None:
        self.number = number
        self.next_offset = 0
        self._shape = shape
        self._random = np.random.default_rng((_SEED, number))
        self._position = 0
        self._timestamp_ms = _FIRST_TIMESTAMP_MS
        # One endless list of transactions, which every producer walks from a place of its own.
        lengths = self._random.integers(1, _MOST_BATCHES_PER_TRANSACTION + 1, _PATTERN_TRANSACTIONS)
        ends = np.cumsum(lengths + 1) - 1
        self._is_end = np.zeros(ends[-1] + 1, dtype=np.bool_)
        self._is_end[ends] = True
        self._walked = ends[self._random.integers(0, len(ends) - 1, producers)] + 1
        self._sequence = np.zeros(producers, dtype=np.int64)

    def checksums(self, count: int) -> Ints:
        """Invented checksums, for forms of a log whose content is not there to be checked."""
        return self._random.integers(0, 2**32, count)

    def roll(self) -> None:
        """Begin a new segment: positions count from 0 again."""
        self._position = 0

    def take(self, count: int) -> Batches:
        """The next `count` batches."""
        producer = self._random.integers(0, len(self._walked), count)
        is_control = self._ends(producer)
        smallest, largest = self._shape.records
        records = np.where(is_control, 1, self._random.integers(smallest, largest + 1, count))
        size_bytes = np.where(is_control, CONTROL_BATCH_BYTES, self._shape.size_bytes(records))
        timestamp_ms = self._timestamp_ms + np.cumsum(self._random.integers(0, 5, count))
        made = Batches(
            base_offset=self.next_offset + sums_before(records),
            record_count=records,
            base_sequence=self._sequences(producer, np.where(is_control, 0, records), is_control),
            producer_id=producer + _FIRST_PRODUCER_ID,
            is_control=is_control,
            is_commit=self._random.random(count) < _COMMITTED,
            position=self._position + sums_before(size_bytes),
            size_bytes=size_bytes,
            timestamp_ms=timestamp_ms,
        )
        self.next_offset += int(records.sum())
        self._position += int(size_bytes.sum())
        self._timestamp_ms = int(timestamp_ms[-1])
        return made

    def _ends(self, producer: Ints) -> Flags:
        """Which batches are end markers: each producer goes on in its list where it stopped."""
        steps = sums_before_in_group(producer, np.ones_like(producer))
        found: Flags = self._is_end[(self._walked[producer] + steps) % len(self._is_end)]
        self._walked += np.bincount(producer, minlength=len(self._walked))
        return found

    def _sequences(self, producer: Ints, records: Ints, is_control: Flags) -> Ints:
        found = (self._sequence[producer] + sums_before_in_group(producer, records)) % _SEQUENCE_NUMBERS
        used = np.bincount(producer, weights=records, minlength=len(self._sequence)).astype(np.int64)
        self._sequence = (self._sequence + used) % _SEQUENCE_NUMBERS
        return np.where(is_control, -1, found)


def sums_before(values: Ints) -> Ints:
    """The sum of all values before each."""
    before: Ints = np.cumsum(values) - values
    return before


def sums_before_in_group(group: Ints, values: Ints) -> Ints:
    """The sum of all values before each in its own group."""
    order = np.argsort(group, kind="stable")
    before = sums_before(values[order])
    is_first = np.r_[True, np.diff(group[order]) != 0]
    start = np.maximum.accumulate(np.where(is_first, np.arange(len(group)), 0))
    found = np.empty_like(values)
    found[order] = before - before[start]
    return found
