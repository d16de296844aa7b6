"""Records of the coordinator that were not read, or not whole: what they may say is never taken for absent.

Each story has an answer as long as everything was decoded, and `state_incomplete` once something was not.
"""

from collections.abc import Callable
from typing import Any

import pytest

from tests.tools.stories.histories import File, undecoded
from tests.tools.stories.stories import ORDERS_0, ORDERS_1, Story, at, begun, exported, holder, places
from txn_analysis.columns.arrays import ABSENT

OWN_LAST, HOURS_MS = -1, 36_000_000
STATE_0 = ("__transaction_state", 0)
WORDS = {"state_copied_last": True, "transaction_state_complete": True, "no_records_lost": True}


def with_undecoded(story: Story, number: int, *, is_key_read: bool = True) -> Story:
    """One record of the state could not be decoded; -1 is the last one of `billing`."""
    rows = story.world.export or story.world.states[0]
    if number == OWN_LAST:
        number = max(n for n, row in enumerate(rows) if row["transactional_id"] == "billing")
    rows[number] = undecoded(rows[number], is_key_read=is_key_read)
    return story


def running() -> Story:
    """Its long transaction goes on, and lists a second partition in the last record."""
    story = Story().begins("9:50", timeout_ms=HOURS_MS).others_commit("9:55").writes("9:59").others_commit("10:30")
    return story.records("10:31", "Ongoing", on=(ORDERS_0, ORDERS_1), start_ms=at("9:50"), timeout_ms=HOURS_MS)


def decided(word: str) -> Story:
    """Decided, and the marker is on its way; the last record is of the decision being written again."""
    return begun().others_commit("10:30").records("10:31", f"Prepare{word}").records("10:31:01", f"Prepare{word}")


def overdue() -> Story:
    return begun().others_commit("10:30").others_commit("11:00").records("11:01", "Ongoing")


def decided_and_overdue() -> Story:
    return (
        begun()
        .records("9:59:30", "PrepareAbort")
        .records("9:59:31", "PrepareAbort")
        .others_commit("11:00")
        .others_commit("11:10")
    )


def stale() -> Story:
    """The next transaction lists the partition, and the data is older."""
    story = begun().decides("Abort", "10:00:00", "10:00:01")
    story.leader_epoch += 1
    story.others_commit("10:30").begins("10:40").others_commit("10:45")
    return story.records("10:46", "Ongoing", start_ms=None)


def late_write() -> Story:
    story = Story().begins("9:50").others_commit("9:55").writes("9:56")
    story.decides("Abort", "9:57", "9:57").marks("9:57", "ABORT").writes("9:59")
    return story.others_commit("10:30").others_commit("11:00").records("11:01", "Empty", producer_epoch=1)


HIDDEN: dict[str, tuple[Callable[[], Story], str]] = {
    "its transaction goes on": (running, "in_coordinator"),
    "its commit is decided": (lambda: decided("Commit"), "marker_pending_commit"),
    "its abort is decided": (lambda: decided("Abort"), "marker_pending_abort"),
    "its transaction is past its timeout": (overdue, "coordinator_overdue"),
    "its decision has not moved for long": (decided_and_overdue, "marker_overdue"),
    "it is older than its id's transaction": (stale, "stale_data_in_live_transaction"),
    "it was written late": (late_write, "partition_not_in_transaction"),
}


@pytest.mark.parametrize("is_key_read", [True, False])
@pytest.mark.parametrize("name", HIDDEN)
def test_the_newest_record_of_its_id_could_not_be_decoded(name: str, *, is_key_read: bool) -> None:
    told, rule = HIDDEN[name]
    assert told().rule() == rule
    assert with_undecoded(told(), OWN_LAST, is_key_read=is_key_read).rule() == "state_incomplete"
    assert with_undecoded(told(), OWN_LAST, is_key_read=is_key_read).says(**WORDS).rule() == "state_incomplete"


def test_an_older_record_of_it_hides_nothing_that_is_newer() -> None:
    """Of the decision before, that could not be decoded; a record whose key could not be read may be the newest."""
    assert with_undecoded(running(), 1).rule() == "in_coordinator"
    assert with_undecoded(running(), 1, is_key_read=False).rule() == "state_incomplete"


