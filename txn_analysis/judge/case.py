"""Case: one open transaction with its evidence; the terms of the rules (docs/rules.md) are its properties.

None is what the evidence cannot tell. All moments are epoch milliseconds. Wherever the clocks of two brokers are
compared, `max_clock_skew_ms` is allowed for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from txn_analysis.coordinator.chain import LeaderEpochChange
from txn_analysis.coordinator.coverage import StateEvidence, StatePartition
from txn_analysis.coordinator.history import Decision
from txn_analysis.coordinator.view import CoordinatorView
from txn_analysis.judge.copied import NOTHING_COPIED, Copied
from txn_analysis.kafka.transactions import EXHAUSTED_EPOCH, ONGOING, TopicPartition, ending_of
from txn_analysis.logic import UNBOUNDED_MS, Truth, is_before, latest, minus, more, plus, possible
from txn_analysis.settings import Settings
from txn_analysis.tables import PartitionHealth, Transaction


class Moments(NamedTuple):
    """When the files of a capture were copied: as is stated, or else its newest moment; None without any clock.

    Something is late by `as_of_ms`. Whether evidence reaches far enough is asked of `newest_ms` as well: the newest
    moment that a broker's clock wrote in the capture.
    """

    as_of_ms: int | None
    newest_ms: int | None

    @property
    def reach_ms(self) -> int | None:
        """Up to when the evidence of the capture speaks."""
        return latest(self.as_of_ms, self.newest_ms)


@dataclass(frozen=True)
class Case:
    """One open transaction, and the evidence that decides about it.

    Attributes:
        txn: the open transaction, by its own log.
        log: the health of its partition.
        view: what the records of the coordinator say; None where no transactional id has, or had, the producer id.
        state: what was seen of `__transaction_state`.
        settings: bounds, and the *assurances* that nothing disproves.
        moments: when the files were copied.
        coordinators_epoch: the leader epoch of the partition of the state that holds the id, as far as it was read.
        untrue: names of the assurances that the files disprove, whether or not they were given.
        copied: what manifests prove of the copying.
    """

    txn: Transaction
    log: PartitionHealth
    view: CoordinatorView | None
    state: StateEvidence
    settings: Settings
    moments: Moments
    coordinators_epoch: int | None = None
    untrue: frozenset[str] = frozenset()
    copied: Copied = NOTHING_COPIED

    # The log (sections 4 and 5).

    @property
    def where(self) -> TopicPartition:
        """The partition of the open data."""
        return self.txn.topic_partition

    @property
    def is_dead_leaders_tail(self) -> bool:
        """*A dead leader's tail*: above its own folder's high watermark, and no newest state record lists it."""
        return self.txn.is_above_high_watermark is True and not self.is_listed

    @cached_property
    def last_moment_ms(self) -> int | None:
        """The partition's *last moment*, or what a manifest proves (*Reach*): how far the log is proven to reach.

        It is decided here for every question. A log that reached far for one and not for another would lack the marker
        of a commit, and no rule would miss it.
        """
        return latest(self.log.last_moment_ms, self.copied.reach_ms.get(self.where))

    @property
    def log_end_ms(self) -> int | None:
        """The *last moment* - skew: what the coordinator wrote by then, the log would show."""
        return minus(self.last_moment_ms, self.settings.max_clock_skew_ms)

    @property
    def last_seen_ms(self) -> int | None:
        """The *last moment*; where there is none, the last credible batch timestamp."""
        last_ms = self.last_moment_ms
        return self.log.last_credible_timestamp_ms if last_ms is None else last_ms

    @property
    def exact_after_ms(self) -> int | None:
        """`appended_after_ms` of the first batch, if the start is *exact*."""
        return self.txn.first_appended_after_ms if self.txn.is_txn_start_exact else None

    @property
    def blocks_partition(self) -> bool | None:
        """It holds the last stable offset. Brokers keep that at the log start at least: several may hold it there."""
        stable = self.log.last_stable_offset
        return None if stable is None else self.txn.txn_start_offset <= stable

    # Late (section 5; `ProducerStateManager.hasLateTransaction`).

    @property
    def idle_ms(self) -> int | None:
        """The brokers' own measure, by the last timestamp."""
        return minus(self.moments.as_of_ms, self.txn.last_timestamp_ms)

    @cached_property
    def _has_credible_timestamp(self) -> bool:
        as_of_ms, last_ms = self.moments.as_of_ms, self.txn.last_timestamp_ms
        return as_of_ms is not None and last_ms is not None and 0 < last_ms <= as_of_ms

    @cached_property
    def late_by_ms(self) -> int | None:
        """How far it is beyond transaction.max.timeout.ms + 300000, by its timestamp, or else by brokers' clocks."""
        last_ms = self.txn.last_timestamp_ms if self._has_credible_timestamp else self.txn.appended_before_ms
        return minus(minus(self.moments.as_of_ms, last_ms), self.settings.late_after_ms)

    @property
    def lateness_basis(self) -> str | None:
        """By which clock it is measured: `last_timestamp` or `broker_clock`; None without any."""
        basis = "last_timestamp" if self._has_credible_timestamp else "broker_clock"
        return None if self.late_by_ms is None else basis

    @property
    def is_late(self) -> Truth:
        """*Late*: strictly beyond the bound."""
        return more(self.late_by_ms, 0)

    @property
    def copied_ms(self) -> int | None:
        """When it was: as stated, unless a broker's clock shows a later moment; else by a broker's manifest."""
        stated_ms, manifest_ms = self.settings.as_of_ms, self.copied.copied_ms.get(self.where)
        if stated_ms is not None and not is_before(stated_ms, self.moments.newest_ms):
            return stated_ms
        is_behind = is_before(plus(manifest_ms, self.settings.max_clock_skew_ms), self.log.last_moment_ms)
        return None if is_behind else manifest_ms

    @cached_property
    def is_recent(self) -> bool:
        """Brokers' clocks prove that its first batch is younger than the bound at the moment of the copy.

        A moment later than the copy proves nothing: some clock has jumped.
        """
        began_ms, copied_ms = self.exact_after_ms, self.copied_ms
        if began_ms is None or copied_ms is None or began_ms > copied_ms:
            return False
        return copied_ms + self.settings.max_clock_skew_ms - began_ms < self.settings.late_after_ms

    @property
    def is_long_open(self) -> Truth:
        """Brokers' clocks prove that it is older than the bound, whatever its client's clock says."""
        return more(minus(self.moments.as_of_ms, self.txn.first_appended_before_ms), self.settings.late_after_ms)

    # The transactional id, and its current transaction.

    @cached_property
    def id(self) -> CoordinatorView | None:
        """The id that has, or had, the producer id (*History*); None: no id had it.

        *Undecodable records* without a key in its partition hide its newest record.
        """
        holder = None if self.view is None else self.state.partition(self.view.state_partition)
        is_hidden = holder is not None and holder.keyless_count > 0
        return self.view.as_hidden() if self.view is not None and is_hidden else self.view

    @property
    def is_listed(self) -> Truth:
        """*Lists*; None where no id is known, or its records do not tell."""
        return None if self.id is None else self.id.is_listed

    def lists(self, *states: str) -> bool:
        """*Lists*, in one of these states."""
        return self.id is not None and self.id.is_listed is True and self.id.state in states

    @property
    def start_ms(self) -> int | None:
        """When the id's current transaction began."""
        return None if self.id is None else self.id.start_ms

    @property
    def update_ms(self) -> int | None:
        """The last change of the id's state."""
        return None if self.id is None else self.id.update_ms

    @property
    def timeout_ms(self) -> int | None:
        """Of the id's transactions."""
        return None if self.id is None else self.id.timeout_ms

    @property
    def overdue_after_ms(self) -> int | None:
        """When the coordinator should have aborted the current transaction; None for a two-phase commit."""
        return None if self.id is None else ending_of(self.start_ms, self.timeout_ms).overdue_after_ms

    @cached_property
    def is_older_by_clock(self) -> Truth:
        """Its first batch was appended before the transaction that lists the partition began, - skew."""
        before_ms = plus(self.txn.first_appended_before_ms, self.settings.max_clock_skew_ms)
        return self.lists(ONGOING) and more(self.start_ms, before_ms)

    @cached_property
    def is_older_by_epoch(self) -> Truth:
        """That transaction runs at an epoch above every open batch (KIP-664's epoch mismatch)."""
        epoch = None if self.id is None else self.id.txn_epoch
        return self.lists(ONGOING) and more(epoch, self.txn.max_producer_epoch)

    @property
    def is_older(self) -> bool:
        """The open data is proven to be *older than that transaction*."""
        return self.is_older_by_clock is True or self.is_older_by_epoch is True

    # The state: how far it reaches, whether it fits, what is missing of it.

    @cached_property
    def home(self) -> StatePartition | None:
        """*The id's partition of the state*; None where no id is known, or the partition was not given."""
        holder = None if self.id is None else self.state.partition(self.id.state_partition)
        return holder if holder is not None and holder.is_seen else None

    @cached_property
    def has_undecodable(self) -> bool:
        """*Undecodable records* in the partition that decides; unknown producer: in any."""
        if self.id is None:
            return self.state.has_undecodable
        return self.home is not None and self.home.undecodable_count > 0

    @cached_property
    def is_state_copied_last(self) -> bool:
        """The *assurance* `--state-copied-last` holds here, or a manifest takes its place.

        It waives nothing where records could not be decoded, and a marker later than the state may be one of theirs.
        """
        is_void = self.has_undecodable and self.state.fit.sums.has_later_unexplained
        return self.settings.state_copied_last and not is_void

    @cached_property
    def state_end_ms(self) -> int | None:
        """The *state's end*: of the id's partition, or of its log directory; `as_of_ms` with the assurance."""
        end_ms = None if self.home is None else latest(self.home.moment_ms, self.home.log_dir_end_ms)
        return latest(end_ms, self.moments.as_of_ms) if self.is_state_copied_last else end_ms

    @cached_property
    def home_end_ms(self) -> int | None:
        """The last moment of the id's partition; unknown producer: of all that were given. No bound if none was."""
        if self.id is None:
            return self.state.earliest_end_ms
        return UNBOUNDED_MS if self.home is None else self.home.moment_ms

    @cached_property
    def is_state_behind_by_clocks(self) -> bool:
        """No clock proves that the state reaches up to the open data's `appended_before_ms` + skew."""
        return possible(more(plus(self.txn.appended_before_ms, self.settings.max_clock_skew_ms), self.home_end_ms))

    @property
    def is_state_behind(self) -> bool:
        """Neither a clock nor the order of the copying proves that the state reaches up to the open data."""
        return self.is_state_behind_by_clocks and not self.is_state_copied_last

    @property
    def is_epoch_ahead(self) -> Truth:
        """The open data's epoch is above the state's for the same producer id."""
        return more(self.txn.max_producer_epoch, None if self.id is None else self.id.state_epoch)

    @cached_property
    def misfits(self) -> tuple[str, ...]:
        """Why the state does not *fit*; an *undecodable record* may be the one that an unknown producer lacks."""
        is_known = self.id is not None
        if not is_known and self.state.has_undecodable:
            return self.state.fit.in_any_case
        return self.state.fit.against(self.txn.producer_id, is_known=is_known)

    @cached_property
    def state_lacks(self) -> tuple[str, ...]:
        """What is missing of the state that could hold the answer, or shows it to be *of this cluster*; in words."""
        return tuple(self._state_lacks())

    def _state_lacks(self) -> Iterator[str]:
        settings, state, before_ms = self.settings, self.state, self.txn.appended_before_ms
        if self.id is not None and self.home is None:
            yield "the partition that holds the id is not in the capture"
            return
        gaps = state.gaps(settings) if self.home is None else self.home.gaps(settings, self._history_since_ms)
        yield from gaps
        if self.id is not None and self.id.is_newest_hidden:
            yield f"a record behind the newest one of {self.id.transactional_id} that could be decoded"
        elif self.id is not None and self.id.is_listed is None:
            of_id = f"the newest record of {self.id.transactional_id}"
            yield f"{of_id} has fields of a newer Kafka: it may list the partition"
        doubts = self._doubts_of_fit
        yield from doubts
        if self.id is not None:
            return
        if state.count.larger is not None:
            yield f"__transaction_state: its ids fit {state.count.larger} partitions as well as {state.count.used}"
        # What was not given may begin before the data.
        is_all_there = state.is_given or not (gaps or doubts or state.count.larger is not None)
        if before_ms is not None and not is_before(state.first_moment_ms, before_ms) and is_all_there:
            yield "__transaction_state begins after the data: it may have been made again"

    @property
    def _doubts_of_fit(self) -> list[str]:
        """*Surely confirmed*, *Of this cluster*: what no marker confirms although it could."""
        if not self.state.seen_count:
            return []
        by_ms = minus(self.txn.appended_before_ms, self.settings.max_clock_skew_ms)
        is_copied_last, is_known = self.is_state_copied_last, self.id is not None
        doubts = self.state.fit.doubts(self.where, by_ms, is_known=is_known, is_copied_last=is_copied_last)
        return [f"__transaction_state: {doubt}" for doubt in doubts]

    # The history: its gaps, and the decisions without their marker.

    @property
    def _history_since_ms(self) -> int | None:
        """From when on the id's *history* counts: the producer's last end marker in the partition - skew."""
        return minus(self.txn.last_marker_ms, self.settings.max_clock_skew_ms)

    @property
    def expires_before_ms(self) -> int | None:
        """An id last used before this moment may be forgotten: the newest moment - `transactional.id.expiration.ms`."""
        return minus(self.moments.reach_ms, self.settings.transactional_id_expiration_ms)

    @cached_property
    def gap_ends_ms(self) -> tuple[int, ...]:
        """*Gaps* of the history, each by its end: a known id's, since the last end marker; else of every partition."""
        if self.id is None:
            exported = (self._exported_gap_ms(partition) for partition in self.state.exported)
            return (*self.state.dumped_gap_ends_ms, *(ms for ms in exported if ms is not None))
        end_ms, since_ms = self._gap_of_id_ms(self.id), self._history_since_ms
        return () if end_ms is None or (since_ms is not None and end_ms < since_ms) else (end_ms,)

    def _gap_of_id_ms(self, known: CoordinatorView) -> int | None:
        """The end of the newest gap in a known id's history; an export shows none but before its first record."""
        holder = self.state.partition(known.state_partition)
        if holder is None:
            return UNBOUNDED_MS
        if holder.is_console and not holder.undecodable_count:
            return known.export_gap_ms if self.settings.transaction_state_complete else UNBOUNDED_MS
        return holder.chain.gap_end_ms

    def _exported_gap_ms(self, partition: StatePartition) -> int | None:
        """What an export may lack of an unknown producer: all, if it expired or rotated; else what came before it."""
        first_ms = self.txn.first_appended_after_ms
        has_expired = first_ms is None or is_before(first_ms, self.expires_before_ms)
        is_rotating = (self.txn.producer_epoch or 0) >= EXHAUSTED_EPOCH
        is_lost = not self.settings.transaction_state_complete or has_expired or is_rotating
        return UNBOUNDED_MS if is_lost else partition.chain.export_gap_ms

    @cached_property
    def gaps_at_start(self) -> tuple[int, ...]:
        """Those gaps that end at or after the first batch - skew; all where the start is not *exact*."""
        since_ms = minus(self.exact_after_ms, self.settings.max_clock_skew_ms)
        return tuple(ms for ms in self.gap_ends_ms if since_ms is None or ms >= since_ms)

    @cached_property
    def leader_changes_at_start(self) -> tuple[LeaderEpochChange, ...]:
        """Rises of the state's leader epoch between moments (± skew) that enclose some of the first batch's bounds."""
        holder = None if self.id is None else self.state.partition(self.id.state_partition)
        of_id = () if holder is None else holder.chain.rises
        bounds = self.exact_after_ms, self.txn.first_appended_before_ms, self.settings.max_clock_skew_ms
        return tuple(rise for rise in (self.state.rises if self.id is None else of_id) if rise.may_touch(*bounds))

    @property
    def commit_without_marker(self) -> Decision | None:
        """A commit that is a *decision without its marker*, the first of them."""
        return None if self.id is None else self.id.without_marker.commit

    @cached_property
    def lost_commit(self) -> Decision | None:
        """That commit, if the *last moment* is at or after its Complete record (or the id's next record) + skew."""
        commit = self.commit_without_marker
        return commit if commit is not None and more(commit.settled_ms, self.log_end_ms) is False else None

    @cached_property
    def may_be_of_earlier_decision(self) -> bool:
        """A commit without its marker, an abort whose marker can still come, or one in a *gap* may own the data."""
        abort = None if self.id is None else self.id.without_marker.abort
        can_come = abort is not None and possible(more(abort.settled_ms, self.log_end_ms))
        is_hidden = self.log_end_ms is None or bool(self.gaps_at_start)
        return is_hidden or self.commit_without_marker is not None or can_come

    @property
    def may_lack_commit_before_start(self) -> bool:
        """The start is not *exact*, and a commit of the id is a *decision without its marker*, of whatever age."""
        is_exact = self.txn.is_txn_start_exact
        return not is_exact and self.id is not None and self.id.without_marker.has_commit_of_any_age
