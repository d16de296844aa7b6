"""`findings`: the verdict on each open transaction, and `abort_plan`: the end markers that a run recommends."""

from __future__ import annotations

from txn_analysis.tables._schema import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INT,
    STRING,
    Col,
    Table,
    always,
    array,
    earlier,
    not_negative,
    one_of,
    struct,
)
from txn_analysis.tables.transactions import COORDINATOR_EPOCH_BASES
from txn_analysis.verdict import Verdict

CAUSE = struct(name=STRING, confidence=STRING, evidence_for=array(STRING), evidence_against=array(STRING))
IMPACT = struct(
    hidden_since_ms=BIGINT,
    hidden_share=DOUBLE,
    is_compacted=BOOLEAN,
    is_compaction_stopped=BOOLEAN,
    log_growth_bytes_per_day=BIGINT,
    log_growth_measured_ms=BIGINT,
    days_until_full=DOUBLE,
    hidden_lost_at_ms=BIGINT,
    pending_groups=array(STRING),
    waiting_groups=array(STRING),
)
RULE_ASKED = struct(rule=STRING, verdict=STRING, has_fired=BOOLEAN, reason=STRING)

FINDINGS = Table(
    name="findings",
    grain="one open transaction in one run",
    key=("run_id", "topic", "partition", "producer_id", "txn_start_offset"),
    columns=(
        Col("run_id", STRING, "the run", nullable=False),
        Col(
            "finding_id",
            STRING,
            "stable over runs: digest of cluster, partition, producer id and start",
            nullable=False,
        ),
        Col("verdict", STRING, "in_progress, coordinated, inconclusive, suspect or hanging", nullable=False),
        Col("rule", STRING, "name of the first rule that matched", nullable=False),
        Col("topic", STRING, "topic", nullable=False),
        Col("partition", INT, "partition", nullable=False),
        Col("producer_id", BIGINT, "producer id", nullable=False),
        Col("producer_epoch", INT, "epoch of the producer's last batch here, by offset"),
        Col("coordinator_epoch", INT, "of the producer's last end marker here; NULL if none or unknown"),
        Col("coordinator_epoch_basis", STRING, "marker, snapshot, none_seen or unknown", nullable=False),
        Col("txn_start_offset", BIGINT, "start of the open transaction", nullable=False),
        Col("is_txn_start_exact", BOOLEAN, "nothing that is missing could hold an earlier batch", nullable=False),
        Col("last_offset", BIGINT, "last offset of its last data batch"),
        Col("record_count", BIGINT, "its records; NULL where some are gone"),
        Col("size_bytes", BIGINT, "bytes of its batches; NULL where some are gone"),
        Col("last_timestamp_ms", BIGINT, "the producer's last timestamp"),
        Col("idle_ms", BIGINT, "as_of_ms - last_timestamp_ms"),
        Col("lateness_basis", STRING, "last_timestamp or broker_clock; NULL without any credible clock"),
        Col("late_by_ms", BIGINT, "how far beyond transaction.max.timeout.ms + 300000; negative if not late"),
        Col("appended_after_ms", BIGINT, "broker-clock lower bound of its last append"),
        Col("appended_before_ms", BIGINT, "broker-clock upper bound of its last append"),
        Col("transactional_id", STRING, "id that has, or had, this producer id; NULL if none is known"),
        Col("state_partition", INT, "partition of `__transaction_state` that holds the id"),
        Col("coordinator_state", STRING, "the id's current state, Tombstone included; NULL if none is known"),
        Col("coordinator_producer_id", BIGINT, "the id's current producer id"),
        Col("coordinator_producer_epoch", INT, "the id's current producer epoch"),
        Col("coordinator_start_ms", BIGINT, "start of the id's current transaction"),
        Col("coordinator_update_ms", BIGINT, "last change of the id's state"),
        Col("coordinator_timeout_ms", BIGINT, "timeout of the id's transactions"),
        Col(
            "is_producer_live",
            BOOLEAN,
            "the coordinator has a transaction in progress under this producer id",
            nullable=False,
        ),
        Col(
            "producer_may_return",
            BOOLEAN,
            "the producer id is the current one of an id that is not removed: its client may write there again",
            nullable=False,
        ),
        Col("blocks_partition", BOOLEAN, "its start is the last stable offset", nullable=False),
        Col(
            "evidence",
            array(STRING),
            "the facts that the rule used, in words; last, where it hangs, a remark on an owner that may come back",
            nullable=False,
        ),
        Col("missing_evidence", array(STRING), "what would be needed for an answer", nullable=False),
        Col(
            "cause",
            CAUSE,
            "why it is open: name, certain, likely, possible or unknown, and what speaks for and against; NULL where "
            "no state of these logs was given, and the log alone tells none",
        ),
        Col("application", STRING, "what the transactional id belongs to, by its shape; NULL without an id"),
        Col(
            "impact", IMPACT, "what it costs the partition whose last stable offset it holds; NULL where it holds none"
        ),
        Col(
            "rules_asked",
            array(RULE_ASKED),
            "every rule up to the one that decided, in their order: the verdict that it gives, and why it fired or not",
            nullable=False,
        ),
        Col("would_change", array(STRING), "the evidence that would change the verdict", nullable=False),
    ),
    partition_by=("run_id",),
    checks={
        "known_verdict": one_of("verdict", (verdict.value for verdict in Verdict)),
        "known_basis": one_of("coordinator_epoch_basis", COORDINATOR_EPOCH_BASES),
        "epochs_not_negative": not_negative("producer_epoch", "coordinator_epoch", "coordinator_producer_epoch"),
    },
)


