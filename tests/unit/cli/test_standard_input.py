"""`-` is what comes through standard input: read like any other file, kept by nobody."""

import gzip
import json
import os
import pty
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

from tests.tools.repository import CASES
from txn_analysis.errors import InputError
from txn_analysis.reading.inputs.find_files import find_files, place_of, standard_input

CAPTURE = CASES / "kafka-4.2" / "capture-1"
DUMP = CAPTURE / "segments" / "n1.orders-2.txt"
STATE = CAPTURE / "transaction-state"
# What a shell starts in its background, such as these tests, ignores SIGINT.
_NOT_IGNORING = """
import runpy, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
runpy.run_module("txn_analysis", run_name="__main__")
"""
_MORE_THAN_A_PIPE_HOLDS = b"Dumping \n" * (1 << 18)


class Said(NamedTuple):
    """What a command said, and with which code it ended."""

    code: int
    out: str
    err: str

    @property
    def errors(self) -> list[str]:
        return [line for line in self.err.splitlines() if line.startswith("error: ")]


def piped(text: bytes, folder: Path, *words: str) -> Said:
    """Run `txn-analysis` with a text piped into it; its temporary files go below a folder."""
    done = subprocess.run(
        [sys.executable, "-m", "txn_analysis", *words], input=text, capture_output=True, check=False, env=_own(folder)
    )
    return Said(done.returncode, done.stdout.decode(), done.stderr.decode())


def _own(folder: Path) -> dict[str, str]:
    temp = folder / "temp"
    temp.mkdir(exist_ok=True)
    return os.environ | {"TMPDIR": str(temp)}


def audited(text: bytes, folder: Path, name: str, *paths: object) -> dict[str, Any]:
    said = piped(text, folder, "audit", *map(str, paths), "--warehouse", str(folder / name), "--format", "json")
    assert said.code == 1, said.err
    found: dict[str, Any] = json.loads(said.out)
    return found


@pytest.mark.cluster  # four audits, each a process
def test_a_pipe_gives_what_its_file_gives_plain_and_packed(tmp_path: Path) -> None:
    text = DUMP.read_bytes()
    by_file = audited(b"", tmp_path, "file", DUMP, STATE)
    packed = pa.compress(text, codec="zstd", asbytes=True)
    for name, sent in (("plain", text), ("gz", gzip.compress(text)), ("zst", packed)):
        by_pipe = audited(sent, tmp_path, name, "-", STATE)
        assert by_pipe["run"]["run_id"] == by_file["run"]["run_id"]
        assert by_pipe["findings"] == by_file["findings"]
        assert by_pipe["partitions"] == by_file["partitions"]
        assert next(item["path"] for item in by_pipe["inputs"]) == "-"
    assert [finding["verdict"] for finding in by_file["findings"]] == ["hanging"]
    assert not list((tmp_path / "temp").iterdir())


@pytest.mark.cluster  # two audits, each a process
def test_the_state_can_come_through_the_pipe(tmp_path: Path) -> None:
    state = b"".join(path.read_bytes() for path in sorted(STATE.iterdir()))
    by_pipe = audited(state, tmp_path, "pipe", DUMP, "-")
    by_files = audited(b"", tmp_path, "files", DUMP, STATE)
    own = [{**finding, "finding_id": None, "run_id": None} for finding in by_pipe["findings"]]
    assert own == [{**finding, "finding_id": None, "run_id": None} for finding in by_files["findings"]]


@pytest.mark.cluster
def test_bytes_that_the_warehouse_holds_are_not_read_again(tmp_path: Path) -> None:
    warehouse = ("--warehouse", str(tmp_path / "w"), "--format", "json")
    for path in (DUMP, "-"):
        said = piped(DUMP.read_bytes(), tmp_path, "audit", "--no-judge", str(path), *warehouse)
        assert said.code == 0, said.err
        ingested = json.loads(said.out)
        assert (ingested["input_count"], ingested["new_input_count"]) == (1, int(path == DUMP))


def test_what_stands_in_a_pipe_is_named_by_its_byte(tmp_path: Path) -> None:
    said = piped(DUMP.read_bytes()[:5000], tmp_path, "audit", "-", "--warehouse", str(tmp_path / "w"))
    assert said.code == 2
    assert said.errors[0].startswith("error: -: byte ")
    assert "the text ends inside this line" in said.errors[0]


def audit_of(stdin: int, *paths: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "txn_analysis", "audit", "-", *paths]
    return subprocess.run(command, stdin=stdin, capture_output=True, text=True, check=False, timeout=60)


def test_mistakes_in_other_paths_are_said_before_the_pipe_is_read(tmp_path: Path) -> None:
    read_end, write_end = os.pipe()  # nobody writes, and nobody closes it
    with open(read_end), open(write_end, "wb"):
        done = audit_of(read_end, str(tmp_path / "segmnts"))
    assert done.returncode == 2
    assert "segmnts: no such file or folder" in done.stderr


def test_a_terminal_is_told_what_to_pipe() -> None:
    screen, terminal = pty.openpty()
    with open(screen), open(terminal):
        done = audit_of(terminal)
    assert done.returncode == 2
    assert done.stderr.startswith("error: -: standard input is this terminal: pipe a dump into this command")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_pipe_leaves_no_file(tmp_path: Path, number: signal.Signals) -> None:
    command = subprocess.Popen(
        [sys.executable, "-c", _NOT_IGNORING, "audit", "-"],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=_own(tmp_path),
    )
    assert command.stdin
    assert command.stderr
    with command.stdin, command.stderr:
        command.stdin.write(_MORE_THAN_A_PIPE_HOLDS)  # so that it has begun to keep it
        command.stdin.flush()
        command.send_signal(number)
        assert b"interrupted: " in command.stderr.read()
    assert command.wait() == 128 + number
    assert not list((tmp_path / "temp").iterdir())


@pytest.fixture
def pipe(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Some bytes in this process' standard input, whose temporary files go below `tmp_path`."""
    read_end, write_end = os.pipe()
    with open(write_end, "wb") as writer:
        writer.write(b"Dumping")
    with open(read_end) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        yield


@pytest.mark.usefixtures("pipe")
def test_it_is_kept_where_nobody_else_can_look_and_only_meanwhile() -> None:
    with standard_input(["-"]):
        kept = Path(place_of("-"))
        assert kept.read_bytes() == b"Dumping"
        assert stat.S_IMODE(kept.parent.stat().st_mode) == 0o700
        assert [(file.path, file.size_bytes) for file in find_files(["-"])] == [("-", 7)]
    assert not kept.parent.exists()
    assert place_of("-") != str(kept)


@pytest.mark.usefixtures("pipe")
def test_it_is_refused_before_the_disk_is_full(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    full = type(shutil.disk_usage("/"))(total=1 << 40, used=1 << 40, free=1 << 20)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: full)
    with pytest.raises(InputError, match=r"has no room .* 0 B of it were kept, and 268.4 MB stay free there"):
        standard_input(["-"]).__enter__()
    assert not list(tmp_path.iterdir())
