"""A small Kafka: brokers, coordinators and clocks, and what an operator's copies of their files would hold.

Everything that happens is one *moment* (a number); copies of single partitions may be made at different moments.
The clients are as broken as asked for: brokers verify nothing, as before 3.6. The simulator knows of every transaction
that is open in a copy whether an abort marker would be wrong.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from tests.oracle.broker import ProducerEntry, replay
from tests.oracle.copies import Copy, Log, OpenKey, Truth
from tests.oracle.dump_writer import partition_folder
from tests.oracle.model import Batch, StateRecord, StateValue, TopicPartition, batch_bytes, state_partition
from tests.oracle.state_writer import STATE_TOPIC, state_batch

GROUP_TOPIC = "__consumer_offsets"
FIRST_TIME_MS = 1_795_230_000_000
LAST_PRODUCER_EPOCH = 32766
TWO_PHASE_TIMEOUT_MS = 2_147_483_647


@dataclass
class TransactionalId:
    """What its coordinator holds in memory; `awaited` are the partitions whose marker is not written yet."""

    name: str
    value: StateValue
    awaited: set[TopicPartition] = field(default_factory=set)

    @property
    def deadline_ms(self) -> int | None:
        """When its coordinator aborts it; None if it will not."""
        value = self.value
        if value.state != "Ongoing" or value.start_ms is None or value.timeout_ms == TWO_PHASE_TIMEOUT_MS:
            return None
        return value.start_ms + value.timeout_ms


class Cluster:
    """Topics by name with their number of partitions. `transaction_version` is the cluster's and its clients'."""

    def __init__(
        self,
        topics: Mapping[str, int],
        *,
        state_partitions: int = 4,
        transaction_version: int = 0,
        log_append_time: Iterable[str] = (),
        skew_ms: Mapping[TopicPartition, int] | None = None,
    ) -> None:
        """Start empty. `skew_ms` is how far the clock of a partition's leader is ahead."""
        names = [(topic, partition) for topic, count in topics.items() for partition in range(count)]
        states = [(STATE_TOPIC, partition) for partition in range(state_partitions)]
        skew = skew_ms or {}
        self.logs = {name: Log(*name, skew.get(name, 0), name[0] in set(log_append_time)) for name in names}
        self.states = [Log(*name, skew.get(name, 0)) for name in states]
        self.transaction_version = transaction_version
        self.coordinator_epochs = [0] * state_partitions
        self.stopped_coordinators: set[int] = set()
        self.unreachable: set[TopicPartition] = set()
        self.ids: dict[str, TransactionalId] = {}
        self.sequences: dict[tuple[TopicPartition, int, int], int] = {}
        self.now_ms = FIRST_TIME_MS
        self.moment = 0
        self.next_producer_id = 0

    # Clients: each returns whether the cluster accepted it.

    def init_producer(self, name: str, *, timeout_ms: int = 60_000, first_epoch: int = 0) -> bool:
        """InitProducerId: a new epoch, and a new producer id where there is none or its epochs are used up."""
        if self.is_stopped(name):
            return False
        if name in self.ids and self.ids[name].value.state == "Ongoing":
            self._prepare(name, "Abort", epoch_bump=1)
        current = self.ids.get(name)
        if current and current.value.state.startswith("Prepare"):
            return False
        producer_id, epoch = (
            (current.value.producer_id, current.value.producer_epoch + 1) if current else (None, first_epoch)
        )
        if producer_id is None:
            producer_id = self._new_producer_id()
        elif epoch > LAST_PRODUCER_EPOCH:
            producer_id, epoch = self._new_producer_id(), 0
        value = StateValue(producer_id, epoch, "Empty", (), 0, timeout_ms, None, *self._value_versions())
        self.ids.setdefault(name, TransactionalId(name, value))
        self._write_state(name, value)
        return True

    def add_partitions(self, name: str, *partitions: TopicPartition) -> bool:
        """AddPartitionsToTxn; begins the transaction."""
        current = self.ids.get(name)
        if not current or current.value.state.startswith("Prepare") or self.is_stopped(name):
            return False
        value = current.value
        is_running = value.state == "Ongoing"
        added = tuple(sorted({*value.partitions, *partitions}))
        start_ms = value.start_ms if is_running else self._coordinator_ms(name)
        self._write_state(name, replace(value, state="Ongoing", partitions=added, start_ms=start_ms))
        return True

    def produce(
        self, to: TopicPartition, producer_id: int, epoch: int, *, records: int = 2, client_clock_ms: int = 0
    ) -> bool:
        """A transactional data batch, verified by nobody; `client_clock_ms` is how far the client's clock is ahead."""
        log = self.logs[to]
        entry = log.state.producers.get(producer_id)
        if entry and epoch < entry.producer_epoch:
            return False
        is_broker_time = log.is_log_append_time or to[0] == GROUP_TOPIC
        sequence = 0 if to[0] == GROUP_TOPIC else self.sequences.get((to, producer_id, epoch), 0)
        self.sequences[to, producer_id, epoch] = sequence + records
        offset = log.state.end_offset
        batch = Batch(offset, offset + records - 1, records, producer_id, epoch, sequence, is_transactional=True)
        time_ms = self.now_ms + (log.skew_ms if is_broker_time else client_clock_ms)
        self._append(log, replace(batch, max_timestamp_ms=time_ms, size_bytes=batch_bytes([(None, 100)] * records)))
        return True

    def end_transaction(self, name: str, outcome: str) -> bool:
        """EndTxn with outcome `Commit` or `Abort`."""
        if name not in self.ids or self.ids[name].value.state != "Ongoing" or self.is_stopped(name):
            return False
        self._prepare(name, outcome, epoch_bump=1 if self.transaction_version >= 2 else 0)
        return True

    # The coordinator and time.

    def sleep(self, duration_ms: int) -> None:
        """Let time pass; coordinators abort what exceeds its timeout meanwhile, and retry markers at the end."""
        until_ms = self.now_ms + duration_ms
        due = sorted(
            (current.deadline_ms, name) for name, current in self.ids.items() if current.deadline_ms is not None
        )
        for deadline_ms, name in due:
            if deadline_ms <= until_ms and not self.is_stopped(name):
                self.now_ms = max(self.now_ms, deadline_ms)
                self._prepare(name, "Abort", epoch_bump=1)
        self.now_ms = max(self.now_ms, until_ms)
        self.write_markers()

    def write_markers(self) -> None:
        """Write the markers that are due at every partition that can be reached, and complete what is done."""
        for name, current in self.ids.items():
            value = current.value
            if not value.state.startswith("Prepare") or self.is_stopped(name):
                continue
            marker = "COMMIT" if value.state == "PrepareCommit" else "ABORT"
            for partition in sorted(current.awaited - self.unreachable):
                epoch = self.coordinator_epochs[self._state_partition(name)]
                self._write_marker(self.logs[partition], value.producer_id, value.producer_epoch, marker, epoch)
                current.awaited.discard(partition)
            if not current.awaited:
                self._complete(name, value)

    def move_coordinator(self, partition: int) -> None:
        """Another broker leads that partition of `__transaction_state`."""
        self.coordinator_epochs[partition] += 1

    def expire(self, name: str) -> bool:
        """The coordinator forgets an idle id: a tombstone."""
        idle_states = {"Empty", "CompleteCommit", "CompleteAbort"}
        if name not in self.ids or self.ids[name].value.state not in idle_states or self.is_stopped(name):
            return False
        self._write_state(name, None)
        del self.ids[name]
        return True

    # Administrators and brokers.

    def administrator_aborts(self, where: TopicPartition, producer_id: int) -> bool:
        """`kafka-transactions.sh abort` of the open transaction of a producer."""
        log = self.logs[where]
        entry = log.state.producers.get(producer_id)
        if not entry or not entry.txn:
            return False
        log.administrator_markers.add(log.state.end_offset)
        self._write_marker(log, producer_id, entry.producer_epoch, "ABORT", entry.coordinator_epoch or 0)
        return True

    def roll(self, where: TopicPartition) -> None:
        """Begin a new segment, unless the last one is empty."""
        log = self.logs[where]
        if log.state.end_offset > (log.rolls[-1][1] if log.rolls else 0):
            self.moment += 1
            log.rolls.append((self.moment, log.state.end_offset))

    def delete_records(self, where: TopicPartition, before_offset: int) -> None:
        """DeleteRecords: files wholly below that offset go."""
        self.moment += 1
        self.logs[where].starts.append((self.moment, min(before_offset, self.logs[where].state.end_offset)))

    # Copies.

    def copy(self, at: Mapping[TopicPartition, int] | None = None) -> Copy:
        """Copy every partition as it was at its moment (the present one where none is given)."""
        moments = at or {}
        logs = {name: log.segments(moments.get(name, self.moment)) for name, log in self.logs.items()}
        states = (log.segments(moments.get((log.topic, log.partition), self.moment)) for log in self.states)
        snapshots: dict[tuple[str, int], dict[int, ProducerEntry]] = {}
        found: dict[OpenKey, Truth] = {}
        for name, history in logs.items():
            first = history.segments[0].base_offset
            taken = {segment.base_offset: self.logs[name].snapshot(segment.base_offset) for segment in history.segments}
            snapshots |= {(partition_folder(history), offset): taken[offset] for offset in taken if offset > 0}
            opened = replay(history.batches, snapshot=taken[first], from_offset=first).open_starts()
            found |= {(*name, producer, start): self.truth(name, producer, start) for producer, start in opened.items()}
        return Copy(tuple(logs.values()), tuple(states), snapshots, found, self.now_ms)

    def copy_in_order(self, *, logs_at: int, state_at: int) -> Copy:
        """Copy all logs at one moment and the whole state at another."""
        states = {(log.topic, log.partition): state_at for log in self.states}
        return self.copy(dict.fromkeys(self.logs, logs_at) | states)

    def truth(self, where: TopicPartition, producer_id: int, offset: int) -> Truth:
        """What became of the transaction of that producer that covers the offset."""
        log = self.logs[where]
        for ended in log.state.ended:
            if ended.producer_id == producer_id and ended.start_offset <= offset < ended.end_offset:
                is_administrator = ended.end_offset in log.administrator_markers
                return Truth.ENDED_BY_ADMINISTRATOR if is_administrator else Truth.ENDED_BY_COORDINATOR
        for current in self.ids.values():
            if (
                current.value.producer_id == producer_id
                and current.value.state == "Ongoing"
                and where in current.value.partitions
            ):
                return Truth.LIVE
            if current.value.producer_id == producer_id and where in current.awaited:
                return Truth.PENDING
        return Truth.HANGING

    def is_stopped(self, name: str) -> bool:
        """Whether the id's coordinator does not work at present."""
        return self._state_partition(name) in self.stopped_coordinators

    # What only the methods above use.

    def _new_producer_id(self) -> int:
        self.next_producer_id += 1
        return self.next_producer_id - 1

    def _value_versions(self) -> tuple[int, int]:
        return (0, 0) if self.transaction_version == 0 else (1, self.transaction_version)

    def _state_partition(self, name: str) -> int:
        return state_partition(name, len(self.states))

    def _coordinator_ms(self, name: str) -> int:
        return self.now_ms + self.states[self._state_partition(name)].skew_ms

    def _prepare(self, name: str, outcome: str, *, epoch_bump: int) -> None:
        value = self.ids[name].value
        self.ids[name].awaited = set(value.partitions)
        self._write_state(
            name, replace(value, state=f"Prepare{outcome}", producer_epoch=value.producer_epoch + epoch_bump)
        )
        self.write_markers()

    def _complete(self, name: str, value: StateValue) -> None:
        done = replace(value, state=value.state.replace("Prepare", "Complete"), partitions=())
        # Transaction version 2 has no InitProducerId between transactions: the record itself moves on to a new id.
        if self.transaction_version >= 2 and value.producer_epoch > LAST_PRODUCER_EPOCH:
            done = replace(done, producer_id=self._new_producer_id(), producer_epoch=0)
        self._write_state(name, done)

    def _write_state(self, name: str, value: StateValue | None) -> None:
        partition, now_ms = self._state_partition(name), self._coordinator_ms(name)
        log = self.states[partition]
        written = value and replace(value, last_update_ms=now_ms)
        if written:
            self.ids[name].value = written
        batch = state_batch(
            log.state.end_offset, now_ms, StateRecord(name, written), self.coordinator_epochs[partition]
        )
        self._append(log, batch)

    def _write_marker(self, log: Log, producer_id: int, epoch: int, marker: str, coordinator_epoch: int) -> None:
        offset, now_ms = log.state.end_offset, self.now_ms + log.skew_ms
        batch = Batch(
            offset, offset, 1, producer_id, epoch, is_transactional=True, is_control=True, max_timestamp_ms=now_ms
        )
        self._append(log, replace(batch, marker=marker, coordinator_epoch=coordinator_epoch))

    def _append(self, log: Log, batch: Batch) -> None:
        self.moment += 1
        if log.is_log_append_time:
            batch = replace(batch, timestamp_type="LogAppendTime")
        log.batches.append((self.moment, batch))
        log.state.append(batch)
        self.now_ms += 1
