"""What was read of `__transaction_state`, as typed rows: its records, and the files that hold them.

Here table rows end: behind `StateRow.of` and `StateFiles.of` no column is looked up by name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from txn_analysis.columns.records import records_of
from txn_analysis.kafka.sections import CLUSTER_ID, STATE
from txn_analysis.kafka.transactions import StateRecord, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pyarrow as pa


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
    def of(cls, row: Mapping[str, Any]) -> StateRow:
        """A row of the table, with all of its columns or some."""
        values = [*map(row.get, cls._fields)]
        values[_LISTED] = tuple([TopicPartition(p["topic"], p["partition"]) for p in values[_LISTED] or ()])
        return cls._make(values)

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
        return StateRecord(
            transactional_id=self.transactional_id or "",
            state_partition=state_partition,
            state=self.state,
            is_tombstone=self.is_tombstone,
            producer_id=self.producer_id,
            previous_producer_id=self.previous_producer_id,
            next_producer_id=self.next_producer_id,
            producer_epoch=self.producer_epoch,
            timeout_ms=self.timeout_ms,
            topic_partitions=self.topic_partitions,
            last_update_ms=self.last_update_ms,
            recorded_ms=self.recorded_ms,
            start_ms=self.start_ms,
            client_transaction_version=self.client_transaction_version,
            is_undecodable=bool(self.is_undecodable),
            may_list_more=self.may_list_more,
            may_name_more=self.may_name_more,
            order=order,
        )


_LISTED = StateRow._fields.index("topic_partitions")


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
    def of(cls, section_rows: Iterable[Mapping[str, Any]]) -> StateFiles:
        """From rows of `Evidence.section_rows`."""
        rows = list(section_rows)
        return cls(
            tuple([StateFile._make(map(row.get, StateFile._fields)) for row in rows if row["kind"] == STATE]),
            any(row["kind"] == STATE or row["kind"].startswith("console") for row in rows if not row["capture_rank"]),
            frozenset(row["stated"] for row in rows if row["kind"] == CLUSTER_ID),
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
