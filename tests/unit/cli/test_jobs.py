"""The steps in `jobs/`: each does its part, and the last one prints what abort tooling sends."""

import json
import runpy
from contextlib import nullcontext
from pathlib import Path

import pytest

from tests.tools.program import program
from tests.tools.repository import CASES, ROOT

CAPTURE = CASES / "kafka-4.2/capture-1"
PATHS = [str(CAPTURE / "segments"), str(CAPTURE / "transaction-state")]
WORDS = ("--transaction-state-partitions", "4", "--max-clock-skew-ms", "0", "--engine", "local", "--capture", "tonight")


def run(job: str, warehouse: Path, *words: str) -> int:
    """Runs a job in this process, whose signals stay its own; the code that it ends with."""
    script = runpy.run_path(str(ROOT / f"jobs/{job}.py"))[job]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("txn_analysis.cli.verbs.ending_at_once", nullcontext)
        with pytest.raises(SystemExit) as ended:
            script([*words, *WORDS, "--warehouse", str(warehouse), "--quiet"])
    return int(ended.value.code or 0)


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse behind the first three steps."""
    warehouse = tmp_path_factory.mktemp("steps") / "warehouse"
    assert [run("ingest", warehouse, *PATHS), run("reconstruct", warehouse), run("judge", warehouse)] == [0, 0, 0]
    return warehouse


def test_the_last_step_prints_the_request_that_the_verb_prints(judged: Path, tmp_path: Path) -> None:
    """`make e2e` sends what the verb prints to brokers, read by Kafka's own converter."""
    by_job, by_verb = tmp_path / "job.json", tmp_path / "verb.json"
    form = ("--format", "write-txn-markers", "--expired")
    assert run("abort_plan", judged, *form, "-o", str(by_job)) == 0
    assert program("abort-plan", *form, "-o", by_verb, "--warehouse", judged).code == 0
    assert by_job.read_text() == by_verb.read_text()
    assert json.loads(by_job.read_text())["markers"]


def test_a_step_before_its_time_says_which_one_comes_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("ingest", tmp_path / "warehouse", *PATHS) == 0
    assert run("judge", tmp_path / "warehouse") == 2
    assert "Run jobs/reconstruct.py with the same ones first." in capsys.readouterr().err
    assert run("abort_plan", tmp_path / "warehouse") == 2
    assert "Run jobs/judge.py with the same ones first." in capsys.readouterr().err


@pytest.mark.parametrize(("job", "what"), [("judge", "reconstructed"), ("abort_plan", "judged")])
def test_a_step_with_other_settings_says_which_it_has_and_which_the_one_before(
    judged: Path, capsys: pytest.CaptureFixture[str], job: str, what: str
) -> None:
    assert run(job, judged, "--transaction-max-timeout-ms", "60000") == 2
    line = capsys.readouterr().err
    assert f"capture tonight is not {what} with the settings of this step (transaction_max_timeout_ms 60000)" in line
    assert "but with others (transaction_max_timeout_ms 900000). Give both the same ones." in line
