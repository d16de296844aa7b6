"""The options that every verb takes, declared once."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from txn_analysis.kafka.topics import TOPIC_CONFIGS
from txn_analysis.verdict import Verdict  # noqa: TC001 typer reads the annotations

if TYPE_CHECKING:
    from collections.abc import Iterable

    from txn_analysis.settings import Settings

# Flags that decide how a run judges. A verb that they mean nothing to does not offer them, and says so if given one.
JUDGING = (
    "as_of",
    "capture",
    "transaction_max_timeout_ms",
    "transaction_state_partitions",
    "transaction_state_complete",
    "state_copied_last",
    "no_records_lost",
    "max_clock_skew_ms",
    "transactional_id_expiration_ms",
    "topic_config",
    "free_bytes",
    "skip_unrecognised",
    "verify",
)
# Flags that decide with which code a verb ends, of those that answer whether anything hangs.
ENDING = ("fail_on", "exit_zero", "accept_inconclusive")
# Those of judging that reading files follows as well.
READING = ("capture", "skip_unrecognised", "verify")

GROUPS = {
    "Input": ("cluster", "capture", "topic_config", "free_bytes", "skip_unrecognised", "verify"),
    "What you assert": (
        *("as_of", "transaction_max_timeout_ms", "transaction_state_partitions", "transaction_state_complete"),
        *("state_copied_last", "no_records_lost", "max_clock_skew_ms", "transactional_id_expiration_ms"),
    ),
    "Output": ("format", "rendering", "html", "width", "prometheus", "output", "now", "schema"),
    "Exit code": ENDING,
    "Running": ("warehouse", "config", "master", "quiet", "debug", "help"),
}
"""How `--help` sorts the options, by their names in Python; the options of a verb's own stand before them."""

_WIDEST = 10_000  # columns: lines are filled up to it
_NOT_SETTINGS = frozenset({"as_of", "config", "output", "debug", "quiet"})


class TextOrJson(StrEnum):
    """How a report or an answer is printed."""

    TEXT = "text"
    JSON = "json"


class RowFormat(StrEnum):
    """How rows are printed."""

    TEXT = "text"
    JSON = "json"
    NDJSON = "ndjson"
    CSV = "csv"


class ReportFormat(StrEnum):
    """How a whole report is printed."""

    TEXT = "text"
    JSON = "json"
    HTML = "html"


Format = Annotated[TextOrJson, typer.Option("--format", help="How to print it.")]
RowFormatOption = Annotated[RowFormat, typer.Option("--format", help="How to print the rows.")]
ReportFormatOption = Annotated[
    ReportFormat, typer.Option("--format", help="How to print it; html is one page that needs nothing else.")
]
Width = Annotated[
    int | None,
    typer.Option(
        "--width",
        metavar="N",
        min=40,
        max=_WIDEST,
        help="Columns of the text. [the terminal's own, or 110; 76 for mail]",
    ),
]
PageFile = Annotated[
    str | None, typer.Option("--html", metavar="FILE", help="Write the report as an HTML page to FILE as well.")
]
Now = Annotated[
    str | None,
    typer.Option(
        "--now",
        metavar="TIME",
        help="When the report is read: it says how old the files are then. [this machine's clock]",
    ),
]
Schema = Annotated[bool, typer.Option("--schema", help="Print the JSON schema of --format json instead.")]
RunId = Annotated[str | None, typer.Option("--run", metavar="RUN_ID", help="A run; by default the cluster's last one.")]
Paths = Annotated[list[str], typer.Argument(metavar="PATH", help="Files, folders or globs; copied off the brokers.")]


