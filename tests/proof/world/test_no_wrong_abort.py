"""Ways to a wrong abort, told to the pure core: neither an acknowledged commit nor a live transaction is planned."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.tools.stories.histories import File, Snapshot
from tests.tools.stories.stories import ORDERS_0, ORDERS_1, Story, at, begun, holder, removed
from txn_analysis.judge import rules
from txn_analysis.judge.rules import RULES
from txn_analysis.verdict import Verdict


def lost(word: str = "Commit") -> Story:
    """Its transaction is decided and completed; an unclean election takes the marker, and the log goes on."""
    story = begun().decides(word, "10:00:00", "10:00:01")
    story.leader_epoch += 1
    return story.others_commit("10:30").others_commit("11:00")


def rotated(*, is_named_since: bool = True) -> Story:
    """Transaction version 2 at the last epoch: the Complete record runs under the next producer id.

    The log was copied between Prepare and marker.
    """
    story = Story().begins("9:50", producer_epoch=32_765)
    story.log(ORDERS_1)
    story.others_commit("9:55").writes("9:59", producer_epoch=32_765).others_commit("9:59:30")
    story.records("10:00", "PrepareCommit", producer_epoch=32_766, next_producer_id=8)
    story.others_commit("10:00:02")
    story.records("10:00:05", "CompleteCommit", producer_id=8, producer_epoch=0, previous_producer_id=7)
    if not is_named_since:
        story.records("10:20", "Ongoing", producer_id=8, on=(ORDERS_1,))
    return story.others_commit("11:00", ORDERS_1)


def of_another_cluster(*, is_compacted: bool = False) -> Story:
    """The log is of one cluster, the state of another one, whose producer ids are the same small numbers."""
    story = Story()
    for clock in ("9:00", "9:30"):
        story.writes(clock).marks(clock)
    story.writes("9:59").marks("10:30", producer_id=9).marks("11:00", producer_id=9)
    story.begins("8:30", on=(("payments", 3),)).decides("Commit", "8:40", "8:40", on=(("payments", 3),))
    if is_compacted:
        story.compacts_the_state()
    theirs: dict[str, Any] = {"name": "theirs", "producer_id": 9, "on": (("payments", 3),), "offset": 40}
    return story.records("8:45", "PrepareCommit", **theirs).records(
        "11:30", "CompleteCommit", **theirs | {"offset": 41}
    )


def said_to_be_copied_last() -> Story:
    """The state was copied first, and the assurance given all the same; a commit of `others` is newer than it."""
    story = Story().begins("8:10").decides("Commit", "8:20", "8:20").others_commit("9:00").others_commit("9:30")
    story.writes("9:59").writes("10:30", 9).marks("10:30", producer_id=9).marks("11:00", "ABORT", producer_id=9)
    return story.says(state_copied_last=True)


def next_is_open(word: str) -> Story:
    """The marker of its first transaction was lost; its next one is open on the same partition."""
    return lost(word).begins("11:10").writes("11:11").others_commit("12:00").others_commit("12:30")


def next_is_open_and_all_else_compacted() -> Story:
    return next_is_open("Abort").compacts_the_state()


def tail_of_a_dead_leader() -> Story:
    """The folder of one killed broker: a batch above its own high watermark, never replicated."""
    story = Story().begins("9:00").decides("Commit", "9:10", "9:10").others_commit("10:50")
    of_its_own = story.writes("10:59").world.logs.pop(ORDERS_0)
    story.world.files.append(File(ORDERS_0, of_its_own, folder="broker-1"))
    story.world.high_watermarks["broker-1", ORDERS_0] = 2
    return story.says(state_copied_last=True, as_of_ms=at("12:00"))


def held_by(rank: int) -> Story:
    """The cut tail of another copy, or an earlier capture, still has the COMMIT marker; the state is compacted."""
    story = lost()
    kept = story.log()[:3]
    story.marks("10:00:01", leader_epoch=0)
    story.world.files.append(File(ORDERS_0, [*kept, story.log().pop()], rank=rank))
    return story.compacts_the_state().says(no_records_lost=True)


def late_data_hides_it() -> Story:
    """Late data of the same producer, at a higher leader epoch, stands where its marker was."""
    story = begun().decides("Commit", "10:00:00", "10:00:01")
    story.leader_epoch += 1
    return story.writes("10:10").others_commit("10:30").others_commit("11:00")


def two_commits_and_one_marker() -> Story:
    """Within a second of the clocks' allowance; the marker of the first one survives."""
    story = begun().decides("Commit", "10:00:00", "10:00:00.100").marks("10:00:00.050")
    story.begins("10:00:00.200").writes("10:00:00.300").decides("Commit", "10:00:00.400", "10:00:00.500")
    return story.others_commit("10:30").others_commit("11:00")


