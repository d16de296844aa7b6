"""The options that every verb takes: one for each setting that has a flag, and those of the command line itself."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping  # noqa: TC003 the fields of `Request` are read when it runs
from dataclasses import dataclass, fields
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, get_origin, get_type_hints

import typer

from txn_analysis.kafka.names import INT32_MAX, INT64_MAX
from txn_analysis.settings import (
    ASSERTED,
    EXIT_CODE,
    INPUT,
    RUNNING,
    Decides,
    EngineName,
    Flag,
    Settings,
    deciding,
    flag_name,
    load_settings,
)
from txn_analysis.stores.places import SHOWN_SCHEMES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pydantic.fields import FieldInfo

# Settings that decide how a run judges. A verb that they mean nothing to does not offer them, and says so if given one.
JUDGING = deciding(Decides.READING, Decides.VERDICTS, Decides.MORE, Decides.ENGINE)
# Settings that decide with which code a verb ends, of those that answer whether anything hangs.
ENDING = deciding(Decides.EXIT_CODE)
# Those of judging that reading files follows as well.
READING = deciding(Decides.READING)

OUTPUT = "Output"
HEADINGS = (INPUT, ASSERTED, OUTPUT, EXIT_CODE, RUNNING)
"""How `--help` sorts the options; the options of a verb's own stand before them."""

_WIDEST = 10_000  # columns: lines are filled up to it
output_option = partial(typer.Option, rich_help_panel=OUTPUT)
_running = partial(typer.Option, rich_help_panel=RUNNING)


def repeated(flag: str, metavar: str, what: str, most: int | None = None) -> Any:
    """An option that may be given more than once; of numbers, `most` is the largest one that it takes."""
    least = None if most is None else 0
    return typer.Option(flag, metavar=metavar, min=least, max=most, help=f"{what}; may be repeated.")


def number(flag: str, metavar: str, what: str, most: int, least: int = 0) -> Any:
    """An option for a whole number within bounds."""
    return typer.Option(flag, metavar=metavar, min=least, max=most, help=what)


_BY_SUFFIX = "[by the suffix of -o, else text]"
_OF_REPORTS = (
    "ndjson and csv are the findings alone, one a line; html is one page that needs nothing else; chat is a message of "
    "at most six lines, without any transactional id."
)
Format = Annotated[Literal["text", "json"] | None, output_option("--format", help=f"How to print it. {_BY_SUFFIX}")]
RowFormat = Annotated[
    Literal["text", "json", "ndjson", "csv"] | None,
    output_option("--format", help=f"How to print the rows. {_BY_SUFFIX}"),
]
ReportFormat = Annotated[
    Literal["text", "json", "ndjson", "csv", "html", "chat"] | None,
    output_option("--format", help=f"How to print it; {_OF_REPORTS} {_BY_SUFFIX}"),
]
AuditFormat = Annotated[
    Literal["text", "json", "ndjson", "csv", "html", "chat", "prometheus"] | None,
    output_option("--format", help=f"How to print it; {_OF_REPORTS} prometheus are its metrics. {_BY_SUFFIX}"),
]
DecisionFormat = Annotated[
    Literal["text", "json", "ndjson", "csv", "toml"] | None,
    output_option(
        "--format",
        help="How to print them; toml are entries of a file for --accepted, and nothing is kept in the warehouse then. "
        f"{_BY_SUFFIX}",
    ),
]
Rendering = Annotated[
    Literal["commands", "ndjson", "write-txn-markers"] | None,
    output_option(
        "--rendering",
        "--format",
        help="A script that checks before it sends, one record a line, or Kafka's request as JSON. [by the suffix of "
        "-o, else commands]",
    ),
]
Width = Annotated[
    int | None,
    output_option(
        "--width",
        metavar="N",
        min=40,
        max=_WIDEST,
        help="Columns of the text. [the terminal's own, or 110; 76 for mail]",
    ),
]
Now = Annotated[
    str | None,
    output_option(
        "--now",
        metavar="TIME",
        help="When the report is read: it says how old the files are then. [this machine's clock]",
    ),
]
Schema = Annotated[bool, output_option("--schema", help="Print the JSON schema of --format json instead.")]
ShowAccepted = Annotated[
    bool, output_option("--show-accepted", help="List in the text what people accepted, with until when and why.")
]
Anonymize = Annotated[
    bool,
    output_option(
        "--anonymize",
        help="For somebody outside: pseudonyms in place of every name, and no commands; the setting pseudonym_key "
        "names the file of their key.",
    ),
]
RunId = Annotated[str | None, typer.Option("--run", metavar="RUN_ID", help="A run; by default the cluster's last one.")]
Topics = Annotated[list[str] | None, repeated("--topic", "TOPIC", "Only this topic")]
Partitions = Annotated[list[int] | None, repeated("--partition", "N", "Only this partition of --topic", most=INT32_MAX)]
ProducerIds = Annotated[list[int] | None, repeated("--producer-id", "ID", "Only this one", most=INT64_MAX)]
Paths = Annotated[
    list[str],
    typer.Argument(
        metavar="PATH",
        help="Files, folders or globs; copied off the brokers. Paths, or - for standard input, or URIs with "
        f"{SHOWN_SCHEMES}.",
    ),
]


