"""The records of the coordinator in the partitions that hold them, and those of each id in their order."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from txn_analysis.columns.records import records_of
from txn_analysis.coordinator.chain import StateRows
from txn_analysis.coordinator.history import in_order
from txn_analysis.coordinator.partition_count import StateCount, state_count, sums_of_files
from txn_analysis.kafka.names import CLUSTER_ID, STATE, state_partition
from txn_analysis.kafka.transactions import StateRecord, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    import pyarrow as pa

    from txn_analysis.coordinator.chain import StateChain
    from txn_analysis.coordinator.history import History
    from txn_analysis.coordinator.partition_count import IdSums
    from txn_analysis.settings import Settings
    from txn_analysis.tables.inputs import InputSection


class StateRow(NamedTuple):
    """One row of `transaction_states` that is evidence: where it was read, where it stands, and what it says.

    `capture_rank` is that of its capture, 0 for the judged one; `input_moment_ms` the newest moment of its input, by
    which console exports are ordered. Columns that were not read are None, and so is all that a tombstone lacks.
    """

    input_id: str
    section_index: int
    ordinal: int
    capture_rank: int
    input_moment_ms: int | None
    state_partition: int | None
    offset: int | None
    recorded_ms: int | None
    batch_base_offset: int | None
    batch_last_offset: int | None
    leader_epoch: int | None
    transactional_id: str | None
    transactional_id_hash: int | None
    is_tombstone: bool
    is_undecodable: bool
    state: str | None
    producer_id: int | None
    previous_producer_id: int | None
    next_producer_id: int | None
    producer_epoch: int | None
    timeout_ms: int | None
    topic_partitions: tuple[TopicPartition, ...]
    last_update_ms: int | None
    start_ms: int | None
    client_transaction_version: int | None
    may_list_more: bool | None
    may_name_more: bool | None

    @classmethod
    def listed(cls, rows: pa.Table) -> list[StateRow]:
        """All rows of a table with its columns."""
        found = records_of(cls, rows)
        return [row if row.topic_partitions else row._replace(topic_partitions=()) for row in found]

    @property
    def is_console(self) -> bool:
        """A console export holds it, which names no partition and no offset."""
        return self.state_partition is None

    @property
    def producer_ids(self) -> set[int | None]:
        """The producer ids that the record stands for (KIP-890's tagged fields)."""
        return {self.producer_id, self.previous_producer_id, self.next_producer_id}

    def placed(self, state_partition: int | None, order: tuple[Any, ...] = ()) -> StateRecord:
        """What the row says, as a record in the partition that holds it; `order` sorts the records of one id."""
        name, _, *said = _SAID(self)
        return StateRecord._make((name or "", state_partition, *said, order, False))


_SAID = attrgetter(*StateRecord._fields[: StateRecord._fields.index("order")])


class StateFile(NamedTuple):
    """One dumped or copied file of one partition of the state.

    `end_offset` is the one after its last batch; `log_dir` the log directory that it lies in, None for a dump.
    """

    input_id: str
    section_index: int
    capture_rank: int
    partition: int
    file_base_offset: int
    end_offset: int | None
    log_dir: str | None = None


@dataclass(frozen=True)
class StateFiles:
    """The files of some evidence, as far as the coordinator's side asks.

    Attributes:
        every: the files of the state, of all captures.
        has_own_records: the judged capture holds a file of the state, or a console export of it.
        cluster_ids: every `cluster.id` that a log directory states in its `meta.properties`.
    """

    every: tuple[StateFile, ...] = ()
    has_own_records: bool = False
    cluster_ids: frozenset[str] = frozenset()

    @classmethod
    def of(cls, sections: Collection[InputSection]) -> StateFiles:
        """Among all sections of the evidence."""
        return cls(
            tuple([StateFile(*(getattr(s, name) for name in StateFile._fields)) for s in sections if s.kind == STATE]),
            any(s.kind == STATE or s.kind.startswith("console") for s in sections if not s.capture_rank),
            frozenset(s.stated for s in sections if s.kind == CLUSTER_ID and s.stated is not None),
        )

    @property
    def own(self) -> list[StateFile]:
        """The files of the state that the judged capture holds."""
        return [file for file in self.every if not file.capture_rank]

    @property
    def partitions(self) -> list[int]:
        """The partitions of the state that the files are of."""
        return [file.partition for file in self.every]

    @property
    def dumped_rank(self) -> int:
        """The rank of the newest capture with a file of the state: dumped records count as of then; 0 without any."""
        return min((file.capture_rank for file in self.every), default=0)


class Placing(NamedTuple):
    """Where the records of a run belong.

    Attributes:
        state_count: how many partitions the state has, and why.
        dumped_rank: of the newest capture that has a dump or a folder of the state; 0 where none has.
        as_of_ms: the moment of the copy, where the operator states it.
    """

    state_count: StateCount
    dumped_rank: int
    as_of_ms: int | None

    @classmethod
    def of(cls, settings: Settings, files: StateFiles, ids: IdSums) -> Placing:
        """By what the ids of all records, and the names of the files, say of the count."""
        counted = state_count(settings.transaction_state_partitions, ids.plus(sums_of_files(files.partitions)))
        return cls(counted, files.dumped_rank, settings.as_of_ms)

    def partition_of(self, row: StateRow) -> int | None:
        """The partition of the state that holds a record: its own, or for an export the one that its id hashes to."""
        return self.hashed(row) if row.state_partition is None else row.state_partition

    def order_of(self, row: StateRow) -> tuple[Any, ...]:
        """The place of a record among those of its id.

        Dumped ones by offset, whichever capture they are from: the offset alone says which record it is. Console
        exports, which have no offsets, by capture, then by the newest moment of each export, then by arrival. Within
        one capture a dump counts after an export.
        """
        if row.state_partition is None:
            return (-row.capture_rank, False, row.input_moment_ms or 0, row.input_id, row.ordinal)
        return (-self.dumped_rank, True, row.offset, "", 0)

    def record_of(self, row: StateRow) -> StateRecord:
        """A row as a record in its place."""
        return row.placed(self.partition_of(row), self.order_of(row))

    def hashed(self, row: StateRow) -> int | None:
        """The partition of the state that its id hashes to; None where it has none."""
        hashed = row.transactional_id_hash
        return None if hashed is None else state_partition(hashed, self.state_count.used)


def chains_of(rows: Iterable[StateRow], placing: Placing) -> dict[int, StateChain]:
    """By partition of the state what its records say of themselves; all records of each partition are needed."""
    found: defaultdict[int, list[tuple[StateRow, tuple[Any, ...]]]] = defaultdict(list)
    for row in rows:
        number = placing.partition_of(row)
        if number is not None:
            found[number].append((row, placing.order_of(row)))
    return {number: StateRows.of(own, placing.as_of_ms).chain() for number, own in found.items()}


def histories_of(rows: Iterable[StateRow], placing: Placing) -> Iterator[History]:
    """The records of each id, in order; all records of each id are needed. None is empty."""
    found: defaultdict[str, list[StateRecord]] = defaultdict(list)
    for row in rows:
        if row.transactional_id is not None:
            found[row.transactional_id].append(placing.record_of(row))
    return filter(None, map(in_order, found.values()))


def producers_of(history: History) -> set[int]:
    """The producer ids that an id has, or had."""
    return {i for record in history for i in record.producer_ids if i is not None}
