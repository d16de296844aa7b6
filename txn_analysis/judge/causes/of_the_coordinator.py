"""Causes that lie at the coordinator: it decided, or should have, and its marker did not reach the partition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from txn_analysis.judge.causes.cause import Cause, Confidence, if_holds, written
from txn_analysis.kafka.transactions import EXHAUSTED_EPOCH
from txn_analysis.logic import is_before
from txn_analysis.text.words import listed, utc

if TYPE_CHECKING:
    from txn_analysis.judge.facts import Facts

_MOST_NAMED = 5


def has_a_markers_epoch_fallen(facts: Facts) -> Confidence | None:
    """A marker's epoch fell."""
    return if_holds(facts.open.has_coordinator_epoch_fallen and not facts.is_ongoing, Confidence.LIKELY)


def is_coordinator_fenced(facts: Facts) -> Confidence | None:
    """The coordinator runs below an epoch that was seen."""
    return if_holds(_is_fenced(facts) and not facts.is_ongoing, Confidence.LIKELY)


def _is_fenced(facts: Facts) -> bool:
    """The partition's last marker has a higher coordinator epoch than the coordinator itself."""
    seen, current = facts.open.coordinator_epoch, facts.state.leader_epoch
    return seen is not None and current is not None and seen > current


def _epochs(facts: Facts) -> list[str | None]:
    """Which epochs there are."""
    seen, current = facts.open.coordinator_epoch, facts.state.leader_epoch
    fallen = "an end marker here has a lower coordinator epoch than one before it"
    fenced = f"the last end marker here has coordinator epoch {seen}, the coordinator itself runs at {current}"
    return [fallen if facts.open.has_coordinator_epoch_fallen else None, fenced if _is_fenced(facts) else None]


COORDINATOR_EPOCH_WENT_BACK = Cause(
    name="coordinator_epoch_went_back",
    meaning="the coordinator's epoch is below one that the partition has seen, so it refuses the marker (KAFKA-9144)",
    story="the partition has seen a higher coordinator epoch than the coordinator now has, so it refuses the marker "
    "(KAFKA-9144)",
    prevention="a broker with the fix of KAFKA-9144",
    evidence=_epochs,
    doubt="that a marker was refused is written in no file; the coordinator's broker logs it",
)


def were_markers_not_sent(facts: Facts) -> Confidence | None:
    """Decisions of several ids stand, and none is by a broker that lacks a marker; surer where it is one of each."""
    if facts.unsent is None:
        return None
    return Confidence.LIKELY if facts.unsent.is_one_each else Confidence.POSSIBLE


def _standing_decisions(facts: Facts) -> list[str | None]:
    """The decision, how many ids stand like it, and which brokers hold what."""
    known, unsent = facts.coordinator, facts.unsent
    if known is None or unsent is None:
        return []
    lacking, deciding = (listed([*map(str, places)], _MOST_NAMED) for places in (unsent.lacking, unsent.deciding))
    if unsent.is_one_each:
        brokers = f"one broker holds what lacks markers: {lacking}; another one all decisions: {deciding}"
    elif unsent.are_brokers_told:
        brokers = f"no broker that holds what lacks markers ({lacking}) holds a decision ({deciding})"
    else:
        brokers = f"which brokers lead what lacks markers ({lacking}), and decided ({deciding}), is not in the files"
    return [
        f"the coordinator has {known.state} since {utc(known.update_ms)}",
        f"that decision lists {facts.where}, and its marker is not in the log",
        f"{unsent.id_count} transactional ids stand like this for more than a minute",
        brokers,
    ]


MARKER_NOT_SENT_IN_UPGRADE = Cause(
    name="marker_not_sent_in_upgrade",
    meaning="a coordinator of 4.2.0 cannot send markers to brokers of 4.1 and older (KAFKA-20322): finish the upgrade, "
    "or use 4.2.1",
    story="several ids stand in PrepareCommit or PrepareAbort, and the brokers that lack the markers are not those "
    "that decided: a coordinator of 4.2.0 cannot send markers to brokers of 4.1 and older (KAFKA-20322). `likely` "
    "where log directories show one broker on each side",
    prevention="finish the upgrade, or use 4.2.1: the coordinator then sends the markers itself. Abort nothing",
    evidence=_standing_decisions,
    doubt="the versions of the brokers are in no file, and a leader that its coordinator cannot reach leaves the same",
)


def is_marker_missing(facts: Facts) -> Confidence | None:
    """A decision lists the partition, or a transaction did whose end nothing shows."""
    if facts.is_prepared:
        return Confidence.CERTAIN
    known = facts.coordinator
    if known is None or known.is_listed or known.origins.listed_since_ms is None:
        return None
    if known.origins.prepared_ms is None:
        return Confidence.POSSIBLE
    if is_before(facts.open.first_appended_before_ms, known.origins.prepared_ms, facts.max_clock_skew_ms):
        return Confidence.CERTAIN
    # Without its time, the marker of that decision may be one that retention or compaction removed.
    return Confidence.POSSIBLE if facts.open.last_marker_ms is None else Confidence.LIKELY


def _decision_without_marker(facts: Facts) -> list[str | None]:
    """The decision, and that its marker is not there."""
    known = facts.coordinator
    if known is None:
        return []
    if known.is_listed:
        standing = f"the coordinator has {known.state} since {utc(known.update_ms)}"
        return [standing, f"that decision lists {facts.where}, and its marker is not in the log"]
    origins = known.origins
    if origins.prepared_ms is None:
        listing = f"its transaction of {utc(origins.listed_since_ms)} lists {facts.where}"
        return [listing, "how that ended is in no record"]
    decided = f"{origins.prepared_state} of {utc(origins.prepared_ms)} lists {facts.where}"
    done = None if origins.completed_ms is None else f"it counts as completed since {utc(origins.completed_ms)}"
    return [decided, done, "its marker is not in the log", written(facts)]


MARKER_MISSING = Cause(
    name="marker_missing",
    meaning="the coordinator decided, and the marker has not reached the partition",
    story="the coordinator decided, and the marker is not in the log: on its way while it has Prepare, lost where it "
    "counts as completed",
    prevention="look at the partition's leader and at the coordinator's log",
    evidence=_decision_without_marker,
    doubt="compaction or retention may have removed that marker, and the data may have come after it",
)


def is_transaction_overdue(facts: Facts) -> Confidence | None:
    """The transaction that lists the partition is past its timeout."""
    return if_holds(facts.is_ongoing and facts.live.is_transaction_overdue, Confidence.CERTAIN)


def _timeout(facts: Facts) -> list[str | None]:
    """When it began, and for how long it was to last; and whether there is an epoch left for its abort."""
    known = facts.coordinator
    began, timeout_ms = (None, None) if known is None else (utc(known.start_ms), known.timeout_ms)
    overdue = f"its transaction began at {began} with a timeout of {timeout_ms} ms, and nothing ended it"
    epoch = None if known is None else known.state_epoch
    if epoch is None or epoch < EXHAUSTED_EPOCH:
        return [overdue]
    can_fail = (
        "under transaction version 2 its abort can fail for want of another (KAFKA-19367, KAFKA-20090), and a new "
        "coordinator can have lost its next producer id (KAFKA-20310)"
    )
    return [overdue, f"its producer epoch {epoch} is one of the last: {can_fail}"]


COORDINATOR_OVERDUE = Cause(
    name="coordinator_overdue",
    meaning="the coordinator did not abort it when its time was over",
    story="the transaction is past its timeout, and the coordinator did not abort it",
    prevention="look at the coordinator: it may be overloaded or not have loaded its partition",
    evidence=_timeout,
)
