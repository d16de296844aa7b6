"""The verb `demo`: a real capture that comes with the package, and the commands that find and end its hangs."""

from __future__ import annotations

import shutil
from pathlib import Path

import click

from txn_analysis.cli.output import emit
from txn_analysis.cli.verbs import reported_errors
from txn_analysis.errors import AuditError
from txn_analysis.text import shell_word

CAPTURES = Path(__file__).with_name("captures")
COMMANDS = tuple(
    f"txn-analysis {words}"
    for words in (
        "audit {to}/before --transaction-state-partitions 4 --max-clock-skew-ms 0 --warehouse {to}/warehouse",
        "explain orders-0@161 --warehouse {to}/warehouse",
        "abort-plan orders-0@161 --expired --warehouse {to}/warehouse",
        "audit {to}/after --transaction-state-partitions 4 --max-clock-skew-ms 0 --warehouse {to}/warehouse",
        "verify --warehouse {to}/warehouse",
    )
)
_WHY = (
    "what hangs? (exit code 1: something does)",
    "why is that certain?",
    "what ends it? (--expired: the files are old, and the script refuses to run by now)",
    "is it repaired? copied again, 20 minutes later: an administrator had sent one abort",
    "of four aborts one is carried out",
)


@click.command("demo", epilog="\b\nExample:\n  txn-analysis demo --to /tmp/hanging")
@click.option("--to", metavar="DIR", default="txn-analysis-demo", show_default=True, help="A new folder for the files.")
def demo(to: str) -> None:
    """Unpack a real capture, and print the commands to type.

    Two brokers of Kafka 4.2.0, on which transactions were made to hang on purpose. It needs no Java.

    Exit code: 0 the files are there, 2 DIR holds something, or cannot be written.
    """
    with reported_errors(debug=False):
        folder = Path(to)
        try:
            if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
                raise AuditError(f"--to {to}: this is not empty: give a new folder")
            for part in ("before", "after"):
                shutil.copytree(CAPTURES / part, folder / part)
        except OSError as error:
            raise AuditError(f"--to {to}: cannot be written: {error.strerror or error}; give another folder") from error
        steps = zip(_WHY, COMMANDS, strict=True)
        emit("".join(f"# {why}\n{command.format(to=shell_word(to))}\n" for why, command in steps), None)
