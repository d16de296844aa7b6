"""`txn-capture` as it is typed: what it answers where it cannot capture, and its exit codes."""

from __future__ import annotations

import shlex
import sys
from collections import deque
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from tests.capture.capture_mistakes import CAPTURE_MISTAKES, CaptureMistake, answered, made_by
from tests.capture.fake_brokers import STATE, FakeBrokers, FakeClock
from tests.log_dir.test_segments import data, marker
from txn_analysis.capture import command
from txn_analysis.kafka.transactions import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LOGS = {
    TopicPartition("orders", 0): [data(0)],
    TopicPartition("free", 0): [data(0), marker(1)],
    TopicPartition(STATE, 0): [],
}


def brokers_are(monkeypatch: pytest.MonkeyPatch, given: FakeBrokers) -> None:
    """From now on these answer, whoever is asked."""

    @contextmanager
    def connected(*_: Any) -> Iterator[FakeBrokers]:
        yield given

    module = ModuleType("txn_analysis.capture.client")
    vars(module)["KafkaBrokers"] = connected
    monkeypatch.setitem(sys.modules, module.__name__, module)


def without_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "txn_analysis.capture.client", raising=False)
    monkeypatch.setitem(sys.modules, "kafka", None)


@pytest.mark.parametrize("mistake", CAPTURE_MISTAKES, ids=lambda mistake: mistake.wrong)
def test_what_goes_wrong_is_said_in_a_line(
    mistake: CaptureMistake, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command, "Clock", FakeClock)
    (tmp_path / "client.properties").write_text(mistake.properties)
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "txn-capture.json").touch()
    failures = {name: deque(errors) for name, errors in mistake.failures.items()}
    if mistake.is_installed:
        brokers_are(monkeypatch, FakeBrokers(made_by(mistake, LOGS), failures=failures))
    else:
        without_library(monkeypatch)
    done = CliRunner().invoke(command.app, shlex.split(mistake.command)[1:])
    assert (answered(done.stderr), done.exit_code) == (mistake.answer_in(tmp_path), mistake.exit_code)


def test_a_capture_says_what_comes_next(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(command, "Clock", FakeClock)
    brokers_are(monkeypatch, FakeBrokers(LOGS))
    words = ["--bootstrap-server", "kafka-1:9092", "--to", str(tmp_path / "capture-1")]
    done = CliRunner().invoke(command.app, words)
    assert (done.stdout.splitlines()[-1], done.exit_code) == (f"next: txn-analysis audit {tmp_path / 'capture-1'}", 0)


def test_help_has_an_example() -> None:
    assert (
        "txn-capture --bootstrap-server kafka-1:9092 --to capture-1" in CliRunner().invoke(command.app, ["-h"]).stdout
    )
