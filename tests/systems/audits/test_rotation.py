"""Three ids whose epochs were used up on a real broker: only what was left under an old producer id hangs."""

import json
from functools import cache
from typing import Any

from tests.systems.e2e.rotation import COMMITTED, COMMITTER, LEFT_OPEN, SLEEPER, TIMED_OUT
from tests.tools.captures import PARAMETERS
from tests.tools.log_dirs.at_hand import answer_for
from tests.tools.repository import CASES
from tests.tools.stories.answer import Answer
from txn_analysis.settings import Settings

CASE = CASES / "kafka-4.2-rotation"
FENCED_EPOCH = 32_767
INVALID_PRODUCER_EPOCH, INVALID_TXN_STATE = 47, 48


def told() -> dict[str, dict[str, Any]]:
    """What the clients were answered."""
    answers: dict[str, dict[str, Any]] = json.loads((CASE / "clients.json").read_text())
    return answers


@cache
def audited() -> Answer:
    return answer_for(CASE / "capture-1/log-dirs", Settings.model_validate(PARAMETERS))


def test_what_ended_at_the_last_epoch_is_not_open_though_its_marker_has_one_more() -> None:
    """Clients were refused from then on: a late write, and a commit of what the coordinator had aborted."""
    answers = told()
    assert (answers[COMMITTER]["commit"], answers[COMMITTER]["late_write"]) == (0, INVALID_PRODUCER_EPOCH)
    assert answers[SLEEPER]["late_commit"] == INVALID_TXN_STATE
    health = {(row["topic"], row["partition"]): row["producers"] for row in audited().health}
    for name, place in ((COMMITTER, COMMITTED), (SLEEPER, TIMED_OUT)):
        (producer,) = [row for row in health[place] if row["producer_id"] == answers[name]["used_up"][0]]
        assert (producer["producer_epoch"], producer["txn_start_offset"]) == (FENCED_EPOCH, None)


def test_kafkas_own_tool_lists_the_same() -> None:
    rows = [line.split()[:2] for line in (CASE / "capture-1/oracle/find-hanging.txt").read_text().splitlines()[1:]]
    assert [(topic, int(partition)) for topic, partition in rows] == [LEFT_OPEN]
    assert [(finding.topic, finding.partition) for finding in audited().hanging] == [LEFT_OPEN]