def gap_after_an_older_abort() -> Story:
    """An earlier copy has the abort of the transaction before; what came after it is compacted."""
    story = Story().begins("9:40").writes("9:41").decides("Abort", "9:45", "9:45").marks("9:45", "ABORT")
    story.others_commit("9:55")
    nightly = [{"offset": n} | row for n, row in enumerate(story.world.states[0])]
    story.begins("9:57").writes("9:59").decides("Commit", "10:00:00", "10:00:01")
    story.others_commit("10:30").others_commit("11:00")
    story.compacts_the_state().world.files.append(File(("__transaction_state", 0), nightly, rank=1))
    return story


def cut_state() -> Story:
    """An unclean election of the state took the commit, another one the marker."""
    story = Story().begins("9:00").decides("Commit", "9:10", "9:10").others_commit("9:55").writes("9:59")
    story.state_leader_epoch += 1
    return story.others_commit("10:30").others_commit("11:00")


def only_the_newest_segments() -> Story:
    """The broker's transaction begins before the first file; its commit is older than what is left of its data."""
    story = Story().begins("9:00").decides("Commit", "9:10", "9:10")
    story.others_commit("9:55").writes("9:59").others_commit("10:30").others_commit("11:00")
    for n, row in enumerate(story.log()):
        row["offset"] = 100 + n
    return story


def clients_clock_ahead() -> Story:
    """The log's first batch carries a client's time, hours ahead of the commit's."""
    story = Story().begins("9:50").writes("15:00").decides("Commit", "10:00:00", "10:00:01")
    return story.others_commit("10:30").others_commit("16:00")


def two_ids_of_one_producer() -> Story:
    """A commit of one id is pending; another id had the same producer id, and changed since."""
    story = Story().begins("9:50").others_commit("9:55").writes("9:59").records("10:50", "PrepareCommit")
    return story.records("10:55", "Empty", name="stolen").others_commit("11:00")


def two_ids_and_a_lost_commit() -> Story:
    """The id whose commit lost its marker has rotated, and changed last; another id still has the producer id."""
    story = Story().records("8:00", "Empty", name="stolen").begins("9:50").others_commit("9:55").writes("9:59")
    story.decides("Commit", "10:00:00", "10:00:01").records("10:05", "Empty", producer_id=8)
    return story.others_commit("10:30").others_commit("11:00")


def state_made_again() -> Story:
    """`__transaction_state` was deleted and made again after the data was written."""
    story = Story().writes("9:55", 9).marks("9:55", "ABORT", producer_id=9).writes("9:59")
    story.marks("10:10", "ABORT", producer_id=9)
    return story.records("10:20", "Empty", name="others", producer_id=9).others_commit("10:30").others_commit("11:00")


def clients_clock_days_ahead() -> Story:
    """No broker's clock speaks in the partition; a client's, days ahead, does not show how far the log goes."""
    story = Story().writes("9:59").writes("200:00", producer_id=-1, is_transactional=False)
    story.log(ORDERS_1)
    story.others_commit("8:30", ORDERS_1).others_commit("11:00", ORDERS_1).compacts_the_state()
    story.world.states[0][0]["offset"] = 7
    story.records("240:00", "CompleteAbort", name="others", producer_id=9, offset=8)
    return story.says(state_copied_last=True, no_records_lost=True)


def emptied_marker() -> Story:
    """KAFKA-8351: the cleaner of a compacted topic empties the COMMIT marker, and leaves the data."""
    story = begun().decides("Commit", "10:00:00", "10:00:01").marks("10:00:01", record_count=0)
    return story.others_commit("10:30").others_commit("11:00").compacts_the_state().says(no_records_lost=True)


def marker_behind_a_snapshot() -> Story:
    """A snapshot names the transaction open; the file that held its marker is gone."""
    story = lost()
    story.world.snapshots.append(Snapshot(ORDERS_0, 2, {7: 1, 9: None}))
    story.world.logs[ORDERS_0] = [{"offset": 5 + n} | row for n, row in enumerate(story.log()[2:])]
    return story.compacts_the_state().says(no_records_lost=True)


