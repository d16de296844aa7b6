"""What a run is doing, on stderr: live on a terminal, one plain line a stage elsewhere."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Protocol, TextIO

from txn_analysis.report.escape import escape

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from rich.progress import Progress as RichProgress


class Progress(Protocol):
    """Told of every stage; stages may be nested."""

    def stage(self, name: str, detail: str = "") -> AbstractContextManager[None]:
        """A context that lasts as long as the stage; `detail` says how much there is to do."""
        ...


class SilentProgress:
    """Says nothing."""

    def stage(self, name: str, detail: str = "") -> AbstractContextManager[None]:  # noqa: ARG002 the protocol's names
        """A context without any output."""
        return nullcontext()


class LineProgress:
    """One line for each finished stage: `txn-analysis: scan: 0.4 MiB ... 2.1 s`. The time of day is left to the log."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    @contextmanager
    def stage(self, name: str, detail: str = "") -> Iterator[None]:
        """Prints the line when the stage ends, also when it fails."""
        began = time.monotonic()
        outcome = "failed after "
        try:
            yield
            outcome = ""
        finally:
            line = f"txn-analysis: {_title(name, detail)} ... {outcome}{time.monotonic() - began:.1f} s"
            self._stream.write(line + "\n")
            self._stream.flush()


class LiveProgress:
    """Finished stages above, the running ones below with a spinner and their seconds. Honours NO_COLOR."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._live: RichProgress | None = None
        self._depth = 0

    @contextmanager
    def stage(self, name: str, detail: str = "") -> Iterator[None]:
        """Shows the stage while it runs, and what it took afterwards."""
        live = self._live = self._live or _live_display(self._stream)
        if self._depth == 0:
            live.start()
        self._depth += 1
        task = live.add_task(_title(name, detail), total=1)
        try:
            yield
            live.update(task, completed=1)
        finally:
            live.stop_task(task)
            self._depth -= 1
            if self._depth == 0:
                live.stop()
                self._live = None


def silent() -> Progress:
    """For callers that want no progress."""
    return SilentProgress()


def progress_on(stream: TextIO | None = None, *, is_dumb: bool = False) -> Progress:
    """The display that suits a stream (stderr by default); `is_dumb` is a terminal that cannot move its cursor."""
    stream = stream or sys.stderr
    return LiveProgress(stream) if stream.isatty() and not is_dumb else LineProgress(stream)


def _title(name: str, detail: str) -> str:
    return escape(f"{name}: {detail}" if detail else name)


def _live_display(stream: TextIO) -> RichProgress:
    # Only a terminal pays for this import.
    from rich.console import Console
    from rich.progress import Progress as Display
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(file=stream)
    spinner = SpinnerColumn(finished_text="-")
    return Display(spinner, TextColumn("{task.description}", markup=False), TimeElapsedColumn(), console=console)
