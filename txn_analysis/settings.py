"""The settings of a run: one frozen model; flags beat environment beat file beat Kafka's defaults."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum, StrEnum, auto
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field, ValidationError

from txn_analysis.errors import ConfigError
from txn_analysis.kafka.names import INT32_MAX, INT64_MAX, LAST_TIME_MS, MAX_STATE_PARTITIONS, TOPIC_CONFIGS
from txn_analysis.kafka.transactions import LATE_TRANSACTION_BUFFER_MS
from txn_analysis.verdict import Verdict

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

ENVIRONMENT_PREFIX = "TXN_ANALYSIS_"

_REMOVED = frozenset({"depth", "jars"})  # settings of earlier versions

_EPOCH_MS = re.compile(r"[+-]?[0-9]+")
_MOST_DIGITS = 20  # of an int64 with its sign; Python itself refuses to read or print a number of thousands of them
_SHOWN_CHARACTERS = 60


def parse_time(text: str | int) -> int:
    """Epoch milliseconds, UTC, of a point in time: epoch milliseconds, or ISO-8601, in UTC where it names no zone.

    Raises:
        ValueError: neither of the two, not after 1970, or after the year 9999.
    """
    if isinstance(text, int):
        time_ms = text
    elif _EPOCH_MS.fullmatch(words := text.strip()):
        time_ms = _number(words)
    else:
        time_ms = _iso_ms(words)
    if time_ms <= 0:
        raise ValueError("is not after 1970-01-01T00:00:00Z")
    if time_ms > LAST_TIME_MS:
        raise ValueError("is after 9999-12-31T23:59:59.999Z")
    return time_ms


def _number(digits: str) -> int:
    """The number, or one beyond every bound in place of one that is too long to be read."""
    if len(digits) <= _MOST_DIGITS:
        return int(digits)
    return -INT64_MAX if digits.startswith("-") else INT64_MAX


def _iso_ms(words: str) -> int:
    try:
        moment = datetime.fromisoformat(words)
    except ValueError:
        raise ValueError("is neither epoch milliseconds nor ISO-8601 (like 2026-11-21T03:15:00Z)") from None
    zoned = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return round(zoned.timestamp() * 1000)


_AGE = re.compile(r"([0-9]{1,9})\s*(m|h|d|w)")
_UNIT_MS = {"m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}


def parse_age(text: str) -> int:
    """Milliseconds of an age such as `90d`: a number of minutes, hours, days or weeks.

    Raises:
        ValueError: it is none.
    """
    age = _AGE.fullmatch(text.strip().lower())
    if age is None:
        raise ValueError("is no age (a number and m, h, d or w, like 90d)")
    return int(age[1]) * _UNIT_MS[age[2]]


def _age(value: object) -> object:
    return parse_age(value) if isinstance(value, str) and not value.isdecimal() else value


def _not_bool(value: object) -> object:
    # Python takes true for 1: a slip in a file would become a timeout of one millisecond.
    if isinstance(value, bool):
        raise ValueError("must be a number")
    return value


def _listed(value: object) -> object:
    """Of a variable, and of one value in a file, the list that it stands for."""
    if isinstance(value, str):
        return [word.strip() for word in value.split(",")]
    return [value] if isinstance(value, int) else value


def _time(value: object) -> object:
    return parse_time(value) if isinstance(value, str | int) and not isinstance(value, bool) else value


Name = Annotated[str, Field(min_length=1)]
# A number without an upper bound would be one that nobody can have meant: each kind has its own.
KafkaInt = Annotated[int, BeforeValidator(_not_bool), Field(gt=0, le=INT32_MAX)]
StatePartitions = Annotated[int, BeforeValidator(_not_bool), Field(gt=0, le=MAX_STATE_PARTITIONS)]
PartitionNumber = Annotated[int, BeforeValidator(_not_bool), Field(ge=0, le=INT32_MAX)]
SizeBytes = Annotated[int, BeforeValidator(_not_bool), Field(gt=0, le=INT64_MAX)]
DurationMs = Annotated[int, BeforeValidator(_not_bool), Field(ge=0, le=LAST_TIME_MS)]
PositiveDurationMs = Annotated[int, BeforeValidator(_not_bool), Field(gt=0, le=LAST_TIME_MS)]
AgeMs = Annotated[int, BeforeValidator(_age), BeforeValidator(_not_bool), Field(ge=0, le=LAST_TIME_MS)]
PositiveAgeMs = Annotated[int, BeforeValidator(_age), BeforeValidator(_not_bool), Field(gt=0, le=LAST_TIME_MS)]
Topics = Annotated[tuple[Name, ...], BeforeValidator(_listed)]
Partitions = Annotated[tuple[PartitionNumber, ...], BeforeValidator(_listed)]
TimeMs = Annotated[int, BeforeValidator(_time), BeforeValidator(_not_bool), Field(gt=0, le=LAST_TIME_MS)]


class EngineName(StrEnum):
    """Which engine runs the steps of an audit."""

    AUTO = "auto"  # this process where little was read, Spark's tasks where much was, or a master is given
    LOCAL = "local"
    SPARK = "spark"


class Decides(Enum):
    """What a setting decides, beside where rows are read and written."""

    READING = auto()  # what is read of the files
    VERDICTS = auto()  # the verdicts: part of every run's identity
    MORE = auto()  # what is said beside them: part of a run's identity where it was said, so that others keep theirs
    EXIT_CODE = auto()
    ENGINE = auto()  # which engine judges; the same rows come of either


@dataclass(frozen=True)
class Flag:
    """How the command line offers a setting, and under which heading; without it a setting stands in a file alone.

    `name` is the flag in place of the field's own name, `negation` the one that says no in place of `--no-...`. `older`
    are names that are taken as well, and not shown: each of them means something else too.
    """

    heading: str
    metavar: str | None = None
    negation: str | None = None
    name: str | None = None
    older: tuple[str, ...] = ()


INPUT, ASSERTED, EXIT_CODE, RUNNING = "Input", "What you assert", "Exit code", "Running"


class Settings(BaseModel, frozen=True, extra="forbid"):
    """What one run needs to know beside its files. Field names are the flags' names; units are in the names.

    The description of a field is its help, and what an error says of it.
    """

    warehouse: Annotated[Name, Flag(RUNNING, "DIR")] = Field(
        default="txn-warehouse",
        description="folder of the Delta tables: a path, or a URI with s3:// (or s3a://), gs://, abfss://, hdfs:// "
        "or file://",
    )
    cluster: Annotated[Name, Flag(INPUT, "NAME")] = Field(
        default="default", description="the cluster that the files come from; one warehouse can hold several"
    )
    capture: Annotated[Name | None, Flag(INPUT, "NAME"), Decides.READING] = Field(
        default=None,
        examples=["2026-11-21-night"],
        description="name of this capture; calls with one name fill one capture; by default each call is its own",
    )
    topic: Annotated[Topics, Flag(INPUT, "TOPIC"), Decides.READING] = Field(
        default=(), examples=[["orders"]], description="only this topic, with `__transaction_state`; may be repeated"
    )
    partition: Annotated[Partitions, Flag(INPUT, "N"), Decides.READING] = Field(
        default=(), examples=[[0]], description="only this partition of --topic; may be repeated"
    )
    as_of_ms: Annotated[TimeMs | None, Flag(ASSERTED, "TIME", name="--as-of"), Decides.VERDICTS] = Field(
        default=None,
        examples=["2026-11-21T03:15:00Z"],
        description="when the files were copied: epoch ms or ISO-8601; by default the newest broker time in them",
    )
    transaction_max_timeout_ms: Annotated[KafkaInt, Flag(ASSERTED, "N"), Decides.VERDICTS] = Field(
        default=900_000,
        description="the brokers' `transaction.max.timeout.ms`; a transaction idle for 5 minutes more is late",
    )
    transaction_state_partitions: Annotated[StatePartitions | None, Flag(ASSERTED, "N"), Decides.VERDICTS] = Field(
        default=None,
        examples=[50],
        description="the brokers' `transaction.state.log.num.partitions`: partitions of `__transaction_state`; by "
        "default the only count that fits every id in a dump or folder, else 50",
    )
    transaction_state_complete: Annotated[bool, Flag(ASSERTED), Decides.VERDICTS] = Field(
        default=False,
        description="you assert that no record of `__transaction_state` is missing, in the files; and for an export, "
        "in the topic",
    )
    state_copied_last: Annotated[bool, Flag(ASSERTED), Decides.VERDICTS] = Field(
        default=False,
        description="you assert that you copied the logs first and `__transaction_state` last, all from the leaders",
    )
    no_records_lost: Annotated[bool, Flag(ASSERTED, negation="--records-may-be-lost"), Decides.MORE] = Field(
        default=False,
        description="you assert that no acknowledged record of these topics or of `__transaction_state` was ever lost",
    )
    max_clock_skew_ms: Annotated[DurationMs, Flag(ASSERTED, "N"), Decides.VERDICTS] = Field(
        default=1000, description="the most by which two brokers' clocks differ; 0 for brokers on one host"
    )
    transactional_id_expiration_ms: Annotated[KafkaInt, Flag(ASSERTED, "N"), Decides.VERDICTS] = Field(
        default=604_800_000,
        description="the brokers' `transactional.id.expiration.ms`: after it the coordinator forgets an id",
    )
    topic_config: Annotated[Name | None, Flag(INPUT, "FILE"), Decides.MORE] = Field(
        default=None, examples=["topics.txt"], description=f"file with what `{TOPIC_CONFIGS}` prints"
    )
    free_bytes: Annotated[SizeBytes | None, Flag(INPUT, "N"), Decides.MORE] = Field(
        default=None,
        examples=[500_000_000_000],
        description="free space that the blocked partitions can grow into; says how many days are left",
    )
    skip_unrecognised: Annotated[bool, Flag(INPUT), Decides.READING] = Field(
        default=False,
        description="leave out what is not understood instead of stopping; coverage then says what is missing",
    )
    verify: Annotated[bool, Flag(INPUT, name="--check-checksums", older=("--verify",)), Decides.READING] = Field(
        default=False,
        description="look at the checksum of every batch of a log directory, not only of those that decide a verdict",
    )
    fail_on: Annotated[Verdict, Flag(EXIT_CODE), Decides.EXIT_CODE] = Field(
        default=Verdict.HANGING, description="the most harmless verdict that makes the exit code 1"
    )
    exit_zero: Annotated[bool, Flag(EXIT_CODE), Decides.EXIT_CODE] = Field(
        default=False, description="end with 0 whatever was found, where 1 would be taken for a crash"
    )
    accept_inconclusive: Annotated[
        bool, Flag(EXIT_CODE, name="--ok-inconclusive", older=("--accept-inconclusive",)), Decides.EXIT_CODE
    ] = Field(default=False, description="end with 0, not 3, where nothing is found but something could not be told")
    accepted: Annotated[Name | None, Flag(EXIT_CODE, "FILE"), Decides.EXIT_CODE] = Field(
        default=None,
        examples=["conf/accepted.toml"],
        description="TOML file, a path or URI, of what people accepted until a date; by default accepted.toml in the "
        "warehouse",
    )
    master: Annotated[Name | None, Flag(RUNNING, "URL")] = Field(
        default=None, examples=["local[*]"], description="Spark's master URL; by default all cores of this machine"
    )
    engine: Annotated[EngineName, Flag(RUNNING), Decides.ENGINE] = Field(
        default=EngineName.AUTO,
        description="what works: this process (`local`), or Spark's tasks (`spark`); by default Spark's in `jobs/`, "
        "where a master is given, or where there is much to read",
    )
    range_bytes: SizeBytes = Field(default=33_554_432, description="bytes of dump text that one task parses at a time")
    plan_valid_ms: Annotated[PositiveDurationMs, Decides.VERDICTS] = Field(
        default=86_400_000, description="how long after `as_of_ms` a planned abort may be executed; then audit again"
    )
    pseudonym_key: Name = Field(
        default="~/.config/txn-analysis/pseudonym.key",
        description="file of the key that `report --anonymize` makes pseudonyms with; made on first use",
    )
    plan_max_partitions: KafkaInt = Field(
        default=100, description="a plan for more partitions is printed only with `abort-plan --yes-many`"
    )

    keep_ms: PositiveAgeMs | None = Field(
        default=None,
        examples=["90d"],
        description="how long captures and runs are kept, such as 90d: an audit ends with `forget --older-than`",
    )
    prune_grace_ms: AgeMs = Field(
        default=86_400_000,
        description="how long what was pruned stays for whoever began to read it before; longer than the longest audit",
    )

    @property
    def late_after_ms(self) -> int:
        """A transaction that has been idle for longer than this is late (KIP-664)."""
        return self.transaction_max_timeout_ms + LATE_TRANSACTION_BUFFER_MS


def deciding(*what: Decides) -> tuple[str, ...]:
    """The names of the settings that decide one of these."""
    return tuple(name for name, about in Settings.model_fields.items() if not set(what).isdisjoint(about.metadata))


def flag_name(field: str) -> str:
    """The command-line flag of a settings field: the name with hyphens, where it has no other."""
    about = Settings.model_fields.get(field)
    flags = (flag.name for flag in (about.metadata if about else ()) if isinstance(flag, Flag))
    return next(filter(None, flags), f"--{field.replace('_', '-')}")


def load_settings(config_file: str | None, env: Mapping[str, str], flags: Mapping[str, object]) -> Settings:
    """The settings from a TOML file, `TXN_ANALYSIS_<FIELD>` variables and flags, later ones winning.

    Args:
        config_file: a flat TOML file of settings fields, or None.
        env: environment variables; those without the prefix are ignored.
        flags: settings fields by name; None is a flag that was not given.

    Raises:
        ConfigError: an unknown name or a bad value; one line for each, naming file, variable or flag, and the default.
    """
    values: dict[str, object] = {}
    said_by: dict[str, str] = {}
    problems: list[str] = []
    for field, label, value in _entries(config_file, env, flags):
        if field in _REMOVED:
            problems.append(f"{label} was removed: delete the line")
        elif field not in Settings.model_fields:
            problems.append(f"{label} is not a setting{_did_you_mean(field)}")
        else:
            values[field], said_by[field] = value, label
    try:
        settings = Settings.model_validate(values)
    except ValidationError as refused:
        problems += [_problem(error, said_by) for error in refused.errors(include_url=False)]
    if problems:
        raise ConfigError("\n".join(problems))
    return settings


def _entries(
    config_file: str | None, env: Mapping[str, str], flags: Mapping[str, object]
) -> Iterator[tuple[str, str, object]]:
    """What is set: the name, who says it, and the value; what counts more comes later."""
    if config_file is not None:
        for field, value in _toml(config_file).items():
            yield field, f"{config_file}: {field}", value
    for variable, text in sorted(env.items()):
        if variable.startswith(ENVIRONMENT_PREFIX):
            yield variable.removeprefix(ENVIRONMENT_PREFIX).lower(), f"environment: {variable}", text
    for field, value in flags.items():
        if value is not None:
            yield field, flag_name(field), value


def _toml(file: str) -> dict[str, object]:
    try:
        return tomllib.loads(Path(file).read_text(encoding="utf-8"))
    except OSError as problem:
        raise ConfigError(f"--config {file}: cannot be read: {problem.strerror}; check the path") from problem
    except ValueError as problem:  # also a number that is too long to be read, and bytes that are no UTF-8
        raise ConfigError(f"{file}: is not TOML, lines of `name = value`: {problem}") from problem


def _did_you_mean(field: str) -> str:
    close = difflib.get_close_matches(field, Settings.model_fields, n=1)
    return f"; did you mean {close[0]}?" if close else f"; there are {', '.join(Settings.model_fields)}"


def _problem(error: ErrorDetails, said_by: Mapping[str, str]) -> str:
    """One line: who said it, what is wrong, what was said, and what the default stands for."""
    field = str(error["loc"][0])
    return f"{said_by[field]} {what_is_wrong(error)}, got {_shown(error['input'])}; {_default(field)}"


def what_is_wrong(error: ErrorDetails) -> str:
    """What Pydantic says of a value, to stand behind its name."""
    wrong = error["msg"].removeprefix("Value error, ").removeprefix("Input ")
    return f"{wrong[:1].lower()}{wrong[1:]}"


def _shown(value: object) -> str:
    try:
        shown = repr(value)
    except ValueError:  # a number of more digits than Python prints
        return "a number of thousands of digits"
    return shown if len(shown) <= _SHOWN_CHARACTERS else f"{shown[:_SHOWN_CHARACTERS]}..."


def _default(field: str) -> str:
    about = Settings.model_fields[field]
    default: Any = about.default
    shown = default.value if isinstance(default, Verdict) else "not set" if default in (None, ()) else default
    whose = "Kafka's default" if "the brokers' `" in str(about.description) else "the default"
    return f"{whose} is {shown} ({about.description})"
