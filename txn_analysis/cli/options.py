"""The options of the command line: fields of the dataclass that a verb takes, and one for each setting with a flag.

A new option of a verb is a field of its dataclass; a new setting is a field of `Settings`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from enum import EnumMeta
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, get_origin

import click
from pydantic.fields import FieldInfo

from txn_analysis.kafka.address import Address
from txn_analysis.kafka.names import INT32_MAX, INT64_MAX, MAX_STATE_PARTITIONS
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
    parse_age,
    parse_time,
)
from txn_analysis.text import clip

if TYPE_CHECKING:
    from txn_analysis.questions.filters import Filters

# Settings that decide how a run judges. A verb that they mean nothing to does not offer them, and says so if given one.
JUDGING = deciding(Decides.READING, Decides.VERDICTS, Decides.MORE, Decides.ENGINE)
# Settings that decide with which code a verb ends, of those that answer whether anything hangs.
ENDING = deciding(Decides.EXIT_CODE)
# Those of judging that reading files follows as well.
READING = deciding(Decides.READING)
# Of verbs that answer, but not whether something hangs.
COULD_NOT_TELL = ("exit_zero", "accept_inconclusive")

OWN, OUTPUT = "Options", "Output"
HEADINGS = (OWN, INPUT, ASSERTED, OUTPUT, EXIT_CODE, RUNNING)
"""How `--help` sorts options; those of a verb's own stand before those of all."""


class Forms(NamedTuple):
    """In which forms a verb prints, the usual one first, and what `--help` says of them.

    `older` ones are understood, and named nowhere.
    """

    names: tuple[str, ...]
    words: str = "How to print it."
    older: tuple[str, ...] = ()


_FINDINGS = (
    "How to print it; ndjson and csv are the findings alone, one a line; html is one page that needs nothing else; "
    "markdown is for a ticket, and its first six lines, which name no transactional id, for a chat."
)
ONE = Forms(("text", "json"))
ROWS = Forms(("text", "json", "ndjson", "csv"), "How to print the rows.")
REPORT = Forms((*ROWS.names, "html", "markdown"), _FINDINGS, older=("chat",))
AUDIT = REPORT._replace(names=(*REPORT.names, "prometheus"), words=f"{_FINDINGS} prometheus are its metrics.")
PLAN = Forms(
    ("commands", "ndjson", "write-txn-markers"),
    "A script that checks before it sends, one record a line, or Kafka's request as JSON.",
)
SUFFIXES = {
    ".txt": "text",
    ".json": "json",
    ".ndjson": "ndjson",
    ".csv": "csv",
    ".html": "html",
    ".md": "markdown",
    ".chat": "chat",
    ".prom": "prometheus",
    ".toml": "toml",
    ".sh": "commands",
}


class _Form(click.Choice[str]):
    """One of the forms of a verb."""

    def __init__(self, forms: Forms) -> None:
        super().__init__(forms.names)
        self._older = forms.older

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Its name; an older one is understood."""
        return value if value in self._older else super().convert(value, param, ctx)


class Parsed(click.ParamType[Any]):
    """What a function makes of a word; a ValueError of it says what is wrong with the word."""

    name = "text"

    def __init__(self, parse: Callable[[str], Any]) -> None:
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The value of an option, as the verb takes it."""
        try:
            return self._parse(value)
        except ValueError as error:
            problem = str(error)
            self.fail(problem if value and problem.startswith(value) else f"{clip(value, 80)}: {problem}", param, ctx)


class Option(click.Option):
    """An option under a heading of `--help`, which shows all its names but the `older` ones."""

    def __init__(self, *names: str, heading: str = OWN, older: Collection[str] = (), **about: Any) -> None:
        super().__init__([*names, *older], **about)
        self.heading = heading
        self._older = {name for names in older for name in names.split("/")}

    def get_help_spec(self, ctx: click.Context) -> str:
        """Its names, and how its value is called."""
        every = self.opts, self.secondary_opts
        self.opts, self.secondary_opts = ([name for name in names if name not in self._older] for names in every)
        try:
            return super().get_help_spec(ctx)
        finally:
            self.opts, self.secondary_opts = every


def option(spelling: str, words: str = "", **about: Any) -> Any:
    """A field that is an option of the command line.

    Args:
        spelling: its names, and what stands for its value, as `--help` shows them: `-o --output FILE`; a value's word
            makes it no switch.
        words: its help.
        about: what else `Option` takes.
    """
    names = [word for word in spelling.split() if word.startswith("-")]
    metavar = spelling.rsplit(maxsplit=1)[-1] if len(spelling.split()) > len(names) else None
    if metavar is None and "type" not in about:
        about["is_flag"] = True
    about |= {"metavar": metavar, "help": words}
    empty: Any = () if about.get("multiple") else False if "is_flag" in about else None
    return field(default=about.get("default", empty), metadata={"made": lambda name: Option(name, *names, **about)})


