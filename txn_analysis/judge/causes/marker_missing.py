"""`marker_missing`: the coordinator decided, and the marker has not reached the partition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from txn_analysis.judge.causes.cause import Cause, Confidence, Reading, written
from txn_analysis.logic import is_before
from txn_analysis.text.words import utc

if TYPE_CHECKING:
    from txn_analysis.judge.facts import Facts


def reading(facts: Facts) -> Confidence | None:
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


def evidence(facts: Facts) -> list[str | None]:
    """The decision, and that its marker is not there."""
    known = facts.coordinator
    if known is None:
        return []
    if known.is_listed:
        standing = f"the coordinator has {known.state} since {utc(known.update_ms)}"
        return [standing, f"that decision lists {facts.where}, and its marker is not in the log"]
    origins = known.origins
    if origins.prepared_ms is None:
        listed = f"its transaction of {utc(origins.listed_since_ms)} lists {facts.where}"
        return [listed, "how that ended is in no record"]
    decided = f"{origins.prepared_state} of {utc(origins.prepared_ms)} lists {facts.where}"
    done = None if origins.completed_ms is None else f"it counts as completed since {utc(origins.completed_ms)}"
    return [decided, done, "its marker is not in the log", written(facts)]


MARKER_MISSING = Cause(
    name="marker_missing",
    meaning="the coordinator decided, and the marker has not reached the partition",
    story="the coordinator decided, and the marker is not in the log: on its way while it has Prepare, lost where it "
    "counts as completed",
    prevention="look at the partition's leader and at the coordinator's log",
    evidence=evidence,
    doubt="compaction or retention may have removed that marker, and the data may have come after it",
)
READING = Reading(MARKER_MISSING, reading)
