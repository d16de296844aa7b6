"""The lines that fence an id: whatever it holds, each hands it on as it is, wherever it is printed."""

from __future__ import annotations

import html
import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.docs.commands import blocks_of
from tests.plan.plan_shell import RETURNING, SHELLS, Executor, script_of, transaction
from tests.plan.test_script import HOSTILE
from tests.report import rows
from txn_analysis.plan.script import fence_with_kafkas_tool, ways_to_fence
from txn_analysis.report.build import build_report
from txn_analysis.report.html.page import html_report
from txn_analysis.report.text_report import text_report
from txn_analysis.text import shell_word

RUNBOOK = Path(__file__).parents[2] / "docs" / "runbook.md"
PROGRAMS = ("kafka-transactions.sh", "jshell", "python3", "kafka-producer-perf-test.sh")
# Writes down its arguments and two variables, a NUL behind each.
_STAND_IN = """#!/bin/sh
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

    def types(self, line: str) -> tuple[str, str, str]:
        """The program; what it takes for the id, and for the brokers."""
        assert line.isprintable()
        environment = {
            "PATH": f"{self._folder}:{os.environ['PATH']}",
            "LC_ALL": "C.UTF-8",
            "BROKERS": "b:1",
            "KAFKA_HOME": "/kafka",
        }
        subprocess.run([*self._command, line], env=environment, cwd=self._folder, check=True, timeout=60)
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


@pytest.mark.parametrize("name", HOSTILE)
def test_what_the_scripts_refusal_prints_can_be_typed(typist: Typist, shell: str, tmp_path: Path, name: str) -> None:
    executor = Executor(tmp_path / "plan", shell, brokers="one:9092,two:9092")
    executor.folder.mkdir()
    script = script_of(RETURNING._replace(transactional_id=name))
    not_said = executor.runs(script, "--yes").said
    not_true = executor.but(describe=transaction(name, 987_654_321, 3)).runs(script, "--yes", "--ended", name).said
    for said in (not_said, not_true):
        lines = [line for line in said.splitlines() if line.startswith("  ") and not line.startswith("  #")]
        assert [typist.types(line) for line in lines] == [(p, name, "one:9092,two:9092") for p in PROGRAMS]


def test_the_refusal_names_the_tool_as_it_is_called_here(typist: Typist, shell: str, tmp_path: Path) -> None:
    variables = {"KAFKA_TRANSACTIONS": "env kafka-transactions.sh"}
    executor = Executor(tmp_path / "plan", shell, config="/etc/it's mine", variables=variables, brokers="a b'c")
    executor.folder.mkdir()
    line = executor.runs(script_of(RETURNING), "--yes").said.splitlines()[2]
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
