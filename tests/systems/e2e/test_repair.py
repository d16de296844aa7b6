"""From recommendation to repair, on brokers of four versions."""

import pytest

from tests.systems.e2e.captures import by_place
from tests.systems.e2e.hangs import LATE_JOINER
from tests.systems.e2e.story import LATE_CAUSE, Story
from tests.systems.e2e.summary import reasons_of

pytestmark = pytest.mark.e2e

NIGHTS = ("first night", "second night", "third night")
FUTURE, APPEND_TIME, YOUNG = "client's clock in the future", "log append time", "idle for four minutes"
IN_OFFSETS = "group offsets left open"


@pytest.mark.parametrize("night", range(3), ids=NIGHTS)
def test_open_transactions_are_those_of_describe_producers(story: Story, night: int) -> None:
    seen, told = by_place(story.nights[night].report), story.nights[night].capture.open_by_the_broker
    assert {place: finding.txn_start_offset for place, finding in seen.items()} == {
        place: row["txn_start_offset"] for place, row in told.items()
    }
    assert {place: finding.producer_epoch for place, finding in seen.items()} == {
        place: row["producer_epoch"] for place, row in told.items()
    }


def test_dumps_give_what_the_log_directory_gives(story: Story) -> None:
    report, of_dumps = story.nights[1].report, story.second_of_dumps
    assert of_dumps is not None
    assert {place: (f.verdict, f.rule, f.coordinator_epoch) for place, f in by_place(report).items()} == {
        place: (f.verdict, f.rule, f.coordinator_epoch) for place, f in by_place(of_dumps).items()
    }


def test_everything_that_was_made_to_hang_is_found(story: Story) -> None:
    verdicts = [{p: f.verdict for p, f in by_place(night.report).items()} for night in story.nights[:2]]
    late_by_broker_time_only = {FUTURE, APPEND_TIME, YOUNG, IN_OFFSETS}
    assert {h.cause: verdicts[0][h.place] for h in story.scene.hangs} == {
        h.cause: "in_progress" if h.cause in late_by_broker_time_only else "hanging" for h in story.scene.hangs
    }
    assert {h.cause: verdicts[1][h.place] for h in story.scene.hangs if h.cause != LATE_CAUSE} == {
        h.cause: "hanging" for h in story.scene.hangs if h.cause != LATE_CAUSE
    }


def test_what_joined_a_live_transaction_is_suspect_and_never_planned(story: Story) -> None:
    found = by_place(story.nights[0].report)
    assert [found[hang.place].rule for hang in story.scene.stale] == ["stale_data_in_live_transaction"] * 2
    assert not {hang.place for hang in story.scene.stale} & {(r.topic, r.partition, r.producer_id) for r in story.plan}


def test_differences_from_find_hanging_are_the_documented_ones(story: Story) -> None:
    if story.nights[0].capture.hanging_by_the_broker is None:
        pytest.skip("this broker cannot list transactions")
    scene = story.scene
    assert reasons_of(story.nights[0]) == {scene.hang(YOUNG).place: "threshold"}
    assert reasons_of(story.nights[1]) == {scene.hang(FUTURE).place: "clocks"}


def test_stale_data_and_epochs_are_what_find_hanging_does_not_see(story: Story) -> None:
    listed = story.nights[0].capture.hanging_by_the_broker
    if listed is None:
        pytest.skip("this broker cannot list transactions")
    assert not {hang.place for hang in story.scene.stale} & listed


def test_first_plan_is_too_early_for_every_record(story: Story) -> None:
    assert story.too_early
    assert all("too early" in found for found in story.too_early)


def test_plan_file_passes_its_check(story: Story) -> None:
    assert story.check is not None
    assert story.check.returncode == 0, story.check.stderr
    assert f"{len(story.plan)} records, unchanged" in story.check.stdout


def test_consumers_were_stuck_and_read_to_the_end_now(story: Story) -> None:
    assert all(got["position"] < got["end"] for got in story.stuck.values())
    assert {place: got["position"] for place, got in story.freed.items()} == {
        place: got["end"] for place, got in story.freed.items()
    }


def test_nothing_stood_against_the_records_that_were_executed(story: Story) -> None:
    assert {place: found for place, found in story.refused.items() if found} == {}
    forms = {"script 3.9.1", "script 4.2.0", "four fields", "request", "admin"}
    assert set(story.executed.values()) == forms


def test_broker_finds_nothing_hanging_any_more(story: Story) -> None:
    if story.hanging_after is None:
        pytest.skip("this broker cannot list transactions")
    assert story.hanging_after == set()


def test_live_transactions_lost_nothing(story: Story) -> None:
    assert sum(map(len, story.scene.committed.values())) > 100
    assert story.lost == set()


def test_coordinator_can_still_commit_for_the_same_producer_ids(story: Story) -> None:
    assert story.afterwards
    assert all(story.afterwards.values()), story.afterwards


def test_executing_twice_does_no_harm(story: Story) -> None:
    """Admin, request and four fields write one marker more, which ends nothing; the look-up finds nothing open."""
    assert set(story.again) == set(story.executed.values())
    assert all(said == "accepted" for form, said in story.again.items() if not form.startswith("script")), story.again
    assert all(said == "nothing to do" for form, said in story.again.items() if form.startswith("script")), story.again


def test_script_refuses_where_the_producer_came_back(story: Story) -> None:
    late = story.late
    assert late is not None
    assert late.script.returncode == 1
    assert "this producer wrote there at" in late.script.stderr


def test_late_execution_kills_live_data_and_the_precondition_catches_it(story: Story) -> None:
    """The new data joined the same open start, so that the look-up passes: what was acknowledged is gone silently."""
    late = story.late
    assert late is not None
    assert late.record.producer_is_live
    assert late.record.transactional_id == LATE_JOINER
    assert late.abort.returncode == 0, late.abort.stderr
    assert not set(late.live_offsets) & set(late.seen)
    assert late.refusals_after == ["the coordinator lists the partition, or cannot be asked"]
    assert late.refusals_before == ([] if story.hanging_after is not None else late.refusals_after)


def test_verify_says_repaired_for_each_and_exits_with_zero(story: Story) -> None:
    assert {row["Repair"] for row in story.verified} == {"repaired"}
    assert len(story.verified) == len(story.plan)
    assert all(row["LsoBefore"] < row["LsoAfter"] for row in story.verified)
    assert story.verify_code == 0


def test_verify_tells_what_the_coordinator_ended_from_what_still_hangs(story: Story) -> None:
    outcomes = [(outcome.record, outcome.repair.value) for outcome in story.verified_second]
    repairs = {(record.topic, record.partition, record.producer_id): repair for record, repair in outcomes}
    ended = story.scene.hang(LATE_CAUSE).place
    assert repairs == {place: "ended_by_coordinator" if place == ended else "still_hanging" for place in repairs}
    assert ended in repairs
