"""How the facts of one open transaction follow from its log, the coordinator's view and the settings.

Lateness, clocks and bounds follow the contract's section 5. Wherever the clocks of two brokers are compared,
`max_clock_skew_ms` is allowed for. What cannot be told is None, and None is decided explicitly in each fact: an
accusation needs proof, and so does an acquittal of the evidence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from txn_analysis.coordinator.history import COMMIT
from txn_analysis.coordinator.partition_count import Words
from txn_analysis.judge.copied import NOTHING_COPIED
from txn_analysis.judge.facts import AgainstTransaction, Facts, Lateness, LogReach, Loss, StateReach
from txn_analysis.kafka.transactions import EXHAUSTED_EPOCH, ONGOING, ending_of
from txn_analysis.logic import UNBOUNDED_MS, is_before, latest, minus, more, plus, possible, proven
from txn_analysis.text import utc

if TYPE_CHECKING:
    from txn_analysis.coordinator.chain import Rise
    from txn_analysis.coordinator.coverage import StateEvidence, StatePartition
    from txn_analysis.coordinator.view import CoordinatorView
    from txn_analysis.judge.copied import Copied
    from txn_analysis.settings import Settings
    from txn_analysis.tables import PartitionHealth, Transaction


class Moments(NamedTuple):
    """When the files of a capture were copied: as is said, or else its newest moment; None without any clock.

    Something is late by `as_of_ms`. Whether evidence reaches far enough is asked of `newest_ms`, the newest moment that
    a broker's clock wrote in the capture, where it is said that the copy was made before.
    """

    as_of_ms: int | None
    newest_ms: int | None

    @property
    def reach_ms(self) -> int | None:
        """Up to when the evidence of the capture speaks."""
        return latest(self.as_of_ms, self.newest_ms)


class Case(NamedTuple):
    """What the facts of one open transaction are found from; see `facts_of`."""

    opened: Transaction
    partition: PartitionHealth
    known: CoordinatorView | None
    state: StateEvidence
    settings: Settings
    moments: Moments
    copied: Copied = NOTHING_COPIED

    @property
    def holder(self) -> StatePartition | None:
        """The partition of the state that holds the id; None where none is known, or it was not given."""
        if self.known is None:
            return None
        found = self.state.partition(self.known.state_partition)
        return found if found is not None and found.is_seen else None

    @property
    def last_moment_ms(self) -> int | None:
        """Up to when the log of the partition is proven to reach: the one place where that is decided.

        It is what a broker's clock wrote into it at the highest offset. Moments of other partitions prove nothing of a
        follower's copy, and the order in which files were read proves nothing of a copy. A manifest alone moves it
        later (`judge.copied`, Reach), and for every question: a log that is held to reach far for one of them and not
        for another would lack the marker of a commit, and nobody would miss it.
        """
        return latest(self.partition.last_moment_ms, self.copied.reach_ms.get(self.opened.topic_partition))

    @property
    def is_state_last(self) -> bool:
        """The state was copied last, as somebody says, as far as it decides here.

        Not where it has a record that could not be decoded, and some marker that is later than the state may be of it:
        that does not disprove the word, and the word waives nothing there.
        """
        where = self.holder
        is_undecoded = (
            self.state.has_undecodable if self.known is None else where is not None and where.undecodable_count
        )
        return self.settings.state_copied_last and not (is_undecoded and self.state.fit.sums.has_later_unexplained)

    @property
    def since_ms(self) -> int | None:
        """From when on the id's history counts: the producer's last end marker in the partition, if there is one."""
        return minus(self.opened.last_marker_ms, self.settings.max_clock_skew_ms)


def facts_of(
    opened: Transaction,
    partition: PartitionHealth,
    coordinator: CoordinatorView | None,
    state: StateEvidence,
    settings: Settings,
    moments: Moments,
    state_leader_epoch: int | None = None,
    untrue: frozenset[str] = frozenset(),
    copied: Copied = NOTHING_COPIED,
) -> Facts:
    """The facts of one open transaction.

    Args:
        opened: what its own log says.
        partition: the health of its partition.
        coordinator: what the coordinator knows; None where no transactional id has, or had, its producer id.
        state: what was seen of `__transaction_state`.
        settings: bounds, and what the operator gave their word for, as far as nothing disproves it.
        moments: when the files were copied.
        state_leader_epoch: leader epoch of the partition of the state that decides, as far as that was read.
        untrue: names of the assurances that the files disprove.
        copied: what manifests prove of the copying.
    """
    coordinator = _as_far_as_decoded(coordinator, state)
    case = Case(opened, partition, coordinator, state, settings, moments, copied)
    hidden = hidden_in(case)
    reach = _state_reach(case, state_leader_epoch)
    return Facts(
        open=opened,
        partition=partition,
        coordinator=coordinator,
        lateness=_lateness(opened, settings, moments.as_of_ms),
        live=_against_transaction(opened, coordinator, settings, reach.end_ms),
        state=reach,
        log=_log_reach(case, hidden),
        loss=loss_of(case, hidden),
        max_clock_skew_ms=settings.max_clock_skew_ms,
        expired_before_ms=minus(moments.reach_ms, settings.transactional_id_expiration_ms),
        untrue=untrue,
        copied=copied,
        is_recent=_is_recent(case),
        is_long_open=proven(more(minus(moments.as_of_ms, opened.first_appended_before_ms), settings.late_after_ms)),
    )


def _is_recent(case: Case) -> bool:
    """The first batch is younger than the bound, by the partition's own brokers, at the moment of the copy.

    That is what the operator said, unless a broker's clock shows a later moment; else what a broker's manifest says. A
    moment later than the copy proves nothing: some clock has jumped.
    """
    opened, settings, skew_ms = case.opened, case.settings, case.settings.max_clock_skew_ms
    began_ms = opened.first_appended_after_ms if opened.is_txn_start_exact else None
    if settings.as_of_ms is not None and not is_before(settings.as_of_ms, case.moments.newest_ms):
        copied_ms: int | None = settings.as_of_ms
    else:
        copied_ms = case.copied.copied_ms.get(opened.topic_partition)
        if is_before(plus(copied_ms, skew_ms), case.partition.last_moment_ms):
            return False
    if began_ms is None or copied_ms is None or began_ms > copied_ms:
        return False
    return copied_ms + skew_ms - began_ms < settings.late_after_ms


def _as_far_as_decoded(known: CoordinatorView | None, state: StateEvidence) -> CoordinatorView | None:
    """What the coordinator knows, beside records in the id's partition of the state that may be of any id."""
    holder = None if known is None else state.partition(known.state_partition)
    if known is None or holder is None or not holder.keyless_count:
        return known
    return known.as_hidden()


