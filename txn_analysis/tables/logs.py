"""What was read of logs: of users' partitions, of `__transaction_state` and of `__consumer_offsets`.

`log_pieces` are the folds of the dumped segments: what reconstruction needs of them, and no batch more. Two
neighbouring pieces combine to what one piece over both would say, so that only pieces are ever shuffled.
"""

from __future__ import annotations

from txn_analysis.tables._schema import (
    BIGINT,
    BOOLEAN,
    INT,
    STRING,
    Col,
    Table,
    array,
    in_order,
    inner_array,
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


BARE_MARKER = struct(offset=BIGINT, marker=STRING, timestamp_ms=BIGINT, producer_epoch=INT, coordinator_epoch=INT)
FRAGMENT = struct(
    start_offset=BIGINT,
    first_epoch=INT,
    max_epoch=INT,
    last_offset=BIGINT,
    last_sequence=INT,
    record_count=BIGINT,
    size_bytes=BIGINT,
    last_timestamp_ms=BIGINT,
    first_after_ms=BIGINT,
    first_before_ms=BIGINT,
    last_after_ms=BIGINT,
    last_before_ms=BIGINT,
    hidden_record_count=BIGINT,
    hidden_bytes=BIGINT,
    end_offset=BIGINT,
    end_marker=STRING,
    end_timestamp_ms=BIGINT,
    end_epoch=INT,
    end_coordinator_epoch=INT,
)
PRODUCER_EDGES = struct(
    producer_id=BIGINT,
    lead=FRAGMENT,
    tail=FRAGMENT,
    first_batch_epoch=INT,
    is_one_epoch=BOOLEAN,
    producer_epoch=INT,
    last_sequence=INT,
    last_timestamp_ms=BIGINT,
    marker_offset=BIGINT,
    marker_timestamp_ms=BIGINT,
    marker_coordinator_epoch=INT,
    # Of the transactions that are whole inside: where the newest one ends, what it says, and the largest epoch of all.
    ended_offset=BIGINT,
    ended_last_timestamp_ms=BIGINT,
    ended_coordinator_epoch=INT,
    max_ended_coordinator_epoch=INT,
    # Its end markers without data before them; its last one that is, or may be, a COMMIT.
    bare_markers=inner_array(BARE_MARKER),
    last_commit_offset=BIGINT,
)

LOG_PIECES = Table(
    name="log_pieces",
    grain="one contiguous piece of one dumped segment, folded",
    key=("input_id", "section_index", "first_position"),
    columns=(
        Col("ingest_id", STRING, "the ingest that read the content", nullable=False),
        Col("input_id", STRING, "fingerprint of the input", nullable=False),
        Col("section_index", INT, "`Dumping …` section of the input", nullable=False),
        Col("topic", STRING, "topic", nullable=False),
        Col("partition", INT, "partition", nullable=False),
        Col("first_position", BIGINT, "position of its first batch in the segment", nullable=False),
        Col("end_position", BIGINT, "position after its last batch", nullable=False),
        Col("first_offset", BIGINT, "base offset of its first batch", nullable=False),
        Col("last_offset", BIGINT, "last offset of its last batch", nullable=False),
        Col("text_start_bytes", BIGINT, "where its first batch line begins", nullable=False),
        Col("text_end_bytes", BIGINT, "where the proven text of its last batch ends", nullable=False),
        Col("text_gaps", array(struct(offset_bytes=BIGINT, length_bytes=BIGINT)), "text inside that nothing proves"),
        Col("last_hole_offset", BIGINT, "last offset inside that no batch covers; compaction leaves such holes"),
        Col("last_invalid_offset", BIGINT, "last offset of the last batch whose checksum is wrong"),
        Col("contested_offset", BIGINT, "base offset of the first batch that two lines claim; all of the piece is"),
        Col("doubtful_offset", BIGINT, "base offset of the first batch that may be header keys of a record; all may"),
        Col("lacking_batch_count", BIGINT, "batches without proof of all their record lines", nullable=False),
        Col("lacking_offset", BIGINT, "base offset of the first such batch"),
        Col("is_marker_printed", BOOLEAN, "end markers show their coordinator epoch; NULL without any marker"),
        Col("record_count", BIGINT, "data records", nullable=False),
        Col("size_bytes", BIGINT, "bytes of its batches", nullable=False),
        Col("first_moment_ms", BIGINT, "first broker-clock timestamp by offset"),
        Col("last_moment_ms", BIGINT, "last broker-clock timestamp by offset"),
        Col("max_moment_ms", BIGINT, "largest broker-clock timestamp, of batches that are certainly no client's text"),
        Col("last_timestamp_ms", BIGINT, "last positive timestamp by offset, any clock"),
        Col("max_timestamp_ms", BIGINT, "largest timestamp, any clock"),
        Col("first_leader_epoch", INT, "first partition leader epoch that is known"),
        Col("leader_epoch", INT, "largest partition leader epoch"),
        Col("content_digest", BIGINT, "sum of digests of its batches; the same in any copy of these offsets"),
        Col("producers", array(PRODUCER_EDGES), "every producer seen: first and last fragment, last epochs"),
        Col("last_empty_offset", BIGINT, "last offset of the last batch without a record; compaction leaves such"),
        Col("first_epoch_fall_offset", BIGINT, "base offset of the first batch below an earlier one's leader epoch"),
    ),
    partition_by=("ingest_id",),
    checks={
        "offsets_in_order": in_order("first_offset", "last_offset"),
        "positions_in_order": in_order("first_position", "end_position"),
    },
)


PRODUCER_SNAPSHOTS = Table(
    name="producer_snapshots",
    grain="one producer in one snapshot file",
    key=("input_id", "section_index", "producer_id"),
    columns=(
        Col("ingest_id", STRING, "the ingest that read the content", nullable=False),
        Col("input_id", STRING, "fingerprint of the input", nullable=False),
        Col("section_index", INT, "`Dumping …` section of the input", nullable=False),
        Col("topic", STRING, "topic, from the dumped path", nullable=False),
        Col("partition", INT, "partition, from the dumped path", nullable=False),
        Col("snapshot_offset", BIGINT, "the state covers records below this offset", nullable=False),
        Col("producer_id", BIGINT, "producer id", nullable=False),
        Col("producer_epoch", INT, "its latest epoch on the partition", nullable=False),
        Col("coordinator_epoch", INT, "coordinator epoch of its last end marker; NULL if none was seen"),
        Col("current_txn_start_offset", BIGINT, "start of its open transaction; NULL if none is open"),
        Col("last_timestamp_ms", BIGINT, "timestamp of its last append; NULL if not printed"),
        Col("last_sequence", INT, "sequence of its last data batch; NULL if not printed"),
        Col("last_offset", BIGINT, "offset of its last data batch; NULL if not printed"),
    ),
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


TRANSACTION_STATES = Table(
    name="transaction_states",
    grain="one record of `__transaction_state`, tombstones and undecodable records included",
    key=("input_id", "section_index", "ordinal"),
    columns=(
        Col("ingest_id", STRING, "the ingest that read the content", nullable=False),
        Col("input_id", STRING, "fingerprint of the input", nullable=False),
        Col("section_index", INT, "`Dumping …` section; 0 in a console export", nullable=False),
        Col(
            "ordinal",
            BIGINT,
            "order in the section: byte offset of the record's text; in a log directory the record's offset",
            nullable=False,
        ),
        Col("state_partition", INT, "partition of `__transaction_state`; NULL in a console export"),
        Col("offset", BIGINT, "offset of the record; NULL in a console export"),
        Col("recorded_ms", BIGINT, "broker's time of the append; NULL in a console export"),
        Col("is_after_gap", BOOLEAN, "the offset just before is not in the same file; NULL at a file's start"),
        Col("batch_base_offset", BIGINT, "first offset of its batch; NULL where no batch is printed, or none was read"),
        Col("batch_last_offset", BIGINT, "last offset of its batch; NULL like batch_base_offset"),
        Col("leader_epoch", INT, "leader epoch of the state's partition in its batch; NULL like batch_base_offset"),
        Col("transactional_id", STRING, "transactional id; NULL if the record's key could not be decoded"),
        Col("transactional_id_hash", INT, "Java's String.hashCode of the id"),
        Col("is_tombstone", BOOLEAN, "the id was removed (expired)", nullable=False),
        Col("is_undecodable", BOOLEAN, "the tool could not decode the record", nullable=False),
        Col("state", STRING, "Empty, Ongoing, PrepareCommit, PrepareAbort, CompleteCommit, CompleteAbort, …"),
        Col("producer_id", BIGINT, "producer id"),
        Col("previous_producer_id", BIGINT, "producer id before a rotation; NULL if none"),
        Col("next_producer_id", BIGINT, "producer id after a rotation; NULL if none"),
        Col("producer_epoch", INT, "producer epoch"),
        Col("timeout_ms", BIGINT, "the transaction's timeout"),
        Col("topic_partitions", array(struct(topic=STRING, partition=INT)), "sorted; empty if none"),
        Col("last_update_ms", BIGINT, "coordinator's time of the change"),
        Col("start_ms", BIGINT, "coordinator's time of the transaction's start; NULL if none or not printed"),
        Col("client_transaction_version", INT, "transaction version of the client; NULL if not printed"),
        Col(
            "may_list_more",
            BOOLEAN,
            "tagged fields of a newer Kafka are in the value, or may be, so that its partitions may be more; false "
            "where the broker's own file was read, whose list is whole; NULL without such fields",
        ),
        Col(
            "may_name_more",
            BOOLEAN,
            "a field that was not printed, or is of a newer Kafka, can hold a producer id; NULL without",
        ),
    ),
    partition_by=("ingest_id",),
    checks={"epochs_not_negative": not_negative("producer_epoch")},
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
