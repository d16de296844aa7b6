"""`findings` and `abort_plan`: the verdict on each open transaction, and the end markers that a run recommends.

A finding has its cause and what it costs its partition. Each marker is checked where it is made and where a file is
read.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, Literal, NamedTuple, Self

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from txn_analysis.columns.records import Int32
from txn_analysis.kafka.transactions import ONGOING, Ending, ending_of
from txn_analysis.tables.schema import (
    COORDINATOR_EPOCH_BASES,
    INT,
    Table,
    always,
    columns_of,
    earlier,
    not_negative,
    one_of,
)
from txn_analysis.verdict import Verdict


class Confidence(StrEnum):
    """How sure a cause is, from least to most."""

    UNKNOWN = "unknown"  # the facts explain nothing
    POSSIBLE = "possible"  # some facts point to it, and evidence is missing
    LIKELY = "likely"  # it explains all facts, and something else could as well
    CERTAIN = "certain"  # nothing else explains the facts

    @property
    def rank(self) -> int:
        """0 for the least sure."""
        return _RANKS[self]


_RANKS = {one: rank for rank, one in enumerate(Confidence)}


class FoundCause(NamedTuple):
    """Why a transaction is as it is: one of the names in docs/rules.md, and the facts for and against it.

    `confidence` is `certain` (nothing else explains the facts), `likely` (it explains them, something else could as
    well), `possible` (some facts point to it) or `unknown` (`name` is then `unexplained`).
    """

    name: str
    confidence: Confidence
    evidence_for: tuple[str, ...] = ()
    evidence_against: tuple[str, ...] = ()


class Impact(NamedTuple):
    """What an open transaction costs one partition; None where the files do not say.

    `hidden_since_ms` is the broker-clock moment before which hiding began. `log_growth_bytes_per_day` is measured
    from the first broker's time in the log to the copy, `log_growth_measured_ms`. `days_until_full` needs
    `--free-bytes`; compaction and retention need `--topic-config`. `hidden_lost_at_ms` is the first moment at which
    retention may delete the hidden records unread. `is_tiering_stopped`: the topic is copied to remote storage
    (KIP-405), which stops at the last stable offset, so that nothing above leaves the local disk;
    `beyond_local_retention_at_ms` is the first moment from which that disk may hold more than the local retention asks
    for. `pending_groups` have offsets in an open transaction of this partition of `__consumer_offsets`;
    `waiting_groups` only share the partition with them. Both are whole or None: of any other topic, and where the files
    do not name all groups.
    """

    hidden_since_ms: int | None = None
    hidden_share: float | None = None
    is_compacted: bool | None = None
    is_compaction_stopped: bool | None = None
    log_growth_bytes_per_day: int | None = None
    log_growth_measured_ms: int | None = None
    days_until_full: float | None = None
    hidden_lost_at_ms: int | None = None
    pending_groups: tuple[str, ...] | None = None
    waiting_groups: tuple[str, ...] | None = None
    is_tiering_stopped: bool | None = None
    beyond_local_retention_at_ms: int | None = None


class RuleAsked(NamedTuple):
    """One rule that was asked, and why it fired or did not."""

    rule: str
    verdict: str
    has_fired: bool
    reason: str


MAY_BE_BEING_WRITTEN = frozenset({Verdict.INCONCLUSIVE, Verdict.COORDINATED})
"""The verdicts that a healthy transaction can have which is written while its log is copied, and late by its client."""


class Finding(NamedTuple):
    """One open transaction with its verdict; the columns of `findings`.

    `application` is what its transactional id seems to belong to.
    """

    run_id: Annotated[str, "the run"]
    finding_id: Annotated[str, "stable over runs: digest of cluster, partition, producer id and start"]
    verdict: Annotated[Verdict, "in_progress, coordinated, inconclusive, suspect or hanging"]
    rule: Annotated[str, "name of the first rule that matched"]
    topic: Annotated[str, "topic"]
    partition: Annotated[Int32, "partition"]
    producer_id: Annotated[int, "producer id"]
    producer_epoch: Annotated[Int32 | None, "epoch of the producer's last batch here, by offset"]
    coordinator_epoch: Annotated[Int32 | None, "of the producer's last end marker here; NULL if none or unknown"]
    coordinator_epoch_basis: Annotated[str, "marker, snapshot, none_seen or unknown"]
    txn_start_offset: Annotated[int, "start of the open transaction"]
    is_txn_start_exact: Annotated[bool, "nothing that is missing could hold an earlier batch"]
    last_offset: Annotated[int | None, "last offset of its last data batch"]
    record_count: Annotated[int | None, "its records; NULL where some are gone"]
    size_bytes: Annotated[int | None, "bytes of its batches; NULL where some are gone"]
    last_timestamp_ms: Annotated[int | None, "the producer's last timestamp"]
    idle_ms: Annotated[int | None, "as_of_ms - last_timestamp_ms"]
    lateness_basis: Annotated[str | None, "last_timestamp or broker_clock; NULL without any credible clock"]
    late_by_ms: Annotated[int | None, "how far beyond transaction.max.timeout.ms + 300000; negative if not late"]
    appended_after_ms: Annotated[int | None, "broker-clock lower bound of its last append"]
    appended_before_ms: Annotated[int | None, "broker-clock upper bound of its last append"]
    transactional_id: Annotated[str | None, "id that has, or had, this producer id; NULL if none is known"]
    state_partition: Annotated[Int32 | None, "partition of `__transaction_state` that holds the id"]
    coordinator_state: Annotated[str | None, "the id's current state, Tombstone included; NULL if none is known"]
    coordinator_producer_id: Annotated[int | None, "the id's current producer id"]
    coordinator_producer_epoch: Annotated[Int32 | None, "the id's current producer epoch"]
    coordinator_start_ms: Annotated[int | None, "start of the id's current transaction"]
    coordinator_update_ms: Annotated[int | None, "last change of the id's state"]
    coordinator_timeout_ms: Annotated[int | None, "timeout of the id's transactions"]
    is_producer_live: Annotated[bool, "the coordinator has a transaction in progress under this producer id"]
    producer_may_return: Annotated[
        bool, "the producer id is the current one of an id that is not removed: its client may write there again"
    ]
    blocks_partition: Annotated[bool, "its start is the last stable offset"]
    evidence: Annotated[
        tuple[str, ...],
        "the facts that the rule used, in words; last, where it hangs, a remark on an owner that may come back",
    ] = ()
    missing_evidence: Annotated[tuple[str, ...], "what would be needed for an answer"] = ()
    cause: Annotated[
        FoundCause | None,
        "why it is open: name, certain, likely, possible or unknown, and what speaks for and against; "
        "NULL where no state of these logs was given, and the log alone tells none",
    ] = None
    application: Annotated[str | None, "what the transactional id belongs to, by its shape; NULL without an id"] = None
    impact: Annotated[
        Impact | None, "what it costs the partition whose last stable offset it holds; NULL where it holds none"
    ] = None
    rules_asked: Annotated[
        tuple[RuleAsked, ...],
        "every rule up to the one that decided, in their order: the verdict that it gives, and why it fired or not",
    ] = ()
    would_change: Annotated[tuple[str, ...], "the evidence that would change the verdict"] = ()
    is_recent: Annotated[
        bool | None,
        "brokers' clocks prove that its first batch is younger than transaction.max.timeout.ms + 300000 at the moment "
        "of the copy; NULL in rows of 1.0.0",
    ] = None

    @property
    def is_being_written(self) -> bool:
        """Nothing is known to be wrong with it: it began while its log was copied, or a little before."""
        return bool(self.is_recent) and self.verdict in MAY_BE_BEING_WRITTEN

    @property
    def topic_partition(self) -> str:
        """Kafka's own spelling, such as `orders-3`."""
        return f"{self.topic}-{self.partition}"

    @property
    def producer_place(self) -> tuple[str, int, int]:
        """Topic, partition and producer id: whose data is open, and where."""
        return self.topic, self.partition, self.producer_id

    @property
    def span(self) -> tuple[int, int | None]:
        """The first and the last offset of its data; the latter is None where that is not known."""
        return self.txn_start_offset, self.last_offset

    @property
    def ending(self) -> Ending | None:
        """When the transaction ends by itself that the coordinator has in progress under its id; None without one.

        What hangs ends with no transaction of the coordinator.
        """
        if self.coordinator_state != ONGOING or self.verdict is Verdict.HANGING:
            return None
        return ending_of(self.coordinator_start_ms, self.coordinator_timeout_ms)

    @property
    def must_end_producer(self) -> bool:
        """The client could write there again under the same producer id, and an abort would destroy that as well."""
        return self.is_producer_live or self.producer_may_return


