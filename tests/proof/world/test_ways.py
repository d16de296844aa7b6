"""The proof finds what it is for: wrong aborts, plans that destroy later, and true hangs, as stories."""

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.proof.world import ways
from tests.proof.world.small import Size, report_of, worlds
from tests.proof.world.ways import is_wrong
from tests.tools.stories.answer import answer_of
from tests.tools.world import files
from tests.tools.world.evidence import truth_of
from tests.tools.world.executor import ABORTS, COMMITS, IS_GONE, Fences, destroyed_by, is_ended_by_its_fence
from tests.tools.world.ids import FLINK, SHAPES, shape_of
from tests.tools.world.known_ways import (
    COMMIT,
    COMPLETE,
    EXPECTED_RULES,
    OPEN,
    PASS,
    RETURNS,
    SKIP,
    STILL_HANGING,
    WRITE_LATE,
    WRONG_ABORTS,
    plot,
)
from tests.tools.world.model import Batch, Log, Step
from tests.tools.world.random_worlds import random_plot
from tests.tools.world.shrink import shrunk, told
from tests.tools.world.steps import after
from txn_analysis.judge import rules
from txn_analysis.judge.applications import framework_of
from txn_analysis.tables import AbortRecord

SEED = 1
FLINKS_TURN = next(turn for turn, _ in enumerate(SHAPES) if shape_of("a", turn) == FLINK)


@pytest.mark.parametrize("name", WRONG_ABORTS)
def test_an_acknowledged_commit_is_not_planned(name: str) -> None:
    assert not is_wrong(WRONG_ABORTS[name])


@pytest.mark.parametrize("name", EXPECTED_RULES)
def test_without_these_rules_it_is_planned(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Switched off together: some ways are closed twice."""
    for rule in {*EXPECTED_RULES.values(), "state_incomplete"}:
        switch_off(monkeypatch, rule)
    assert is_wrong(WRONG_ABORTS[name])


@pytest.mark.parametrize("name", WRONG_ABORTS)
def test_the_rule_that_keeps_it_from_the_plan(name: str) -> None:
    world = WRONG_ABORTS[name].world()
    answer = answer_of(WRONG_ABORTS[name].evidence(world).history())
    assert {finding.rule for finding in answer.findings} == {EXPECTED_RULES[name]}


def test_a_plan_that_is_honoured_destroys_nothing_of_a_producer_that_comes_back() -> None:
    world = RETURNS.world()
    answer = answer_of(RETURNS.evidence(world).history())
    assert len(answer.plan) == 1
    for step in (*OPEN, PASS):
        world = after(world, step) or world
    assert destroyed_by(world, answer.plan) == []


def test_a_fence_that_asks_first_ends_nothing_that_its_owner_may_commit_and_a_bare_one_does() -> None:
    """Nothing was in progress at the copy; twenty minutes later a checkpoint holds a transaction under the same id."""
    world = RETURNS.world()
    (planned,) = answer_of(RETURNS.evidence(world).history()).plan
    assert planned.transactional_id == "a"
    for step in (*OPEN, PASS):
        world = after(world, step) or world
    bare = "kafka-transactions.sh forceTerminateTransaction --transactionalId=a"
    assert is_ended_by_its_fence(world, planned, bare)
    assert not is_ended_by_its_fence(world, planned)


@pytest.mark.parametrize(("owner", "by_owner_gone"), [(COMMITS, 0), (ABORTS, 0), (IS_GONE, 1)])
def test_what_never_times_out_is_ended_by_its_owner_or_by_a_fence_that_says_that_he_is_gone(
    owner: str, by_owner_gone: int
) -> None:
    """A hang under an id of Flink's is repaired, whatever becomes of what the id has in progress elsewhere."""
    flinks = replace(RETURNS, partitions=2, turn=FLINKS_TURN, two_phase=frozenset("a"))
    world = flinks.world()
    (planned,) = answer_of(flinks.evidence(world).history()).plan
    assert framework_of(str(planned.transactional_id))[0].name == "Flink"
    for step in (Step("begin", "a", 1), Step("write", "a", 1), PASS):
        world = after(world, step) or world
    fences = Fences()
    fences.type_all(world, [planned])
    fences.repair(world, planned, Always(owner))
    assert fences == Fences(
        ids=1,
        two_phase=1,
        typed=1,
        refused=1,
        ended_unasked=1,
        owner_gone=by_owner_gone,
        repaired=1,
        repaired_unasked=1,
    )


class Always(random.Random):
    """Chooses one thing."""

    def __init__(self, thing: str) -> None:
        super().__init__()
        self.thing = thing

    def choice(self, _: Any) -> Any:
        return self.thing


@pytest.mark.parametrize("name", STILL_HANGING)
def test_what_hangs_is_found(name: str) -> None:
    world = STILL_HANGING[name].world()
    truth = truth_of(world, answer_of(STILL_HANGING[name].evidence(world).history()))
    assert len(truth.hanging) == 1
    assert (truth.found, truth.wrong) == (truth.hanging, ())


def test_random_histories_have_true_hangs_and_no_wrong_abort_and_no_plan_that_destroys_later() -> None:
    report = ways.report_of(120, SEED)
    assert (report.wrong, report.destroyed, report.fences.ended) == (0, 0, 0)
    assert report.found
    assert report.fences.ended_unasked
    assert report.fences.repaired >= report.fences.repaired_unasked > 0


def begins_where_it_did(_: Log, data: Sequence[Batch], record: AbortRecord) -> bool:
    """All that `kafka-transactions.sh abort --start-offset` looks at."""
    return data[0].offset == record.txn_start_offset


@pytest.mark.cluster
def test_a_plan_that_does_not_ask_for_the_end_of_its_producer_destroys_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AbortRecord, "must_end_producer", property(lambda _: False))
    monkeypatch.setattr("tests.tools.world.executor._is_what_was_copied", begins_where_it_did)
    report = ways.report_of(50, SEED, first=500)
    assert report.destroyed
    assert all(story.startswith("  1. ") for story in report.stories.values())


