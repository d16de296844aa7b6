"""Whole processes, with what they and their children took: seconds, memory, bytes read."""

from __future__ import annotations

import mmap
import os
import subprocess
import tempfile
import time
from collections import Counter
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import BinaryIO

_SAMPLE_EVERY_S = 0.1
_STEP_BYTES = 1 << 20
_MAP_LOCKED = 0x2000  # of Linux; Python has no name for it
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
# Fields of /proc/PID/stat, counted behind the closing parenthesis of the command.
_SESSION = 3
_CPU = slice(11, 13)


class Timed(Protocol):
    """Something that was run."""

    @property
    def seconds(self) -> float:
        """From its start to its end."""


Run = TypeVar("Run", bound=Timed)


class FailedError(Exception):
    """A process ended with an error; the message is the last line that it wrote."""


@dataclass(frozen=True)
class Finished:
    """One process that ended well.

    Attributes:
        seconds: from its start to its end.
        cpu_seconds: of all cores, by it and its descendants; steadier than `seconds` where others use the machine.
        peak_memory_bytes: the largest sum of resident memory of it and its descendants, pages they share counted twice.
        read_bytes: what all of them read, from disk or from the page cache.
        peak_open_files: the most files that one of them had open.
    """

    seconds: float
    cpu_seconds: float
    peak_memory_bytes: int
    read_bytes: int
    peak_open_files: int
    stdout: str
    stderr: str


def run(
    command: Sequence[str],
    extra_env: Mapping[str, str] | None = None,
    *,
    output: Path | None = None,
    code: int = 0,
    folder: Path | None = None,
) -> Finished:
    """Run a command to its end.

    Args:
        command: program and arguments.
        extra_env: environment variables beside those of this process.
        output: a file for its standard output instead of `Finished.stdout`.
        code: the exit code that it ends with where all is well.
        folder: where it runs; by default where this process does.

    Raises:
        FailedError: it cannot be started, or ended with another exit code.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        began = time.perf_counter()
        with open(output, "wb") if output else nullcontext() as chosen:
            try:
                process = subprocess.Popen(
                    command,
                    env={**os.environ, **(extra_env or {})},
                    stdin=subprocess.DEVNULL,
                    stdout=chosen or out,
                    stderr=err,
                    cwd=folder,
                    start_new_session=True,
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
    if process.returncode != code:
        raise FailedError(_last_line(stderr) or f"exit code {process.returncode}")
    cpu_seconds, read_bytes = watch.cpu_ticks.total() / _TICKS_PER_S, watch.read_bytes.total()
    return Finished(seconds, cpu_seconds, watch.peak_memory_bytes, read_bytes, watch.peak_open_files, stdout, stderr)


def fastest(actions: Mapping[str, Callable[[], Run]], repeats: int) -> dict[str, Run]:
    """Of each action its fastest run, by its name; all run before one runs again, so that a slow minute hits all."""
    rounds = [{name: action() for name, action in actions.items()} for _ in range(repeats)]
    return {name: min((made[name] for made in rounds), key=lambda one: one.seconds) for name in actions}


@contextmanager
def one_core() -> Iterator[None]:
    """What is started meanwhile has one core, whatever number of threads and processes it starts in turn."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


@contextmanager
def in_memory(paths: Iterable[Path]) -> Iterator[None]:
    """Keep files, or those of folders, in the page cache: no disk is measured, nor who else wants the memory.

    Where the user may not lock so much of it (`ulimit -l`), they are only read once. They are read in any case: on a
    virtual machine the first look at a page that a disk filled can take as long as the disk did.
    """
    files = [file for path in paths for file in ([path] if path.is_file() else path.rglob("*")) if file.is_file()]
    with ExitStack() as held:
        for file in files:
            with open(file, "rb", buffering=0) as opened:
                with suppress(OSError, ValueError):  # it may not be locked, or is empty
                    held.enter_context(mmap.mmap(opened.fileno(), 0, mmap.MAP_SHARED | _MAP_LOCKED, mmap.PROT_READ))
                while opened.read(_STEP_BYTES):
                    pass
        yield


@dataclass
class _Watch:
    """Samples of all processes of one session: those which it starts stay in it, whoever their parent is by then."""

    session: int
    peak_memory_bytes: int = 0
    peak_open_files: int = 0
    read_bytes: Counter[int] = field(default_factory=Counter)
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
        counters = dict(line.split(": ") for line in (folder / "io").read_text().splitlines())
        self.read_bytes[process] = int(counters["rchar"])
        self.peak_open_files = max(self.peak_open_files, sum(1 for _ in (folder / "fd").iterdir()))
        return int((folder / "statm").read_text().split()[1]) * _PAGE_BYTES


def _text(file: BinaryIO) -> str:
    file.seek(0)
    return file.read().decode("utf-8", "replace")


def _last_line(text: str) -> str:
    lines = [line.strip(" │") for line in text.splitlines()]  # an option error stands in a box
    said = [line for line in lines if line and not set(line) <= set("─╭╮╰╯ ")]
    return said[-1] if said else ""
