"""The records of the coordinator in the partitions that hold them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.columns.arrays import ABSENT, numbers
from txn_analysis.coordinator.partition_count import StateCount, positive_hashes, state_count, sums_of_files
from txn_analysis.kafka.names import CLUSTER_ID, STATE
from txn_analysis.kafka.transactions import NAMED
from txn_analysis.tables import TRANSACTION_STATES
from txn_analysis.tables.given import given_schema

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from txn_analysis.columns.arrays import Array
    from txn_analysis.coordinator.partition_count import IdSums
    from txn_analysis.settings import Settings
    from txn_analysis.tables.inputs import InputSection

STATE_COLUMNS = (
    *("input_id", "section_index", "ordinal", "capture_rank", "input_moment_ms", "state_partition", "offset"),
    *("recorded_ms", "batch_base_offset", "batch_last_offset", "leader_epoch", "transactional_id"),
    *("transactional_id_hash", "is_tombstone", "is_undecodable", "state", *NAMED, "producer_epoch", "timeout_ms"),
    *("topic_partitions", "last_update_ms", "start_ms", "client_transaction_version", "may_list_more", "may_name_more"),
)
"""Of `transaction_states`, and of the capture that a row was read with: `capture_rank` is 0 for the judged one,
`input_moment_ms` the newest moment of its input, by which console exports are ordered."""
STATES = pa.schema([*given_schema(TRANSACTION_STATES, *STATE_COLUMNS), ("held_by", pa.int32())])
"""One row is one record of the coordinator that is evidence; `held_by` is the partition of the state that holds it: its
own, or for an export the one that its id hashes to."""


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

    @property
    def partition_count(self) -> int:
        """How many partitions the state is taken to have."""
        return self.state_count.used

    @classmethod
    def of(cls, settings: Settings, files: StateFiles, ids: IdSums) -> Placing:
        """By what the ids of all records, and the names of the files, say of the count."""
        counted = state_count(settings.transaction_state_partitions, ids.plus(sums_of_files(files.partitions)))
        return cls(counted, files.dumped_rank, settings.as_of_ms)


class Placings(NamedTuple):
    """Where the records of some audits belong, by audit."""

    of: Mapping[int, Placing]

    def each(self, audits: pa.ChunkedArray | pa.Array, name: str) -> Array:
        """Of rows of some audits what their placing says: `dumped_rank` or `partition_count`."""
        known = np.array(sorted(self.of), np.int64)
        said = np.array([getattr(self.of[number], name) for number in known.tolist()], np.int64)
        return said[np.searchsorted(known, numbers(audits, 0))]


def hashed_to(rows: pa.RecordBatch | pa.Table, partition_count: Array | int) -> Array:
    """The partition of the state that the id of each row hashes to; -1 where it has none."""
    hashes = rows["transactional_id_hash"]
    own = positive_hashes(numbers(hashes, 0)) % partition_count
    return np.where(hashes.is_null().to_numpy(zero_copy_only=False), ABSENT, own)


def with_held_by(rows: pa.RecordBatch, partition_count: Array | int) -> pa.RecordBatch:
    """The rows with the partition of the state that holds each."""
    of_id = hashed_to(rows, partition_count).astype(np.int32)
    held_by = pc.coalesce(rows["state_partition"], pa.array(of_id, mask=of_id == ABSENT))
    return rows.append_column(STATES.field("held_by"), held_by)
