"""What was read of logs: of users' partitions, of `__transaction_state` and of `__consumer_offsets`.

`log_pieces` sums up ranges of batches: all that rebuilding the producer state needs of them. Two neighbouring ranges
combine to what one range over both would say, so that no batch is ever shuffled.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

from txn_analysis.columns.records import Int32
from txn_analysis.kafka.transactions import TopicPartition
from txn_analysis.tables.appends import ProducerAppends
from txn_analysis.tables.schema import (
    BIGINT,
    BOOLEAN,
    INT,
    STRING,
    Col,
    Table,
    columns_of,
    in_order,
    not_negative,
    one_of,
    struct,
)

LOG_BATCHES = Table(
    name="log_batches",
    grain="one record batch of one dumped segment",
    key=("input_id", "section_index", "position"),
    columns=(
        Col("ingest_id", STRING, "the ingest that read the content", nullable=False),
        Col("input_id", STRING, "fingerprint of the input", nullable=False),
        Col("section_index", INT, "`Dumping …` section of the input", nullable=False),
        Col("topic", STRING, "topic, from the dumped path", nullable=False),
        Col("partition", INT, "partition, from the dumped path", nullable=False),
        Col("base_offset", BIGINT, "offset of the first record", nullable=False),
        Col("last_offset", BIGINT, "offset of the last record, present or compacted away", nullable=False),
        Col("record_count", INT, "records physically present; 0 after compaction"),
        Col("producer_id", BIGINT, "producer id; NULL without one"),
        Col("producer_epoch", INT, "producer epoch; NULL without a producer"),
        Col("base_sequence", INT, "sequence of the first record; NULL without one"),
        Col("last_sequence", INT, "sequence of the last record; NULL without one"),
        Col("is_transactional", BOOLEAN, "written in a transaction", nullable=False),
        Col("is_control", BOOLEAN, "a control batch, such as an end marker", nullable=False),
        Col("marker", STRING, "COMMIT, ABORT or another control type; NULL where the dump does not print it"),
        Col("coordinator_epoch", INT, "coordinator epoch in the end marker; NULL where not printed"),
        Col("position", BIGINT, "byte position in the segment", nullable=False),
        Col("size_bytes", INT, "size of the batch in the segment", nullable=False),
        Col("max_timestamp_ms", BIGINT, "largest timestamp of the batch; NULL without one"),
        Col("timestamp_type", STRING, "CreateTime or LogAppendTime; NULL before message format 1"),
        Col("leader_epoch", INT, "partition leader epoch when it was appended"),
        Col("delete_horizon_ms", BIGINT, "when compaction may remove it; NULL if not set or not printed"),
        Col("codec", STRING, "compression codec, lower case"),
        Col("crc", BIGINT, "checksum as printed"),
        Col(
            "is_valid",
            BOOLEAN,
            "the checksum is right; NULL where it decides nothing and was not looked at (log_dir without --verify)",
        ),
        Col("is_contested", BOOLEAN, "another line of its part of the dump claims the position", nullable=False),
        Col("may_be_header_keys", BOOLEAN, "it may be text of a record's header keys before it", nullable=False),
        Col("record_line_count", INT, "record lines proven to be its own; NULL where none is printed, or not counted"),
        Col("text_start_bytes", BIGINT, "where its line begins in the input's text", nullable=False),
        Col("text_bytes", BIGINT, "bytes of its line and of its proven record lines", nullable=False),
    ),
    partition_by=("ingest_id",),
    checks={
        "offsets_in_order": in_order("base_offset", "last_offset"),
        "epochs_not_negative": not_negative("producer_epoch", "coordinator_epoch"),
        "known_timestamp_type": one_of("timestamp_type", ("CreateTime", "LogAppendTime")),
    },
)


class TextGap(NamedTuple):
    """Bytes of a text that nothing proves."""

    offset_bytes: int
    length_bytes: int


class BatchRangeSummary(NamedTuple):
    """One contiguous range of batches of one copy of a segment: a row of `log_pieces`.

    `is_used` is False where all of it may be text of a client, so that only its place counts.
    """

    ingest_id: Annotated[str, "the ingest that read the content"]
    input_id: Annotated[str, "fingerprint of the input"]
    section_index: Annotated[Int32, "`Dumping …` section of the input"]
    topic: Annotated[str, "topic"]
    partition: Annotated[Int32, "partition"]
    first_position: Annotated[int, "position of its first batch in the segment"]
    end_position: Annotated[int, "position after its last batch"]
    first_offset: Annotated[int, "base offset of its first batch"]
    last_offset: Annotated[int, "last offset of its last batch"]
    text_start_bytes: Annotated[int, "where its first batch line begins"]
    text_end_bytes: Annotated[int, "where the proven text of its last batch ends"]
    text_gaps: Annotated[tuple[TextGap, ...], "text inside that nothing proves"]
    last_hole_offset: Annotated[int | None, "last offset inside that no batch covers; compaction leaves such holes"]
    last_invalid_offset: Annotated[int | None, "last offset of the last batch whose checksum is wrong"]
    contested_offset: Annotated[int | None, "base offset of the first batch that two lines claim; all of the piece is"]
    doubtful_offset: Annotated[
        int | None, "base offset of the first batch that may be header keys of a record; all may"
    ]
    lacking_batch_count: Annotated[int, "batches without proof of all their record lines"]
    lacking_offset: Annotated[int | None, "base offset of the first such batch"]
    is_marker_printed: Annotated[bool | None, "end markers show their coordinator epoch; NULL without any marker"]
    record_count: Annotated[int, "data records"]
    size_bytes: Annotated[int, "bytes of its batches"]
    first_moment_ms: Annotated[int | None, "first broker-clock timestamp by offset"]
    last_moment_ms: Annotated[int | None, "last broker-clock timestamp by offset"]
    max_moment_ms: Annotated[
        int | None, "largest broker-clock timestamp, of batches that are certainly no client's text"
    ]
    last_timestamp_ms: Annotated[int | None, "last positive timestamp by offset, any clock"]
    max_timestamp_ms: Annotated[int | None, "largest timestamp, any clock"]
    first_leader_epoch: Annotated[Int32 | None, "first partition leader epoch that is known"]
    leader_epoch: Annotated[Int32 | None, "largest partition leader epoch"]
    content_digest: Annotated[int, "sum of digests of its batches; the same in any copy of these offsets"]
    producers: Annotated[
        ProducerAppends,
        "every producer: its part of a transaction before its first end marker, and after its last; its last epochs",
    ]
    last_empty_offset: Annotated[int | None, "last offset of the last batch without a record; compaction leaves such"]
    first_epoch_fall_offset: Annotated[int | None, "base offset of the first batch below an earlier one's leader epoch"]
    is_used: bool = True

    @property
    def section(self) -> tuple[str, int]:
        """The input and the section that it is of."""
        return self.input_id, self.section_index

    @property
    def is_doubted(self) -> bool:
        """All of it may be text of a client."""
        return self.contested_offset is not None or self.doubtful_offset is not None


LOG_PIECES = Table(
    name="log_pieces",
    grain="one piece of a log: a contiguous range of batches of one dumped segment, summed up",
    key=("input_id", "section_index", "first_position"),
    columns=columns_of(BatchRangeSummary),
    partition_by=("ingest_id",),
    checks={
        "offsets_in_order": in_order("first_offset", "last_offset"),
        "positions_in_order": in_order("first_position", "end_position"),
    },
)


class SnapshotEntry(NamedTuple):
    """One producer in one snapshot file, or in one answer to DescribeProducers: a row of `producer_snapshots`."""

    ingest_id: Annotated[str, "the ingest that read the content"]
    input_id: Annotated[str, "fingerprint of the input"]
    section_index: Annotated[Int32, "`Dumping …` section of the input"]
    topic: Annotated[str, "topic, from the dumped path"]
    partition: Annotated[Int32, "partition, from the dumped path"]
    snapshot_offset: Annotated[
        int, "the state covers records below this offset; of an answer, the first offset that was fetched"
    ]
    producer_id: Annotated[int, "producer id"]
    producer_epoch: Annotated[Int32, "its latest epoch on the partition"]
    coordinator_epoch: Annotated[Int32 | None, "coordinator epoch of its last end marker; NULL if none was seen"]
    current_txn_start_offset: Annotated[int | None, "start of its open transaction; NULL if none is open"]
    last_timestamp_ms: Annotated[int | None, "timestamp of its last append; NULL if not printed"]
    last_sequence: Annotated[Int32 | None, "sequence of its last data batch; NULL if not printed"]
    last_offset: Annotated[int | None, "offset of its last data batch; NULL if not printed"]


PRODUCER_SNAPSHOTS = Table(
    name="producer_snapshots",
    grain="one producer in one snapshot file, or in one answer to DescribeProducers",
    key=("input_id", "section_index", "producer_id"),
    columns=columns_of(SnapshotEntry),
    partition_by=("ingest_id",),
    checks={"epochs_not_negative": not_negative("producer_epoch", "coordinator_epoch")},
)


ABORTED_TRANSACTIONS = Table(
    name="aborted_transactions",
    grain="one entry of one .txnindex file",
    key=("input_id", "section_index", "producer_id", "first_offset"),
    columns=(
        Col("ingest_id", STRING, "the ingest that read the content", nullable=False),
        Col("input_id", STRING, "fingerprint of the input", nullable=False),
        Col("section_index", INT, "`Dumping …` section of the input", nullable=False),
        Col("topic", STRING, "topic, from the dumped path", nullable=False),
        Col("partition", INT, "partition, from the dumped path", nullable=False),
        Col("producer_id", BIGINT, "producer id", nullable=False),
        Col("first_offset", BIGINT, "start of the transaction", nullable=False),
        Col("last_offset", BIGINT, "offset of the ABORT marker", nullable=False),
        Col("last_stable_offset", BIGINT, "last stable offset after the marker", nullable=False),
    ),
    partition_by=("ingest_id",),
    checks={"offsets_in_order": in_order("first_offset", "last_offset")},
)


class StateRecord(NamedTuple):
    """A record of `__transaction_state`: a row of `transaction_states`; it lacks only which input it is of.

    Where nothing but its place is said, it is a record that exists and cannot be read, and may be of any id.
    """

    ordinal: Annotated[
        int, "order in the section: byte offset of the record's text; in a log directory the record's offset"
    ]
    state_partition: Annotated[Int32 | None, "partition of `__transaction_state`; NULL in a console export"] = None
    offset: Annotated[int | None, "offset of the record; NULL in a console export"] = None
    recorded_ms: Annotated[int | None, "broker's time of the append; NULL in a console export"] = None
    is_after_gap: Annotated[bool | None, "the offset just before is not in the same file; NULL at a file's start"] = (
        None
    )
    batch_base_offset: Annotated[
        int | None, "first offset of its batch; NULL where no batch is printed, or none was read"
    ] = None
    batch_last_offset: Annotated[int | None, "last offset of its batch; NULL like batch_base_offset"] = None
    leader_epoch: Annotated[
        Int32 | None, "leader epoch of the state's partition in its batch; NULL like batch_base_offset"
    ] = None
    transactional_id: Annotated[str | None, "transactional id; NULL if the record's key could not be decoded"] = None
    transactional_id_hash: Annotated[Int32 | None, "Java's String.hashCode of the id"] = None
    is_tombstone: Annotated[bool, "the id was removed (expired)"] = False
    is_undecodable: Annotated[bool, "the tool could not decode the record"] = True
    state: Annotated[str | None, "Empty, Ongoing, PrepareCommit, PrepareAbort, CompleteCommit, CompleteAbort, …"] = None
    producer_id: Annotated[int | None, "producer id"] = None
    previous_producer_id: Annotated[int | None, "producer id before a rotation; NULL if none"] = None
    next_producer_id: Annotated[int | None, "producer id after a rotation; NULL if none"] = None
    producer_epoch: Annotated[Int32 | None, "producer epoch"] = None
    timeout_ms: Annotated[int | None, "the transaction's timeout"] = None
    topic_partitions: Annotated[
        tuple[TopicPartition, ...] | None, struct(topic=STRING, partition=INT), "sorted; empty if none"
    ] = None
    last_update_ms: Annotated[int | None, "coordinator's time of the change"] = None
    start_ms: Annotated[int | None, "coordinator's time of the transaction's start; NULL if none or not printed"] = None
    client_transaction_version: Annotated[Int32 | None, "transaction version of the client; NULL if not printed"] = None
    may_list_more: Annotated[
        bool | None,
        "tagged fields of a newer Kafka are in the value, or may be, so that its partitions may be more; false where "
        "the broker's own file was read, whose list is whole; NULL without such fields",
    ] = None
    may_name_more: Annotated[
        bool | None, "a field that was not printed, or is of a newer Kafka, can hold a producer id; NULL without"
    ] = None


TRANSACTION_STATES = Table(
    name="transaction_states",
    grain="one record of `__transaction_state`, tombstones and undecodable records included",
    key=("input_id", "section_index", "ordinal"),
    columns=(
        Col("ingest_id", STRING, "the ingest that read the content", nullable=False),
        Col("input_id", STRING, "fingerprint of the input", nullable=False),
        Col("section_index", INT, "`Dumping …` section; 0 in a console export", nullable=False),
        *columns_of(StateRecord),
    ),
    partition_by=("ingest_id",),
    checks={"epochs_not_negative": not_negative("producer_epoch")},
)

_PLACE = ("ordinal", "offset", "is_after_gap", "batch_base_offset", "batch_last_offset", "transactional_id_hash")
CURRENT_STATES = Table(
    name="current_states",
    grain="one transactional id in one run, with its newest record of `__transaction_state`, a tombstone included",
    key=("run_id", "transactional_id"),
    columns=(
        Col("run_id", STRING, "the run", nullable=False),
        *sorted(
            (column for column in columns_of(StateRecord) if column.name not in _PLACE),
            key=lambda column: column.name != "transactional_id",
        ),
        Col("is_hidden", BOOLEAN, "a record that could not be decoded may be newer", nullable=False),
        Col("is_id_uncertain", BOOLEAN, "a tombstone of an export as text: an id that ends so is gone", nullable=False),
    ),
    partition_by=("run_id",),
)


GROUP_OFFSETS = Table(
    name="group_offsets",
    grain="one consumer group with offsets committed by one producer in one range of a dumped segment of "
    "`__consumer_offsets`, or, without a group, such a range: the keys of all of its records were read",
    key=("input_id", "section_index", "text_start_bytes", "group_id", "producer_id"),
    columns=(
        Col("ingest_id", STRING, "the ingest that read the content", nullable=False),
        Col("input_id", STRING, "fingerprint of the input", nullable=False),
        Col("section_index", INT, "`Dumping …` section of the input", nullable=False),
        Col("partition", INT, "partition of `__consumer_offsets`", nullable=False),
        Col("text_start_bytes", BIGINT, "where the range begins in the text", nullable=False),
        Col("text_end_bytes", BIGINT, "where it ends", nullable=False),
        Col("group_id", STRING, "the consumer group; NULL in the row of the range itself"),
        Col("producer_id", BIGINT, "who committed the offsets; NULL without a transaction, and without a group"),
        Col("last_offset", BIGINT, "last offset of the last batch with such offsets", nullable=False),
    ),
    partition_by=("ingest_id",),
    checks={"text_in_order": in_order("text_start_bytes", "text_end_bytes")},
)
