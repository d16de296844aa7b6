"""How many partitions `__transaction_state` has, as far as the ids in it tell.

Kafka puts an id into partition `abs(hash) % N` (`TransactionStateManager.partitionFor`). So N divides the difference
between the hash of each id and the partition that holds it, and is above every partition that there is. The true N
always fits what was dumped whole or in part; where no other one does, it is proven. Console exports name no partition,
and prove none.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import gcd, isqrt
from typing import NamedTuple

import numpy as np

from txn_analysis.columns.arrays import Array
from txn_analysis.text import ranges

DEFAULT_COUNT = 50
"""Kafka's default of `transaction.state.log.num.partitions`."""

MOST_PARTITIONS = 1_000_000
GIVEN, DERIVED, DEFAULT = "given", "derived", "default"
_MOST_NAMED = 12


class IdSums(NamedTuple):
    """What some ids and the partitions that hold them say of the count; sums of parts add up.

    `divisor` is the greatest that all differences have in common (0: every id's hash is the partition itself).
    """

    id_count: int = 0
    divisor: int = 0
    last_partition: int = -1

    def plus(self, other: IdSums) -> IdSums:
        """The sum of both."""
        return IdSums(
            self.id_count + other.id_count,
            gcd(self.divisor, other.divisor),
            max(self.last_partition, other.last_partition),
        )

    def fitting(self) -> Sequence[int]:
        """Every count that fits, in order; nothing where no id was seen, and everything would."""
        if not self.id_count:
            return ()
        if not self.divisor:
            return range(self.last_partition + 1, MOST_PARTITIONS + 1)
        return sorted(n for n in _divisors(self.divisor) if self.last_partition < n <= MOST_PARTITIONS)


def _divisors(number: int) -> Iterator[int]:
    for small in range(1, isqrt(number) + 1):
        if number % small == 0:
            yield from {small, number // small}


@dataclass(frozen=True)
class StateCount:
    """The count that is used, and why.

    Attributes:
        used: partitions of `__transaction_state`.
        basis: `given` by the operator, `derived` from the ids, or Kafka's `default`.
        fitting: every count that fits all ids; empty where none does, or no id was seen.
        id_count: records of dumps and folders whose id was held against its partition.
    """

    used: int
    basis: str
    fitting: Sequence[int] = ()
    id_count: int = 0

    @property
    def others(self) -> str | None:
        """The counts that fit, in words; None where none does."""
        return _in_words(self.fitting) if self.fitting else None

    @property
    def larger(self) -> str | None:
        """The larger counts that fit every id, in words; None where there is none, or the operator stated the count.

        The partitions that they would have may hold what none of the given ones names.
        """
        larger = () if self.basis == GIVEN else self.fitting[bisect_right(self.fitting, self.used) :]
        return _in_words(larger) if larger else None

    def coverage(self) -> dict[str, object]:
        """The count as a run tells it, with the counts that fit: in words, and how many they are."""
        counts = {"fitting": self.others, "fitting_count": len(self.fitting)}
        return {"used": self.used, "basis": self.basis} | counts


def _in_words(counts: Sequence[int]) -> str:
    more = len(counts) - _MOST_NAMED
    return ranges(counts[:_MOST_NAMED]) + (f" and {more} more up to {counts[-1]}" if more > 0 else "")


def state_count(stated: int | None, sums: IdSums) -> StateCount:
    """The count to use: the operator's, else the only one that fits every id, else Kafka's default."""
    fitting = sums.fitting()
    if stated is not None:
        return StateCount(stated, GIVEN, fitting, sums.id_count)
    if len(fitting) == 1:
        return StateCount(fitting[0], DERIVED, fitting, sums.id_count)
    return StateCount(DEFAULT_COUNT, DEFAULT, fitting, sums.id_count)


def sums_of_columns(hashes: Array, partitions: Array) -> IdSums:
    """What records say, from whole columns without NULL: of each the hash of its id, and the partition that holds it.

    Those of console exports name no partition, undecodable ones no id: they say nothing.
    """
    if not len(hashes):
        return IdSums()
    return IdSums(len(hashes), int(np.gcd.reduce(positive_hashes(hashes) - partitions)), int(partitions.max()))


def positive_hashes(hashes: Array) -> Array:
    """As `positive_hash`, of a whole column."""
    wide = hashes.astype(np.int64)
    return np.where(wide == -(2**31), 0, np.abs(wide))


def sums_of_files(partitions: Iterable[int]) -> IdSums:
    """What is known from the names of the files alone: these partitions exist."""
    return IdSums(last_partition=max(partitions, default=-1))
