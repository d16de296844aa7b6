"""What a person sees: the lines of a text report, and on stderr what a run is doing, live on a terminal."""

from __future__ import annotations

import re
import sys
import textwrap
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple, TextIO

from txn_analysis.text import duration, escape, size

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

WIDTH = 110
Tell = Callable[[float], None]
"""Told from time to time which share of a stage is done, from 0 to 1."""


class Progress:
    """Told of every stage; stages may be nested. This one says nothing."""

    def stage(self, name: str, detail: str = "", total_bytes: int | None = None) -> AbstractContextManager[Tell | None]:  # noqa: ARG002 of those that say something
        """A context that lasts as long as the stage; None where nobody wants to be told how far it is.

        Args:
            name: of the stage.
            detail: what is done in it.
            total_bytes: how much there is to do; it stands behind the detail.
        """
        return nullcontext()


class LineProgress(Progress):
    """One line for each finished stage: `txn-analysis: reading: 0.4 MiB ... 2.1 s`. The time of day is left to the log.

    A stage that takes long says every `every_s` seconds how far it is.
    """

    def __init__(self, stream: TextIO, every_s: float = 5.0) -> None:
        self._stream = stream
        self._every_s = every_s

    @contextmanager
    def stage(self, name: str, detail: str = "", total_bytes: int | None = None) -> Iterator[Tell | None]:
        """Prints the line when the stage ends, also when it fails."""
        began = last_line_s = time.monotonic()
        outcome, title = "failed after ", _title(name, detail, total_bytes)

        def tell(share: float) -> None:
            nonlocal last_line_s
            now = time.monotonic()
            if now - last_line_s >= self._every_s:
                last_line_s = now
                so_far = f"{duration(int((now - began) * 1000))} so far"
                self._print(f"{title}: {how_far(share, now - began, total_bytes) or so_far}")

        try:
            yield tell
            outcome = ""
        finally:
            self._print(f"{title} ... {outcome}{time.monotonic() - began:.1f} s")

    def _print(self, text: str) -> None:
        self._stream.write(f"txn-analysis: {text}\n")
        self._stream.flush()


