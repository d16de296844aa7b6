"""Every mistake of the tables ends with its exit code, says what is wrong, and what is to be typed is whole."""

import shlex
import shutil
import signal
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.tools.captures import PARAMETERS
from tests.tools.docs.commands import printed_in, wrong_with
from tests.tools.sessions import no_session
from tests.tools.table_rows import give_format
from tests.unit.cli.mistaken import Answer, answer_alone, answer_here, fill
from tests.unit.cli.mistakes import ALONE, BEFORE_SPARK, NOT_TOLD, OF_THE_TABLES, PRESSED_AT
from txn_analysis.cli.main import app
from txn_analysis.pipeline import steps as pipeline
from txn_analysis.settings import Settings

slips = partial(pytest.mark.parametrize, "command")


def check(answer: Answer, code: int, phrase: str) -> None:
    said = " ".join(answer.text.split())
    assert (answer.code, phrase in said) == (code, True), said
    assert list(filter(None, map(wrong_with, printed_in(answer.text)))) == []
    assert "secret" not in answer.out + answer.err


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mistakes")
    fill(folder)
    return folder


@pytest.fixture(scope="module")
def audited(folder: Path, empty_warehouse: Path) -> Path:
    """The folder with a warehouse `w`, in which four transactions of the cluster east hang; and damaged copies."""
    for name in ("w", "other"):
        shutil.copytree(empty_warehouse, folder / name)
    settings = Settings.model_validate({"warehouse": str(folder / "w"), "cluster": "east"} | PARAMETERS)
    report = pipeline.audit(no_session, [str(folder / "segments"), str(folder / "state")], settings)
    assert len(report.hanging) == 4
    for name in ("damaged", "torn", "other-version"):
        shutil.copytree(folder / "w", folder / name)
    shutil.rmtree(folder / "damaged" / "partition_health")
    for log in (folder / "torn" / "runs" / "_delta_log").glob("*1.json"):
        log.write_bytes(log.read_bytes()[:50])
    give_format(folder / "other-version", "7")
    return folder


@pytest.fixture
def there(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(folder)
    return folder


@slips(BEFORE_SPARK)
def test_what_is_refused_before_spark_starts(
    command: str, there: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("txn_analysis.spark.session.session", no_session)
    check(answer_here(command, monkeypatch, capsys), 2, BEFORE_SPARK[command])


@slips(OF_THE_TABLES | NOT_TOLD)
def test_what_the_tables_or_the_files_must_tell(
    command: str, audited: Path, there: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(SparkSession, "stop", lambda _: None)  # it is that of all tests
    answer = answer_here(command, monkeypatch, capsys)
    check(answer, 3 if command in NOT_TOLD else 2, (OF_THE_TABLES | NOT_TOLD)[command])


@slips(PRESSED_AT)
def test_what_ctrl_c_leaves_behind(
    command: str, audited: Path, there: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(SparkSession, "stop", lambda _: None)
    monkeypatch.setattr(PRESSED_AT[command], lambda *_, **__: signal.raise_signal(signal.SIGINT))
    check(answer_here(command, monkeypatch, capsys), 130, "interrupted: what earlier runs wrote is intact")


@slips(ALONE)
def test_what_is_wrong_with_the_machine(command: str, there: Path) -> None:
    check(answer_alone(command, there), 2, ALONE[command])


def test_every_verb_has_its_mistakes() -> None:
    words = {word for slip in {**BEFORE_SPARK, **OF_THE_TABLES, **NOT_TOLD} for word in shlex.split(slip)}
    assert set(app.commands) - words == set()