def _lateness(opened: Transaction, settings: Settings, as_of_ms: int | None) -> Lateness:
    last_ms, bound_ms = opened.last_timestamp_ms, settings.late_after_ms
    is_credible = as_of_ms is not None and last_ms is not None and 0 < last_ms <= as_of_ms
    quiet_ms = minus(as_of_ms, last_ms if is_credible else opened.appended_before_ms)
    basis = "last_timestamp" if is_credible else "broker_clock"
    return Lateness(
        idle_ms=minus(as_of_ms, last_ms),
        basis=None if quiet_ms is None else basis,
        late_by_ms=minus(quiet_ms, bound_ms),
        is_late=more(quiet_ms, bound_ms),
    )


def _against_transaction(
    opened: Transaction, known: CoordinatorView | None, settings: Settings, state_end_ms: int | None
) -> AgainstTransaction:
    """The open data beside the transaction in progress; what is overdue is asked of the state's own time."""
    if known is None:
        return AgainstTransaction(
            is_older_by_clock=False, is_older_by_epoch=False, is_update_overdue=False, is_transaction_overdue=False
        )
    is_ongoing = known.is_listed is True and known.state == ONGOING
    first_before_ms = plus(opened.first_appended_before_ms, settings.max_clock_skew_ms)
    unmoved_ms = minus(state_end_ms, known.update_ms)
    overdue_after_ms = ending_of(known.start_ms, known.timeout_ms).overdue_after_ms
    return AgainstTransaction(
        is_older_by_clock=is_ongoing and proven(more(known.start_ms, first_before_ms)),
        is_older_by_epoch=is_ongoing and proven(more(known.txn_epoch, opened.max_producer_epoch)),
        is_update_overdue=proven(more(unmoved_ms, settings.late_after_ms)),
        is_transaction_overdue=proven(more(state_end_ms, overdue_after_ms)),
    )


