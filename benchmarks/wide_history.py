"""What happens on an invented wide cluster, as columns, with the answer that an audit of it must give.

Six hours pass. For two hours transactions visit the partitions in turn. Ten minutes of writes follow that belong to no
transaction: these hang. 20 minutes later, and again half a minute before the end, every partition gets an end marker,
so that the brokers' clocks show how late it is. A few transactions are live at the end.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np

from benchmarks.batches import CONTROL_BATCH_BYTES, Batches, Flags, Ints, sums_before, sums_before_in_group
from benchmarks.dumps import SHALLOW

FIRST_PRODUCER_ID, FIRST_UNKNOWN_PRODUCER_ID = 1_000, 50_000_000
EMPTY, ONGOING, PREPARE_COMMIT, COMPLETE_COMMIT, TOMBSTONE = 0, 1, 2, 4, -1
RETIRED_PARTITIONS = 10
LIVE = 3  # transactions that are live at the end

_MINUTE_MS = 60_000
_BEGIN_MS = 1_795_200_000_000
_END_MS = _BEGIN_MS + 360 * _MINUTE_MS
_EXPIRATION_MS = 7 * 24 * 60 * _MINUTE_MS
_ACTIVE_MS, _LATE_MS = 120 * _MINUTE_MS, 10 * _MINUTE_MS
_UNTIL_PREPARED_MS, _UNTIL_MARKED_MS, _UNTIL_COMPLETE_MS = 2_500, 2_535, 2_540
_BATCHES_PER_VISIT = 4
_PARTITIONS_PER_KEEPER = 50
_BATCHES_OF_HANGING = 2
_BETWEEN_MS = 40
_MOST_RECORDS = 20
_SEED = 1


@dataclass(frozen=True)
class Width:
    """How wide a cluster is.

    Attributes:
        batches: data batches of each partition.
        producers: transactional ids whose transactions are in the logs.
        ids: all transactional ids; those beyond `producers` wrote to a topic that was not copied.
        hanging: open transactions that hang, every second one of a producer that the coordinator does not know.
        transactions_per_id: ended ones, each of three records of the state.
        expired: ids that expired seven days after their last record, all in one night.
        first_offset: of every partition.
    """

    partitions: int = 4
    batches: int = 200
    producers: int = 50
    ids: int = 50
    hanging: int = 4
    transactions_per_id: int = 2
    expired: int = 0
    first_offset: int = 0
    state_partitions: int = 50


class Hanging(NamedTuple):
    """A transaction that hangs, as a finding names it."""

    partition: int
    producer_id: int
    txn_start_offset: int
    rule: str


@dataclass(frozen=True)
class Columns:
    """Columns of one length."""

    def __len__(self) -> int:
        return len(next(iter(vars(self).values())))

    def taken(self, rows: Any) -> Self:
        """Some of the rows."""
        return type(self)(*(column[rows] for column in vars(self).values()))


@dataclass(frozen=True)
class Transactions(Columns):
    """Transactions that transactional ids began, one row each.

    Attributes:
        owner: number of the id.
        first: its first partition; `count` partitions follow each other, behind the topic's last one comes its first.
        is_live: neither prepared nor ended.
        is_retired: of the topic that was not copied.
    """

    owner: Ints
    begin_ms: Ints
    first: Ints
    count: Ints
    is_live: Flags
    is_retired: Flags


@dataclass(frozen=True)
class States(Columns):
    """Records of `__transaction_state`, one row each, by partition and in the order of their offsets.

    Attributes:
        owner: number of the transactional id.
        status: Kafka's code, or TOMBSTONE.
        start_ms: of its transaction; -1 without one.
        first, count, is_retired: its transaction's partitions.
    """

    partition: Ints
    owner: Ints
    status: Ints
    time_ms: Ints
    start_ms: Ints
    first: Ints
    count: Ints
    is_retired: Flags


@dataclass(frozen=True)
class _Events(Columns):
    """Batches of logs, one row each; `finding` numbers the transactions that hang, and is -1 in others."""

    partition: Ints
    time_ms: Ints
    producer_id: Ints
    is_control: Flags
    finding: Ints


Rows = TypeVar("Rows", bound=Columns)


class History:
    """A cluster up to the moment at which it is copied; the same width gives the same history."""

    def __init__(self, width: Width) -> None:
        self.width = width
        self._random = np.random.default_rng(_SEED)
        self._keepers = -(-width.partitions // _PARTITIONS_PER_KEEPER)
        self._regular = width.producers * width.transactions_per_id
        wanted = max(self._regular, width.partitions * width.batches // _BATCHES_PER_VISIT)
        # Each partition is visited equally often, and by a transaction at most once.
        self._turns = max(1, min(width.batches, self._regular, -(-wanted // width.partitions)))
        if width.hanging // 2 > width.producers or width.producers > width.ids:
            raise ValueError("half of what hangs needs a producer each, and each producer an id")
        if self._turns * width.partitions < self._regular:
            raise ValueError("some transactions would visit no partition: give more batches or partitions")

    @cached_property
    def names(self) -> list[str]:
        """Transactional ids by number; the last ones are each the last of a partition of the state."""
        regular = [f"writer-{number:08d}" for number in range(self._newcomers_from)]
        others = [f"late-{number:08d}" for number in range(self.width.state_partitions * 30)]
        _, first = np.unique(java_partitions(others, self.width.state_partitions), return_index=True)
        return regular + [others[number] for number in first.tolist()]

    def producer_id(self, owner: Any) -> Any:
        """Of an id, or of a column of ids."""
        return FIRST_PRODUCER_ID + owner

    def logs(self) -> Iterator[tuple[int, Batches]]:
        """Each partition with its batches."""
        yield from self._placed[1]

    def hanging(self) -> set[Hanging]:
        """What must be found hanging, and nothing else."""
        return self._placed[0]

    def states(self) -> States:
        """All records of the state."""
        made = self._transactions
        ended = made.taken(~made.is_live)
        ids, late = self._newcomers_from - self.width.expired, np.arange(self._newcomers_from, len(self.names))
        owners = np.arange(ids)
        expired = np.arange(ids, self._newcomers_from)
        night_ms = _BEGIN_MS + np.arange(len(expired)) * _ACTIVE_MS // max(1, len(expired))
        parts = [
            _states(owners, EMPTY, _BEGIN_MS - 60 * _MINUTE_MS + owners * 30 * _MINUTE_MS // ids),
            _states(made.owner, ONGOING, made.begin_ms, made),
            _states(ended.owner, PREPARE_COMMIT, ended.begin_ms + _UNTIL_PREPARED_MS, ended),
            _states(ended.owner, COMPLETE_COMMIT, ended.begin_ms + _UNTIL_COMPLETE_MS, ended),
            _states(expired, COMPLETE_COMMIT, night_ms - _EXPIRATION_MS),
            _states(expired, TOMBSTONE, night_ms),
            _states(late, EMPTY, np.full(len(late), _END_MS)),
        ]
        states = _together(parts)
        place = java_partitions(self.names, self.width.state_partitions)[states.owner]
        states = States(place, *(column for name, column in vars(states).items() if name != "partition"))
        return states.taken(np.lexsort((states.time_ms, place)))

    @property
    def _newcomers_from(self) -> int:
        return self.width.ids + self._keepers + LIVE + self.width.expired

    @cached_property
    def _transactions(self) -> Transactions:
        """All of them: of the producers, in the order in which they visit partitions; keepers'; live ones; others'."""
        width = self.width
        visits = self._turns * width.partitions
        edges = -(-np.arange(self._regular + 1) * visits // self._regular)
        others = width.ids - width.producers
        keepers = np.arange(self._keepers)
        firsts = keepers * width.partitions // self._keepers
        counts = np.diff(np.r_[firsts, width.partitions])
        parts = [
            _transactions(
                np.arange(self._regular) % width.producers, _over_two_hours(self._regular), edges[:-1], np.diff(edges)
            ),
            *[
                _transactions(width.ids + keepers, np.full(self._keepers, begin_ms), firsts, counts)
                for begin_ms in (_BEGIN_MS + 150 * _MINUTE_MS, _END_MS - _MINUTE_MS // 2)
            ],
            _transactions(
                width.ids + self._keepers + np.arange(LIVE),
                np.full(LIVE, _END_MS - _MINUTE_MS),
                np.arange(LIVE) % width.partitions,
                np.ones(LIVE, dtype=np.int64),
                is_live=True,
            ),
        ]
        if count := others * width.transactions_per_id:
            numbers = np.arange(count)
            parts.append(
                _transactions(
                    width.producers + numbers % others,
                    _over_two_hours(count),
                    numbers % RETIRED_PARTITIONS,
                    np.ones_like(numbers),
                    is_retired=True,
                )
            )
        return _together(parts)

    @cached_property
    def _placed(self) -> tuple[set[Hanging], list[tuple[int, Batches]]]:
        """What hangs, and the batches of each partition."""
        events = self._events()
        events = events.taken(np.lexsort((events.time_ms, events.partition)))
        edges = np.searchsorted(events.partition, np.arange(self.width.partitions + 1)).tolist()
        hanging, logs = set(), []
        for partition, (start, end) in enumerate(itertools.pairwise(edges)):
            of_partition = events.taken(slice(start, end))
            made = self._batches(of_partition)
            logs.append((partition, made))
            finding, first = np.unique(of_partition.finding, return_index=True)
            for number, at in zip(finding.tolist(), first.tolist(), strict=True):
                if number >= 0:
                    rule = "partition_not_in_transaction" if number < self._late else "unknown_producer"
                    hanging.add(Hanging(partition, int(made.producer_id[at]), int(made.base_offset[at]), rule))
        return hanging, logs

    def _batches(self, events: _Events) -> Batches:
        records = np.where(events.is_control, 1, self._random.integers(1, _MOST_RECORDS, len(events)))
        size_bytes = np.where(events.is_control, CONTROL_BATCH_BYTES, SHALLOW.size_bytes(records))
        sequence = sums_before_in_group(events.producer_id, np.where(events.is_control, 0, records))
        return Batches(
            base_offset=self.width.first_offset + sums_before(records),
            record_count=records,
            base_sequence=np.where(events.is_control, -1, sequence),
            producer_id=events.producer_id,
            is_control=events.is_control,
            is_commit=events.is_control,
            position=sums_before(size_bytes),
            size_bytes=size_bytes,
            timestamp_ms=events.time_ms,
        )

    @property
    def _late(self) -> int:
        """How many of the hanging transactions came after the end marker of the producer's last transaction."""
        return self.width.hanging // 2

    def _events(self) -> _Events:
        """All batches: of transactions, their end markers, and what hangs."""
        made = self._transactions.taken(~self._transactions.is_retired)
        visited = np.repeat(np.arange(len(made)), made.count)
        number = made.first[visited] + np.arange(len(visited)) - (np.cumsum(made.count) - made.count)[visited]
        turn, partition = np.divmod(number, self.width.partitions)
        batches = self.width.batches * (turn + 1) // self._turns - self.width.batches * turn // self._turns
        data = np.repeat(np.arange(len(visited)), np.where(visited < self._regular, batches, 1))
        ended = np.flatnonzero(~made.is_live[visited])
        of_data, of_ended = visited[data], visited[ended]
        return _together(
            [
                _events(
                    partition[data],
                    made.begin_ms[of_data] + self._random.integers(5, _UNTIL_PREPARED_MS, len(data)),
                    self.producer_id(made.owner[of_data]),
                ),
                _events(
                    partition[ended],
                    made.begin_ms[of_ended] + self._random.integers(_UNTIL_PREPARED_MS, _UNTIL_MARKED_MS, len(ended)),
                    self.producer_id(made.owner[of_ended]),
                    is_control=True,
                ),
                self._hanging_events(made),
            ]
        )

    def _hanging_events(self, made: Transactions) -> _Events:
        width = self.width
        late = self._random.permutation(width.producers)[: self._late]
        after = self._regular - width.producers + late  # the last transaction of each of these producers
        unknown = np.arange(width.hanging - self._late)
        partition = np.r_[
            made.first[after] % width.partitions, self._random.integers(0, width.partitions, len(unknown))
        ]
        producer_id = np.r_[self.producer_id(late), FIRST_UNKNOWN_PRODUCER_ID + unknown]
        began_ms = _BEGIN_MS + _ACTIVE_MS + self._random.integers(_MINUTE_MS, _LATE_MS, width.hanging)
        numbers = np.repeat(np.arange(width.hanging), _BATCHES_OF_HANGING)
        later_ms = np.tile(np.arange(_BATCHES_OF_HANGING) * _BETWEEN_MS, width.hanging)
        return _events(partition[numbers], began_ms[numbers] + later_ms, producer_id[numbers], finding=numbers)


