"""The verb `demo`: a hang and its repair in five screens, by the verbs themselves, on a capture that comes along."""

from __future__ import annotations

import shlex
import shutil
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from txn_analysis.cli.output import is_terminal
from txn_analysis.cli.spark import quietly
from txn_analysis.cli.verbs import reported_errors
from txn_analysis.errors import AuditError
from txn_analysis.text import shell_word

if TYPE_CHECKING:
    from collections.abc import Iterator

CAPTURES = Path(__file__).with_name("captures")
_PARTS = ("before", "after", "warehouse")
_MARK = "made-by-txn-analysis-demo.txt"
_COPIED = "--transaction-state-partitions 4 --max-clock-skew-ms 0"
_LEAVE = "q"


class Step(NamedTuple):
    """One command of a screen.

    Attributes:
        words: behind `txn-analysis`; `{to}` is the folder of the demo.
        shown: how many lines of its output are shown, the last ones where it is negative; 0 for all.
        ends_with: the exit codes that the story knows.
        says: what the exit code means; nothing where it goes without saying.
    """

    words: str
    shown: int = 0
    ends_with: frozenset[int] = frozenset({0})
    says: str = ""


class Screen(NamedTuple):
    """A part of the story: its title, what is told first, the commands, and what is told behind them."""

    title: str
    told: str
    steps: tuple[Step, ...] = ()
    end: str = ""


SCREENS = (
    Screen(
        "A partition is stuck",
        """\
The read_committed consumers of topic orders get nothing new, and their lag grows. The brokers run.
Somebody has copied files off the brokers twice, with Kafka's own tools:

  {to}/before   while consumers were stuck
  {to}/after    20 minutes later: an administrator had sent one abort by then

In each, segments/ is kafka-dump-log.sh --deep-iteration of the partitions' logs, and transaction-state/
is kafka-dump-log.sh --transaction-log-decoder of __transaction_state, which the coordinators write.
The files are real: two brokers of Kafka 4.2.0, where transactions were made to hang on purpose.

Nothing here connects to a broker. Everything is written below {to}.
""",
    ),
    Screen(
        "What hangs?",
        "An audit reads the files, judges every open transaction, and prints the worst first.\n",
        (
            Step(
                f"audit {{to}}/before {_COPIED} --warehouse {{to}}/warehouse --now 2026-11-21T03:00:00Z",
                shown=35,
                ends_with=frozenset({1}),
                says="exit code 1: something hangs (0: nothing does, 3: the files cannot tell)",
            ),
        ),
        "`hanging` means: nobody will ever write the end marker. Only these transactions may be aborted.\n",
    ),
    Screen(
        "Why is that certain?",
        "Look at the first finding again: what led to it, in the order of the log.\n",
        (
            Step(
                "explain --topic orders --partition 0 --start-offset 161 --warehouse {to}/warehouse",
                shown=28,
            ),
        ),
        "The coordinator aborted the transaction and wrote the marker at offset 160. The two records at 161 and\n"
        "162 came too late, so that they belong to no transaction that the coordinator knows.\n",
    ),
    Screen(
        "What ends it?",
        "A script, which checks the time and the brokers, and asks before each abort. It is only printed here.\n"
        "--expired prints it although the files are old: the script itself refuses to run by now.\n",
        (Step("abort-plan --topic orders --partition 0 --expired --warehouse {to}/warehouse", shown=-14),),
        "This producer may come back: first stop its application and fence its id. `txn-analysis runbook` says how.\n",
    ),
    Screen(
        "Is it repaired?",
        "Copy the files again, audit them into the same warehouse, and let it compare.\n",
        (
            Step(
                f"audit {{to}}/after {_COPIED} --warehouse {{to}}/warehouse --now 2026-11-21T03:25:00Z",
                shown=2,
                ends_with=frozenset({1}),
                says="exit code 1: three others hang still",
            ),
            Step(
                "verify --warehouse {to}/warehouse",
                ends_with=frozenset({1}),
                says="exit code 1: of four aborts, one is carried out and three are still to do",
            ),
        ),
        "That was all of it. Now your own files: `txn-analysis audit --help`, and `txn-analysis copy-kit` for the\n"
        "script that copies them. `txn-analysis doctor` says what this machine can audit.\n",
    ),
)