def _state_reach(case: Case, leader_epoch: int | None) -> StateReach:
    """Whether the state was copied late enough to answer for an open transaction.

    For a known id, one partition of `__transaction_state` decides: the one that the id hashes to. For an unknown
    producer every partition decides, since its id could be in any of them.
    """
    opened, known, state, settings = case.opened, case.known, case.state, case.settings
    before_ms, must_reach = opened.appended_before_ms, not case.is_state_last
    holder = case.holder
    deciding_end_ms = state.earliest_end_ms if known is None else UNBOUNDED_MS if holder is None else holder.moment_ms
    bound_ms = plus(before_ms, settings.max_clock_skew_ms)
    is_behind = bound_ms is not None and possible(more(bound_ms, deciding_end_ms))
    end_ms = None if holder is None else latest(holder.moment_ms, holder.log_dir_end_ms)
    return StateReach(
        is_unbounded=must_reach and before_ms is None,
        is_behind=must_reach and is_behind,
        is_order_needed=not must_reach and (before_ms is None or is_behind),
        is_epoch_ahead=known is not None and proven(more(opened.max_producer_epoch, known.state_epoch)),
        misfits=_misfits(case),
        gaps=tuple(_gaps(case)),
        end_ms=latest(end_ms, case.moments.as_of_ms) if case.is_state_last else end_ms,
        partitions_seen=state.seen_count,
        partitions_expected=state.expected_count,
        leader_epoch=leader_epoch,
        names_topic=opened.topic in state.topics,
        largest_producer_id=state.largest_producer_id,
    )


def _misfits(case: Case) -> tuple[str, ...]:
    """Why the state does not fit; a record that could not be decoded may be the one that an unknown producer lacks."""
    fit, is_known = case.state.fit, case.known is not None
    if not is_known and case.state.has_undecodable:
        return fit.in_any_case
    return fit.against(case.opened.producer_id, is_known=is_known)


def _gaps(case: Case) -> list[str]:
    words, state = Words.of(case.settings), case.state
    is_copied_last = case.is_state_last
    opened = case.opened
    by_ms = minus(opened.appended_before_ms, case.settings.max_clock_skew_ms)
    is_known, where = case.known is not None, opened.topic_partition
    told = state.fit.doubts(where, by_ms, is_known=is_known, is_copied_last=is_copied_last) if state.seen_count else ()
    doubts = [f"__transaction_state: {words}" for words in told]
    if case.known is not None:
        if case.holder is None:
            return ["the partition that holds the id is not in the capture"]
        gaps = case.holder.gaps(words, case.since_ms)
        return [*gaps, *_doubts_of_newest(case.known), *doubts]
    gaps = [*state.gaps(words), *doubts]
    if state.count.larger is not None:
        gaps.append(f"__transaction_state: its ids fit {state.count.larger} partitions as well as {state.count.used}")
    before_ms = case.opened.appended_before_ms
    begins_before = state.first_moment_ms is not None and before_ms is not None and state.first_moment_ms < before_ms
    # What was not given may begin before the data.
    if before_ms is not None and not begins_before and (state.is_given or not gaps):
        gaps.append("__transaction_state begins after the data: it may have been made again")
    return gaps


def _doubts_of_newest(known: CoordinatorView) -> list[str]:
    """Why it is not known what the newest record of an id lists; a producer id is listed, or not, by that alone."""
    if known.is_newest_hidden:
        return [f"a record behind the newest one of {known.transactional_id} that could be decoded"]
    if known.is_listed is None:
        return [f"the newest record of {known.transactional_id} has fields of a newer Kafka: it may list the partition"]
    return []


def _log_reach(case: Case, hidden: Hidden) -> LogReach:
    known, last_ms, settings = case.known, case.last_moment_ms, case.settings
    holder = case.holder
    if case.state.has_undecodable if known is None else holder is not None and holder.undecodable_count:
        return LogReach(last_ms, None, hidden.is_any if known is not None else None)
    log_end_ms = minus(last_ms, settings.max_clock_skew_ms)
    if known is not None:
        is_later = possible(more(known.recorded_ms, log_end_ms))
        return LogReach(last_ms, is_later and (hidden.is_any or known.without_marker.is_any), hidden.is_any)
    is_later = any(possible(more(ms, log_end_ms)) for ms in (*hidden.gap_ends_ms, *case.state.orphans_ms))
    seen_to_ms = last_ms if last_ms is not None else case.partition.last_credible_timestamp_ms
    known_since_ms = minus(case.moments.reach_ms, settings.transactional_id_expiration_ms)
    return LogReach(last_ms, is_later or possible(more(known_since_ms, seen_to_ms)), None)


class Hidden(NamedTuple):
    """What of the coordinator's history can have held a decision on the transaction, and is gone.

    `gap_ends_ms` are the moments behind the newest gap of each part of the history, UNBOUNDED_MS where nothing tells;
    `rises` are where the leader of such a part changed.
    """

    gap_ends_ms: tuple[int, ...]
    rises: tuple[Rise, ...]

    @property
    def is_any(self) -> bool:
        """There is a gap."""
        return bool(self.gap_ends_ms)


