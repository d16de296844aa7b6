"""A command in a process group of its own, as a shell starts it, that is interrupted when it says where it is."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.tools.processes import wait_until

LONGEST_S = 2.0  # what a person waits, and a supervisor's patience is longer


@dataclass(frozen=True)
class Interrupted:
    """What was left of a command."""

    code: int
    said: list[str]
    left_in_temp: list[str]


class Command:
    """A command that runs; its processes are all those of its session, also where their parent is gone."""

    def __init__(self, words: Sequence[str], temp: Path, stdout: int = subprocess.DEVNULL) -> None:
        self._temp = temp
        self._said: list[str] = []
        temp.mkdir(exist_ok=True)
        self._process = subprocess.Popen(
            words,
            env=os.environ | {"TMPDIR": str(temp)},
            start_new_session=True,
            text=True,
            stdout=stdout,
            stderr=subprocess.PIPE,
        )

    def until(self, is_there: Callable[[], bool], what: str) -> None:
        """Waits for something that the command does without telling."""
        wait_until(lambda: is_there() or self._process.poll() is not None, what)

    def until_it_says(self, start: str) -> None:
        """Waits for a line of stderr; does not return later than the command ends."""
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self._said.append(line)
            if line.startswith(start):
                return

    def has_java(self) -> bool:
        """Whether Java is there, be it only to start Spark."""
        return any(b"java" in Path(f"/proc/{process}/comm").read_bytes() for process in self.processes())

    def processes(self) -> list[int]:
        """Those that still run."""
        return [int(stat.parent.name) for stat in Path("/proc").glob("[0-9]*/stat") if self._is_ours(stat)]

    def _is_ours(self, stat: Path) -> bool:
        try:
            state, _, _, session, *_ = stat.read_text(errors="replace").rpartition(")")[2].split()
        except OSError:  # it has just ended
            return False
        return int(session) == self._process.pid and state != "Z"

    def interrupt(self, number: int = signal.SIGINT) -> Interrupted:
        """Sends the signal, to the group as a terminal does or to the process as supervisors do.

        Raises:
            AssertionError: it had ended before, or something of it lives longer than somebody waits.
        """
        assert self._process.poll() is None, "".join(self._said)
        send = os.killpg if number == signal.SIGINT else os.kill
        sent = time.monotonic()
        send(self._process.pid, number)
        while (alive := self.processes()) and time.monotonic() < sent + LONGEST_S:
            time.sleep(0.01)
        for process in alive:
            os.kill(process, signal.SIGKILL)
        _, rest = self._process.communicate()
        assert alive == [], f"{len(alive)} processes lived {LONGEST_S} s later: {''.join(self._said)}{rest}"
        left = [path.name for path in self._temp.iterdir()]
        return Interrupted(self._process.returncode, "".join([*self._said, rest]).splitlines(), left)


def python(program: str, temp: Path, stdout: int = subprocess.DEVNULL) -> Command:
    """A program that ends at once."""
    lines = ["from txn_analysis.spark.interrupts import ending_at_once", "with ending_at_once():"]
    lines += [f"    {line}" for line in program.strip().splitlines()]
    return Command([sys.executable, "-c", "\n".join(lines)], temp, stdout)


def txn_analysis(words: Sequence[str], temp: Path, stdout: int = subprocess.DEVNULL) -> Command:
    """The command line."""
    return Command([sys.executable, "-m", "txn_analysis", *words], temp, stdout)


IN_TASKS = """
from txn_analysis.engine import memory
from txn_analysis.__main__ import main
memory.MEMORY_BYTES = -1
main()
"""
"""The command line as a program, which does in Spark's tasks what it would do by itself, as if it were much."""


def in_tasks(words: Sequence[str], temp: Path) -> Command:
    """The command line as in IN_TASKS."""
    return Command([sys.executable, "-c", IN_TASKS, *words], temp, subprocess.DEVNULL)