class LiveProgress(Progress):
    """Finished stages above, the running ones below with a spinner and their seconds. Honours NO_COLOR."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._live: RichProgress | None = None
        self._depth = 0

    @contextmanager
    def stage(self, name: str, detail: str = "", total_bytes: int | None = None) -> Iterator[Tell | None]:
        """Shows the stage while it runs and how far it is, and what it took afterwards."""
        live = self._live = self._live or _live_display(self._stream)
        if self._depth == 0:
            live.start()
        self._depth += 1
        began, title = time.monotonic(), _title(name, detail, total_bytes)
        task = live.add_task(title, total=1)

        def tell(share: float) -> None:
            words = how_far(share, time.monotonic() - began, total_bytes)
            live.update(task, description=f"{title}: {words}" if words else title, refresh=True)

        try:
            yield tell
            live.update(task, completed=1, description=title)
        finally:
            live.stop_task(task)
            self._depth -= 1
            if self._depth == 0:
                live.stop()
                self._live = None


def how_far(share: float, elapsed_s: float, total_bytes: int | None) -> str | None:
    """How much of a stage is done, and in which time the rest will be at the speed so far; None where nobody can say.

    The share counts tasks that are finished: before the first one and after the last one, and where the last one is
    most of the work, it tells nothing. Tasks that read bytes are about of a size.
    """
    if total_bytes is None or not 0 < share < 1:
        return None
    return f"{size(int(share * total_bytes))} done, about {duration(int(elapsed_s * 1000 * (1 / share - 1)))} left"


def progress_on(stream: TextIO | None = None, *, is_dumb: bool = False) -> Progress:
    """The display that suits a stream (stderr by default); `is_dumb` is a terminal that cannot move its cursor."""
    stream = stream or sys.stderr
    return LiveProgress(stream) if stream.isatty() and not is_dumb else LineProgress(stream)


def _title(name: str, detail: str, total_bytes: int | None) -> str:
    words = [word for word in (detail, "" if total_bytes is None else size(total_bytes)) if word]
    return escape(f"{name}: {', '.join(words)}" if words else name)


def _live_display(stream: TextIO) -> RichProgress:
    # Only a terminal pays for this import.
    from rich.console import Console
    from rich.progress import Progress as Display
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(file=stream)
    spinner = SpinnerColumn(finished_text="-")
    return Display(spinner, TextColumn("{task.description}", markup=False), TimeElapsedColumn(), console=console)


_TO_TYPE = re.compile(r"`(?:txn-analysis |kafka-[a-z-]+\.sh |--)[^`\n]*`")
_HELD = "\0"  # no space to break at; what is shown holds none, as it is escaped


class Line(NamedTuple):
    """One line of plain text, and the rich style that a terminal may give it."""

    text: str
    style: str = ""


def rule_line(title: str, width: int) -> Line:
    """A heading, drawn across the page."""
    return Line(f"-- {title} ".ljust(width, "-"), "bold")


def wrapped(text: str, width: int, first: str = "", rest: str = "") -> list[str]:
    """The text in lines of at most `width`, the first one behind `first` and all others behind `rest`.

    A command or an option between backticks stays on one line, however long: broken over two, it cannot be typed as it
    stands.
    """
    unbroken_text = _TO_TYPE.sub(lambda match: match[0].replace(" ", _HELD), text)
    lines = textwrap.wrap(
        unbroken_text,
        width,
        initial_indent=first,
        subsequent_indent=rest,
        # A hyphen is part of a topic-partition or an option, never a place to break a line.
        break_on_hyphens=False,
        break_long_words=_HELD not in unbroken_text,
    )
    return [line.replace(_HELD, " ") for line in lines]


def paragraph(text: str, width: int, first: str = "", rest: str = "", style: str = "") -> Iterator[Line]:
    """The text as `wrapped` breaks it."""
    return (Line(part, style) for part in wrapped(text, width, first, rest))


def labelled(label: str, text: str, width: int, indent: int) -> Iterator[Line]:
    """The text beside its label, `indent` columns from the left."""
    return paragraph(text, width, label.ljust(indent), " " * indent)


class Weight(IntEnum):
    """Who needs what is said: somebody who acts, somebody who wants to know, somebody who checks."""

    EVIDENCE = 0
    KNOW = 1
    ACT = 2


class Paragraph(NamedTuple):
    """One thing that is said, and the facts behind it; a command is to be typed as it stands. All of it is escaped."""

    label: str
    text: str = ""
    facts: tuple[str, ...] = ()
    command: str | None = None
    weight: Weight = Weight.KNOW


_INDENT = "   "
TEXT_FROM = 12


def lines_of(
    paragraphs: Iterable[Paragraph],
    width: int,
    text_from: int = TEXT_FROM,
    indent: str = _INDENT,
    *,
    has_facts: bool = True,
) -> Iterator[Line]:
    """Paragraphs beside their labels, of at most `width` columns but for commands; a label that repeats stands once."""
    before = ""
    for label, text, facts, command, _ in paragraphs:
        shown = indent + ("" if label == before else label)
        if command is not None:
            # Whole, however long: what is broken over two lines cannot be typed as it stands.
            yield Line(shown.ljust(text_from) + command, "bold")
            shown = indent
        for part in (text, *(f"- {fact}" for fact in facts if has_facts)):
            if part:
                behind = " " * (text_from if part is text else text_from + 2)
                yield from paragraph(part, width, shown.ljust(text_from), behind)
                shown = indent
        before = label


def text_of(paragraphs: Iterable[Paragraph], width: int = WIDTH) -> str:
    """The same as text."""
    return "".join(f"{line.text}\n" for line in lines_of(paragraphs, width))


def print_styled(lines: Iterable[Line], stream: TextIO) -> None:
    """Print lines on a terminal, in colour unless NO_COLOR says otherwise."""
    # Only a terminal pays for this import.
    from rich.console import Console
    from rich.text import Text

    console = Console(file=stream, highlight=False, soft_wrap=True)
    for line in lines:
        console.print(Text(line.text, style=line.style))
