"""It happens again on brokers of today: see `data/cases/kafka-4.2-lost-marker`."""

from pathlib import Path

import pytest

from tests.systems.e2e.lost_marker import ABORTED, CANCELLER, COMMITTED, PAYER, lose_markers
from tests.tools.captures import PARAMETERS
from tests.tools.log_dirs.at_hand import answer_for
from txn_analysis.settings import Settings

pytestmark = pytest.mark.e2e


def test_an_unclean_election_loses_markers(tmp_path: Path) -> None:
    answers = lose_markers(tmp_path / "cluster", tmp_path / "case")
    assert [answers[name]["state"] for name in (PAYER, CANCELLER)] == ["CompleteCommit", "CompleteAbort"]
    assert len(answers["open"]) == 2
    for capture in ("capture-1", "capture-2"):
        answer = answer_for(tmp_path / "case" / capture / "log-dirs", Settings.model_validate(PARAMETERS))
        found = {(f.topic, f.partition): f"{f.verdict.value} by {f.rule}" for f in answer.findings}
        assert found == {
            COMMITTED: "suspect by commit_marker_missing",
            ABORTED: "hanging by partition_not_in_transaction",
        }
