"""`txn-capture` as it is typed: what it answers where it cannot capture, and its exit codes."""

import shlex
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from click.testing import CliRunner

from tests.unit.capture.fake_brokers import STATE, FakeBrokers, FakeClock
from tests.unit.log_dir.test_segments import data, marker
from txn_analysis.capture import command
from txn_analysis.capture.answers import CaptureError, RefusedError, UnavailableError
from txn_analysis.kafka.transactions import TopicPartition

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


CAPTURE = "--bootstrap-server kafka-1:9092 --to capture-1"
WITH_CONFIG = f"{CAPTURE} --command-config client.properties"
NO_ANSWER = CaptureError("kafka-1:9092: no broker answers")
REFUSED = RefusedError("Read", "Topic", "orders", "DescribeProducers")
AWAY = UnavailableError("broker 1: KafkaTimeoutError: Request timed out")


def refusal(
    monkeypatch: pytest.MonkeyPatch,
    folder: Path,
    words: str,
    failures: dict[str, list[Exception]],
    properties: str = "",
) -> tuple[int, str]:
    """The exit code and what is said, of brokers that fail as given."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(command, "Clock", FakeClock)
    (folder / "client.properties").write_text(properties)
    wanted = {"free" if "--topic free" in words else "orders", STATE}
    logs = {place: log for place, log in LOGS.items() if place.topic in wanted}
    brokers_are(monkeypatch, FakeBrokers(logs, failures={name: deque(errors) for name, errors in failures.items()}))
    done = CliRunner().invoke(command.app, shlex.split(words))
    return done.exit_code, done.stderr


@pytest.mark.parametrize(
    ("properties", "says"),
    [
        ("security.protocol=SSL\nssl.truststore.location=trust.jks\n", "a JKS store is not read here"),
        ("security.protocl=SSL\n", "security.protocl: not understood here"),
    ],
)
def test_what_of_a_clients_properties_is_not_understood(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, properties: str, says: str
) -> None:
    code, said = refusal(monkeypatch, tmp_path, WITH_CONFIG, {}, properties)
    assert (code, says in said) == (2, True), said


@pytest.mark.parametrize(
    ("words", "failures", "code", "says"),
    [
        ("", {"cluster": [NO_ANSWER]}, 2, "no broker answers"),
        ("", {"producers": [REFUSED]}, 2, "DescribeProducers is refused: the ACL READ on Topic:orders is missing"),
        ("--give-up-after-ms 1000", {"fetch": [AWAY] * 100}, 2, "Given up after 1 s"),
        ("--topic free", {}, 4, "nothing is stuck"),
    ],
)
def test_what_brokers_do_not_give_is_said(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    words: str,
    failures: dict[str, list[Exception]],
    code: int,
    says: str,
) -> None:
    ended, said = refusal(monkeypatch, tmp_path, f"{CAPTURE} {words}", failures)
    assert (ended, says in said) == (code, True), said


def test_a_folder_that_holds_a_capture_is_left_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "capture-1").mkdir()
    (tmp_path / "capture-1" / "txn-capture.json").touch()
    code, said = refusal(monkeypatch, tmp_path, CAPTURE, {})
    assert (code, "the folder is not empty" in said) == (2, True), said


def test_without_the_client_library_it_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    without_library(monkeypatch)
    done = CliRunner().invoke(command.app, shlex.split(CAPTURE))
    assert (done.exit_code, "pip install 'txn-analysis[capture]'" in done.stderr) == (2, True), done.stderr


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