def java_partitions(names: list[str], count: int) -> Ints:
    """The partition of the state of each id: Java's hash of it, absolute, modulo their count."""
    hashes = np.zeros(len(names), dtype=np.uint32)
    by_length = np.array([len(name) for name in names])
    for length in np.unique(by_length).tolist():
        rows = np.flatnonzero(by_length == length)
        letters = np.frombuffer("".join(names[row] for row in rows).encode("ascii"), dtype=np.uint8)
        for column in letters.reshape(len(rows), length).T:
            hashes[rows] = hashes[rows] * np.uint32(31) + column
    signed = np.abs(hashes.view(np.int32).astype(np.int64))
    return np.where(signed == 2**31, 0, signed) % count


def _over_two_hours(count: int) -> Ints:
    moments: Ints = _BEGIN_MS + np.arange(count) * _ACTIVE_MS // count
    return moments


def _transactions(
    owner: Ints, begin_ms: Ints, first: Ints, count: Ints, *, is_live: bool = False, is_retired: bool = False
) -> Transactions:
    flags = (np.full(len(owner), flag) for flag in (is_live, is_retired))
    return Transactions(owner, begin_ms, first, count, *flags)


def _events(
    partition: Ints, time_ms: Ints, producer_id: Ints, *, is_control: bool = False, finding: Ints | None = None
) -> _Events:
    none = np.full(len(partition), -1) if finding is None else finding
    return _Events(partition, time_ms, producer_id, np.full(len(partition), is_control), none)


def _states(owner: Ints, status: int, time_ms: Ints, of: Transactions | None = None) -> States:
    nothing = np.zeros(len(owner), dtype=np.int64)
    start_ms, first, count = (nothing - 1, nothing, nothing) if of is None else (of.begin_ms, of.first, of.count)
    is_retired = nothing > 0 if of is None else of.is_retired
    return States(nothing, owner, nothing + status, time_ms, start_ms, first, count, is_retired)


def _together(parts: list[Rows]) -> Rows:
    """The rows of all parts, one behind the other."""
    columns = zip(*(vars(part).values() for part in parts), strict=True)
    return type(parts[0])(*map(np.concatenate, columns))
