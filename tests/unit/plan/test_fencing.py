"""The lines that fence an id: whatever it holds, each hands it on as it is, wherever it is printed."""

from __future__ import annotations

import html
import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.tools import report_rows as rows
from tests.tools.docs.commands import blocks_of
from tests.tools.repository import ROOT
from tests.unit.plan.plan_shell import RETURNING, SHELLS, Executor, script_of, transaction
from tests.unit.plan.test_script import HOSTILE
from txn_analysis.plan.script import fence_with_kafkas_tool, ways_to_fence
from txn_analysis.report.build import build_report
from txn_analysis.report.html.page import html_report
from txn_analysis.report.text_report import text_report
from txn_analysis.text import shell_word

RUNBOOK = ROOT / "docs" / "runbook.md"
PROGRAMS = ("kafka-transactions.sh", "jshell", "python3", "kafka-producer-perf-test.sh")
# Writes down its arguments and two variables, a NUL behind each; `describe` says what stands in a file.
_STAND_IN = """#!/bin/sh
for word in "$@"; do if [ "$word" = describe ]; then cat "${0%/*}/described"; exit; fi; done
printf '%s\\0' "${0##*/}" "$@" "ID=$ID" "BROKERS=$BROKERS" > "${0%/*}/got"
"""


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def typist(tmp_path: Path, shell: str) -> Typist:
    return Typist(tmp_path, shell)


class Typist:
    """Somebody who types one line at a shell's prompt; what the program got is what counts."""

    def __init__(self, folder: Path, shell: str) -> None:
        self._folder, self._command = folder, [shell, "sh", "-c"] if shell == "busybox" else [shell, "-c"]
        for program in PROGRAMS:
            file = folder / program
            file.write_text(_STAND_IN)
            file.chmod(0o755)

    def is_stopped(self, line: str, described: str) -> bool:
        """Whether the line fences nothing, where `describe` says this."""
        return self._typed(line, described) != 0

    def types(self, line: str) -> tuple[str, str, str]:
        """The program; what it takes for the id, and for the brokers. Nothing is in progress."""
        assert line.isprintable()
        assert self._typed(line, transaction("x", 7, 0, state="Empty").out) == 0
        return self._what_was_called()

    def _typed(self, line: str, described: str) -> int:
        (self._folder / "described").write_text(described, encoding="utf-8")
        (self._folder / "got").unlink(missing_ok=True)
        environment = {
            "PATH": f"{self._folder}:{os.environ['PATH']}",
            "LC_ALL": "C.UTF-8",
            "BROKERS": "b:1",
            "KAFKA_HOME": "/kafka",
        }
        done = subprocess.run(
            [*self._command, line], env=environment, cwd=self._folder, check=False, timeout=60, capture_output=True
        )
        assert (done.returncode == 0) == (self._folder / "got").exists(), done.stderr
        return done.returncode

    def _what_was_called(self) -> tuple[str, str, str]:
        program, *words = (self._folder / "got").read_bytes().decode().split("\0")[:-1]
        options = dict(word.partition("=")[::2] for word in words)
        if program == "kafka-transactions.sh":
            return program, options["--transactionalId"], words[words.index("--bootstrap-server") + 1]
        if program == "kafka-producer-perf-test.sh":
            return program, options["--transactional-id"], options["bootstrap.servers"]
        if program == "python3":
            return program, words[3], words[2]
        return program, options["ID"], options["BROKERS"]


@pytest.mark.parametrize("name", HOSTILE)
def test_every_way_hands_on_the_id(typist: Typist, name: str) -> None:
    lines = [way.line for way in ways_to_fence(shell_word(name))]
    assert [typist.types(line) for line in lines] == [(program, name, "b:1") for program in PROGRAMS]
    assert fence_with_kafkas_tool(name).line == lines[0]


IN_PROGRESS = ("Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence", "Dead", "Unknown")


@pytest.mark.parametrize("state", IN_PROGRESS)
@pytest.mark.parametrize(
    "name", ["billing", "x 7 0 Empty 60000 None None", "x\t7\t0\tEmpty\t1\tNone\tNone\n", "a\nEmpty"]
)
def test_no_way_fences_what_is_in_progress_whatever_the_copy_said(typist: Typist, name: str, state: str) -> None:
    described = transaction(name, 42, 8, "orders-1", state=state).out
    for way in ways_to_fence(shell_word(name)):
        assert typist.is_stopped(way.line, described)