def topic_made_again() -> Story:
    """The files of a topic that was deleted, and of the one of its name that followed: leader epochs fall."""
    story = Story()
    story.leader_epoch = 5
    story.begins("9:50").others_commit("9:55").writes("9:59").decides("Abort", "10:00", "10:00")
    story.leader_epoch = 0
    return story.others_commit("10:30").others_commit("11:00")


NOT_ABORTED: dict[str, tuple[Callable[[], Story], str]] = {
    "a commit's marker is lost": (lost, "commit_marker_missing"),
    "the producer id rotates": (rotated, "log_may_end_early"),
    "it rotates, and the id goes on": (lambda: rotated(is_named_since=False), "log_may_end_early"),
    "another cluster's state": (of_another_cluster, "state_does_not_fit"),
    "another cluster's state, compacted": (lambda: of_another_cluster(is_compacted=True), "state_does_not_fit"),
    "an untrue assurance": (said_to_be_copied_last, "state_older_than_log"),
    "the next transaction hides a lost commit": (lambda: next_is_open("Commit"), "commit_marker_missing"),
    "the next transaction hides a lost abort": (lambda: next_is_open("Abort"), "stale_data_in_live_transaction"),
    "the next transaction is all that is left": (next_is_open_and_all_else_compacted, "coordinator_overdue"),
    "the tail of a dead leader": (tail_of_a_dead_leader, "evidence_broken"),
    "another copy has the marker": (lambda: held_by(0), "commit_marker_missing"),
    "an earlier capture has the marker": (lambda: held_by(1), "commit_marker_missing"),
    "late data hides a lost marker": (late_data_hides_it, "commit_marker_missing"),
    "two commits and one marker": (two_commits_and_one_marker, "commit_marker_missing"),
    "a gap after an older abort": (gap_after_an_older_abort, "commit_may_be_missing"),
    "the state was cut": (cut_state, "commit_may_be_missing"),
    "a snapshot, a hole, and the marker in it": (marker_behind_a_snapshot, "evidence_broken"),
    "a topic that was made again": (topic_made_again, "evidence_broken"),
    "an emptied marker": (emptied_marker, "evidence_broken"),
    "only the newest segments": (only_the_newest_segments, "commit_may_be_missing"),
    "a client's clock is ahead": (clients_clock_ahead, "commit_marker_missing"),
    "two ids of one producer, one lists the partition": (two_ids_of_one_producer, "marker_pending_commit"),
    "two ids of one producer, the last to change lost a commit": (two_ids_and_a_lost_commit, "commit_marker_missing"),
    "the state was made again": (state_made_again, "state_incomplete"),
    "no broker's clock, and a client's days ahead": (clients_clock_days_ahead, "log_may_end_early"),
}


@pytest.mark.parametrize("name", NOT_ABORTED)
def test_it_is_not_aborted(name: str) -> None:
    told, rule = NOT_ABORTED[name]
    assert told().rule() == rule


# `state_incomplete` catches these as well: a state that does not fit, or ends before the data, is contradicted, or it
# surely confirms no marker that is as late as the data.
_CAUGHT_TWICE = {"clock_not_credible", "state_does_not_fit", "state_older_than_log"}
_GUARDS = [
    rule.name
    for rule in RULES[:-1]
    if (rule.verdict is Verdict.INCONCLUSIVE or rule.name == "commit_marker_missing") and rule.name not in _CAUGHT_TWICE
]


