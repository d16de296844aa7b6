"""The commands for copying log directories make `--state-copied-last` true, on brokers that go on writing."""

import os
import re
import shutil
import subprocess
from itertools import product
from pathlib import Path

import pytest

from tests.tools.captures import PARAMETERS
from tests.tools.docs.commands import blocks_of
from tests.tools.repository import CASES, ROOT
from tests.tools.sessions import no_session
from txn_analysis.pipeline.steps import audit
from txn_analysis.settings import Settings

STATE = "__transaction_state"
BROKERS = ("broker-1", "broker-2", "broker-3")
ONE_TOPIC, ALL = "one topic", "all of the brokers"
BESIDE = ("meta.properties", "log-start-offset-checkpoint", "replication-offset-checkpoint")
LOG_DIRS = CASES / "kafka-4.2/capture-1/log-dirs"
LOGS = ("Orders-0", "__consumer_offsets-7", "orders-1", f"my{STATE}-0", f"{STATE}-0", f"{STATE}-49")

OF_ORDERS = ("orders-1", f"{STATE}-0", f"{STATE}-49")

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
        target.mkdir(exist_ok=True)  # one folder and no more
        copy(path, target / path.name)
"""


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def blocks_for_copying() -> list[str]:
    """The page's commands: for one topic, and for all of the brokers."""
    return [b for b in blocks_of((ROOT / "docs/log-directories.md").read_text(encoding="utf-8")) if "rsync" in b]


def block_of(kind: str) -> str:
    of_one_topic, of_all = blocks_for_copying()
    return of_one_topic if kind == ONE_TOPIC else of_all


@pytest.fixture(scope="module", params=["rsync", "a stand-in"])
def copy(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """What copies."""
    stand_in = tmp_path_factory.mktemp("copy") / "stand-in"
    found = shutil.which("rsync") if request.param == "rsync" else str(program(stand_in, STAND_IN))
    if found is None:
        pytest.skip("needs rsync")
    return found


@pytest.fixture(scope="module", params=[ONE_TOPIC, ALL])
def kind(request: pytest.FixtureRequest) -> str:
    """Which of the page's blocks is run."""
    return str(request.param)


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory, copy: str, kind: str) -> Path:
    """What the page's commands copied of three brokers that write all the time."""
    folder = tmp_path_factory.mktemp("brokers")
    for broker in BROKERS:
        for log in LOGS:
            file = folder / broker / "var/lib/kafka" / log / "00000000000000000000.log"
            file.parent.mkdir(parents=True)
            file.touch()
        for name in BESIDE:
            (folder / broker / "var/lib/kafka" / name).touch()
    program(folder / "bin/rsync", COPIER)
    program(folder / "bin/txn-analysis", '#!/bin/sh\necho "$@" > "$BROKERS/audited"\n')
    # A folder of this machine stands for each broker.
    script = block_of(kind).replace("$broker:/", f"{folder}/$broker/")
    known = os.environ | {"PATH": f"{folder}/bin:{os.environ['PATH']}", "BROKERS": str(folder), "COPY": copy}
    subprocess.run(["sh", "-eu", "-c", script], cwd=folder, env=known, check=True)
    (made,) = (folder / "copies").iterdir()
    return made


def copied_at(copies: Path) -> dict[tuple[str, str], int]:
    """By broker and log, after how many copies it was copied."""
    return {(f.parts[-3], f.parts[-2]): len(f.read_text().splitlines()) for f in copies.rglob("*.log")}


def test_state_is_copied_after_the_logs_of_all_brokers(copies: Path, kind: str) -> None:
    at = copied_at(copies)
    assert at.keys() == {(broker, log) for broker in BROKERS for log in LOGS if kind == ALL or log in OF_ORDERS}
    logs, state = ([n for (_, log), n in at.items() if log.startswith(STATE) is is_state] for is_state in (False, True))
    assert max(logs) < min(state)


def test_files_beside_the_logs_are_copied(copies: Path) -> None:
    assert {(f.parent.name, f.name) for f in copies.glob("*/*") if f.is_file()} == {*product(BROKERS, BESIDE)}