def repeated(spelling: str, words: str, **about: Any) -> Any:
    """An option that may be given more than once."""
    return option(spelling, f"{words}; may be repeated.", multiple=True, **about)


def argument(metavar: str, words: str, **about: Any) -> Any:
    """A field that is a positional argument, or all of them."""
    about = {"metavar": metavar, "help": words, **about}
    empty = () if about.get("nargs") == -1 else None
    return field(default=empty, metadata={"made": lambda name: click.Argument([name], **about)})


def removed(name: str, remedy: str) -> Any:
    """An option of earlier versions, which is refused in words that say what to do."""

    def refused(ctx: click.Context, _param: click.Parameter, is_given: Any) -> None:
        if is_given:
            ctx.fail(f"{name} was removed: {remedy}")

    return option(name, hidden=True, callback=refused)


def schema(words: str = "Print the JSON schema of --format json instead.") -> Any:
    """The option by which a verb says what its JSON is."""
    return option("--schema", words, heading=OUTPUT)


_partition = click.IntRange(0, INT32_MAX)
int64 = click.IntRange(0, INT64_MAX)
count_of_rows = click.IntRange(1, INT32_MAX)
moment, age, address = Parsed(parse_time), Parsed(parse_age), Parsed(Address.of)


def _transaction(text: str) -> Address:
    address = Address.of(text)
    if not address.is_transaction:
        raise ValueError(
            f"{text}: is an offset; a transaction that begins there is {address._replace(is_transaction=True)}"
        )
    return address


transaction = Parsed(_transaction)


class Target(NamedTuple):
    """Where something is printed: a file, or stdout where it is None; and in which form, if there is more than one."""

    file: str | None
    form: str | None


@dataclass(frozen=True, kw_only=True)
class Request:
    """What was asked of a verb; each has a class below it, whose fields are the options of its own.

    `flags` are the settings by name; None where a flag was not given, so that environment and file can speak. `targets`
    are where it is printed, and in which form. `is_job` says that a script of `jobs/` was asked: whoever submits a job
    to Spark wants Spark's tasks to work, unless this process is asked for by name.
    """

    flags: Mapping[str, Any]
    targets: tuple[Target, ...] = ()
    is_job: bool = False
    config: str | None = option("--config FILE", "Settings from FILE; environment and flags beat it.", heading=RUNNING)
    quiet: bool = option("-q --quiet", "No progress on stderr, only errors and notes.", heading=RUNNING)
    debug: bool = option("--debug", "Show the traceback of an error.", heading=RUNNING)

    @classmethod
    def parameters(cls) -> list[click.Parameter]:
        """Its fields as Click takes them: those of every verb first, then those of its own."""
        return [about.metadata["made"](about.name) for about in fields(cls) if "made" in about.metadata]

    def settings(self) -> Settings:
        """The effective settings: flags beat the environment, which beats the file.

        Raises:
            ConfigError: a name is unknown or a value is out of range.
        """
        settings = load_settings(self.config, os.environ, self.flags)
        if self.is_job and settings.engine is EngineName.AUTO:
            return settings.model_copy(update={"engine": EngineName.SPARK})
        return settings

    def files(self, output: tuple[str, ...]) -> tuple[str, ...]:
        """Where it is printed, by `-o` and older options."""
        return output

    def prints(self, form: str) -> bool:
        """Whether it is printed in a form, to a file or to stdout."""
        return any(target.form == form for target in self.targets)

    def given(self, names: Iterable[str]) -> list[str]:
        """Of some settings the flags of those that are given."""
        return [flag_name(name) for name in names if self.flags.get(name) is not None]


@dataclass(frozen=True, kw_only=True)
class OfRun(Request):
    """A question to a finished run."""

    run_id: str | None = option("--run RUN_ID", "A run; by default the cluster's last one.")


@dataclass(frozen=True, kw_only=True)
class OfPlaces(OfRun):
    """A question about some partitions of a run."""

    topics: tuple[str, ...] = repeated("--topic TOPIC", "Only this topic")
    partitions: tuple[int, ...] = repeated("--partition N", "Only this partition of --topic", type=_partition)

    def filters(self, **more: Any) -> Filters:
        """What is asked for; several durations add, so that the shortest one counts."""
        from txn_analysis.questions.filters import Filters

        asked = {about.name: getattr(self, about.name) for about in fields(Filters) if hasattr(self, about.name)}
        durations_ms = getattr(self, "durations_ms", ())
        return Filters(**asked, duration_ms=min(durations_ms, default=None), **more)