@pytest.mark.parametrize("described", ["", "Failed: Empty\n", "CoordinatorId\tTransactionalId\tTransactionState\n"])
def test_an_answer_that_is_none_fences_nothing(typist: Typist, described: str) -> None:
    assert typist.is_stopped(fence_with_kafkas_tool("billing").line, described)


@pytest.mark.parametrize("state", ["Empty", "CompleteCommit", "CompleteAbort"])
@pytest.mark.parametrize("name", HOSTILE)
def test_once_nothing_is_in_progress_the_same_command_fences(typist: Typist, name: str, state: str) -> None:
    line = fence_with_kafkas_tool(name).line
    assert not typist.is_stopped(line, transaction(name, 42, 8, state=state).out)


def test_where_brokers_refuse_the_tools_own_timeout_each_way_asks_for_less(typist: Typist, tmp_path: Path) -> None:
    short, usual = ([way.line for way in ways_to_fence("billing", ms)] for ms in (20_000, 900_000))
    assert typist.types(short[0]) == ("kafka-transactions.sh", "billing", "b:1")
    assert "--command-config\0fence.properties" in (tmp_path / "got").read_text()
    written = (tmp_path / "fence.properties").read_text()
    assert written == "request.timeout.ms=10000\ndefault.api.timeout.ms=10000\n"
    assert [line.count("10000") for line in short] == [2, 2, 1, 1]
    assert not any("10000" in line for line in usual)
    librdkafkas = [way.line for way in ways_to_fence("billing", 59_999)]
    assert [line.count("timeout.ms") for line in librdkafkas] == [0, 0, 1, 1]


_TRIMMED = "".join(map(chr, range(33)))  # as java.lang.String.trim does


@pytest.mark.parametrize("name", HOSTILE)
def test_what_the_scripts_refusal_prints_can_be_typed(typist: Typist, shell: str, tmp_path: Path, name: str) -> None:
    executor = Executor(tmp_path / "plan", shell, brokers="one:9092,two:9092")
    executor.folder.mkdir()
    script = script_of(RETURNING._replace(transactional_id=name))
    not_said = executor.runs(script, "--yes").said
    not_true = executor.but(describe=transaction(name, 987_654_321, 3)).runs(script, "--yes", "--ended", name).said
    in_progress = executor.but(describe=transaction(name, 987_654_321, 3, "pay-1"))
    gone = in_progress.runs(script, "--yes", "--owner-gone", name).said
    for said in (not_said, not_true, gone):
        lines = [line for line in said.splitlines() if line.startswith("  ") and not line.startswith("  #")]
        is_trimmed = name != name.strip(_TRIMMED)  # by Kafka's producer
        assert [typist.types(line) for line in lines] == [
            (p, name, "one:9092,two:9092") for p in PROGRAMS if not (is_trimmed and "perf" in p)
        ]


def test_the_refusal_names_the_tool_as_it_is_called_here(typist: Typist, shell: str, tmp_path: Path) -> None:
    variables = {"KAFKA_TRANSACTIONS": "env kafka-transactions.sh"}
    executor = Executor(tmp_path / "plan", shell, config="/etc/it's mine", variables=variables, brokers="a b'c")
    executor.folder.mkdir()
    line = executor.runs(script_of(RETURNING), "--yes").said.splitlines()[2]
    assert "describe" in line
    assert line.startswith("  env kafka-transactions.sh --command-config ")
    assert typist.types(line) == ("kafka-transactions.sh", "billing", "a b'c")
    assert b"\0--command-config\0/etc/it's mine\0" in (tmp_path / "got").read_bytes()


@pytest.mark.parametrize("name", HOSTILE)
def test_report_and_page_print_the_line_of_kafkas_tool(typist: Typist, name: str) -> None:
    returning = RETURNING._replace(transactional_id=name)
    found = build_report(rows.run(), [rows.input_file()], [], [returning, rows.finding(partition=3)])
    (of_text,) = re.findall(r"^   fence    (.*)$", text_report(found), re.MULTILINE)
    (of_page,) = {
        html.unescape(re.sub("</?span[^>]*>", "", code))
        for code in re.findall("<code>(.*?)</code>", html_report(found), re.DOTALL)
        if "forceTerminate" in code
    }
    assert [typist.types(line) for line in (of_text, of_page)] == [("kafka-transactions.sh", name, "b:1")] * 2


def test_the_runbook_has_every_way() -> None:
    (block,) = (b for b in blocks_of(RUNBOOK.read_text(encoding="utf-8")) if "forceTerminateTransaction" in b)
    assert block.splitlines() == [
        line for way in ways_to_fence("billing-worker-17") for line in (f"# {way.needs}:", way.line)
    ]