FINDINGS = Table(
    name="findings",
    grain="one open transaction in one run",
    key=("run_id", "topic", "partition", "producer_id", "txn_start_offset"),
    columns=columns_of(Finding),
    partition_by=("run_id",),
    checks={
        "known_verdict": one_of("verdict", (verdict.value for verdict in Verdict)),
        "known_basis": one_of("coordinator_epoch_basis", COORDINATOR_EPOCH_BASES),
        "epochs_not_negative": not_negative("producer_epoch", "coordinator_epoch", "coordinator_producer_epoch"),
    },
)
SINGLE_VALUES = tuple(column.name for column in FINDINGS.columns if not pa.types.is_nested(column.type))
"""The columns of `findings` without sentences, causes and the like: what many findings are asked about."""


INT16_MAX = 2**15 - 1
INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1

Epoch16 = Annotated[Int32, Field(ge=0, le=INT16_MAX)]
NonNegativeInt32 = Annotated[Int32, Field(ge=0, le=INT32_MAX)]
NonNegativeInt64 = Annotated[int, Field(ge=0, le=INT64_MAX)]
# Kafka's Topic.validate: at most 249 of these characters, and neither "." nor "..".
TopicName = Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9._-]+$", min_length=1, max_length=249)]
NonEmptyText = Annotated[str, StringConstraints(min_length=1)]