@dataclass(frozen=True, kw_only=True)
class OfProducers(OfPlaces):
    """A question about some producers."""

    producer_ids: tuple[int, ...] = repeated("--producer-id ID", "Only this one", type=int64)


def patterns() -> Any:
    """The option that asks for ids by a pattern."""
    return repeated("--transactional-id-pattern REGEX", "Only transactional ids that match as a whole")


def _no_broker(_text: str) -> str:
    raise ValueError("dumps do not say which broker leads a partition; use --topic and --partition")


def broker() -> Any:
    """An option of Kafka's tool that files cannot answer."""
    words = "Refused: the files do not say which broker leads."
    return option("--broker --broker-id ID", words, type=Parsed(_no_broker))


_STATE_PARTITION_PREFIX = "__transaction_state-"
_STATE_PARTITION = re.compile("[0-9]{1,7}")
_STATES = ("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "PrepareEpochFence")


def _state_partition(coordinator: str) -> int:
    number = coordinator.removeprefix(_STATE_PARTITION_PREFIX)
    if number == coordinator or not _STATE_PARTITION.fullmatch(number) or int(number) >= MAX_STATE_PARTITIONS:
        raise ValueError(
            "dumps do not say which broker coordinates an id; give a partition, such as __transaction_state-3"
        )
    return int(number)


def _known_state(state: str) -> str:
    known = {name.lower(): name for name in _STATES}
    if state.lower() not in known:
        raise ValueError(f"unknown; the states are {', '.join(_STATES)}")
    return known[state.lower()]


@dataclass(frozen=True, kw_only=True)
class OfTransactions(OfProducers):
    """A question with all the filters of `kafka-transactions.sh`."""

    states: tuple[str, ...] = repeated(
        "--state STATE", "Only this state, such as Ongoing, in any case", type=Parsed(_known_state)
    )
    durations_ms: tuple[int, ...] = option(
        "--duration-filter MS", "Only transactions that lasted longer than this.", multiple=True, type=int64
    )
    transactional_id_patterns: tuple[str, ...] = patterns()
    state_partitions: tuple[int, ...] = repeated(
        "--coordinator NAME", "Only ids of this partition, such as __transaction_state-3", type=Parsed(_state_partition)
    )
    broker: str | None = broker()


def setting_options(own_names: Collection[str], foreign: Collection[str]) -> Iterator[Option]:
    """An option for each setting with a flag, but for those whose flag the verb has itself.

    Args:
        own_names: the names of the verb's own options.
        foreign: settings that mean nothing to the verb; their options are taken, and not shown.
    """
    for name, about in Settings.model_fields.items():
        for flag in about.metadata:
            if isinstance(flag, Flag) and flag_name(name) not in own_names:
                yield _setting_option(name, about, flag, is_hidden=name in foreign)


def _setting_option(name: str, about: FieldInfo, flag: Flag, *, is_hidden: bool) -> Option:
    is_switch = about.annotation is bool
    default = "" if is_switch or about.default in (None, ()) else f" [{about.default}]"
    words = str(about.description).replace("`", "")
    make = partial(
        Option,
        name,
        heading=flag.heading,
        metavar=flag.metavar,
        hidden=is_hidden,
        default=None,
        help=f"{words[:1].upper()}{words[1:]}.{default}",
    )
    if is_switch:
        names, *older = (
            f"{one}/{flag.negation or one.replace('--', '--no-', 1)}" for one in (flag_name(name), *flag.older)
        )
        return make(names, older=older, is_flag=True)
    if isinstance(about.annotation, EnumMeta):
        return make(flag_name(name), older=flag.older, type=click.Choice([one.value for one in about.annotation]))
    return make(flag_name(name), older=flag.older, multiple=get_origin(about.annotation) is tuple)


def output_options(forms: Forms | None) -> Iterator[Option]:
    """Where a verb prints, and in which of its forms."""
    names = forms.names if forms else ()
    if forms:
        yield Option(
            "form",
            "--format",
            older=("--rendering",) if forms is PLAN else (),
            heading=OUTPUT,
            type=_Form(forms),
            help=f"{forms.words} [by the suffix of -o, else {names[0]}]",
        )
    suffixes = ", ".join(suffix for suffix, form in SUFFIXES.items() if form in names)
    file = f"FILE ({suffixes})" if suffixes else "FILE"
    words = f"Write to {file}, whole or not at all; - is stdout; may be repeated. [stdout]"
    yield Option("output", "-o", "--output", heading=OUTPUT, metavar="FILE", multiple=True, help=words)
