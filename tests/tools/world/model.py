"""A small Kafka with the truth about its transactions: what is in its logs, and what it knows of each.

Independent of the product: it imports nothing of it. Everything is a value, so that a world can be kept, compared and
gone on from in several ways.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

ONGOING, EMPTY = "Ongoing", "Empty"
LAST_EPOCH = 32_766  # what ends at this epoch is the producer id's last (TransactionMetadata.isEpochExhausted)
EPOCHS = LAST_EPOCH + 1  # so many transactions of version 2 use up a producer id
EPOCHS_MS = 3_600_000  # and so long that takes at ten a second
ELSEWHERE = 99  # a partition that was not copied
NOBODYS = -1  # data that belongs to no transaction of the coordinator


class Step(NamedTuple):
    """One thing that happens: to an id, a partition, or the whole cluster; `tests.tools.world.steps` has the kinds."""

    kind: str
    name: str = ""
    partition: int = -1


class Batch(NamedTuple):
    """One batch of a partition: data where `word` is None, else an end marker.

    `at_ms` is the broker's time of the append, which only markers carry in their timestamp; `client_ms` that of the
    client. `txn` is the transaction that listed the partition when the data was written, or NOBODYS.
    """

    offset: int
    producer_id: int
    epoch: int
    at_ms: int
    client_ms: int
    word: str | None
    coordinator_epoch: int
    leader_epoch: int
    txn: int = NOBODYS


class StateRow(NamedTuple):
    """One record of `__transaction_state`; a tombstone where `state` is None.

    `at_ms` is the time of its append, `update_ms` the time in its value, which for a Complete record is that of the
    decision.
    """

    offset: int
    name: str
    state: str | None
    producer_id: int
    previous_producer_id: int | None
    next_producer_id: int | None
    epoch: int
    partitions: frozenset[int]
    at_ms: int
    update_ms: int
    start_ms: int | None
    timeout_ms: int
    leader_epoch: int

    @property
    def is_deciding(self) -> bool:
        """Decided, and not all of its markers are known to be written."""
        return self.state in {"PrepareCommit", "PrepareAbort"}


class Transaction(NamedTuple):
    """What is true of one transaction: `decision` is Commit or Abort once it is made, `listed` what it held then.

    A decision is acknowledged as soon as it is written: a client that was told so may have told its own clients.
    """

    name: str
    producer_id: int
    decision: str | None = None
    listed: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Log:
    """One partition's log on its leader, and the copy that was made of it.

    `left_behind` is what a replica still has that was the leader before an unclean election.
    """

    batches: tuple[Batch, ...] = ()
    next_offset: int = 0
    leader_epoch: int = 0
    copy: tuple[Batch, ...] | None = None
    left_behind: tuple[Batch, ...] | None = None

    def open_data(self, producer_id: int) -> tuple[Batch, ...]:
        """The data of a producer after its last end marker (`ProducerStateManager`)."""
        found: tuple[Batch, ...] = ()
        for batch in self.batches:
            if batch.producer_id == producer_id:
                found = () if batch.word else (*found, batch)
        return found

    def extended(self, batch: Batch) -> Log:
        """The log with one batch more."""
        return replace(self, batches=(*self.batches, batch), next_offset=batch.offset + 1)

    def epoch_of(self, producer_id: int) -> int:
        """The producer epoch that the partition has seen last; -1 where it never saw the producer."""
        return next((b.epoch for b in reversed(self.batches) if b.producer_id == producer_id), -1)


@dataclass(frozen=True)
class StateLog:
    """`__transaction_state`: one partition of it, and the copy that was made."""

    rows: tuple[StateRow, ...] = ()
    next_offset: int = 0
    leader_epoch: int = 0
    copy: tuple[StateRow, ...] | None = None

    def last(self, name: str) -> StateRow | None:
        """What the coordinator knows of an id: its last record."""
        return next((row for row in reversed(self.rows) if row.name == name), None)


@dataclass(frozen=True)
class World:
    """Brokers, their coordinator, and what is true.

    Attributes:
        now_ms: the time on all clocks.
        version: the transaction version of the clients: 0 and 1, or 2 (KIP-890), whose decisions raise the epoch.
        old: ids whose clients speak version 1 to a cluster of version 2, as those of librdkafka do.
        two_phase: ids whose transactions never time out (KIP-939).
        logs: by number of the partition.
        states: what the coordinators wrote: of all partitions of the state, or of those that hold ids.
        state_numbers: their numbers, where they are not all; `state_count` is how many there are then.
        transactions: every one that ever began; batches name them by their place here.
        current: of each id, the transaction that it has in progress.
        clients: of each id, the producer id and epoch that its newest instance has.
        owed: of each id with a decision, the partitions whose marker is still to be written.
        next_producer_id: that the coordinator gives out next.
        first_epoch: at which the epochs of producer ids begin; near the last one, ids get new producer ids soon.
        epochs: how many transactions of version 2 use up a producer id. Where they are less than Kafka's, they are
            the first and the last of Kafka's epochs.
        names_previous: a Complete record that rotates names the producer id before it, and the tool prints that.
        event_time_ms: by how much clients date what they write into the past, as Kafka Streams does in a backfill.
        is_state_last: the state was copied after every log, as `--state-copied-last` says.
        lost: acknowledged records were lost, as `--no-records-lost` denies.
    """

    now_ms: int
    version: int
    logs: tuple[Log, ...]
    states: tuple[StateLog, ...] = (StateLog(),)
    state_numbers: tuple[int, ...] = ()
    state_count: int = 0
    transactions: tuple[Transaction, ...] = ()
    current: tuple[tuple[str, int], ...] = ()
    clients: tuple[tuple[str, tuple[int, int]], ...] = ()
    owed: tuple[tuple[str, frozenset[int]], ...] = ()
    next_producer_id: int = 1
    first_epoch: int = 0
    epochs: int = EPOCHS
    old: frozenset[str] = frozenset()
    two_phase: frozenset[str] = frozenset()
    names_previous: bool = True
    event_time_ms: int = 0
    is_state_last: bool = False
    lost: bool = False
    steps: tuple[Step, ...] = field(default=(), compare=False)

    def version_of(self, name: str) -> int:
        """The transaction version that the clients of an id speak."""
        return min(self.version, 1) if name in self.old else self.version

    def holder(self, name: str) -> int:
        """Which of `states` holds an id: Java's hash of a name of one letter is its code."""
        if self.state_numbers:
            return self.state_numbers.index(ord(name) % self.state_count)
        return ord(name) % len(self.states)

    def next_epoch(self, name: str, epoch: int) -> int:
        """At which epoch the next transaction of an id is told here: those between Kafka's first and last are not."""
        first_of_last = EPOCHS - (self.epochs - self.epochs // 2)
        is_between = self.version_of(name) > 1 and self.epochs // 2 <= epoch < first_of_last
        return first_of_last if is_between and self.epochs < EPOCHS else epoch

    def copied(self, partitions: frozenset[int]) -> frozenset[int]:
        """Those of some partitions whose logs there are here."""
        return partitions & frozenset(range(len(self.logs)))

    def last(self, name: str) -> StateRow | None:
        """What the coordinator of an id knows of it: its last record."""
        return self.states[self.holder(name)].last(name)

    def with_log(self, partition: int, log: Log) -> World:
        """The world in which a partition's log is another one."""
        return replace(self, logs=(*self.logs[:partition], log, *self.logs[partition + 1 :]))

    def with_state(self, number: int, state: StateLog) -> World:
        """The world in which a partition of the state is another one."""
        return replace(self, states=(*self.states[:number], state, *self.states[number + 1 :]))

    def appended(self, row: StateRow) -> World:
        """The world in which the coordinator of an id has written one record more."""
        number = self.holder(row.name)
        state = self.states[number]
        placed = row._replace(offset=state.next_offset, leader_epoch=state.leader_epoch)
        return self.with_state(number, replace(state, rows=(*state.rows, placed), next_offset=state.next_offset + 1))


def changed(known: tuple, name: str, value: object) -> tuple:  # type: ignore[type-arg]
    """What is known of each id, with another value for one of them."""
    return tuple(sorted({**dict(known), name: value}.items()))
