"""`transactions` and `ended_transactions`: those that are open in a run, and those that ended, each written once.

And `partition_health`: what is known of each partition's log, and what its open transactions block.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

from txn_analysis.columns.records import Int32
from txn_analysis.kafka.transactions import TopicPartition
from txn_analysis.tables.findings import Impact
from txn_analysis.tables.schema import (
    COORDINATOR_EPOCH_BASES,
    STRING,
    Col,
    Table,
    at_least,
    columns_of,
    in_order,
    not_negative,
    null_only_if,
    one_of,
)

OPEN = "open"  # the outcome of a transaction without one
ENDED_OUTCOMES = ("COMMIT", "ABORT", "ended")


class Transaction(NamedTuple):
    """One transaction on one partition: a row of `transactions`, or of `ended_transactions` without its ingest."""

    topic: Annotated[str, "topic"]
    partition: Annotated[Int32, "partition"]
    producer_id: Annotated[int, "producer id, the key of an open transaction"]
    txn_start_offset: Annotated[int, "base offset of its first data batch"]
    is_txn_start_exact: Annotated[bool, "nothing that is missing could hold an earlier batch"]
    outcome: Annotated[str, "open, COMMIT, ABORT, or ended where the dump does not say which"]
    end_offset: Annotated[int | None, "offset of its end marker; NULL while open"] = None
    end_timestamp_ms: Annotated[int | None, "broker's time of the end marker"] = None
    first_producer_epoch: Annotated[Int32 | None, "producer epoch of its first data batch"] = None
    max_producer_epoch: Annotated[Int32 | None, "largest producer epoch of its data batches"] = None
    producer_epoch: Annotated[Int32 | None, "epoch of the producer's last batch here, by offset"] = None
    end_producer_epoch: Annotated[Int32 | None, "producer epoch of its end marker"] = None
    coordinator_epoch: Annotated[Int32 | None, "open: of the producer's last end marker here; ended: of its own"] = None
    coordinator_epoch_basis: Annotated[str, "marker, snapshot, none_seen or unknown"] = "unknown"
    last_offset: Annotated[int | None, "last offset of its last data batch"] = None
    last_sequence: Annotated[Int32 | None, "sequence of its last record"] = None
    record_count: Annotated[int | None, "records in its data batches; NULL where some of them are gone"] = None
    size_bytes: Annotated[int | None, "bytes of its data batches; NULL where some of them are gone"] = None
    last_timestamp_ms: Annotated[int | None, "the producer's last timestamp; client's clock under CreateTime"] = None
    first_appended_before_ms: Annotated[int | None, "broker-clock upper bound of its first append"] = None
    appended_after_ms: Annotated[int | None, "broker-clock lower bound of its last append"] = None
    appended_before_ms: Annotated[int | None, "broker-clock upper bound of its last append"] = None
    last_marker_ms: Annotated[int | None, "broker's time of the producer's last end marker here; NULL if none"] = None
    previous_last_timestamp_ms: Annotated[
        int | None, "open: the last timestamp of its producer's newest ended one here"
    ] = None
    has_coordinator_epoch_fallen: Annotated[
        bool | None, "open: that one's end marker has a lower epoch than one before"
    ] = None
    input_id: Annotated[str | None, "ended: it is whole inside one piece of this input; NULL where it spans pieces"] = (
        None
    )
    section_index: Annotated[Int32 | None, "section of that input"] = None
    first_position: Annotated[int | None, "where that piece begins in the segment"] = None
    evidence_gaps: Annotated[
        tuple[str, ...] | None, "why the log is not proven whole from the start on; empty if it is"
    ] = None
    first_appended_after_ms: Annotated[
        int | None,
        "open: broker-clock lower bound of its first append; NULL where no moment lies before it, or it is not here",
    ] = None
    last_marker_offset: Annotated[
        int | None, "open: offset of the producer's last end marker in this log; NULL if none"
    ] = None
    other_copy_commit_offset: Annotated[
        int | None,
        "open: the last COMMIT marker of the producer, or one of unprinted kind, from its start on that another copy "
        "of this log or an earlier capture holds and this log lacks",
    ] = None
    is_above_high_watermark: Annotated[
        bool | None,
        "open: all of its data lies above a high watermark that its own folder records, and no other copy holds it",
    ] = None
    first_timestamp_ms: Annotated[
        int | None, "largest timestamp of its first data batch, by the client's clock under CreateTime; NULL unseen"
    ] = None

    @property
    def topic_partition(self) -> TopicPartition:
        """Where it is."""
        return TopicPartition(self.topic, self.partition)

    @property
    def key(self) -> tuple[TopicPartition, int]:
        """What tells open transactions of one moment apart: the partition and the producer id."""
        return self.topic_partition, self.producer_id


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
    "known_outcome": one_of("outcome", (OPEN, *ENDED_OUTCOMES)),
    "known_basis": one_of("coordinator_epoch_basis", COORDINATOR_EPOCH_BASES),
    "only_open_has_no_end": null_only_if("end_offset", "outcome", OPEN),
}

TRANSACTIONS = Table(
    name="transactions",
    grain="one transaction on one partition that was open in one run",
    key=("run_id", "topic", "partition", "producer_id", "txn_start_offset"),
    columns=(Col("run_id", STRING, "the run", nullable=False), *columns_of(Transaction)),
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
        *columns_of(Transaction),
    ),
    partition_by=("ingest_id",),
    checks=_CHECKS | {"known_outcome": one_of("outcome", ENDED_OUTCOMES)},
)


class ProducerState(NamedTuple):
    """One producer at the end of a partition's log, as Kafka's class of this name (`describe-producers`)."""

    producer_id: int
    producer_epoch: Int32 | None
    coordinator_epoch: Int32 | None
    last_sequence: Int32 | None
    last_timestamp_ms: int | None
    txn_start_offset: int | None


class Problem(NamedTuple):
    """Where a partition's evidence is not whole; `offset` is None where it has no place in the log."""

    offset: int | None
    kind: str  # a `ProblemKind`
    reason: str

    def spoils(self, start_offset: int) -> bool:
        """Whether a transaction that began there is not proven whole: all up to `offset` are, or every one."""
        return self.offset is None or self.offset >= start_offset


