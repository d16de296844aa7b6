"""`coordinator_epoch_went_back`: the partition has seen a higher coordinator epoch and refuses markers (KAFKA-9144)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from txn_analysis.judge.causes.cause import Cause, Confidence, Reading, if_holds

if TYPE_CHECKING:
    from txn_analysis.judge.facts import Facts


def by_markers(facts: Facts) -> Confidence | None:
    """A marker's epoch fell."""
    return if_holds(facts.open.has_coordinator_epoch_fallen and not facts.is_ongoing, Confidence.LIKELY)


def by_state(facts: Facts) -> Confidence | None:
    """The coordinator runs below an epoch that was seen."""
    return if_holds(is_fenced(facts) and not facts.is_ongoing, Confidence.LIKELY)


def is_fenced(facts: Facts) -> bool:
    """The partition's last marker has a higher coordinator epoch than the coordinator itself."""
    seen, current = facts.open.coordinator_epoch, facts.state.leader_epoch
    return seen is not None and current is not None and seen > current


def evidence(facts: Facts) -> list[str | None]:
    """Which epochs there are."""
    seen, current = facts.open.coordinator_epoch, facts.state.leader_epoch
    fallen = "an end marker here has a lower coordinator epoch than one before it"
    fenced = f"the last end marker here has coordinator epoch {seen}, the coordinator itself runs at {current}"
    return [fallen if facts.open.has_coordinator_epoch_fallen else None, fenced if is_fenced(facts) else None]


COORDINATOR_EPOCH_WENT_BACK = Cause(
    name="coordinator_epoch_went_back",
    meaning="the coordinator's epoch is below one that the partition has seen, so it refuses the marker (KAFKA-9144)",
    story="the partition has seen a higher coordinator epoch than the coordinator now has, so it refuses the marker "
    "(KAFKA-9144)",
    prevention="a broker with the fix of KAFKA-9144",
    evidence=evidence,
    doubt="that a marker was refused is written in no file; the coordinator's broker logs it",
)
BY_MARKERS = Reading(COORDINATOR_EPOCH_WENT_BACK, by_markers)
BY_STATE = Reading(COORDINATOR_EPOCH_WENT_BACK, by_state)