def test_copies_of_all_brokers_are_audited_with_the_word_that_is_true(copies: Path) -> None:
    words = (copies.parents[1] / "audited").read_text().split()
    assert words == ["audit", f"copies/{copies.name}", "--state-copied-last"]


def test_the_next_copy_goes_into_another_folder(tmp_path: Path, kind: str) -> None:
    program(tmp_path / "bin/rsync", "#!/bin/sh\n")
    program(tmp_path / "bin/txn-analysis", "#!/bin/sh\n")
    for second in (7, 8):
        program(
            tmp_path / "bin/date", f'#!/bin/sh\nexec {shutil.which("date")} -d "2026-11-21 03:12:0{second}Z" "$@"\n'
        )
        known = os.environ | {"PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}
        subprocess.run(["sh", "-eu", "-c", block_of(kind)], cwd=tmp_path, env=known, check=True)
    assert sorted(f.name for f in (tmp_path / "copies").iterdir()) == ["20261121T031207Z", "20261121T031208Z"]


# The transcript types the lines of docs/log-directories.md: tests/unit/docs/test_transcript.py.
PAGES = [page for page in sorted((ROOT / "docs").glob("*.md")) if page.name != "repair-transcript.md"]


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=lambda page: page.name)
def test_no_page_copies_by_what_promises_no_order(page: Path) -> None:
    for block in blocks_of(page.read_text(encoding="utf-8")):
        assert not re.search(r"\bcp -\w*[rRa]", block)
        assert "rsync" not in block or block in blocks_for_copying()


def test_the_smallest_copy_finds_what_hangs_in_its_topic(tmp_path: Path, copy: str) -> None:
    """Real brokers' folders, copied by the printed lines: the same transactions hang, by the same rules."""
    program(tmp_path / "bin/rsync", f'#!/bin/sh\nexec {copy} "$@"\n')
    program(tmp_path / "bin/txn-analysis", "#!/bin/sh\n")
    lines = block_of(ONE_TOPIC).replace("broker-1 broker-2 broker-3", "n1 n2")
    script = lines.replace("$broker:/var/lib/kafka/", f"{LOG_DIRS}/$broker/")
    known = os.environ | {"PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}
    subprocess.run(["sh", "-eu", "-c", script], cwd=tmp_path, env=known, check=True)
    found, whole = (hanging(tmp_path / name, folder) for name, folder in (("w", tmp_path / "copies"), ("v", LOG_DIRS)))
    assert found == {place for place in whole if place[0] == "orders"}
    assert len(whole) > len(found) == 2


def test_the_same_is_dumped_where_it_cannot_be_copied(tmp_path: Path) -> None:
    names = [f"{log}/{0:020}.{end}" for log in LOGS for end in ("log", "snapshot", "index")]
    for name in names:
        file = tmp_path / "kafka" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    program(tmp_path / "bin/kafka-dump-log.sh", '#!/bin/sh\necho "$@"\n')
    (block,) = [b for b in blocks_of((ROOT / "docs/log-directories.md").read_text(encoding="utf-8")) if "find " in b]
    known = os.environ | {"PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}
    script = block.replace("/var/lib/kafka/", "kafka/")
    subprocess.run(["sh", "-eu", "-c", script], cwd=tmp_path, env=known, check=True)
    logs, state = ((tmp_path / kind / "broker-1.txt").read_text().splitlines() for kind in ("segments", "state"))
    assert sorted(logs) == [f"--files kafka/orders-1/{0:020}.{end}" for end in ("log", "snapshot")]
    assert sorted(state) == [
        f"--transaction-log-decoder --files kafka/{STATE}-{number}/{0:020}.log" for number in (0, 49)
    ]


def hanging(warehouse: Path, folder: Path) -> set[tuple[str, int, int, str]]:
    """What hangs in the log directories of a folder, and by which rule."""
    settings = Settings.model_validate(PARAMETERS | {"warehouse": str(warehouse)})
    report = audit(no_session, [str(folder)], settings)
    return {(f.topic, f.partition, f.txn_start_offset, f.rule) for f in report.hanging}
