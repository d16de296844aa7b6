"""The command line `txn-capture`."""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path  # noqa: TC003 typer reads the annotations
from typing import Annotated

import typer

from txn_analysis.capture.answers import Clock
from txn_analysis.capture.capturing import Wanted, capture, summary
from txn_analysis.capture.client_config import client_config, read_properties
from txn_analysis.errors import AuditError
from txn_analysis.text import escape

NOTHING_STUCK = 4
_FAILED, _INTERRUPTED = 2, 130

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)


@app.command(
    epilog="\b\nExample:\n  txn-capture --bootstrap-server kafka-1:9092 --to capture-1\n  txn-analysis audit capture-1"
)
def txn_capture(
    bootstrap_server: Annotated[str, typer.Option(metavar="HOST:PORT", help="Brokers to begin with, comma-separated.")],
    to: Annotated[Path, typer.Option(metavar="DIR", help="A new folder for the capture.")],
    command_config: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="How to connect: a properties file as Kafka's own tools take it."),
    ] = None,
    topic: Annotated[list[str] | None, typer.Option(metavar="TOPIC", help="Only this topic; given twice adds.")] = None,
    all_: Annotated[bool, typer.Option("--all", help="Every partition from its log start on, stuck or not.")] = False,
    look_back_bytes: Annotated[
        int,
        typer.Option(
            min=0, metavar="N", help="What is fetched at most, in each partition, to find an earlier end marker."
        ),
    ] = Wanted.look_back_bytes,
    max_clock_skew_ms: Annotated[
        int, typer.Option(min=0, metavar="N", help="By how much the brokers' clocks differ at most.")
    ] = Wanted.max_clock_skew_ms,
    give_up_after_ms: Annotated[
        int, typer.Option(min=0, metavar="N", help="How long a broker that does not answer is asked again.")
    ] = Wanted.give_up_after_ms,
) -> None:
    """Capture what hides behind open transactions, over the network, for `txn-analysis audit`.

    Finds the partitions whose last stable offset lags, fetches from where the first open transaction begins to the end,
    and __transaction_state whole and last. It reads only. Exit codes: 0 captured, 2 not or not all of it, 4 nothing is
    stuck and nothing was written, 130 interrupted.
    """
    wanted = Wanted(tuple(topic or ()), all_, look_back_bytes, max_clock_skew_ms, give_up_after_ms)
    raise typer.Exit(_run(bootstrap_server, to, command_config, wanted))


def _run(bootstrap: str, to: Path, command_config: Path | None, wanted: Wanted) -> int:
    try:
        config = {} if command_config is None else _config(command_config)
        from txn_analysis.capture.client import KafkaBrokers  # noqa: PLC0415 the extra; --help needs none

        with KafkaBrokers(bootstrap, config, wanted.give_up_after_ms) as brokers:
            outcome = capture(brokers, to, wanted, Clock(), _say, f"txn-capture {version('txn-analysis')}")
    except AuditError as error:
        _say_failed([str(error)])
        return _FAILED
    except KeyboardInterrupt:
        _say("interrupted: what was captured so far is not complete, as its manifest says. Remove the folder")
        return _INTERRUPTED
    _say_failed(outcome.failures)
    if not outcome.captured:
        if outcome.failures:
            return _FAILED
        _say("nothing is stuck: no last stable offset lags, and nothing was written. --all captures all the same")
        return NOTHING_STUCK
    print(summary(outcome, to), end="")
    return 0 if outcome.is_complete else _FAILED


def _config(path: Path) -> dict[str, object]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise AuditError(f"{path}: the file cannot be read: {error}. Check the path") from error
    return client_config(read_properties(text), str(path))


def _say(line: str) -> None:
    print(escape(line), file=sys.stderr, flush=True)


def _say_failed(problems: list[str]) -> None:
    for problem in problems:
        _say(f"error: {problem}")


def main() -> None:
    """Run the command line; ends the process with its exit code."""
    app(prog_name="txn-capture")