def switch_off(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(rules, "RULES", tuple(rule for rule in rules.RULES if rule.name != name))


def test_a_judge_that_never_accuses_finds_no_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    never = tuple(rule for rule in rules.RULES if rule.verdict != "hanging")
    monkeypatch.setattr(rules, "RULES", never)
    report = ways.report_of(60, SEED)
    assert (report.wrong, report.destroyed, report.found) == (0, 0, 0)
    assert report.hanging


@pytest.mark.cluster  # thousands of histories
@pytest.mark.parametrize(
    ("switched_off", "size"),
    [
        ("log_may_end_early", Size(steps=5, beginning=(*OPEN, PASS), most_disturbances=0)),
        ("commit_marker_missing", Size(steps=5, beginning=(*OPEN, COMMIT), most_disturbances=1)),
        ("commit_may_be_missing", Size(steps=4, beginning=(*OPEN, COMMIT, SKIP, COMPLETE), most_disturbances=1)),
    ],
)
def test_a_rule_that_is_switched_off_is_found_by_small_histories(
    monkeypatch: pytest.MonkeyPatch, switched_off: str, size: Size
) -> None:
    before = report_of(size)
    switch_off(monkeypatch, switched_off)
    assert report_of(size).wrong > before.wrong


def test_a_story_is_shrunk_to_the_steps_that_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    switch_off(monkeypatch, "commit_marker_missing")
    longer = plot(*OPEN, *OPEN[1:], PASS, *WRONG_ABORTS["a commit's marker is lost in an unclean election"].steps[2:])
    assert is_wrong(longer)
    assert told(shrunk(longer, is_wrong)).splitlines()[:3] == [
        "  1. a adds the partition to its transaction (0)",
        "  2. a writes in its transaction (0)",
        "  3. a commits: the coordinator writes PrepareCommit and acknowledges",
    ]


def test_the_same_number_makes_the_same_history() -> None:
    assert random_plot("7/7", is_faulty=True) == random_plot("7/7", is_faulty=True)


def test_histories_that_differ_by_the_order_of_independent_steps_count_once() -> None:
    found = [world.steps for world in worlds(Size(steps=4, beginning=OPEN, most_disturbances=0))]
    kinds = [sorted(step.kind for step in steps) for steps in found]
    assert ["copy_log", "copy_state"] in kinds
    assert kinds.count(["copy_log", "copy_state"]) == 2  # which of the two was copied last is a difference


def test_a_write_that_its_coordinator_lists_is_no_late_one() -> None:
    assert plot(*OPEN, WRITE_LATE).world().steps[2:3] != (WRITE_LATE,)


@pytest.mark.cluster
@pytest.mark.parametrize(("kind", "first"), [(files.DELETED, 50), (files.SWAPPED, 100)])
def test_a_folder_that_is_called_whole_and_is_not_makes_wrong_plans(
    monkeypatch: pytest.MonkeyPatch, kind: str, first: int
) -> None:
    """Records that retention deleted, or that the cleaner was moving, decided what the plan would abort."""
    monkeypatch.setattr("tests.tools.world.random_worlds.kind_of_files", lambda _: kind)
    assert ways.report_of(50, 2, first=first).wrong == 0
    in_files = files._in_files

    def lying(*given: Any) -> Any:
        rows, folder = in_files(*given)
        return rows, folder._replace(is_whole=True)

    monkeypatch.setattr(files, "_in_files", lying)
    monkeypatch.setattr("txn_analysis.judge.manifest_proof.begins_at_zero", lambda _: True)
    assert ways.report_of(50, 2, first=first).wrong
