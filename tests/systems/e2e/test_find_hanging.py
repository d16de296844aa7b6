"""The cases of Kafka's own test of `find-hanging` on a broker of today: see `data/cases/kafka-4.3-find-hanging`."""

from pathlib import Path

import pytest

from tests.systems.e2e.find_hanging import PLACES, hang
from tests.tools.captures import PARAMETERS
from tests.tools.log_dirs.at_hand import answer_for
from txn_analysis.settings import Settings

pytestmark = pytest.mark.e2e


def test_what_hangs_is_what_the_tool_says(tmp_path: Path) -> None:
    hang(tmp_path / "broker", tmp_path / "capture")
    answer = answer_for(tmp_path / "capture/log-dirs", Settings.model_validate(PARAMETERS))
    told = [line.split()[:2] for line in (tmp_path / "capture/oracle/find-hanging.txt").read_text().splitlines()[1:]]
    assert {(f.topic, f.partition) for f in answer.hanging} == {(topic, int(partition)) for topic, partition in told}
    assert {(f.topic, f.partition) for f in answer.findings} == set(PLACES)