def test_a_record_of_another_id_hides_nothing_of_this_one() -> None:
    story = running().records("10:40", "Empty", name="others", producer_id=9)
    assert with_undecoded(story, len(story.world.states[0]) - 1).rule() == "in_coordinator"


def test_but_no_absence_follows_from_a_partition_that_has_one() -> None:
    story = late_write().records("11:02", "Empty", name="others", producer_id=9)
    assert with_undecoded(story, len(story.world.states[0]) - 1).says(**WORDS).rule() == "state_incomplete"


def test_in_an_export_any_record_may_be_the_newest() -> None:
    words = {"transaction_state_complete": True, "state_copied_last": True}
    assert exported(running()).says(**words).rule() == "in_coordinator"
    for is_key_read in (True, False):
        assert (
            with_undecoded(exported(running()), 0, is_key_read=is_key_read).says(**words).rule() == "state_incomplete"
        )


def unknown() -> Story:
    """Nobody has, or had, its producer id."""
    return begun().writes("9:59", 77).others_commit("10:30").others_commit("11:00")


@pytest.mark.parametrize("is_key_read", [True, False])
@pytest.mark.parametrize("number", [0, -1])
def test_any_record_that_could_not_be_decoded_may_be_of_an_unknown_producer(number: int, *, is_key_read: bool) -> None:
    assert unknown().rule(77) == "unknown_producer"
    story = with_undecoded(unknown(), number, is_key_read=is_key_read).says(**WORDS)
    assert story.rule(77) == "state_incomplete"


def test_a_state_of_which_nothing_could_be_decoded_is_not_called_another_clusters() -> None:
    """As of a tool that knows no version of these values."""
    story = unknown()
    for number in range(len(story.world.states[0])):
        with_undecoded(story, number)
    assert {story.rule(77), story.rule()} == {"state_incomplete"}


def test_a_second_copy_that_was_decoded_shows_what_the_first_lacks() -> None:
    story = running()
    rows = [{"offset": n} | row for n, row in enumerate(story.world.states[0])]
    story.world.files.append(File(STATE_0, rows))
    assert with_undecoded(story, -1).rule() == "in_coordinator"


def test_what_could_not_be_decoded_yesterday_fills_no_hole_of_today() -> None:
    """Compaction took the abort that came before the late write, and yesterday's copy of that record is damaged."""
    for is_damaged, rule in ((False, "partition_not_in_transaction"), (True, "log_may_end_early")):
        story = late_write()
        yesterday: list[dict[str, Any]] = [{"offset": n} | row for n, row in enumerate(story.world.states[0][:-2])]
        if is_damaged:
            (decision,) = [n for n, row in enumerate(yesterday) if row["state"] == "PrepareAbort"]
            yesterday[decision] = undecoded(yesterday[decision], is_key_read=True)
        story.world.files.append(File(STATE_0, yesterday, rank=1))
        assert (is_damaged, story.compacts_the_state().rule()) == (is_damaged, rule)


def newer(story: Story, *, may_list: bool | None, may_name: bool | None, number: int = -1) -> Story:
    """A record that has fields of a newer Kafka."""
    story.world.states[0][number] |= {"may_list_more": may_list, "may_name_more": may_name}
    return story


@pytest.mark.parametrize(
    ("may_list", "rule"), [(True, "state_incomplete"), (False, "partition_not_in_transaction")], ids=["text", "binary"]
)
def test_a_list_beside_fields_of_tomorrow_proves_no_absence_but_in_binary_form(may_list: bool, rule: str) -> None:
    story = newer(late_write(), may_list=may_list, may_name=False)
    assert story.says(**WORDS).rule() == rule


@pytest.mark.parametrize(
    ("may_name", "rule"), [(True, "state_incomplete"), (False, "partition_not_in_transaction")], ids=["wide", "short"]
)
def test_an_id_that_runs_under_another_producer_id_may_name_this_one_in_a_wide_field(may_name: bool, rule: str) -> None:
    story = late_write().records("11:02", "Ongoing", producer_id=8, on=(ORDERS_1,)).others_commit("11:30")
    newer(story, may_list=False, may_name=may_name, number=-3)
    assert story.rule() == rule


