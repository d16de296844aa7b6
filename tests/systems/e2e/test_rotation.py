"""It happens again on brokers of today: see `data/cases/kafka-4.2-rotation`."""

from pathlib import Path

import pytest

from tests.systems.e2e.rotation import expected, rotate
from tests.tools.captures import PARAMETERS
from tests.tools.log_dirs.at_hand import answer_for
from txn_analysis.settings import Settings

pytestmark = [pytest.mark.e2e, pytest.mark.lengthy]


def test_what_is_left_under_a_producer_id_without_epochs_hangs(tmp_path: Path) -> None:
    answers = rotate(tmp_path / "broker", tmp_path / "capture")
    answer = answer_for(tmp_path / "capture/log-dirs", Settings.model_validate(PARAMETERS))
    found = [(f.topic, f.partition, f.producer_id, f.verdict.value, f.rule) for f in answer.findings]
    names = ("topic", "partition", "producer_id", "verdict", "rule")
    assert found == [tuple(row[name] for name in names) for row in expected(answers)]
