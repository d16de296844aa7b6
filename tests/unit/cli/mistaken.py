"""The folder in which people make their mistakes, and how a command is run there."""

import gzip
import os
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.tools.repository import CASES, ROOT
from txn_analysis.cli.main import app
from txn_analysis.spark.interrupts import INTERRUPTED, Interrupted

CAPTURE = CASES / "kafka-4.2" / "capture-1"
_NOT_THE_ANSWER = ("txn-analysis: ", "Usage: ", "Try ")
_AFTER_THE_HEADLINE = "\nBlocked, "
_TOO_OLD = (
    "Dumping /var/kafka/orders-0/00000000000000000000.log\nStarting offset: 0\n"
    "offset: 0 position: 0 CreateTime: 1500000000000 isvalid: true payloadsize: 3 magic: 1 "
    "compresscodec: NoCompression\n"
)
_TEXTS = {
    "empty.txt": "",
    "notes.txt": "call Anna back\n",
    "old.txt": _TOO_OLD,
    "consumer.txt": "CreateTime:1795229916182\tbilling\t\x00\x01\n",
    "accepted.toml": "[[accepted]]\ntopic = 'orders'\npartition = 0\nproducer_id = 1002\ntxn_start_offset = 161\n"
    "until = 2026-12-24\nreason = 'planned'\nverdict = 'hanging'\nmust_end_producer = true\n",
    "wrong.toml": "clustr = 'east'\n",
    "depth.toml": "depth = 'full'\n",
    "text.toml": "cluster east\n",
}


@dataclass(frozen=True)
class Answer:
    """What a command said."""

    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        """What it says on stderr beside progress and usage; where that is nothing, the head of its report."""
        said = [line for line in self.err.splitlines() if line and not line.startswith(_NOT_THE_ANSWER)]
        return "\n".join(said) or self.out.partition(_AFTER_THE_HEADLINE)[0].strip()


def fill(folder: Path) -> None:
    """Copies that are whole, and everything that can be wrong with them."""
    for given, name in (("segments", "segments"), ("segments", "broker 1/segments"), ("transaction-state", "state")):
        shutil.copytree(CAPTURE / given, folder / name)
    for name, text in _TEXTS.items():
        (folder / name).write_text(text, encoding="utf-8")
    for name in ("empty", "linked", "table/runs/_delta_log"):
        (folder / name).mkdir(parents=True)
    (folder / "linked" / "orders-0.txt").symlink_to(CAPTURE / "segments" / "n1.orders-0.txt")
    (folder / "gone.txt").symlink_to("deleted.txt")
    os.mkfifo(folder / "pipe")
    _fill_with_damaged_dumps(folder)


def _fill_with_damaged_dumps(folder: Path) -> None:
    dump = (CAPTURE / "segments" / "n1.orders-0.txt").read_bytes()
    (folder / "cut.txt").write_bytes(dump[: len(dump) // 2])
    (folder / "cut.txt.gz").write_bytes(gzip.compress(dump)[:2000])
    (folder / "tail.txt").write_bytes(dump.split(b"\n", 2)[2])
    (folder / "crlf.txt").write_bytes(dump.replace(b"\n", b"\r\n"))
    (folder / "utf16.txt").write_bytes(dump.decode().encode("utf-16"))
    with (folder / "large.txt").open("wb") as large:
        large.write(dump)
        large.truncate(1100 << 20)  # takes no room on a disk


def answer_here(command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Answer:
    """Runs `txn-analysis COMMAND` in this process; variables may stand before it, as in a shell."""
    variables, words = _parsed(command)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    code: object = 0
    try:
        app(words, prog_name="txn-analysis")
    except SystemExit as end:
        code = end.code
    except (
        Interrupted
    ) as signalled:  # whoever runs the process says so and ends it; see tests/proof/faults/test_interrupts
        code = 128 + signalled.number
        print(INTERRUPTED, file=sys.stderr)
    out, err = capsys.readouterr()
    return Answer(code if isinstance(code, int) else int(code is not None), out, err)


def answer_alone(command: str, folder: Path) -> Answer:
    """Runs it in a process of its own, as it is about what a process finds on its machine."""
    variables, words = _parsed(command)
    done = subprocess.run(
        [sys.executable, "-m", "txn_analysis", *words],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": str(ROOT)} | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    return Answer(done.returncode, done.stdout, done.stderr)


def _parsed(command: str) -> tuple[dict[str, str], list[str]]:
    words = shlex.split(command)
    count = next(k for k, word in enumerate(words) if not word.startswith("TXN_") and not word.startswith("JAVA_"))
    return dict(word.split("=", 1) for word in words[:count]), words[count:]
