"""A real unclean election lost a commit's marker and an abort's: the one is no abort, the other is one."""

import json
from typing import Any

import pytest

from tests.systems.e2e.lost_marker import ABORTED, COMMITTED
from tests.tools.captures import PARAMETERS
from tests.tools.log_dirs.at_hand import answer_for
from tests.tools.repository import CASES
from tests.tools.stories.answer import Answer
from txn_analysis.settings import Settings

CASE = CASES / "kafka-4.2-lost-marker"
NODES = ("n1", "n2", "n3")
CAPTURES = ("capture-1", "capture-2")


def audited(capture: str, node: str = "", **settings: Any) -> Answer:
    return answer_for(CASE / capture / "log-dirs" / node, Settings.model_validate(PARAMETERS | settings))


def verdicts(answer: Answer) -> list[tuple[str, int, int, str, str]]:
    return [(f.topic, f.partition, f.producer_id, f.verdict.value, f.rule) for f in answer.findings]


def expected(capture: str, node: str = "") -> list[tuple[str, int, int, str, str]]:
    known = json.loads((CASE / capture / "expected.json").read_text())
    names = ("topic", "partition", "producer_id", "verdict", "rule")
    rows = [] if node in known["nothing_open_alone"] else known["open_transactions"]
    return [tuple(row[name] for name in names) for row in rows]


@pytest.mark.parametrize("capture", CAPTURES)
@pytest.mark.parametrize("node", ["", *NODES], ids=("all-nodes", *NODES))
def test_of_all_nodes_and_of_each_alone(capture: str, node: str) -> None:
    assert verdicts(audited(capture, node)) == expected(capture, node)


@pytest.mark.parametrize("capture", CAPTURES)
def test_nobody_may_say_that_no_records_were_lost(capture: str) -> None:
    answer = audited(capture, no_records_lost=True)
    assert verdicts(answer) == expected(capture)
    assert list(answer.disproved) == ["no_records_lost"]


def test_kafkas_own_tool_calls_the_lost_commit_hanging() -> None:
    rows = [line.split()[:2] for line in (CASE / "capture-1/oracle/find-hanging.txt").read_text().splitlines()[1:]]
    assert [(topic, int(partition)) for topic, partition in rows] == [COMMITTED, ABORTED]
