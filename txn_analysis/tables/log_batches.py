"""`log_batches`: the record batches of every dumped segment."""

from txn_analysis.tables._checks import in_order, not_negative, one_of
from txn_analysis.tables._schema import BIGINT, BOOLEAN, INT, STRING, Col, Table

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
