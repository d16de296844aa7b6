"""An interrupted command ends at once, and takes along what it has started: Java, its Python workers, their folder.

Left to themselves Python and Spark take their time: Python handles a signal between two steps of its main thread, which
may wait for Java, for a compiler or for whoever reads a pipe, and then for its other threads; a Java that is starting
notices only once it runs that its parent is gone. Nothing that is killed here loses more than time: what counts is what
a commit names, and a file appears whole or not at all.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import NoReturn

INTERRUPTED = "interrupted: what earlier runs wrote is intact; the same command can be run again, and starts over"
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_LONGEST_UNWINDING_S = 0.5  # for the main thread to remove what it was writing
_LONGEST_KILLING_S = 0.5
_LONGEST_ENDING_S = 1.0
_POLL_S = 0.01
_ZOMBIE = "Z"
_BELOW_THE_DISPLAY = "\x1b[?25h\n"  # of what is running, which hides the cursor

_handlers: dict[int, object] = {}  # what each signal shall do, while a command runs that ends at once
_received: list[int] = []
_folders: list[Path] = []
_stderr: list[int] = []  # where it was when the command began
_ending = threading.Lock()


class Interrupted(BaseException):
    """A signal wants the command to end; no `except Exception` on the way may take it for an error."""

    def __init__(self, number: int = signal.SIGINT) -> None:
        super().__init__(number)
        self.number = number


@contextmanager
def ending_at_once() -> Iterator[None]:
    """Meanwhile SIGINT, SIGTERM and SIGHUP end this process and all that it has started, with 128 + their number.

    Signals that were ignored before, as by `nohup`, stay so. Only for the main thread of a process of our own.
    """
    _stderr.append(os.dup(2))
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)  # as Python demands of what it writes the numbers of signals to
    signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    for number in _SIGNALS:
        _handlers[number] = signal.SIG_IGN if signal.getsignal(number) is signal.SIG_IGN else _unwind
    handle_signals()
    threading.Thread(target=_watch, args=(read_end,), name="signals", daemon=True).start()
    try:
        yield
    except (Interrupted, KeyboardInterrupt) as error:
        _end(error.number if isinstance(error, Interrupted) else signal.SIGINT)
    finally:
        if _received:  # whatever is on its way up here came of it
            _end(_received[0])


def handle_signals() -> None:
    """Handle them again, where PySpark has put a handler of its own in place; does nothing in a foreign process.

    Nor in another thread than the main one, where PySpark puts none.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    for number, handler in _handlers.items():
        signal.signal(number, handler)  # type: ignore[arg-type]  # it came from there, or is `_unwind`


def is_interrupted() -> bool:
    """Whether an error may be only the consequence of a signal, and nothing to be told."""
    return bool(_received)


def delete_when_interrupted(folder: Path) -> None:
    """Java deletes its folder when it ends, but not where it is killed."""
    _folders.append(folder)


def _unwind(number: int, _frame: FrameType | None) -> None:
    for each in _handlers:
        signal.signal(each, _ignore)
    _kill_descendants()  # before somebody on the way up ends one of them, so that its own children cannot be found
    raise Interrupted(number)


def _ignore(_number: int, _frame: FrameType | None) -> None:
    """A second signal must not cut the tidying up short here; `_watch` ends it."""


def _watch(read_end: int) -> None:
    """Wait for a signal, whatever the main thread is at; kill what that may be waiting for, and give it a moment."""
    number = os.read(read_end, 1)[0]
    _received.append(number)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # what threads will say of a Java that is gone
    _kill_descendants()
    select.select([read_end], [], [], _LONGEST_UNWINDING_S)
    _end(number)


def _end(number: int) -> NoReturn:
    if threading.current_thread() is threading.main_thread():
        for each in _SIGNALS:
            signal.signal(each, signal.SIG_IGN)
    _ending.acquire(timeout=_LONGEST_ENDING_S)  # never released: who comes second lets the first one end
    _kill_descendants()
    for folder in _folders:
        shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError):
        _say(f"{INTERRUPTED}\n")
    os._exit(128 + number)  # without Python's way out, which waits for threads and for readers of pipes


def _say(line: str) -> None:
    """Write to stderr past its buffer, unless that would wait for a reader."""
    (stream,) = _stderr
    start = _BELOW_THE_DISPLAY if os.isatty(stream) else ""
    if select.select([], [stream], [], 0)[1]:
        os.write(stream, (start + line).encode())


def _kill_descendants() -> None:
    """Until there are none; where there is no `/proc`, Java ends by itself when its standard input is closed."""
    deadline = time.monotonic() + _LONGEST_KILLING_S
    while (processes := _descendants(os.getpid())) and time.monotonic() < deadline:
        for process in processes:
            with suppress(OSError):
                os.kill(process, signal.SIGKILL)
        time.sleep(_POLL_S)


def _descendants(root: int) -> list[int]:
    """All processes below one that still run, those nearest to it first."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has just ended
            state, parent, *_ = stat.read_text(errors="replace").rpartition(")")[2].split()
            if state != _ZOMBIE:
                children.setdefault(int(parent), []).append(int(stat.parent.name))
    processes = [root]
    for process in processes:  # grows meanwhile
        processes += children.get(process, [])
    return processes[1:]