class Target(NamedTuple):
    """Where something is printed: a file, or stdout where it is None; and in which form, if there is more than one."""

    file: str | None
    form: str | None


_FOUND = frozenset({"flags", "targets", "is_job"})  # of a request, what is no option


@dataclass(frozen=True, kw_only=True)
class Request:
    """What was asked of a verb beside its own options.

    `flags` are the settings by name; None where a flag was not given, so that environment and file can speak. `targets`
    are where it is printed, and in which form. `is_job` says that a script of `jobs/` was asked: whoever submits a job
    to Spark wants Spark's tasks to work, unless this process is asked for by name.
    """

    flags: Mapping[str, Any]
    output: Annotated[
        list[str] | None,
        output_option(
            "-o",
            "--output",
            metavar="FILE",
            help="Write to FILE, whole or not at all; - is stdout; may be repeated. [stdout]",
        ),
    ] = None
    config: Annotated[
        str | None,
        _running("--config", metavar="FILE", help="Settings from FILE; environment and flags beat it."),
    ] = None
    quiet: Annotated[
        bool,
        _running("--quiet", "-q", help="No progress on stderr, only errors and notes."),
    ] = False
    debug: Annotated[bool, _running("--debug", help="Show the traceback of an error.")] = False
    targets: tuple[Target, ...] = ()
    is_job: bool = False

    def settings(self) -> Settings:
        """The effective settings: flags beat the environment, which beats the file.

        Raises:
            ConfigError: a name is unknown or a value is out of range.
        """
        settings = load_settings(self.config, os.environ, self.flags)
        if self.is_job and settings.engine is EngineName.AUTO:
            return settings.model_copy(update={"engine": EngineName.SPARK})
        return settings

    def prints(self, form: str) -> bool:
        """Whether it is printed in a form, to a file or to stdout."""
        return any(target.form == form for target in self.targets)

    def given(self, names: Iterable[str]) -> list[str]:
        """Of some settings the flags of those that are given."""
        return [flag_name(name) for name in names if self.flags.get(name) is not None]


def shared_parameters() -> dict[str, inspect.Parameter]:
    """The options of `Request` by name, as typer reads them from the signature of a verb."""
    options = {
        name: _parameter(name, None, _annotation(name, about, flag))
        for name, about in Settings.model_fields.items()
        for flag in about.metadata
        if isinstance(flag, Flag)
    }
    hints = get_type_hints(Request, include_extras=True)
    own = {field.name: field.default for field in fields(Request) if field.name not in _FOUND}
    return options | {name: _parameter(name, default, hints[name]) for name, default in own.items()}


def _parameter(name: str, default: object, annotation: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _annotation(name: str, about: FieldInfo, flag: Flag) -> Any:
    """The type of a flag, and its help: the description of the setting, and its default."""
    yes = flag_name(name)
    is_switch = about.annotation is bool
    name = f"{yes}/{flag.negation or yes.replace('--', '--no-', 1)}" if is_switch else yes
    names = (name,) if flag.clearer is None else (flag.clearer, name)
    words = str(about.description).replace("`", "")
    default = "" if is_switch or about.default in (None, ()) else f" [{about.default}]"
    kind: Any = {None: about.annotation, "N": int}.get(flag.metavar, str)
    if get_origin(about.annotation) is tuple:
        kind = list[kind]
    option = typer.Option(
        *names,
        metavar=flag.metavar,
        help=f"{words[:1].upper()}{words[1:]}.{default}",
        rich_help_panel=flag.heading,
    )
    return Annotated[kind | None, option]
