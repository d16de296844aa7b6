"""Transactions in Kafka's words: their states, and records of the coordinator."""

from __future__ import annotations

from typing import NamedTuple

from txn_analysis.logic import later_of, plus

EMPTY, ONGOING = "Empty", "Ongoing"
PREPARE_COMMIT, PREPARE_ABORT = "PrepareCommit", "PrepareAbort"
PREPARED = (PREPARE_COMMIT, PREPARE_ABORT)
LIVE = (ONGOING, *PREPARED)
COMPLETE_COMMIT, COMPLETE_ABORT = "CompleteCommit", "CompleteAbort"
COMPLETED = (COMPLETE_COMMIT, COMPLETE_ABORT)
PREPARED_OF = dict(zip(COMPLETED, PREPARED, strict=True))
TOMBSTONE = "Tombstone"

# KIP-939: such a transaction is a two-phase commit that only its owner may end.
NEVER_TIMES_OUT_MS = 2**31 - 1
TWO_PHASE_COMMIT = "two-phase commit: never times out, its owner decides; whether it is prepared is not in the state"
# ProducerStateManager: what brokers' own metric of late transactions adds to transaction.max.timeout.ms (KIP-664).
LATE_TRANSACTION_BUFFER_MS = 300_000
# transaction.abort.timed.out.transaction.cleanup.interval.ms, its default: how often a coordinator looks for timeouts.
ABORT_INTERVAL_MS = 10_000
# TransactionMetadata.isEpochExhausted: at this epoch the coordinator gives the id a new producer id.
EXHAUSTED_EPOCH = 2**15 - 2
# ProducerIdsBlock (KIP-730), ProducerIdManager before: brokers are given so many ids at once, from 0 upward.
PRODUCER_ID_BLOCK = 1000


class TopicPartition(NamedTuple):
    """A partition of a topic, as Kafka's class of this name."""

    topic: str
    partition: int

    def __str__(self) -> str:
        """Kafka's own spelling, such as `orders-3`."""
        return f"{self.topic}-{self.partition}"


class Ending(NamedTuple):
    """When the coordinator's transaction of an id ends by itself, by its clock; None where nothing says that.

    It ends what it lists, so that of a partition it speaks only where the coordinator lists it. From `times_out_ms` on
    the coordinator aborts it when it next looks, which is by `aborted_by_ms` with Kafka's default interval of 10 s
    (`transaction.abort.timed.out.transaction.cleanup.interval.ms`). After `overdue_after_ms` the rule
    `coordinator_overdue` holds. `never_times_out`: a two-phase commit (KIP-939), which only its owner ends.
    """

    times_out_ms: int | None
    aborted_by_ms: int | None
    overdue_after_ms: int | None
    never_times_out: bool

    def should_have_ended(self, as_of_ms: int | None) -> bool:
        """Whether the coordinator had to have aborted it by the moment of the copy."""
        return as_of_ms is not None and self.aborted_by_ms is not None and as_of_ms > self.aborted_by_ms


def ending_of(start_ms: int | None, timeout_ms: int | None) -> Ending:
    """When a transaction ends by itself that began at a time; `TransactionStateManager.timedOutTransactions`."""
    if timeout_ms == NEVER_TIMES_OUT_MS:
        return Ending(None, None, None, never_times_out=True)
    ends_ms = plus(start_ms, timeout_ms)
    return Ending(
        ends_ms, plus(ends_ms, ABORT_INTERVAL_MS), plus(ends_ms, LATE_TRANSACTION_BUFFER_MS), never_times_out=False
    )


class StateRecord(NamedTuple):
    """One record of `__transaction_state` (`TransactionLogValue`) in the history of its id.

    `recorded_ms` is the broker's time of its batch, `last_update_ms` that in its value. A tombstone has no value:
    everything of it is None. Tagged fields of a newer Kafka leave open whether its list is whole (`may_list_more`), and
    which producer ids it names (`may_name_more`).
    `is_hidden`: a later record of its id could not be decoded, so that it is not the newest.
    `leader_epoch` is that of its batch, None in an export.
    `is_id_uncertain`: a tombstone of an export as text, where ids are printed raw: some id is gone that ends so.
    """

    transactional_id: str
    state_partition: int | None
    state: str | None
    is_tombstone: bool
    producer_id: int | None
    previous_producer_id: int | None
    next_producer_id: int | None
    producer_epoch: int | None
    timeout_ms: int | None
    topic_partitions: tuple[TopicPartition, ...]
    last_update_ms: int | None
    recorded_ms: int | None
    start_ms: int | None
    client_transaction_version: int | None
    is_undecodable: bool = False
    may_list_more: bool | None = None
    may_name_more: bool | None = None
    is_hidden: bool = False
    is_id_uncertain: bool = False
    leader_epoch: int | None = None

    @property
    def moment_ms(self) -> int | None:
        """The broker's time of it: of its append where the dump prints it, or of the update in its value."""
        return later_of(self.recorded_ms, self.last_update_ms)

    @property
    def is_completed(self) -> bool:
        """The record completes a decision: every marker was written."""
        return self.state in COMPLETED

    def completes(self, decision: StateRecord) -> bool:
        """Whether the record completes a decision of this kind."""
        return self.is_completed and PREPARED_OF[self.state or ""] == decision.state

    @property
    def is_of_a_new_id(self) -> bool:
        """Nothing can have come before it: `Empty` at epoch 0, of an id that had no other producer id.

        Brokers of 4.3 write the id's own producer id as its previous one.
        """
        has_no_other = self.previous_producer_id in (None, self.producer_id)
        return self.state == EMPTY and self.producer_epoch == 0 and has_no_other

    @property
    def producer_ids(self) -> tuple[int | None, int | None, int | None]:
        """What it stands for: its current, previous and next producer id (KIP-890's tagged fields)."""
        return self.producer_id, self.previous_producer_id, self.next_producer_id

    def names(self, producer_id: int) -> bool:
        """Whether the record stands for this producer id."""
        return producer_id in self.producer_ids

    def concerns(self, topic_partition: TopicPartition, producer_id: int) -> bool:
        """Whether its transaction is live, stands for the producer id in whatever way and contains the partition."""
        return self.state in LIVE and self.names(producer_id) and topic_partition in self.topic_partitions

    def lists(self, topic_partition: TopicPartition, producer_id: int) -> bool:
        """Whether it has the producer id as its current one and contains the partition, whatever its state."""
        return self.producer_id == producer_id and topic_partition in self.topic_partitions

    def may_list(self, producer_id: int) -> bool:
        """Fields of a newer Kafka may make it list any partition under the producer id, whatever its state."""
        if self.producer_id == producer_id:
            return bool(self.may_list_more)
        return self.may_list_more is not None and bool(self.may_name_more)


NAMED = ("producer_id", "previous_producer_id", "next_producer_id")
"""The producer ids that a record stands for (KIP-890's tagged fields)."""

SAID = StateRecord._fields[: StateRecord._fields.index("is_hidden")]
"""The columns of `transaction_states` that a history is made of."""
