"""`transactions` and `ended_transactions`: those that are open in a run, and those that ended, each written once."""

from txn_analysis.tables._checks import at_least, in_order, not_negative, null_only_if, one_of
from txn_analysis.tables._schema import BIGINT, BOOLEAN, INT, STRING, Col, Table, array

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