def hidden_in(case: Case) -> Hidden:
    """Of a known id its own history since the producer's last end marker; else every partition of the state."""
    state, known = case.state, case.known
    if known is None:
        exported = (_exported_gap_ms(case, p) for p in state.exported)
        return Hidden((*state.dumped_gap_ends_ms, *(ms for ms in exported if ms is not None)), state.rises)
    own, end_ms, since_ms = state.partition(known.state_partition), _own_gap_ms(case), case.since_ms
    counts = end_ms is not None and (since_ms is None or end_ms >= since_ms)
    return Hidden((end_ms,) if end_ms is not None and counts else (), () if own is None else own.chain.rises)


def _own_gap_ms(case: Case) -> int | None:
    """The end of the newest gap in a known id's history; an export shows none but before its first record."""
    known = case.known
    assert known is not None
    holder = case.state.partition(known.state_partition)
    if holder is None:
        return UNBOUNDED_MS
    if holder.is_console and not holder.undecodable_count:
        return known.export_gap_ms if case.settings.transaction_state_complete else UNBOUNDED_MS
    return holder.chain.gap_end_ms


def _exported_gap_ms(case: Case, partition: StatePartition) -> int | None:
    """The end of the newest gap of an export in which an unknown producer's history can be gone.

    That is what came before the first record of each id: whatever producer ids it had used up by then.
    """
    return UNBOUNDED_MS if _is_lost_in_export(case) else partition.chain.export_gap_ms


def _is_lost_in_export(case: Case) -> bool:
    """An export may lack all of an unknown producer: nobody vouches for it, its id expired, or rotated away."""
    known_since_ms = minus(case.moments.reach_ms, case.settings.transactional_id_expiration_ms)
    first_ms = case.opened.first_appended_after_ms
    has_expired = first_ms is None or is_before(first_ms, known_since_ms)
    is_rotating = (case.opened.producer_epoch or 0) >= EXHAUSTED_EPOCH
    return not case.settings.transaction_state_complete or has_expired or is_rotating


def loss_of(case: Case, hidden: Hidden) -> Loss:
    """What is known of a lost commit marker."""
    opened, last_ms, skew_ms = case.opened, case.last_moment_ms, case.settings.max_clock_skew_ms
    unserved = None if case.known is None else case.known.without_marker
    commit = None if unserved is None else unserved.commit
    abort = None if unserved is None else unserved.abort
    is_settled = [last_ms is not None and d.settled_ms <= last_ms - skew_ms for d in (abort,) if d is not None]
    gaps = _gaps_since_written(case, hidden)
    return Loss(
        commit=commit
        if commit is not None and last_ms is not None and commit.settled_ms <= last_ms - skew_ms
        else None,
        other_copy_offset=opened.other_copy_commit_offset,
        doubts=tuple(_doubts(case, hidden, gaps)),
        is_ruled_out=case.settings.no_records_lost,
        hides_no_commit=last_ms is not None and commit is None and all(is_settled) and not gaps,
    )


def _gaps_since_written(case: Case, hidden: Hidden) -> list[int]:
    """The gaps that can hide a decision on the transaction: those that end before its first batch cannot."""
    opened = case.opened
    first_ms = opened.first_appended_after_ms if opened.is_txn_start_exact else None
    since_ms = minus(first_ms, case.settings.max_clock_skew_ms)
    return [ms for ms in hidden.gap_ends_ms if since_ms is None or ms >= since_ms]


def _doubts(case: Case, hidden: Hidden, gaps: list[int]) -> list[str]:
    opened, skew_ms = case.opened, case.settings.max_clock_skew_ms
    first_ms, last_ms, is_exact = (
        opened.first_appended_after_ms,
        opened.first_appended_before_ms,
        opened.is_txn_start_exact,
    )
    rises = [r for r in hidden.rises if r.may_touch(first_ms if is_exact else None, last_ms, skew_ms)]
    doubts = []
    if gaps:
        until = "" if max(gaps) == UNBOUNDED_MS else f" up to {utc(max(gaps))}"
        doubts.append(f"compaction or retention took records of __transaction_state{until} that may have decided it")
    if rises:
        at = utc(rises[-1].by_ms) or "an unknown moment"
        doubts.append(f"the leader of __transaction_state changed by {at}: records of its end may have been cut off")
    if not is_exact and case.known is not None and case.known.without_marker.has_commit_of_any_age:
        doubts.append(f"a {COMMIT} of its producer has no marker here, and its start may lie before the first file")
    return doubts
