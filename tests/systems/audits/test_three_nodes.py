"""Three nodes, one of which was killed: verdicts are what the clients were answered, and no copy accuses what ended."""

import json
from typing import Any

import pytest

from tests.tools.captures import PARAMETERS
from tests.tools.log_dirs.at_hand import answer_for
from tests.tools.repository import CASES
from tests.tools.stories.answer import Answer
from txn_analysis.settings import Settings

CASE = CASES / "kafka-4.2-three-nodes"
CAPTURES = ("capture-1", "capture-2")
NODES = ("n1", "n2", "n3")
NAMES = ("topic", "partition", "producer_id", "verdict", "rule", "transactional_id")


def audited(capture: str, node: str = "") -> Answer:
    return answer_for(CASE / capture / "log-dirs" / node, Settings.model_validate(PARAMETERS))


def verdicts(answer: Answer) -> set[tuple[Any, ...]]:
    return {(f.topic, f.partition, f.producer_id, f.verdict.value, f.rule, f.transactional_id) for f in answer.findings}


def told(capture: str) -> dict[str, Any]:
    known: dict[str, Any] = json.loads((CASE / capture / "expected.json").read_text())
    return known


def expected(capture: str) -> set[tuple[Any, ...]]:
    return {tuple(row[name] for name in NAMES) for row in told(capture)["open_transactions"]}


@pytest.mark.parametrize("capture", CAPTURES)
def test_of_all_nodes_together_the_verdicts_are_what_the_clients_were_answered(capture: str) -> None:
    assert verdicts(audited(capture)) == expected(capture)
    answers = json.loads((CASE / "clients.json").read_text())[capture]
    still_open = {name for name, answer in answers.items() if answer == "open"}
    assert {row[-1] for row in expected(capture)} == still_open | {None}


@pytest.mark.parametrize("capture", CAPTURES)
@pytest.mark.parametrize("node", NODES)
def test_a_node_alone_says_the_same_but_for_the_one_that_died(capture: str, node: str) -> None:
    """It does not know what began and ended after its death: what was going on then still is, and does not hang."""
    found, all_of_them = verdicts(audited(capture, node)), expected(capture)
    if node != told(capture)["dead_node"]:
        assert found == all_of_them
    else:
        assert found != all_of_them
        assert {row[3] for row in found ^ all_of_them} == {"coordinated"}
