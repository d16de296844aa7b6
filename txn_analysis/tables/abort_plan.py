"""`abort_plan`: the end markers that a run recommends, each checked where it is made and where a file is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, Self

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from txn_analysis.columns.records import Int32
from txn_analysis.tables._schema import (
    COORDINATOR_EPOCH_BASES,
    INT,
    Table,
    always,
    columns_of,
    earlier,
    not_negative,
    one_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

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
    return pa.RecordBatch.from_pylist([record.model_dump() for record in plan], ABORT_PLAN.arrow_schema)
