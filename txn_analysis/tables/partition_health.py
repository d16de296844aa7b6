"""`partition_health`: what is known of each partition's log, and what its open transactions block."""

from txn_analysis.tables._checks import in_order, not_negative
from txn_analysis.tables._schema import BIGINT, BOOLEAN, INT, STRING, Col, Table, array, struct

PRODUCER = struct(
    producer_id=BIGINT,
    producer_epoch=INT,
    coordinator_epoch=INT,
    last_sequence=INT,
    last_timestamp_ms=BIGINT,
    txn_start_offset=BIGINT,
)

LINKED_PIECE = struct(ingest_id=STRING, input_id=STRING, section_index=INT, first_position=BIGINT)
PROBLEM = struct(offset=BIGINT, kind=STRING, reason=STRING)

BARE_MARKER = struct(
    producer_id=BIGINT,
    offset=BIGINT,
    marker=STRING,
    timestamp_ms=BIGINT,
    producer_epoch=INT,
    coordinator_epoch=INT,
)

TWO_LOGS = struct(path=STRING, capture_rank=INT, other_path=STRING, other_capture_rank=INT)

PARTITION_HEALTH = Table(
    name="partition_health",
    grain="one partition in one run",
    key=("run_id", "topic", "partition"),
    columns=(
        Col("run_id", STRING, "the run", nullable=False),
        Col("topic", STRING, "topic", nullable=False),
        Col("partition", INT, "partition", nullable=False),
        Col("is_in_capture", BOOLEAN, "the capture itself holds files of this partition", nullable=False),
        Col("first_offset", BIGINT, "first offset that is covered by batches"),
        Col("end_offset", BIGINT, "offset after the last one seen"),
        Col(
            "log_start_offset",
            BIGINT,
            "newest log start in a checkpoint; NULL without one, or where the first file begins",
        ),
        Col(
            "high_watermark",
            BIGINT,
            "newest high watermark in a checkpoint; up to 5 s old unless the broker was stopped",
        ),
        Col(
            "last_stable_offset",
            BIGINT,
            "smallest open start, or the end of the log where none is open; not below the log start, nor above the "
            "high watermark of a broker that was stopped",
        ),
        Col("open_transaction_count", INT, "open transactions", nullable=False),
        Col(
            "hidden_record_count",
            BIGINT,
            "data records from the last stable offset on; NULL where some are gone or not told apart",
        ),
        Col(
            "hidden_bytes",
            BIGINT,
            "bytes of the log from the last stable offset on; NULL where some are gone or not told apart",
        ),
        Col("log_bytes", BIGINT, "bytes of the log that were seen", nullable=False),
        Col("snapshot_offset", BIGINT, "producer snapshot that stands for what is below; NULL if none was needed"),
        Col("first_moment_ms", BIGINT, "first broker-clock timestamp by offset; NULL without one"),
        Col("last_moment_ms", BIGINT, "last broker-clock timestamp by offset; NULL without one"),
        Col(
            "last_credible_timestamp_ms",
            BIGINT,
            "largest positive batch timestamp, or else the last one, if not after as_of",
        ),
        Col("first_leader_epoch", INT, "first partition leader epoch by offset"),
        Col("leader_epoch", INT, "largest partition leader epoch seen"),
        Col(
            "problems",
            array(PROBLEM),
            "where its evidence is not whole, and why; offset NULL where it spoils the log to its end",
            nullable=False,
        ),
        Col("witnesses", array(STRING), "copies and snapshots that were compared with its log, and agree"),
        Col(
            "remarks",
            array(STRING),
            "what explains its evidence without spoiling it: truncation, compaction, a torn end",
        ),
        Col("producers", array(PRODUCER), "producer state at the end, as describe-producers prints it"),
        Col(
            "truncated_marker_offset",
            BIGINT,
            "last end marker that a copy of this log held where it was truncated; NULL without one",
        ),
        Col(
            "bare_markers",
            array(BARE_MARKER),
            "end markers that have none of their producer's transactional data between them and its end marker before; "
            "`marker` is NULL where the dump does not print it",
            nullable=False,
        ),
        Col(
            "linked_pieces",
            array(LINKED_PIECE),
            "the pieces of `log_pieces` that its log was linked from: of their rows in `ended_transactions` those are "
            "this run's",
            nullable=False,
        ),
        Col(
            "two_logs",
            array(TWO_LOGS),
            "files that share no batch from the first offset that both have, with the rank of their captures (0 is the "
            "judged one): of two clusters, or of a topic that was made again",
            nullable=False,
        ),
    ),
    partition_by=("run_id",),
    checks={
        "offsets_in_order": in_order("first_offset", "end_offset"),
        "sizes_not_negative": not_negative(
            "open_transaction_count", "hidden_record_count", "hidden_bytes", "log_bytes"
        ),
    },
)