def demo(
    context: typer.Context,
    to: Annotated[
        str, typer.Option("--to", metavar="DIR", help="A new folder for the files and what is made of them.")
    ] = "txn-analysis-demo",
    no_pause: Annotated[bool, typer.Option("--no-pause", help="Do not wait for Enter behind each screen.")] = False,
) -> None:
    """Tell how a hanging transaction is found and ended.

    A real capture that comes with the package is audited, explained, planned and verified, by the verbs themselves, in
    five screens. Without a terminal it does not wait. It needs no Java.

    Exit code: 0 it is told, 2 DIR holds something else, or cannot be written.
    """
    pauses = not no_pause and is_terminal(None) and sys.stdin.isatty()
    with reported_errors(debug=False), quietly(is_quiet=True):
        _lay_out(Path(to))
        for number, screen in enumerate(SCREENS, start=1):
            _show(screen, number, shell_word(to), context.find_root().command)
            if pauses and number < len(SCREENS) and _answer() == _LEAVE:
                return


def _lay_out(folder: Path) -> None:
    """Both copies in a folder that is new, or was made by an earlier demo, of which nothing stays.

    Raises:
        AuditError: it holds something else, or cannot be written.
    """
    try:
        if folder.exists() and not (folder / _MARK).is_file() and (not folder.is_dir() or any(folder.iterdir())):
            raise AuditError(f"--to {folder}: this is not empty, and no earlier demo made it: give a new folder")
        for part in _PARTS:
            if (folder / part).exists():
                shutil.rmtree(folder / part)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / _MARK).write_text("txn-analysis demo makes this folder anew each time.\n", encoding="utf-8")
        for part in ("before", "after"):
            shutil.copytree(CAPTURES / part, folder / part)
    except OSError as error:
        raise AuditError(f"--to {folder}: cannot be written: {error.strerror}; give another folder") from error


def _show(screen: Screen, number: int, to: str, group: Any) -> None:
    typer.echo()
    typer.secho(f"{number} of {len(SCREENS)}  {screen.title}", bold=True)
    typer.echo(f"\n{screen.told.format(to=to)}")
    for step in screen.steps:
        words = step.words.format(to=to)
        typer.secho(f"$ txn-analysis {words}", bold=True)
        code, output = _run(group, shlex.split(words))
        if code not in step.ends_with:
            raise AuditError(f"txn-analysis {words}: ended with exit code {code}")
        for line in _part_of(output.splitlines(), step.shown):
            typer.echo(line)
        if step.says:
            typer.secho(step.says, dim=True)
        typer.echo()
    if screen.end:
        typer.echo(screen.end)


def _run(group: Any, words: list[str]) -> tuple[int, str]:
    """A verb, as the command line runs it: its exit code, and what it prints."""
    printed = StringIO()
    with redirect_stdout(printed):
        code = group.main(words, prog_name="txn-analysis", standalone_mode=False)
    return int(code or 0), printed.getvalue()


def _part_of(lines: list[str], shown: int) -> Iterator[str]:
    """The first lines, or the last ones where `shown` is negative; and how many are left out."""
    left_out = len(lines) - abs(shown)
    if shown == 0 or left_out <= 0:
        yield from lines
    elif shown > 0:
        yield from (*lines[:shown], f"[... {left_out} more lines]")
    else:
        yield from (f"[{left_out} lines before ...]", *lines[shown:])


def _answer() -> str:
    """What is typed before Enter; the end of the input ends the demo."""
    try:
        return input("Enter: go on; q: leave ").strip().lower()
    except EOFError:
        return _LEAVE
