"""The page docs/mistakes.md, made of the table of mistakes that the tests of the command line run."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

from tests.capture.capture_mistakes import CAPTURE_KINDS, CAPTURE_MISTAKES, CaptureMistake
from tests.cli.mistakes import KINDS, MISTAKES, Mistake, When
from tests.plan.script_mistakes import SCRIPT_KINDS, SCRIPT_MISTAKES, ScriptMistake

FOLDER = Path("/captures")
_Any = Mistake | ScriptMistake | CaptureMistake
_WHEN = {
    When.BEFORE: "before Spark starts",
    When.ALONE: "before Spark starts",
    When.AFTER: "from the tables or the files",
    When.INTERRUPTED: "at Ctrl-C",
}
_HEAD = """<!-- Made by `make docs` from tests/cli/mistakes.py, tests/plan/script_mistakes.py
and tests/capture/capture_mistakes.py; tests run it. -->

# What goes wrong, and what is said then

{count} mistakes in {kinds} kinds. Each command is typed after `txn-analysis`, in the folder `{folder}`. The
last six kinds differ: three call the [script of a plan](runbook.md#what-the-script-does), which ends with 2 if
it could not begin and with 1 if it refused; three call [`txn-capture`](capture.md). Messages go to stderr. A
report goes to stdout; its first lines are shown. The exit code is 2 if something cannot be read or done, 3 if
the files do not tell, 130 after Ctrl-C. None of these ends with 0. A message *before Spark starts* comes after
about a second.

In the warehouse `w`, four transactions of the cluster `east` hang. See also
[where it stops reading](limits.md#where-it-stops-reading) and [what to do with a plan](runbook.md).
"""


def mistakes_page() -> str:
    """The whole page."""
    kinds: list[tuple[str, tuple[_Any, ...]]] = [*KINDS.items(), *SCRIPT_KINDS.items(), *CAPTURE_KINDS.items()]
    count = len(MISTAKES) + len(SCRIPT_MISTAKES) + len(CAPTURE_MISTAKES)
    head = _HEAD.format(count=count, kinds=len(kinds), folder=FOLDER)
    return head + "".join(chain.from_iterable(_kind(name, mistakes) for name, mistakes in kinds))


def _kind(name: str, mistakes: tuple[_Any, ...]) -> list[str]:
    head = [f"\n## {name}\n\n", "| what is wrong | command | code | the message | when |\n", "|---|---|---|---|---|\n"]
    return head + [f"| {' | '.join(_cells(mistake))} |\n" for mistake in mistakes]


def _cells(mistake: _Any) -> tuple[str, ...]:
    said = "<br>".join(map(_code, mistake.answer_in(FOLDER).splitlines()))
    when = _WHEN[mistake.when] if isinstance(mistake, Mistake) else "when it is run"
    return mistake.wrong, _code(mistake.command), str(mistake.exit_code), said, when


def _code(text: str) -> str:
    """Inline code of a table's cell: a bar would end the cell, and a backtick the code (CommonMark 0.31, 6.1)."""
    fence = "``" if "`" in text else "`"
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}".replace("|", "\\|")
