"""Nodes that are killed lose nothing that was acknowledged, and no copy of any of them accuses what was ended."""

import pytest

from tests.systems.e2e.captures import PARAMETERS
from tests.systems.e2e.stage import staged
from tests.systems.e2e.three_nodes import NODES, SCENARIO, Copy, ThreeNodes, kill_and_copy
from tests.tools.log_dirs.at_hand import answer_for
from tests.tools.stories.answer import Answer
from txn_analysis.settings import Settings

pytestmark = [pytest.mark.e2e, pytest.mark.lengthy]
ROUNDS = 4
SEED = 28


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> tuple[ThreeNodes, list[Copy]]:
    with staged(SCENARIO.start(tmp_path_factory.mktemp("three-nodes")), SCENARIO.topics) as stage:
        return kill_and_copy(stage, rounds=ROUNDS, seed=SEED)


def audited(copy: Copy, node: str = "") -> Answer:
    return answer_for(copy.folder / node, Settings.model_validate(PARAMETERS))


def test_of_all_nodes_together_the_verdicts_are_what_clients_were_answered(
    killed: tuple[ThreeNodes, list[Copy]],
) -> None:
    scene, copies = killed
    assert min(scene.answers["commit"], scene.answers["abort"]) > 2 * ROUNDS
    assert sum(len(copy.still_open) for copy in copies) > ROUNDS
    for copy in copies:
        found = {
            (f.transactional_id, (f.topic, f.partition)): f.verdict.value
            for f in audited(copy).findings
            if f.transactional_id not in copy.unknown
        }
        hang = scene.hang
        expected = {(name, place): "coordinated" for name, places in copy.still_open.items() for place in places}
        assert found == expected | {(None, (hang.topic, hang.partition)): "hanging"}


def test_of_each_node_alone_only_the_one_that_hangs_is_ever_said_to_hang(
    killed: tuple[ThreeNodes, list[Copy]],
) -> None:
    scene, copies = killed
    for copy in copies:
        for node in range(NODES):
            hanging = {(f.topic, f.partition, f.producer_id) for f in audited(copy, f"n{node + 1}").hanging}
            assert hanging <= {scene.hang.place}
