"""Every command that a report prints is run as it stands: another cluster, a relative warehouse with a space in it."""

from __future__ import annotations

import html
import re
import shlex
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from tests.acceptance.captures import CASES
from txn_analysis.cli.main import app

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

CAPTURE = CASES / "kafka-4.2/capture-1"
WORDS = ("--warehouse", "my audit/tables", "--cluster", "production")
HANGING, IN_THE_DARK = ("segments", "transaction-state"), ("segments",)
_COMMAND = re.compile(r"txn-analysis (?:abort-plan|verify|explain|report) [^`\n]*")


@pytest.fixture
def run(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Runs a command in a folder of its own, on the one session of the tests."""

    @contextmanager
    def session(*_: Any, **__: Any) -> Iterator[SparkSession]:
        yield spark

    for module in ("audit_verbs", "query_verbs", "plan_verb", "explain_verbs", "verify_verb"):
        monkeypatch.setattr(f"txn_analysis.cli.{module}.spark_session", session)
    monkeypatch.chdir(tmp_path)

    def done(*words: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            app(list(words), prog_name="txn-analysis")
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out, err

    return done


def commands_in(text: str) -> set[str]:
    return {found.strip() for found in _COMMAND.findall(text)}


@pytest.mark.parametrize(
    ("parts", "code", "verbs"),
    [
        pytest.param(HANGING, 1, {"abort-plan", "verify", "explain"}, id="hanging"),
        pytest.param(IN_THE_DARK, 3, {"explain", "report"}, id="in-the-dark"),
    ],
)
def test_every_printed_command_works(
    run: Callable[..., tuple[int, str, str]], tmp_path: Path, parts: tuple[str, ...], code: int, verbs: set[str]
) -> None:
    paths = [str(CAPTURE / part) for part in parts]
    page, mail = str(tmp_path / "page.html"), str(tmp_path / "mail.txt")
    ended, text, _ = run("audit", *paths, *WORDS, "--max-clock-skew-ms", "0", "--html", page)
    assert ended == code
    again, _, _ = run("report", *WORDS, "--width", "76", "-o", mail)
    _, _, notes = run("find-hanging", *WORDS)
    shown = html.unescape((tmp_path / "page.html").read_text())
    found = commands_in(text) | commands_in((tmp_path / "mail.txt").read_text()) | commands_in(notes)
    found |= {command.partition("<")[0] for command in commands_in(shown)}
    assert again == code
    assert {shlex.split(command)[1] for command in found} >= verbs
    one_of_each = {shlex.split(command)[1]: command for command in sorted(found)}
    for command in one_of_each.values():
        _, *words = shlex.split(command)
        done, out, err = run(*words)
        assert "error" not in err, command
        assert done in {0, 1, 3}, command
        assert out, command


def test_a_report_of_a_run_prints_the_inputs_as_the_audit_did(run: Callable[..., tuple[int, str, str]]) -> None:
    paths = [str(CAPTURE / part) for part in HANGING]
    _, audited, _ = run("audit", *paths, *WORDS, "--max-clock-skew-ms", "0")
    (run_id,) = set(re.findall(r"--run (run-[0-9a-f]+)", audited))
    _, again, _ = run("report", "--run", run_id, "--warehouse", "my audit/tables")
    assert "inputs            11 files, 783.9 kB" in again
    assert again == audited


def test_a_verb_that_finds_no_run_names_the_clusters_that_have_one(run: Callable[..., tuple[int, str, str]]) -> None:
    run("audit", str(CAPTURE / "segments"), *WORDS)
    code, _, err = run("verify", "--warehouse", "my audit/tables")
    assert code == 2
    assert err.rstrip().endswith("no run of cluster default yet: give --cluster production")