class ProducersBareMarker(NamedTuple):
    """An end marker with none of its producer's transactional data since the marker before."""

    producer_id: int
    offset: int
    marker: str | None
    timestamp_ms: int | None
    producer_epoch: Int32 | None
    coordinator_epoch: Int32 | None


class UsedBatchRange(NamedTuple):
    """A row of `log_pieces` that a run's logs were put together from."""

    ingest_id: str
    input_id: str
    section_index: Int32
    first_position: int

    @property
    def section(self) -> tuple[str, int]:
        """The input and the section that it is of."""
        return self.input_id, self.section_index


class TwoLogs(NamedTuple):
    """Two files that are of two logs, by their paths, and the rank of the capture that each is of."""

    path: str
    capture_rank: Int32
    other_path: str
    other_capture_rank: Int32


class PartitionHealth(NamedTuple):
    """One partition's log, and how far it was seen; hidden counts are from the last stable offset on, None where some
    are gone. `problems` spoil the evidence, `witnesses` agree with it, `remarks` explain it.
    """

    topic: Annotated[str, "topic"]
    partition: Annotated[Int32, "partition"]
    is_in_capture: Annotated[bool, "the capture itself holds files of this partition"]
    first_offset: Annotated[int | None, "first offset that is covered by batches"]
    end_offset: Annotated[int | None, "offset after the last one seen"]
    log_start_offset: Annotated[
        int | None, "newest log start in a checkpoint; NULL without one, or where the first file begins"
    ]
    high_watermark: Annotated[
        int | None, "newest high watermark in a checkpoint; up to 5 s old unless the broker was stopped"
    ]
    last_stable_offset: Annotated[
        int | None,
        "smallest open start, or the end of the log where none is open; not below the log start, nor above the "
        "high watermark of a broker that was stopped",
    ]
    open_transaction_count: Annotated[Int32, "open transactions"]
    hidden_record_count: Annotated[
        int | None, "data records from the last stable offset on; NULL where some are gone or not told apart"
    ]
    hidden_bytes: Annotated[
        int | None, "bytes of the log from the last stable offset on; NULL where some are gone or not told apart"
    ]
    log_bytes: Annotated[int, "bytes of the log that were seen"] = 0
    snapshot_offset: Annotated[
        int | None, "producer snapshot that stands for what is below; NULL if none was needed"
    ] = None
    first_moment_ms: Annotated[int | None, "first broker-clock timestamp by offset; NULL without one"] = None
    last_moment_ms: Annotated[int | None, "last broker-clock timestamp by offset; NULL without one"] = None
    last_credible_timestamp_ms: Annotated[
        int | None, "largest positive batch timestamp, or else the last one, if not after as_of"
    ] = None
    first_leader_epoch: Annotated[Int32 | None, "first partition leader epoch by offset"] = None
    leader_epoch: Annotated[Int32 | None, "largest partition leader epoch seen"] = None
    problems: Annotated[
        tuple[Problem, ...], "where its evidence is not whole, and why; offset NULL where it spoils the log to its end"
    ] = ()
    witnesses: Annotated[tuple[str, ...], "copies and snapshots that were compared with its log, and agree"] = ()
    remarks: Annotated[
        tuple[str, ...], "what explains its evidence without spoiling it: truncation, compaction, a torn end"
    ] = ()
    producers: Annotated[tuple[ProducerState, ...], "producer state at the end, as describe-producers prints it"] = ()
    truncated_marker_offset: Annotated[
        int | None, "last end marker that a copy of this log held where it was truncated; NULL without one"
    ] = None
    bare_markers: Annotated[
        tuple[ProducersBareMarker, ...],
        "end markers that have none of their producer's transactional data between them and its end marker before; "
        "`marker` is NULL where the dump does not print it",
    ] = ()
    linked_pieces: Annotated[
        tuple[UsedBatchRange, ...],
        "the pieces of `log_pieces` that its log was linked from: of their rows in `ended_transactions` those are "
        "this run's",
    ] = ()
    two_logs: Annotated[
        tuple[TwoLogs, ...],
        "files that share no batch from the first offset that both have, with the rank of their captures (0 is the "
        "judged one): of two clusters, or of a topic that was made again",
    ] = ()
    impact: Impact | None = None  # of the finding that holds its last stable offset; a report says it here as well

    @property
    def topic_partition(self) -> str:
        """Kafka's own spelling, such as `orders-3`."""
        return f"{self.topic}-{self.partition}"


PARTITION_HEALTH = Table(
    name="partition_health",
    grain="one partition in one run",
    key=("run_id", "topic", "partition"),
    columns=(Col("run_id", STRING, "the run", nullable=False), *columns_of(PartitionHealth)),
    partition_by=("run_id",),
    checks={
        "offsets_in_order": in_order("first_offset", "end_offset"),
        "sizes_not_negative": not_negative(
            "open_transaction_count", "hidden_record_count", "hidden_bytes", "log_bytes"
        ),
    },
)