@pytest.mark.parametrize("name", _GUARDS)
def test_without_a_guard_an_acknowledged_commit_or_a_live_transaction_is_planned(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(rules, "RULES", tuple(rule for rule in RULES if rule.name != name))
    assert any(story().answer().plan for story, rule in NOT_ABORTED.values() if rule == name)


def late_write(story: Story | None = None) -> Story:
    """Written after the abort's marker, with everything as it should be."""
    story = (story or Story()).begins("9:50").others_commit("9:55").writes("9:56")
    story.decides("Abort", "9:57", "9:57").marks("9:57", "ABORT").writes("9:59")
    return story.others_commit("10:30").others_commit("11:00")


def old_commits_cleaned() -> Story:
    """A compacted changelog topic whose old COMMIT markers the cleaner took, as it does."""
    story = Story().records("1:00", "Empty")
    for hour in range(2, 8):
        story.records(f"{hour}:00", "Ongoing").decides("Commit", f"{hour}:10", f"{hour}:10")
    late_write(story)
    for n, row in enumerate(story.log()):
        row["offset"] = 40 + n if n else 0
    return story


def only_its_own_partition() -> Story:
    """Of the two partitions of the state only the id's own was given."""
    story = Story()
    story.world.settings = story.world.settings.model_copy(update={"transaction_state_partitions": 2})
    home = holder("billing", 2)
    assert holder("others", 2) == home
    story.world.states = {home: []}
    return story


def cleaned_and_active() -> Story:
    """Between the cleaned files of the state and its active one there is a hole, older than the last end marker."""
    story = late_write()
    rows = [{"offset": 100 + n} | row for n, row in enumerate(story.world.states.pop(0))]
    cleaned = record_of_long_ago()
    story.world.files += [
        File(("__transaction_state", 0), cleaned),
        File(("__transaction_state", 0), rows, base_offset=100),
    ]
    return story


def record_of_long_ago() -> list[dict[str, Any]]:
    return Story().records("1:00", "Empty", name="old", producer_id=1).world.states[0]


def prepare_twice() -> Story:
    """A coordinator that takes over writes its Prepare record again; one marker serves both."""
    story = begun().records("10:00:00", "PrepareCommit").records("10:00:05", "PrepareCommit")
    story.marks("10:00:06").records("10:00:07", "CompleteCommit").writes("10:00:08")
    return story.others_commit("10:30").others_commit("11:00")


def marker_twice() -> Story:
    """A coordinator that takes over sends every marker once more."""
    story = begun().decides("Commit", "10:00:00", "10:00:01").marks("10:00:01").marks("10:00:09").writes("10:00:10")
    return story.others_commit("10:30").others_commit("11:00")


HANGING: dict[str, Callable[[], Story]] = {
    "written after its abort": late_write,
    "a compacted topic whose old markers are gone": old_commits_cleaned,
    "only the id's own partition of the state": lambda: late_write(only_its_own_partition()),
    "a hole between the cleaned files and the active one": cleaned_and_active,
    "a Prepare written twice": prepare_twice,
    "a COMMIT marker written twice": marker_twice,
}


@pytest.mark.parametrize("name", HANGING)
def test_it_hangs_for_ever(name: str) -> None:
    assert HANGING[name]().rule() == "partition_not_in_transaction"


@pytest.mark.parametrize("is_compacted", [False, True])
def test_a_healthy_producer_is_not_suspect(*, is_compacted: bool) -> None:
    """The log was copied in its one transaction, the state in its next, which lists the partition too."""
    story = begun().others_commit("10:00")
    story.log(ORDERS_1)
    story.decides("Commit", "10:00:30", "10:00:31").begins("10:59").others_commit("11:00", ORDERS_1)
    if is_compacted:
        story.compacts_the_state()
    assert story.rule() == "in_coordinator"


@pytest.mark.parametrize(("state", "rule"), [("PrepareCommit", "marker_pending_commit"), ("Ongoing", "in_coordinator")])
def test_what_was_finished_after_the_state_was_copied_is_not_overdue(state: str, rule: str) -> None:
    """The state was copied first; the logs' own clocks go on for hours, and say nothing of the coordinator."""
    story = begun().records("9:59", state, start_ms=at("9:58"))
    story.marks("13:00", "ABORT", producer_id=9)
    assert story.rule() == rule


def test_a_disproved_assurance_is_named() -> None:
    assert "state_copied_last" in said_to_be_copied_last().answer().disproved
    assert "no_records_lost" in held_by(0).answer().disproved


@pytest.mark.parametrize("is_text", [True, False])
def test_a_line_of_an_export_that_removes_some_id_leaves_its_producer_guarded(*, is_text: bool) -> None:
    """Text prints ids raw: that of `a\\nbilling` is gone, and billing may write again."""
    (planned,) = removed(late_write(), is_text=is_text).answer().plan
    assert planned.producer_may_return is is_text


def test_a_line_of_an_export_that_would_remove_an_id_in_a_transaction_removes_another() -> None:
    story = late_write().records("12:30", "Ongoing", on=[ORDERS_1], start_ms=at("12:30"))
    assert removed(story, is_text=True).rule() == "state_incomplete"
