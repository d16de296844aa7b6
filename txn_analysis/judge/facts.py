"""Facts: one open transaction with everything that rules and causes ask, each condition under its own name.

How they are found is in `judge.fact_finding`. All moments are epoch milliseconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from txn_analysis.judge.copied import NOTHING_COPIED
from txn_analysis.judge.lacks import TRUE_IF
from txn_analysis.kafka.transactions import ONGOING, PREPARED, TOMBSTONE
from txn_analysis.settings import flag_name
from txn_analysis.text import if_known, utc

if TYPE_CHECKING:
    from txn_analysis.coordinator.history import Decision
    from txn_analysis.coordinator.view import CoordinatorView
    from txn_analysis.judge.copied import Copied
    from txn_analysis.logic import Truth
    from txn_analysis.tables import PartitionHealth, Transaction

_CLOCKS = {"last_timestamp": "its last timestamp", "broker_clock": "the brokers' clocks"}

RENAMED = "was its folder renamed?"
"""How the fact ends that no record of the state names a topic."""


@dataclass(frozen=True, slots=True)
class Lateness:
    """How long it has been idle, by the best clock there is (`ProducerStateManager.hasLateTransaction`).

    `idle_ms` is the broker metric's own measure, by the last timestamp; `basis` is the clock of the others
    (`last_timestamp` or `broker_clock`), None without any. Late means strictly beyond the bound: `late_by_ms` > 0.
    """

    idle_ms: int | None
    basis: str | None
    late_by_ms: int | None
    is_late: Truth


@dataclass(frozen=True, slots=True)
class AgainstTransaction:
    """The open data beside the transaction that its id has in progress: is that another one, is it past its times?"""

    is_older_by_clock: bool
    is_older_by_epoch: bool
    is_update_overdue: bool
    is_transaction_overdue: bool

    @property
    def is_older(self) -> bool:
        """The open data is proven to be older than that transaction."""
        return self.is_older_by_clock or self.is_older_by_epoch


@dataclass(frozen=True, slots=True)
class StateReach:
    """Whether the state reaches up to the open data, and could hold the answer at all.

    `is_unbounded` says that no broker's clock bounds the open data, `is_behind` that the state may end before it,
    `is_epoch_ahead` that it has a higher epoch than the state. `misfits` is why the state does not fit the logs,
    `gaps` what is missing of it, in words; `end_ms` how far the part of it that decides speaks, `leader_epoch` that of
    this part, as far as it was read. `names_topic`: some transaction of the coordinator lists the topic, as far as its
    records are left. `largest_producer_id` is that of all records. `is_order_needed`: that the state was copied last,
    by a manifest or by a word, stands for a moment that no broker's clock gives.
    """

    is_unbounded: bool
    is_behind: bool
    is_epoch_ahead: bool
    misfits: tuple[str, ...]
    gaps: tuple[str, ...]
    end_ms: int | None
    partitions_seen: int
    partitions_expected: int
    leader_epoch: int | None
    names_topic: bool
    largest_producer_id: int | None
    is_order_needed: bool = False

    @property
    def is_of_these_logs(self) -> bool:
        """Something of the state was given, and nothing says that it is not that of these logs."""
        return self.partitions_seen > 0 and not self.misfits


@dataclass(frozen=True, slots=True)
class LogReach:
    """Whether the transaction could have been ended after this partition's log was copied.

    `last_moment_ms`: up to when the log is proven to reach; None where no broker's clock speaks. `has_history_gap`:
    records of the id may be missing from its last end marker on; None where no id is known. `may_end_early` is None
    where the state has records that could not be decoded: no copy of the log reaches past those.
    """

    last_moment_ms: int | None
    may_end_early: Truth
    has_history_gap: Truth


@dataclass(frozen=True, slots=True)
class Loss:
    """Whether the transaction was committed, and the marker that says so was lost (KAFKA-7408).

    Attributes:
        commit: the decision whose marker is lost; None where nothing proves one.
        other_copy_offset: of a COMMIT marker that another copy of the log, or an earlier capture, still has.
        doubts: why a commit may have been lost of which no record is left, in words; the operator's word is not asked.
        is_ruled_out: the operator says that no record was ever lost.
        hides_no_commit: no earlier decision can own the data: every one without its marker is an abort whose marker can
            no longer come, and the history has no gap that could hide another one.
    """

    commit: Decision | None
    other_copy_offset: int | None
    doubts: tuple[str, ...]
    is_ruled_out: bool
    hides_no_commit: bool

    @property
    def is_proven(self) -> bool:
        """A commit's marker is lost."""
        return self.commit is not None or self.other_copy_offset is not None

    @property
    def is_possible(self) -> bool:
        """A commit's marker may be lost, and nobody says that it is not."""
        return bool(self.doubts) and not self.is_ruled_out


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of one open transaction.

    Attributes:
        open: its own log.
        partition: the log of its partition.
        coordinator: what the coordinator knows; None where no transactional id has, or had, its producer id.
        lateness: how long it has been idle.
        live: it beside the transaction that the id has in progress.
        state: how far the state reaches.
        log: how far the log reaches.
        loss: whether its commit marker was lost.
        max_clock_skew_ms: by how much two brokers' clocks may differ.
        expired_before_ms: an id that was last used before this moment may have been forgotten.
        untrue: names of the assurances that the files disprove, whether or not somebody gave their word.
        copied: what manifests prove of the copying.
        is_recent: brokers' clocks prove that its first batch is younger than the bound at the moment of the copy.
        is_long_open: they prove that it is older than the bound, whatever its client's clock says.
    """

    open: Transaction
    partition: PartitionHealth
    coordinator: CoordinatorView | None
    lateness: Lateness
    live: AgainstTransaction
    state: StateReach
    log: LogReach
    loss: Loss
    max_clock_skew_ms: int
    expired_before_ms: int | None
    untrue: frozenset[str] = frozenset()
    copied: Copied = NOTHING_COPIED
    is_recent: bool = False
    is_long_open: bool = False

    @property
    def clocks_remark(self) -> str | None:
        """What the brokers' clocks say of its age, where its client's clock says something else; None where not."""
        if self.is_recent and self.lateness.is_late:
            return self.being_written
        if self.is_long_open and self.lateness.is_late is False and self.blocks_partition:
            since = utc(self.open.first_appended_before_ms)
            return f"it is not late by its last timestamp, and holds the last stable offset since {since} or before"
        return None

    @property
    def being_written(self) -> str:
        """That it was being written while it was copied, of what is recent."""
        began = utc(self.open.first_appended_after_ms)
        return f"it was being written while it was copied: by the brokers' clocks it began after {began}"

    @property
    def is_listed(self) -> Truth:
        """The coordinator's transaction lists the partition; None where no id is known, or its records do not tell."""
        return None if self.coordinator is None else self.coordinator.is_listed

    @property
    def is_unlisted(self) -> bool:
        """The id is known, and nothing that it has in progress lists the partition."""
        return self.coordinator is not None and self.coordinator.is_listed is False

    def is_listed_in(self, *states: str) -> bool:
        """The coordinator's transaction lists the partition, and is in one of the states."""
        known = self.coordinator
        return known is not None and known.is_listed is True and known.state in states

    @property
    def is_prepared(self) -> bool:
        """The coordinator has decided a transaction that lists the partition; its marker is on the way."""
        return self.is_listed_in(*PREPARED)

    @property
    def is_ongoing(self) -> bool:
        """The coordinator has nothing decided in a transaction that lists the partition."""
        return self.is_listed_in(ONGOING)

    @property
    def may_be_a_dead_leaders(self) -> bool:
        """Only a folder holds it whose own high watermark lies below it, and no newest state record lists it."""
        return self.open.is_above_high_watermark is True and not self.is_listed

    @property
    def blocks_partition(self) -> bool | None:
        """The transaction holds the last stable offset.

        Brokers keep that at the log start at least: several may hold it there.
        """
        stable = self.partition.last_stable_offset
        return None if stable is None else self.open.txn_start_offset <= stable

    # Sentences that several rules use.

    @property
    def where(self) -> str:
        """The partition in Kafka's own spelling."""
        return f"{self.open.topic}-{self.open.partition}"

    @property
    def coordinator_says(self) -> str | None:
        """The current state of its id."""
        known = self.coordinator
        if known is None or known.state is None:
            return None
        who = "coordinator, before a record that could not be decoded" if known.is_newest_hidden else "coordinator"
        if known.state == TOMBSTONE:
            return f"{who}: the transactional id was removed (tombstone)"
        under = if_known(" under producer id {}", known.producer_id) or ""
        return f"{who}: {known.state}{under}{if_known(', epoch {}', known.producer_epoch) or ''}"

    @property
    def began_at(self) -> str | None:
        """When the coordinator's transaction began."""
        return None if self.coordinator is None else utc(self.coordinator.start_ms)

    @property
    def unchanged_since(self) -> str | None:
        """The last change of the id's state."""
        return None if self.coordinator is None else utc(self.coordinator.update_ms)

    @property
    def timeout_ms(self) -> int | None:
        """Of the coordinator's transaction."""
        return None if self.coordinator is None else self.coordinator.timeout_ms

    @property
    def listed_here(self) -> str:
        """That its partition is in the id's transaction."""
        return f"the coordinator's transaction lists {self.where}"

    @property
    def not_listed_here(self) -> str | None:
        """That nothing in progress lists its partition, or that it cannot be told; None where something does."""
        if self.coordinator is not None and self.is_listed is None:
            return f"the records that could be read do not tell whether a transaction in progress lists {self.where}"
        return None if self.is_listed else f"no transaction in progress at the coordinator lists {self.where}"

    @property
    def not_decided_here(self) -> str:
        """That its partition is not listed, or that its id has no such decision."""
        state = None if self.coordinator is None else self.coordinator.state
        has = if_known("the coordinator has {}, not a decision", state)
        return self.not_listed_here or has or "no state of its transactional id is known"

    @property
    def idle_for(self) -> str | None:
        """How late it is, and by which clock."""
        basis, late_by_ms = self.lateness.basis, self.lateness.late_by_ms
        if basis is None or late_by_ms is None:
            return None
        side = f"{late_by_ms} ms beyond" if late_by_ms > 0 else f"{-late_by_ms} ms within"
        return f"by {_CLOCKS[basis]} it is {side} transaction.max.timeout.ms + 300000"

    def or_word(self, what: str, assurance: str) -> str:
        """What would settle it, or the operator's word, and when that is true; a disproved one is never asked for.

        Args:
            what: evidence that would do.
            assurance: the setting's name.
        """
        is_void = assurance in self.untrue or not self.state.partitions_seen
        return what if is_void else f"{what}, or {flag_name(assurance)}, {TRUE_IF[assurance]}"

    @property
    def copying(self) -> tuple[str, ...]:
        """What manifests prove of the copying."""
        return self.copied.evidence(self.open.topic_partition)

    @property
    def state_seen(self) -> str:
        """How many partitions of the state were seen."""
        return f"__transaction_state: {self.state.partitions_seen} of {self.state.partitions_expected} partitions seen"

    @property
    def state_end(self) -> str | None:
        """How far the state speaks that decides."""
        end = utc(self.state.end_ms)
        return None if end is None else f"__transaction_state goes on to {end}"

    @property
    def topic_unnamed(self) -> str | None:
        """That no record of the state lists the topic: a folder that somebody renamed looks so, and a new topic."""
        if self.state.names_topic:
            return None
        return f"no record of __transaction_state names topic {self.open.topic}: {RENAMED}"

    @property
    def log_followed(self) -> str:
        """That no marker came, and how far the log was followed."""
        last = "" if self.open.last_offset is None else f" after offset {self.open.last_offset}"
        end = self.partition.end_offset
        followed = "" if end is None else f"; the log was followed to offset {end - 1}"
        return f"no end marker of the producer{last}{followed}"