def test_what_such_a_record_names_counts() -> None:
    assert newer(running(), may_list=True, may_name=True).rule() == "in_coordinator"


@pytest.mark.parametrize(("may_name", "rule"), [(True, "state_incomplete"), (False, "unknown_producer")])
def test_any_record_may_name_an_unknown_producer_in_a_wide_field(may_name: bool, rule: str) -> None:
    assert newer(unknown(), may_list=True, may_name=may_name, number=0).rule(77) == rule


def test_a_list_of_another_id_is_none_of_its_own() -> None:
    """`others` has fields of tomorrow; what `billing` lists is whole."""
    story = late_write().records("11:02", "Ongoing", name="others", producer_id=9, topic_partitions=places(ORDERS_1))
    assert newer(story, may_list=True, may_name=False).rule() == "partition_not_in_transaction"


AWAY = next(name for name in "abc" if holder(name, 2) != holder("billing", 2))


def unexplained(clock: str = "10:00:01") -> Story:
    """A commit of another producer is in the log, and among the records that could be decoded is none of it."""
    story = late_write().writes("10:00", producer_id=5).marks(clock, producer_id=5)
    return story.others_commit("11:30").records("11:31", "Empty", name=AWAY, producer_id=8)


def test_a_marker_that_nothing_explains_contradicts_a_state_of_which_all_could_be_decoded() -> None:
    answer = unexplained().answer()
    assert answer.state is not None
    assert answer.state.fit.sums.against.marker_count == 1
    assert "state_incomplete" in {finding.rule for finding in answer.findings}


def of_two_partitions(clock: str = "10:00:01") -> Story:
    """The same, where the record that could not be decoded is in the partition of the state that is not billing's."""
    story = unexplained(clock)
    world = story.world
    world.settings = world.settings.model_copy(update={"transaction_state_partitions": 2})
    rows = world.states.pop(0)
    world.states = {n: [r for r in rows if holder(r["transactional_id"], 2) == n] for n in range(2)}
    away = world.states[1 - holder("billing", 2)]
    away.append(undecoded(away[-1] | {"offset": len(away)}, is_key_read=True))
    return story


@pytest.mark.parametrize("clock", ["10:00:01", "23:00"])
def test_a_marker_whose_decision_may_not_have_been_decoded_leaves_nothing_hanging(clock: str) -> None:
    """It contradicts nothing, disproves no word, and is never said to be another cluster's."""
    story = of_two_partitions(clock).says(**WORDS)
    answer = story.answer()
    assert answer.state is not None
    sums = answer.state.fit.sums
    assert (sums.against.marker_count, sums.later, answer.state.fit.misfits) == (0, None, ())
    assert sums.has_later_unexplained is (clock == "23:00")
    (found,) = [f for f in answer.findings if f.producer_id == 7]
    assert found.rule == "state_incomplete"
    assert any("it may be one of the others" in words for words in found.missing_evidence)


def of_two_dumps(end: int) -> Story:
    """A dump of the state without its decoder lies beside a decoded one, and goes on up to an offset."""
    story = late_write().says(**WORDS)
    rows = story.world.states[0]
    batches = [
        {"max_timestamp_ms": at("9:00"), "producer_id": ABSENT, "leader_epoch": 0, "offset": n} for n in range(end)
    ]
    story.world.logs[STATE_0] = batches
    story.world.states, story.world.files = {}, [File(STATE_0, rows, name="decoded")]
    return story


def test_a_dump_without_its_decoder_holds_records_that_could_not_be_decoded() -> None:
    """But for those that a decoded one beside it has as well."""
    held = len(late_write().world.states[0])
    assert of_two_dumps(held).rule() == "partition_not_in_transaction"
    assert of_two_dumps(held + 1).rule() == "state_incomplete"


def test_an_export_of_which_no_record_could_be_decoded_may_hold_any_id() -> None:
    story = late_write().says(**WORDS)
    row = undecoded(story.world.states[0][-1] | {"last_update_ms": None}, is_key_read=False)
    story.world.export.append(row)
    assert story.rule() == "state_incomplete"
