"""`transactions` and `ended_transactions`: those that are open in a run, and those that ended, each written once.

And `partition_health`: what is known of each partition's log, and what its open transactions block.
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
    at_least,
    in_order,
    not_negative,
    null_only_if,
    one_of,
    struct,
)

COORDINATOR_EPOCH_BASES = ("marker", "snapshot", "none_seen", "unknown")
ENDED_OUTCOMES = ("COMMIT", "ABORT", "ended")

_COLUMNS = (
    Col("topic", STRING, "topic", nullable=False),
    Col("partition", INT, "partition", nullable=False),
    Col("producer_id", BIGINT, "producer id, the key of an open transaction", nullable=False),
    Col("txn_start_offset", BIGINT, "base offset of its first data batch", nullable=False),
    Col("is_txn_start_exact", BOOLEAN, "nothing that is missing could hold an earlier batch", nullable=False),
    Col("outcome", STRING, "open, COMMIT, ABORT, or ended where the dump does not say which", nullable=False),
    Col("end_offset", BIGINT, "offset of its end marker; NULL while open"),
    Col("end_timestamp_ms", BIGINT, "broker's time of the end marker"),
    Col("first_producer_epoch", INT, "producer epoch of its first data batch"),
    Col("max_producer_epoch", INT, "largest producer epoch of its data batches"),
    Col("producer_epoch", INT, "epoch of the producer's last batch here, by offset"),
    Col("end_producer_epoch", INT, "producer epoch of its end marker"),
    Col("coordinator_epoch", INT, "open: of the producer's last end marker here; ended: of its own"),
    Col("coordinator_epoch_basis", STRING, "marker, snapshot, none_seen or unknown"),
    Col("last_offset", BIGINT, "last offset of its last data batch"),
    Col("last_sequence", INT, "sequence of its last record"),
    Col("record_count", BIGINT, "records in its data batches; NULL where some of them are gone"),
    Col("size_bytes", BIGINT, "bytes of its data batches; NULL where some of them are gone"),
    Col("last_timestamp_ms", BIGINT, "the producer's last timestamp; client's clock under CreateTime"),
    Col("first_appended_before_ms", BIGINT, "broker-clock upper bound of its first append"),
    Col("appended_after_ms", BIGINT, "broker-clock lower bound of its last append"),
    Col("appended_before_ms", BIGINT, "broker-clock upper bound of its last append"),
    Col("last_marker_ms", BIGINT, "broker's time of the producer's last end marker here; NULL if none"),
    Col("previous_last_timestamp_ms", BIGINT, "open: the last timestamp of its producer's newest ended one here"),
    Col("has_coordinator_epoch_fallen", BOOLEAN, "open: that one's end marker has a lower epoch than one before"),
    Col("input_id", STRING, "ended: it is whole inside one piece of this input; NULL where it spans pieces"),
    Col("section_index", INT, "section of that input"),
    Col("first_position", BIGINT, "where that piece begins in the segment"),
    Col("evidence_gaps", array(STRING), "why the log is not proven whole from the start on; empty if it is"),
    Col(
        "first_appended_after_ms",
        BIGINT,
        "open: broker-clock lower bound of its first append; NULL where no moment lies before it, or it is not here",
    ),
    Col("last_marker_offset", BIGINT, "open: offset of the producer's last end marker in this log; NULL if none"),
    Col(
        "other_copy_commit_offset",
        BIGINT,
        "open: the last COMMIT marker of the producer, or one of unprinted kind, from its start on that another copy "
        "of this log or an earlier capture holds and this log lacks",
    ),
    Col(
        "is_above_high_watermark",
        BOOLEAN,
        "open: all of its data lies above a high watermark that its own folder records, and no other copy holds it",
    ),
)
_CHECKS = {
    "start_not_negative": at_least("txn_start_offset", 0),
    "offsets_in_order": in_order("txn_start_offset", "last_offset") & in_order("txn_start_offset", "end_offset"),
    "epochs_not_negative": not_negative(
        "first_producer_epoch",
        "max_producer_epoch",
        "producer_epoch",
        "end_producer_epoch",
        "coordinator_epoch",
    ),
    "known_outcome": one_of("outcome", ("open", *ENDED_OUTCOMES)),
    "known_basis": one_of("coordinator_epoch_basis", COORDINATOR_EPOCH_BASES),
    "only_open_has_no_end": null_only_if("end_offset", "outcome", "open"),
}

TRANSACTIONS = Table(
    name="transactions",
    grain="one transaction on one partition that was open in one run",
    key=("run_id", "topic", "partition", "producer_id", "txn_start_offset"),
    columns=(Col("run_id", STRING, "the run", nullable=False), *_COLUMNS),
    partition_by=("run_id",),
    checks=_CHECKS,
)
ENDED_TRANSACTIONS = Table(
    name="ended_transactions",
    grain="one ended transaction on one partition, once for each content it was read from; where it spans pieces of a "
    "log, once for each run that linked them. A run's are those of the pieces that `partition_health.linked_pieces` "
    "names, and those whose `ingest_id` is the run",
    key=(
        *("ingest_id", "input_id", "section_index", "first_position"),
        *("topic", "partition", "producer_id", "txn_start_offset"),
    ),
    columns=(
        Col(
            "ingest_id",
            STRING,
            "the ingest that read the content; of a transaction that a run linked of several pieces, the run",
            nullable=False,
        ),
        *_COLUMNS,
    ),
    partition_by=("ingest_id",),
    checks=_CHECKS | {"known_outcome": one_of("outcome", ENDED_OUTCOMES)},
)


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
