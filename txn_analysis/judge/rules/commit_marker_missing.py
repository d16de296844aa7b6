"""`commit_marker_missing`: the commit was acknowledged, and its marker is lost (KAFKA-7408).

The coordinator completed a commit that lists the partition, and the log goes on without its marker; or another copy of
the log, or an earlier capture, still has the marker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txn_analysis.judge.rules.rule import Rule
from txn_analysis.logic import UNBOUNDED_MS
from txn_analysis.text.words import utc
from txn_analysis.verdict import Verdict

if TYPE_CHECKING:
    from txn_analysis.judge.facts import Facts
    from txn_analysis.logic import Truth


def when(facts: Facts) -> Truth:
    """A commit that lists the partition was completed, and its marker is not in the log that goes on."""
    return facts.loss.is_proven


def evidence(facts: Facts) -> list[str | None]:
    """The decision, and how far the log goes on without its marker."""
    commit, elsewhere = facts.loss.commit, facts.loss.other_copy_offset
    decided = done = goes_on = held = None
    if commit is not None:
        how = "completed" if commit.completed_ms != UNBOUNDED_MS else "followed by its id's next record"
        decided = f"PrepareCommit of {utc(commit.prepared_ms)} lists {facts.where}"
        done = f"it was {how} by {utc(commit.settled_ms)}"
        goes_on = f"the log goes on to {utc(facts.log.last_moment_ms)} without its marker"
    if elsewhere is not None:
        held = f"another copy of this log, or an earlier capture, has a COMMIT marker of the producer at {elsewhere}"
    return [facts.coordinator_says, decided, done, goes_on, held]


def why_not(_: Facts) -> str:
    """No commit is known whose marker should be there."""
    return "no completed commit is known that lists the partition and whose marker is not in the log"


COMMIT_MARKER_MISSING = Rule(
    name="commit_marker_missing",
    verdict=Verdict.SUSPECT,
    meaning="the commit was acknowledged, and its marker is lost",
    when=when,
    evidence=evidence,
    why_not=why_not,
    would_change="a copy of the log that has the marker",
    reason="The application was told that its transaction is committed. An unclean leader election, or a lost disk, "
    "took the marker from this log (KAFKA-7408). An abort would destroy acknowledged data; nothing in Kafka's tools "
    "can commit it.",
    remedy="Never abort it. Read the records from the start offset on with `read_uncommitted`, and write them again "
    "with the application's owner; then, and only then, the partition can be freed. Find out what was lost: "
    "`UncleanLeaderElectionsPerSec`, disks, and other partitions of the same broker.",
)