class AbortRecord(BaseModel):
    """One abort marker for one partition, within the ranges of Kafka's own request fields.

    `coordinator_epoch` is the epoch to send: 0 where the partition never saw a marker of this producer, None where
    the files cannot tell. It is never guessed upwards: a larger one would lock out the real coordinator.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    run_id: Annotated[NonEmptyText, "the run"]
    finding_id: Annotated[NonEmptyText, "the finding it would repair"]
    plan_fingerprint: Annotated[str, "digest over all records of the plan"]
    topic: Annotated[TopicName, "topic"]
    partition: Annotated[NonNegativeInt32, "partition"]
    producer_id: Annotated[NonNegativeInt64, "producer id"]
    producer_epoch: Annotated[Epoch16, "epoch of the producer's last batch here"]
    coordinator_epoch: Annotated[
        NonNegativeInt32 | None, "epoch to send: 0 where none was seen; NULL where it is unknown"
    ]
    coordinator_epoch_basis: Annotated[
        Literal["marker", "snapshot", "none_seen", "unknown"], "marker, snapshot, none_seen or unknown"
    ]
    transaction_result: Annotated[Literal[False], "false: abort. Never a commit"]
    transaction_version: Annotated[Literal[0], INT, "0: the legacy epoch rule, which accepts an equal epoch"]
    txn_start_offset: Annotated[NonNegativeInt64, "start of the open transaction"]
    is_txn_start_exact: Annotated[bool, "an executor can look it up on the broker"]
    last_timestamp_ms: Annotated[
        int | None, "the producer's last timestamp there: a later one on the broker is newer data"
    ]
    rule: Annotated[NonEmptyText, "the rule that found it hanging"]
    evidence: Annotated[
        Annotated[list[str], Field(min_length=1)], "the facts that the rule used, and a remark as in `findings`"
    ]
    transactional_id: Annotated[str | None, "id that has, or had, this producer id; NULL if none is known"]
    not_before_ms: Annotated[NonNegativeInt64, "not to be executed before this time"]
    not_after_ms: Annotated[NonNegativeInt64, "not to be executed after this time"]
    producer_is_live: Annotated[bool, "the producer id has a transaction in progress elsewhere"]
    producer_may_return: Annotated[bool, "it is the current producer id of an id: its client may write there again"]
    precondition: Annotated[NonEmptyText, "what an executor must check first, in words"]

    @model_validator(mode="after")
    def _topic_is_no_folder(self) -> Self:
        if self.topic in {".", ".."}:
            raise ValueError("topic must not be '.' or '..'")
        return self

    @model_validator(mode="after")
    def _epoch_fits_its_basis(self) -> Self:
        if (self.coordinator_epoch is None) != (self.coordinator_epoch_basis == "unknown"):
            raise ValueError("coordinator_epoch must be known, unless its basis is 'unknown'")
        if self.coordinator_epoch_basis == "none_seen" and self.coordinator_epoch != 0:
            raise ValueError("coordinator_epoch must be 0 where no marker was seen")
        return self

    @model_validator(mode="after")
    def _window_is_open(self) -> Self:
        if self.not_after_ms <= self.not_before_ms:
            raise ValueError("not_after_ms must be later than not_before_ms")
        return self

    @model_validator(mode="after")
    def _producer_that_must_end_has_a_name(self) -> Self:
        if self.must_end_producer and self.transactional_id is None:
            raise ValueError("a producer that is live or may return must have a transactional_id")
        return self

    @property
    def must_end_producer(self) -> bool:
        """The client could write there again under the same producer id: an abort would destroy that as well."""
        return self.producer_is_live or self.producer_may_return

    @property
    def is_sendable_by_epochs(self) -> bool:
        """The recorded epochs name just this transaction: its start is exact, and the coordinator epoch is known."""
        return self.is_txn_start_exact and self.coordinator_epoch is not None

    @property
    def topic_partition(self) -> str:
        """Kafka's own spelling, such as `orders-3`."""
        return f"{self.topic}-{self.partition}"


ABORT_PLAN = Table(
    name="abort_plan",
    grain="one abort marker for one partition that one run recommends",
    key=("run_id", "topic", "partition", "producer_id"),
    columns=columns_of(AbortRecord),
    partition_by=("run_id",),
    checks={
        "only_aborts": always("transaction_result", value=False),
        "legacy_epoch_rule": always("transaction_version", 0),
        "epochs_not_negative": not_negative("producer_epoch", "coordinator_epoch"),
        "known_basis": one_of("coordinator_epoch_basis", COORDINATOR_EPOCH_BASES),
        "window_in_order": earlier("not_before_ms", "not_after_ms"),
    },
)


def plan_rows(plan: Iterable[AbortRecord]) -> pa.RecordBatch:
    """Rows of `abort_plan`."""
    records = [*plan]
    columns = {name: [getattr(record, name) for record in records] for name in ABORT_PLAN.names}
    return pa.RecordBatch.from_pydict(columns, ABORT_PLAN.arrow_schema)
