"""Ways to a wrong abort by name, each in as few steps as it takes: what random and small histories found, kept."""

from dataclasses import replace

from tests.tools.world.faults import (
    EARLY,
    EXPORTED,
    FAR_STATES,
    FOREIGN,
    HALF_SAID,
    HALF_UNSAID,
    MISCOUNTED,
    TWIN,
    UNTRUE,
)
from tests.tools.world.model import LAST_EPOCH, Step
from tests.tools.world.random_worlds import Plot

BEGIN, WRITE, WRITE_LATE = (Step(kind, "a", 0) for kind in ("begin", "write", "write_late"))
MARKER, LOSE, SKIP = Step("marker", "a", 0), Step("lose", "", 0), Step("skip", "a", 0)
COMMIT, ABORT, COMPLETE, EXPIRE = (Step(kind, "a") for kind in ("commit", "abort", "complete", "expire"))
COPY_LOG, COPY_STATE, COMPACT = (Step(kind, "", 0) for kind in ("copy_log", "copy_state", "compact"))
LOSE_STATE, PASS = Step("lose_state", "", 0), Step("pass")
STRAY, BUSY, BUSY_ELSEWHERE = Step("stray", "", 0), Step("busy", "a", 0), Step("busy", "a")
OPEN = (BEGIN, WRITE)
COMMITTED = (*OPEN, COMMIT, MARKER, COMPLETE)


def plot(*steps: Step, fault: str | None = None, says_last: bool = False, says_nothing_lost: bool = False) -> Plot:
    """One id, one partition, one partition of the state; the log is copied first and the state last."""
    return Plot("known", 1, 1, 1, 0, steps, fault, says_last, says_nothing_lost=says_nothing_lost)


def _rotating(*steps: Step) -> Plot:
    """Its next decision uses up the epochs of its producer id; the record that says so does not name the old one."""
    return replace(plot(*steps), version=2, first_epoch=LAST_EPOCH, names_previous=False)


def _busy(*steps: Step) -> Plot:
    """An id of version 2 has used up some producer ids, and the cleaner has passed; all words are true."""
    used_up = (BUSY, BUSY, BUSY, BUSY_ELSEWHERE, COMPACT, PASS)
    told = plot(*used_up, *steps, says_last=True, says_nothing_lost=True)
    return replace(told, version=2, old=frozenset("b"))


def _far(fault: str) -> Plot:
    """The id is in a partition of the state beyond the 50 that are given."""
    return replace(plot(PASS, *OPEN, PASS, fault=fault, says_last=True), states=FAR_STATES, seed="nothing there")


def _with_state_of_a_twin(seed: str, version: int) -> Plot:
    """What the twin did since is of the seed: compaction took every decision on the commits of the log."""
    told = plot(PASS, *OPEN, PASS, fault=TWIN, says_nothing_lost=True)
    return replace(told, seed=seed, version=version, epochs=2)


def _with_a_common_past(*steps: Step) -> Plot:
    """The twin's state confirms a commit of before they went apart, and nothing since."""
    return replace(
        plot(*steps, fault=TWIN, says_nothing_lost=True), seed="3/19497", version=2, first_epoch=LAST_EPOCH, epochs=2
    )