ABORT_PLAN = Table(
    name="abort_plan",
    grain="one abort marker for one partition that one run recommends",
    key=("run_id", "topic", "partition", "producer_id"),
    columns=(
        Col("run_id", STRING, "the run", nullable=False),
        Col("finding_id", STRING, "the finding it would repair", nullable=False),
        Col("plan_fingerprint", STRING, "digest over all records of the plan", nullable=False),
        Col("topic", STRING, "topic", nullable=False),
        Col("partition", INT, "partition", nullable=False),
        Col("producer_id", BIGINT, "producer id", nullable=False),
        Col("producer_epoch", INT, "epoch of the producer's last batch here", nullable=False),
        Col("coordinator_epoch", INT, "epoch to send: 0 where none was seen; NULL where it is unknown"),
        Col("coordinator_epoch_basis", STRING, "marker, snapshot, none_seen or unknown", nullable=False),
        Col("transaction_result", BOOLEAN, "false: abort. Never a commit", nullable=False),
        Col("transaction_version", INT, "0: the legacy epoch rule, which accepts an equal epoch", nullable=False),
        Col("txn_start_offset", BIGINT, "start of the open transaction", nullable=False),
        Col("is_txn_start_exact", BOOLEAN, "an executor can look it up on the broker", nullable=False),
        Col(
            "last_timestamp_ms", BIGINT, "the producer's last timestamp there: a later one on the broker is newer data"
        ),
        Col("rule", STRING, "the rule that found it hanging", nullable=False),
        Col("evidence", array(STRING), "the facts that the rule used, and a remark as in `findings`", nullable=False),
        Col("transactional_id", STRING, "id that has, or had, this producer id; NULL if none is known"),
        Col("not_before_ms", BIGINT, "not to be executed before this time", nullable=False),
        Col("not_after_ms", BIGINT, "not to be executed after this time", nullable=False),
        Col("producer_is_live", BOOLEAN, "the producer id has a transaction in progress elsewhere", nullable=False),
        Col(
            "producer_may_return",
            BOOLEAN,
            "it is the current producer id of an id: its client may write there again",
            nullable=False,
        ),
        Col("precondition", STRING, "what an executor must check first, in words", nullable=False),
    ),
    partition_by=("run_id",),
    checks={
        "only_aborts": always("transaction_result", value=False),
        "legacy_epoch_rule": always("transaction_version", 0),
        "epochs_not_negative": not_negative("producer_epoch", "coordinator_epoch"),
        "known_basis": one_of("coordinator_epoch_basis", COORDINATOR_EPOCH_BASES),
        "window_in_order": earlier("not_before_ms", "not_after_ms"),
    },
)
