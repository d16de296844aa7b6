"""What was kept in `data/cases` happens again on brokers of today, and its captures get the verdicts that they must."""

from pathlib import Path

import pytest

from tests.systems.e2e import find_hanging, lost_marker, three_nodes
from tests.systems.e2e.scenario import Scenario, play
from tests.systems.e2e.scenarios import SCENARIOS
from tests.tools.captures import run_audit
from tests.tools.sessions import no_session

pytestmark = pytest.mark.e2e

NAMES = ("topic", "partition", "producer_id", "verdict", "rule")
# Of three nodes `test_three_nodes.py` asks more.
PLAYED = [
    pytest.param(scenario, id=name, marks=[pytest.mark.lengthy] if scenario.takes_long else [])
    for name, scenario in SCENARIOS.items()
    if scenario is not three_nodes.SCENARIO
]


@pytest.mark.parametrize("scenario", PLAYED)
def test_verdicts_are_what_happened(tmp_path: Path, scenario: Scenario) -> None:
    case = tmp_path / "case"
    happened = play(scenario, tmp_path / "brokers", case)
    assert happened.captures
    for name, expected in happened.captures.items():
        paths = [str(path) for path in scenario.inputs(case, name)]
        report = run_audit(no_session, str(tmp_path / name), paths, **dict(scenario.settings))
        found = sorted((f.topic, f.partition, f.producer_id, f.verdict, f.rule) for f in report.findings)
        assert found == sorted(tuple(row[column] for column in NAMES) for row in expected.rows), name
    if scenario is find_hanging.SCENARIO:
        told = [line.split()[:2] for line in (case / "capture-1/oracle/find-hanging.txt").read_text().splitlines()[1:]]
        hanging = {(topic, partition) for topic, partition, _, verdict, _ in found if verdict == "hanging"}
        assert hanging == {(topic, int(partition)) for topic, partition in told}
        assert [(topic, partition) for topic, partition, *_ in found] == list(find_hanging.PLACES)
    if scenario is lost_marker.SCENARIO:
        assert len(happened.clients["open"]) == 2
