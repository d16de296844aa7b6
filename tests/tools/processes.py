"""Audits in processes of their own, and the Python workers of the session in this one: what can be killed."""

import fnmatch
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

_POLL_S = 0.005
_DEADLINE_S = 240.0


def wait_until(condition: Callable[[], bool], what: str) -> None:
    """Polls until the condition holds.

    Raises:
        TimeoutError: it never did.
    """
    deadline = time.monotonic() + _DEADLINE_S
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {_DEADLINE_S:.0f} s in vain: {what}")
        time.sleep(_POLL_S)


def start_audit(paths: Sequence[str], warehouse: Path, *words: str) -> subprocess.Popen[str]:
    """`txn-analysis audit` in a process group of its own: Python, and the Java process that it starts."""
    command = [sys.executable, "-m", "txn_analysis", "audit", *paths, "--warehouse", str(warehouse), *words]
    return subprocess.Popen(
        command, start_new_session=True, text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )


def kill_group(process: subprocess.Popen[str]) -> None:
    """kill -9 to the driver: Python and Java at the same moment."""
    os.killpg(process.pid, signal.SIGKILL)


def file_count(folder: Path, pattern: str = "*") -> int:
    """How many files there are below a folder: in a warehouse, that grows with everything that an audit does."""
    return sum(len(fnmatch.filter(files, pattern)) for _, _, files in os.walk(folder))


def kill_workers() -> None:
    """kill -9 to the Python workers that this process's Spark has at this moment, not to those of `start_audit`."""
    own = os.getsid(0)
    for process in _descendants(os.getpid()):
        # The daemon that starts the workers has the same command line, but is a child of Java.
        if _is_python_of_spark(process) and _is_python_of_spark(_parent(process)):
            with suppress(ProcessLookupError):
                if os.getsid(process) == own:
                    os.kill(process, signal.SIGKILL)


def _is_python_of_spark(process: int) -> bool:
    try:
        return b"pyspark.daemon" in Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return False


def _parent(process: int) -> int:
    try:
        return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def _descendants(root: int) -> Iterator[int]:
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            children.setdefault(_parent(int(entry.name)), []).append(int(entry.name))
    waiting = [root]
    while waiting:
        found = children.get(waiting.pop(), [])
        yield from found
        waiting += found
