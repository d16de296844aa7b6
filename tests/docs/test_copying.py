"""The commands for copying log directories make `--state-copied-last` true, on brokers that go on writing."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.docs.commands import blocks_of
from tests.docs.examples import ROOT

if TYPE_CHECKING:
    from pathlib import Path

STATE = "__transaction_state"
BROKERS = ("broker-1", "broker-2", "broker-3")
LOGS = ("Orders-0", "__consumer_offsets-7", "orders-1", f"my{STATE}-0", f"{STATE}-0", f"{STATE}-49")

# Every copy begins with the brokers having written on: each file says how often.
COPIER = """#!/bin/sh
for file in "$BROKERS"/*/var/lib/kafka/*/*.log; do echo written >> "$file"; done
exec "$COPY" "$@"
"""
# What rsync does with these options, for machines without it.
STAND_IN = """#!/usr/bin/env python3
import fnmatch, pathlib, shutil, sys
words = sys.argv[1:]
assert words[0] == "-a"
rules = [(kind == "--include", pattern) for kind, pattern in zip(words[1:-2:2], words[2:-2:2])]
assert all(pattern.startswith("/") for _, pattern in rules)
source, target = map(pathlib.Path, words[-2:])
for path in source.iterdir():
    if next((taken for taken, pattern in rules if fnmatch.fnmatchcase("/" + path.name, pattern)), True):
        copy = shutil.copytree if path.is_dir() else shutil.copy2
        target.mkdir(parents=True, exist_ok=True)
        copy(path, target / path.name)
"""


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def commands_for_copying() -> str:
    (block,) = [b for b in blocks_of((ROOT / "docs/log-directories.md").read_text(encoding="utf-8")) if "rsync" in b]
    return block


@pytest.fixture(params=["rsync", "a stand-in"])
def copies(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """What the page's commands copied of three brokers that write all the time."""
    copy = shutil.which("rsync") if request.param == "rsync" else str(program(tmp_path / "stand-in", STAND_IN))
    if copy is None:
        pytest.skip("needs rsync")
    for broker in BROKERS:
        for log in LOGS:
            file = tmp_path / broker / "var/lib/kafka" / log / "00000000000000000000.log"
            file.parent.mkdir(parents=True)
            file.touch()
        (tmp_path / broker / "var/lib/kafka/meta.properties").touch()
    (tmp_path / "copies").mkdir()
    program(tmp_path / "bin/rsync", COPIER)
    program(tmp_path / "bin/txn-analysis", '#!/bin/sh\necho "$@" > "$BROKERS/audited"\n')
    # A folder of this machine stands for each broker and for /copies.
    script = (
        commands_for_copying().replace("$broker:/", f"{tmp_path}/$broker/").replace("/copies/", f"{tmp_path}/copies/")
    )
    known = os.environ | {"PATH": f"{tmp_path}/bin:{os.environ['PATH']}", "BROKERS": str(tmp_path), "COPY": copy}
    subprocess.run(["sh", "-eu", "-c", script], env=known, check=True)
    return tmp_path / "copies"


def copied_at(copies: Path) -> dict[tuple[str, str], int]:
    """By broker and log, after how many copies it was copied."""
    return {(f.parts[-3], f.parts[-2]): len(f.read_text().splitlines()) for f in copies.rglob("*.log")}


def test_state_is_copied_after_the_logs_of_all_brokers(copies: Path) -> None:
    at = copied_at(copies)
    assert at.keys() == {(broker, log) for broker in BROKERS for log in LOGS}
    logs, state = ([n for (_, log), n in at.items() if log.startswith(STATE) is is_state] for is_state in (False, True))
    assert max(logs) < min(state)


def test_files_beside_the_logs_are_copied(copies: Path) -> None:
    assert {f.parent.name for f in copies.rglob("meta.properties")} == set(BROKERS)


def test_copies_of_all_brokers_are_audited_with_the_word_that_is_true(copies: Path) -> None:
    words = (copies.parent / "audited").read_text().split()
    assert words == ["audit", *(str(copies / broker) for broker in BROKERS), "--state-copied-last"]


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))], ids=lambda page: page.name
)
def test_no_page_copies_by_what_promises_no_order(page: Path) -> None:
    for block in blocks_of(page.read_text(encoding="utf-8")):
        assert not re.search(r"\bcp -\w*[rRa]", block)
        assert "rsync" not in block or block == commands_for_copying()
