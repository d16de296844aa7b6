"""A coordinator of 4.2.0 and a leader of 4.1.1 (KAFKA-20322): decisions that wait for ever are nobody's to abort."""

import json
from functools import cache

import pytest

from tests.systems.e2e.mixed import BOTH_LEADERS, ON_NEW
from tests.tools.captures import OF_MIXED, PARAMETERS
from tests.tools.log_dirs.at_hand import answer_for
from tests.tools.repository import CASES
from tests.tools.stories.answer import Answer
from txn_analysis.settings import Settings

CASE = CASES / "kafka-4.2-mixed"
CAPTURES = ("capture-1", "capture-2")


@cache
def audited(capture: str) -> Answer:
    return answer_for(CASE / capture / "log-dirs", Settings.model_validate(PARAMETERS | dict(OF_MIXED)))


@pytest.mark.parametrize("capture", CAPTURES)
def test_every_id_is_in_the_state_that_its_coordinator_told(capture: str) -> None:
    told = json.loads((CASE / capture / "oracle/transactions.json").read_text())
    assert {f.transactional_id: f.coordinator_state for f in audited(capture).findings} == told
    assert set(told.values()) == {"PrepareCommit", "PrepareAbort"}


@pytest.mark.parametrize("capture", CAPTURES)
def test_only_the_older_leader_lacks_markers(capture: str) -> None:
    """The transaction that wrote to both leaders is open on the one, and ended on the other."""
    answer = audited(capture)
    assert {finding.topic for finding in answer.findings} == {"orders"}
    (health,) = [row for row in answer.health if (row["topic"], row["partition"]) == ON_NEW]
    producer_id = answer.findings[BOTH_LEADERS].producer_id
    (ended,) = [row for row in health["producers"] if row["producer_id"] == producer_id]
    assert (ended["txn_start_offset"], ended["coordinator_epoch"]) == (None, 0)
