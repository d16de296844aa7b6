"""Every mistake of the table is answered as the table says: never by 0, and in words that say what to do."""

from __future__ import annotations

import shlex
import shutil
import signal
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import SparkSession

from tests.acceptance.captures import PARAMETERS
from tests.cli.mistaken import answer_alone, answer_here, fill
from tests.cli.mistakes import KINDS, MISTAKES, When
from tests.table_rows import give_format
from txn_analysis.cli.main import app
from txn_analysis.pipeline import steps as pipeline
from txn_analysis.settings import Settings

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.mistakes import Mistake


def those(when: When) -> pytest.MarkDecorator:
    found = [mistake for mistake in MISTAKES if mistake.when is when]
    return pytest.mark.parametrize("mistake", found, ids=lambda mistake: mistake.command)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mistakes")
    fill(folder)
    return folder


@pytest.fixture(scope="module")
def audited(folder: Path, no_spark: Any, empty_warehouse: Path) -> Path:
    """The folder with a warehouse `w`, in which four transactions of the cluster east hang; and damaged copies."""
    for name in ("w", "other"):
        shutil.copytree(empty_warehouse, folder / name)
    settings = Settings.model_validate({"warehouse": str(folder / "w"), "cluster": "east"} | PARAMETERS)
    report = pipeline.audit(no_spark, [str(folder / "segments"), str(folder / "state")], settings)
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


@those(When.BEFORE)
def test_what_is_refused_before_spark_starts(
    mistake: Mistake, there: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def start(*_: Any, **__: Any) -> None:
        pytest.fail("Spark was started")

    monkeypatch.setattr("txn_analysis.spark.session.session", start)
    answer = answer_here(mistake.command, monkeypatch, capsys)
    assert (answer.code, answer.text) == (mistake.exit_code, mistake.answer_in(there))


@those(When.AFTER)
def test_what_the_tables_or_the_files_must_tell(
    mistake: Mistake, audited: Path, there: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(SparkSession, "stop", lambda _: None)  # it is that of all tests
    answer = answer_here(mistake.command, monkeypatch, capsys)
    assert (answer.code, answer.text) == (mistake.exit_code, mistake.answer_in(there))


@those(When.INTERRUPTED)
def test_what_ctrl_c_leaves_behind(
    mistake: Mistake, audited: Path, there: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(SparkSession, "stop", lambda _: None)
    monkeypatch.setattr(mistake.pressed_at, lambda *_, **__: signal.raise_signal(signal.SIGINT))
    answer = answer_here(mistake.command, monkeypatch, capsys)
    assert (answer.code, answer.text) == (mistake.exit_code, mistake.answer_in(there))


@those(When.ALONE)
def test_what_is_wrong_with_the_machine(mistake: Mistake, there: Path) -> None:
    answer = answer_alone(mistake.command, there)
    assert (answer.code, answer.text) == (mistake.exit_code, mistake.answer_in(there))


def test_no_kind_of_mistake_fills_the_table() -> None:
    assert len(MISTAKES) >= 40
    assert [kind for kind, those in KINDS.items() if len(those) > 3] == []
    assert [mistake.command for mistake in MISTAKES if mistake.exit_code == 0] == []


def test_every_verb_has_its_mistakes() -> None:
    verbs = set(app.group.commands)
    assert verbs - {word for mistake in MISTAKES for word in shlex.split(mistake.command)} == set()
