"""Lines of a text report, and how a terminal shows them."""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING, NamedTuple, TextIO

if TYPE_CHECKING:
    from collections.abc import Iterable


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
    held = _TO_TYPE.sub(lambda found: found[0].replace(" ", _HELD), text)
    lines = textwrap.wrap(
        held,
        width,
        initial_indent=first,
        subsequent_indent=rest,
        # A hyphen is part of a topic-partition or an option, never a place to break a line.
        break_on_hyphens=False,
        break_long_words=_HELD not in held,
    )
    return [line.replace(_HELD, " ") for line in lines]


def print_styled(lines: Iterable[Line], stream: TextIO) -> None:
    """Print lines on a terminal, in colour unless NO_COLOR says otherwise."""
    # Only a terminal pays for this import.
    from rich.console import Console
    from rich.text import Text

    console = Console(file=stream, highlight=False, soft_wrap=True)
    for line in lines:
        console.print(Text(line.text, style=line.style))