WRONG_ABORTS: dict[str, Plot] = {
    "a commit's marker is lost in an unclean election": plot(*COMMITTED, LOSE, PASS),
    "the same, its decision compacted away": plot(*COMMITTED, LOSE, COMPACT, PASS),
    "a commit's marker is never sent, as the partition is taken for deleted": plot(*OPEN, COMMIT, SKIP, COMPLETE, PASS),
    "the decision of a commit is lost with the state's tail": replace(
        plot(*OPEN, COMMIT, COPY_LOG, LOSE_STATE, LOSE_STATE, PASS, says_last=True), cluster_id="one cluster"
    ),
    "the producer id rotates while the marker is on its way": _rotating(
        *OPEN, COMMIT, PASS, COPY_LOG, MARKER, COMPLETE, COPY_STATE
    ),
    "the same, the state compacted": _rotating(*OPEN, COMMIT, PASS, COPY_LOG, MARKER, COMPLETE, COMPACT, COPY_STATE),
    "the state is another cluster's": replace(plot(*OPEN, PASS, fault=FOREIGN), seed="foreign 7"),
    "the state is a twin's, compacted": _with_state_of_a_twin("twin 25", 1),
    "the state is a busy twin's of version 2, compacted": _with_state_of_a_twin("twin 39", 2),
    "the state is a twin's, and confirms a commit of the common past": _with_a_common_past(
        *(
            BEGIN,
            COMMIT,
            Step("begin", "b", 0),
            Step("commit", "b"),
            Step("begin", "c", 0),
            MARKER,
            Step("commit", "c"),
        ),
        *(COMPLETE, PASS, *OPEN, Step("marker", "c", 0), COPY_LOG, COPY_STATE),
    ),
    "the state is a twin's, and the log a shallow dump": replace(
        plot(BEGIN, ABORT, MARKER, COMPLETE, PASS, *OPEN, PASS, fault=TWIN), seed="twin 79", is_shallow=(True,)
    ),
    "the state is said to have half as many partitions": replace(plot(*OPEN, PASS, fault=MISCOUNTED), states=2),
    "--as-of is earlier than the copy, and the id has expired since": plot(
        *OPEN, PASS, COMMIT, COPY_LOG, MARKER, COMPLETE, EXPIRE, PASS, COMPACT, PASS, COPY_STATE, fault=EARLY
    ),
    "the state was copied first, and is said to be the last": plot(
        PASS, COPY_STATE, *OPEN, PASS, COPY_LOG, fault=UNTRUE
    ),
    "the same in a shallow dump, where a marker is later than the state": replace(
        plot(*OPEN, ABORT, MARKER, COMPLETE, COPY_STATE, *OPEN, PASS, COPY_LOG, fault=UNTRUE), is_shallow=(True,)
    ),
    "50 of 100 partitions of the state are given, and nobody says how many there are": _far(HALF_UNSAID),
    "50 of 100 partitions of the state are given, and are said to be all": _far(HALF_SAID),
    "a commit in a console export, whose Complete record has the decision's time": plot(
        *OPEN, COMMIT, PASS, COPY_LOG, MARKER, COMPLETE, COPY_STATE, fault=EXPORTED, says_last=True
    ),
}

# By which rule each is kept from the plan.
EXPECTED_RULES = {
    "a commit's marker is lost in an unclean election": "commit_marker_missing",
    "the same, its decision compacted away": "commit_may_be_missing",
    "a commit's marker is never sent, as the partition is taken for deleted": "commit_marker_missing",
    "the decision of a commit is lost with the state's tail": "commit_may_be_missing",
    "the producer id rotates while the marker is on its way": "log_may_end_early",
    "the same, the state compacted": "log_may_end_early",
    "the state is another cluster's": "state_does_not_fit",
    "the state is a twin's, compacted": "state_incomplete",
    "the state is a busy twin's of version 2, compacted": "state_incomplete",
    "the state is a twin's, and confirms a commit of the common past": "state_incomplete",
    "the state is a twin's, and the log a shallow dump": "state_incomplete",
    "the state is said to have half as many partitions": "state_does_not_fit",
    "--as-of is earlier than the copy, and the id has expired since": "log_may_end_early",
    "the state was copied first, and is said to be the last": "state_older_than_log",
    "the same in a shallow dump, where a marker is later than the state": "state_older_than_log",
    "50 of 100 partitions of the state are given, and nobody says how many there are": "state_incomplete",
    "50 of 100 partitions of the state are given, and are said to be all": "state_incomplete",
    "a commit in a console export, whose Complete record has the decision's time": "log_may_end_early",
}

# What a later step of a producer makes of a plan that was right when it was made.
RETURNS = plot(*COMMITTED, WRITE_LATE, PASS, says_last=True)

STILL_HANGING: dict[str, Plot] = {
    "written after its abort": plot(*OPEN, ABORT, MARKER, COMPLETE, WRITE_LATE, PASS, says_last=True),
    "written after its commit": plot(*COMMITTED, WRITE_LATE, PASS, says_last=True),
    "an abort's marker is lost": plot(*OPEN, ABORT, MARKER, COMPLETE, LOSE, PASS, says_last=True),
    "written after its abort, the state compacted": plot(
        *OPEN, ABORT, MARKER, COMPLETE, WRITE_LATE, COMPACT, PASS, says_last=True, says_nothing_lost=True
    ),
    "written after its commit, by an id that goes on elsewhere": plot(
        *COMMITTED, WRITE_LATE, PASS, PASS, says_last=True
    ),
    "written under a producer id that nobody gave out, where an id has used up two producer ids": _busy(STRAY, PASS),
    "written after its commit by an old client, where another id has used up two producer ids": _busy(
        *(Step(kind, "b", 0) for kind in ("begin", "write")),
        Step("commit", "b"),
        Step("marker", "b", 0),
        Step("complete", "b"),
        Step("write_late", "b", 0),
        PASS,
    ),
}