@dataclass(frozen=True, kw_only=True)
class Request:
    """The shared options as given; None where a flag was not, so that environment and file can speak."""

    warehouse: Annotated[
        str | None,
        typer.Option("--warehouse", metavar="DIR", help="Folder or URI of the Delta tables. [txn-warehouse]"),
    ] = None
    cluster: Annotated[
        str | None, typer.Option("--cluster", metavar="NAME", help="Whose files these are. [default]")
    ] = None
    capture: Annotated[
        str | None, typer.Option("--capture", metavar="NAME", help="Join several calls into one capture of this name.")
    ] = None
    as_of: Annotated[
        str | None,
        typer.Option(
            "--as-of",
            metavar="TIME",
            help="When the files were copied: ISO 8601, or epoch ms. [the newest broker's timestamp in them]",
        ),
    ] = None
    transaction_max_timeout_ms: Annotated[
        int | None,
        typer.Option(
            "--transaction-max-timeout-ms", metavar="N", help="The brokers' transaction.max.timeout.ms. [900000]"
        ),
    ] = None
    transaction_state_partitions: Annotated[
        int | None,
        typer.Option(
            "--transaction-state-partitions",
            metavar="N",
            help="Partitions of __transaction_state. [the only count that fits every id, else 50]",
        ),
    ] = None
    transaction_state_complete: Annotated[
        bool | None,
        typer.Option(
            "--transaction-state-complete/--no-transaction-state-complete",
            help="Your word that no record of __transaction_state is missing; of an export, that the topic lost none.",
        ),
    ] = None
    state_copied_last: Annotated[
        bool | None,
        typer.Option(
            "--state-copied-last/--no-state-copied-last",
            help="Your word that the logs were copied first and __transaction_state last, from the leaders.",
        ),
    ] = None
    no_records_lost: Annotated[
        bool | None,
        typer.Option(
            "--no-records-lost/--records-may-be-lost",
            help="Your word that no acknowledged record of these topics or of __transaction_state was ever lost.",
        ),
    ] = None
    max_clock_skew_ms: Annotated[
        int | None, typer.Option("--max-clock-skew-ms", metavar="N", help="How far brokers' clocks may differ. [1000]")
    ] = None
    transactional_id_expiration_ms: Annotated[
        int | None,
        typer.Option(
            "--transactional-id-expiration-ms",
            metavar="N",
            help="The brokers' transactional.id.expiration.ms. [604800000]",
        ),
    ] = None
    topic_config: Annotated[
        str | None,
        typer.Option(
            "--topic-config",
            metavar="FILE",
            help=f"What {TOPIC_CONFIGS} printed.",
        ),
    ] = None
    free_bytes: Annotated[
        int | None,
        typer.Option(
            "--free-bytes", metavar="N", help="Space that is left for the logs: says how many days that lasts."
        ),
    ] = None
    skip_unrecognised: Annotated[
        bool | None,
        typer.Option("--skip-unrecognised/--no-skip-unrecognised", help="Go on without files that are not understood."),
    ] = None
    verify: Annotated[
        bool | None,
        typer.Option("--verify/--no-verify", help="Check every batch of a log directory, not only those that decide."),
    ] = None
    fail_on: Annotated[
        Verdict | None, typer.Option("--fail-on", help="Exit with 1 from this verdict on. [hanging]")
    ] = None
    exit_zero: Annotated[
        bool | None, typer.Option("--exit-zero/--no-exit-zero", help="Exit with 0 whatever is found.")
    ] = None
    accept_inconclusive: Annotated[
        bool | None,
        typer.Option(
            "--accept-inconclusive/--no-accept-inconclusive",
            help="Exit with 0, not 3, where nothing is found but something could not be told.",
        ),
    ] = None
    output: Annotated[
        str | None, typer.Option("-o", "--output", metavar="FILE", help="Write to FILE, whole or not at all. [stdout]")
    ] = None
    config: Annotated[
        str | None, typer.Option("--config", metavar="FILE", help="Settings from FILE; environment and flags beat it.")
    ] = None
    master: Annotated[str | None, typer.Option("--master", metavar="URL", help="Spark master. [local[*]]")] = None
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr, only errors and notes.")] = False
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False

    def settings(self) -> Settings:
        """The effective settings: flags beat the environment, which beats the file.

        Raises:
            ConfigError: a name is unknown or a value is out of range.
        """
        # Pydantic is not needed for --help.
        import os

        from txn_analysis.settings import load_settings

        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        flags: dict[str, object] = {n: v for n, v in values.items() if n not in _NOT_SETTINGS and v is not None}
        return load_settings(self.config, os.environ, flags | {"as_of_ms": self.as_of})

    def given(self, names: Iterable[str]) -> list[str]:
        """Of some options the flags of those that are given."""
        return ["--" + name.replace("_", "-") for name in names if getattr(self, name) is not None]
