"""Whole processes, with what they and their children took: seconds and memory."""

import os
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

_SAMPLE_EVERY_S = 0.1
_STEP_BYTES = 1 << 20
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
# Fields of /proc/PID/stat, counted behind the closing parenthesis of the command.
_SESSION = 3
_CPU = slice(11, 13)


class FailedError(Exception):
    """A process ended with an error; the message is the last line that it wrote."""


@dataclass(frozen=True)
class Finished:
    """One process that ended well.

    Attributes:
        seconds: from its start to its end.
        cpu_seconds: of all cores, by it and its descendants; steadier than `seconds` where others use the machine.
        peak_memory_bytes: the largest sum of resident memory of it and its descendants, pages they share counted twice.
    """

    seconds: float
    cpu_seconds: float
    peak_memory_bytes: int
    stdout: str


def run(command: Sequence[str], *, folder: Path | None = None) -> Finished:
    """Run a command to its end.

    Args:
        command: program and arguments.
        folder: where it runs; by default where this process does.

    Raises:
        FailedError: it cannot be started, or ended with an exit code that is not 0.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        began = time.perf_counter()
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=folder, start_new_session=True
            )
        except OSError as error:
            raise FailedError(f"{command[0]}: {error.strerror}") from error
        watch = _Watch(process.pid)
        while process.poll() is None:
            watch.sample()
            with suppress(subprocess.TimeoutExpired):
                process.wait(_SAMPLE_EVERY_S)
        seconds = time.perf_counter() - began
        stdout, stderr = (_text(file) for file in (out, err))
    if process.returncode != 0:
        raise FailedError(_last_line(stderr) or f"exit code {process.returncode}")
    return Finished(seconds, watch.cpu_ticks.total() / _TICKS_PER_S, watch.peak_memory_bytes, stdout)


def read_once(paths: Iterable[Path]) -> None:
    """Read files, or those of folders: then they are in the page cache, and no disk is measured."""
    for path in paths:
        for file in [path] if path.is_file() else path.rglob("*"):
            if file.is_file():
                with open(file, "rb", buffering=0) as opened:
                    while opened.read(_STEP_BYTES):
                        pass


@dataclass
class _Watch:
    """Samples of all processes of one session: those which it starts stay in it, whoever their parent is by then."""

    session: int
    peak_memory_bytes: int = 0
    cpu_ticks: Counter[int] = field(default_factory=Counter)
    _others: set[int] = field(default_factory=set)

    def sample(self) -> None:
        """Look at every process once; one that ends meanwhile keeps what was seen of it last."""
        memory_bytes = 0
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) not in self._others:
                with suppress(OSError):
                    memory_bytes += self._sample(int(entry.name))
        self.peak_memory_bytes = max(self.peak_memory_bytes, memory_bytes)

    def _sample(self, process: int) -> int:
        folder = Path(f"/proc/{process}")
        fields = (folder / "stat").read_text().rpartition(")")[2].split()
        if int(fields[_SESSION]) != self.session:
            self._others.add(process)
            return 0
        self.cpu_ticks[process] = sum(map(int, fields[_CPU]))
        return int((folder / "statm").read_text().split()[1]) * _PAGE_BYTES


def _text(file: BinaryIO) -> str:
    file.seek(0)
    return file.read().decode("utf-8", "replace")


def _last_line(text: str) -> str:
    return next((line for line in reversed(text.splitlines()) if line.strip()), "")
