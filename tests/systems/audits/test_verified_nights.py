"""What became of an abort is told by the first night that shows it, whatever the nights before it could not see."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.systems.audits.test_prune_keeps_evidence import HOUR_MS
from tests.systems.audits.test_withdrawn_plans import Hanging
from tests.tools.sessions import opened
from tests.tools.world.model import Step
from txn_analysis.plan.repair import Repair
from txn_analysis.questions import verify as repairs


def told(history: Hanging) -> list[Repair]:
    """What `verify` says of the last night."""
    known = repairs.nights(opened(history.warehouse), "default")
    return [outcome.repair for outcome in repairs.verify(known)]


@pytest.fixture
def history(tmp_path: Path) -> Hanging:
    return Hanging(tmp_path)


def test_a_night_without_the_partition_does_not_take_the_repair_from_the_next_one(history: Hanging) -> None:
    history.night()
    history.happens(Step("administrator", "a", 0))
    history.commit("b", 0, 1)
    history.audited(history.copied(without="orders-0"))
    assert told(history) == [Repair.NOT_COVERED]
    history.commit("b", 0, 1)
    history.night()
    assert told(history) == [Repair.REPAIRED]
    for without in ("orders-0", "nothing"):
        history.commit("b", 0, 1)
        history.audited(history.copied(without))
    assert told(history) == []


def test_an_end_while_the_rest_was_copied_is_told_by_the_next_night(history: Hanging) -> None:
    before = history.copied(without="orders-1")
    history.happens(Step("administrator", "a", 0))
    history.world = replace(history.world, now_ms=history.world.now_ms + HOUR_MS)
    history.commit("b", 0, 1)
    history.audited(before, as_of_ms=history.world.now_ms)
    history.commit("b", 0, 1)
    history.night()
    assert told(history) == [Repair.REPAIRED]
