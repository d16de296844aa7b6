"""The verbs that fill a warehouse and tell what is in it: `audit`, `report`, `captures`."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from txn_analysis.cli.keeping_verbs import forget_after
from txn_analysis.cli.options import (
    AUDIT,
    ENDING,
    JUDGING,
    OUTPUT,
    READING,
    REPORT,
    ROWS,
    OfRun,
    Request,
    argument,
    moment,
    option,
    repeated,
    schema,
)
from txn_analysis.cli.output import (
    deliver,
    deliver_text,
    emit,
    emit_page,
    is_terminal,
    note,
    now_ms,
    quiet_pipe,
    rows,
)
from txn_analysis.cli.spark import check_new_warehouse, note_loaded, progress, spark_when_needed, stored
from txn_analysis.cli.verbs import exit_code, note_ignored, verb
from txn_analysis.errors import ConfigError
from txn_analysis.files.places import SHOWN_SCHEMES
from txn_analysis.report.pictures import Pictures
from txn_analysis.settings import INPUT, RUNNING, Settings
from txn_analysis.spark.jobs import Spark, running
from txn_analysis.text import count

if TYPE_CHECKING:
    from txn_analysis.report.model import AuditReport
    from txn_analysis.warehouse.delta_tables import Warehouse

_NARROWEST, _WIDEST = 80, 120  # columns of a report on a terminal, if nobody says
_MOST_COLUMNS = 10_000  # lines are filled up to it


def _print_config(ctx: click.Context, _param: click.Parameter, is_asked: bool) -> None:
    if is_asked and not ctx.resilient_parsing:
        from txn_analysis.cli.config_file import config_file

        emit(config_file(), None)
        ctx.exit()


def _ends_with(suffix: str) -> Any:
    """What once wrote one form beside stdout: `-o FILE` does it."""

    def checked(ctx: click.Context, param: click.Parameter, files: tuple[str, ...]) -> tuple[str, ...]:
        for file in files:
            if not file.endswith(suffix):
                ctx.fail(f"{param.opts[0]} {file}: its name must end with {suffix}: give -o FILE{suffix}")
        return files

    return checked


@dataclass(frozen=True, kw_only=True)
class Shown(Request):
    """How a report is shown."""

    width: int | None = option(
        "--width N",
        "Columns of the text. [the terminal's own, or 110; 76 for mail]",
        heading=OUTPUT,
        type=click.IntRange(40, _MOST_COLUMNS),
    )
    read_ms: int | None = option(
        "--now TIME",
        "When the report is read: it says how old the files are then. [this machine's clock]",
        heading=OUTPUT,
        type=moment,
    )
    show_accepted: bool = option(
        "--show-accepted", "List in the text what people accepted, with until when and why.", heading=OUTPUT
    )
    pages: tuple[str, ...] = option("--html FILE", multiple=True, hidden=True, callback=_ends_with(".html"))
    metrics: tuple[str, ...] = option("--prometheus FILE", multiple=True, hidden=True, callback=_ends_with(".prom"))
    depth: str | None = option("--depth WHAT", hidden=True)

    def files(self, output: tuple[str, ...]) -> tuple[str, ...]:
        """Where it is printed; a page and metrics by their old options are written beside stdout."""
        beside = (*self.pages, *self.metrics)
        return (*(output or ("-",)), *beside) if beside else output


@dataclass(frozen=True, kw_only=True)
class Files(Request):
    """What is read."""

    paths: tuple[str, ...] = argument(
        "PATH...",
        "Files, folders or globs; copied off the brokers. Paths, or - for standard input, or URIs with "
        f"{SHOWN_SCHEMES}.",
        nargs=-1,
        required=True,
    )


@dataclass(frozen=True, kw_only=True)
class _Audit(Shown, Files):
    no_judge: bool = option("--no-judge", "Only read the files, into the tables of their capture.", heading=INPUT)
    register_in: str | None = option(
        "--register SCHEMA",
        "Then put the tables, and views of the rows that count, into this schema of Spark's catalog.",
        heading=RUNNING,
    )
    print_config: bool = option(
        "--print-config",
        "Print a file for --config with every setting, and end.",
        heading=RUNNING,
        is_eager=True,
        callback=_print_config,
    )


def audit_files(asked: _Audit) -> int:
    """Find transactions that nobody can end any more.

    Reads what was copied off Kafka brokers (logs or dumps of them, snapshots, transaction indexes,
    __transaction_state), judges every open transaction, writes findings and abort plan into the warehouse, and prints
    the report. With --no-judge it only reads, for copies that come one after the other: the last one is audited.

    Exit code: 0 nothing hangs, 1 something does (see --fail-on), 2 something could not be read or done, 3 it could
    not be told (see --ok-inconclusive).
    """
    if asked.no_judge:
        if forms := {str(target.form) for target in asked.targets} - {"text", "json"}:
            raise ConfigError(f"--no-judge: there is no report to print as {', '.join(sorted(forms))}")
        if asked.register_in is not None:
            raise ConfigError("--register: with --no-judge nothing is judged, and there is nothing new to register")
        note_ignored(asked, {*JUDGING, *ENDING}.difference(READING))
        return ingest(asked)
    settings = asked.settings()
    if settings.topic and asked.prints("prometheus"):  # they would be green for all
        raise ConfigError("-o and --format: metrics are of a whole cluster: leave out --topic and --partition")
    with _reading(asked.paths, settings) as spark:
        from txn_analysis.pipeline.steps import audit as run_audit

        if asked.register_in is not None:
            from txn_analysis.warehouse.catalog import check_lasting, register

            check_lasting(running(spark), asked.register_in)
        report = run_audit(spark, [*asked.paths], settings, progress())
        if asked.register_in is not None:
            views = register(running(spark), settings.warehouse, asked.register_in)
            note(f"registered {len(views)} tables in {asked.register_in}")
        pictures = None
        if asked.prints("html"):
            from txn_analysis.warehouse.opening import open_warehouse

            pictures = _pictures(open_warehouse(spark, settings.warehouse), report)
    code = deliver_report(report, asked, settings, pictures)
    forget_after(settings)
    return code


audit = verb(
    "audit",
    "txn-analysis audit segments/ transaction-state/ --state-copied-last\n"
    "txn-analysis audit copies/ --topic orders --partition 0\n"
    "kafka-dump-log.sh --files orders-0/00000000000000000000.log | txn-analysis audit --no-judge --capture tonight -",
    AUDIT,
    reads_files=True,
    uses=(*JUDGING, *ENDING),
)(audit_files)


def ingest(asked: Files) -> int:
    """Fill the input tables from files, without judging."""
    settings = asked.settings()
    with _reading(asked.paths, settings) as spark:
        from txn_analysis.pipeline.steps import ingest as run_ingest

        ingested = run_ingest(spark, [*asked.paths], settings, progress())
    words = f"{count(ingested.input_count, 'input')}, {ingested.new_input_count} new to the warehouse"
    others = f"; it already had {count(ingested.earlier_count, 'other input')}" if ingested.earlier_count else ""
    text = f"capture {ingested.capture}: {words}{others}; {ingested.account}"
    forms = {"json": lambda: json.dumps(asdict(ingested), indent=2) + "\n", "text": lambda: text + "\n"}
    deliver(asked.targets, forms)
    return 0


@dataclass(frozen=True, kw_only=True)
class _Report(OfRun, Shown):
    topics: tuple[str, ...] = repeated("--topic TOPIC", "Only this topic")
    anonymize: bool = option(
        "--anonymize",
        "For somebody outside: numbers, times and verdicts, pseudonyms in place of every name, no sentence of the run, "
        "no command; the setting pseudonym_key names the file of their key.",
        heading=OUTPUT,
    )
    schema: bool = schema()


@verb(
    "report",
    "txn-analysis report --topic orders\ntxn-analysis report --anonymize -o for-a-vendor.html",
    REPORT,
    uses=ENDING,
)
def report(asked: _Report) -> int:
    """Print a run's report again, with what is Upcoming.

    By default it is the cluster's last run. It says what hangs, what that blocks and hides, and what to do; which files
    were read, and whether all of them was understood. Its section `Upcoming` says what will happen, to whom and when:
    which open transactions their coordinators will end, and what would hang or get stuck after that.

    Exit code: 0 nothing hangs, 1 something does (see --fail-on), 2 there is no such run or topic, 3 the files do not
    tell (see --ok-inconclusive). With --topic the code is about that topic alone.
    """
    if asked.schema:
        from txn_analysis.report.formats import report_schema

        return deliver_text(asked.targets, json.dumps(report_schema(), indent=2) + "\n")
    settings = asked.settings()
    key = pseudonym_key(settings.pseudonym_key) if asked.anonymize else None
    with stored(settings) as warehouse:
        from txn_analysis.questions.loaded_report import load_report
        from txn_analysis.runs.run_tables import run_tables

        loaded = load_report(warehouse, settings, asked.run_id, asked.topics)
        note_loaded(run_tables(warehouse, settings.cluster, loaded.run.run_id), asked.run_id)
        pictures = _pictures(warehouse, loaded) if asked.prints("html") else None
        if key is not None:
            from txn_analysis.report.anonymous import anonymized

            loaded, pictures = anonymized(loaded, pictures, key)
    return deliver_report(loaded, asked, settings, pictures)


@verb(
    "captures",
    "txn-analysis captures --warehouse txn-warehouse\ntxn-analysis captures -o nights.csv",
    ROWS,
    uses=("accepted",),
)
def captures(asked: Request) -> int:
    """List captures night by night, with what was answered.

    They are those of all clusters, or of --cluster, each cluster's oldest first. CopiedAt is the newest timestamp of a
    broker's clock in the capture. New, Gone and Still count open transactions against the run before; what people
    accepted is counted apart.

    Exit code: 0, or 2 if there is no such warehouse.
    """
    settings = asked.settings()
    with stored(settings) as warehouse:
        from txn_analysis.questions.captured_nights import captured_nights, captures_answer

        answer = captures_answer(captured_nights(warehouse, settings, asked.flags["cluster"]))
    deliver(asked.targets, rows(answer))
    return 0


@contextmanager
def _reading(paths: Sequence[str], settings: Settings) -> Iterator[Spark]:
    """What reads files: this process, or Spark; what is wrong with them is said before either begins.

    Standard input is kept, where it is among the paths; it is read when the others are known to be there.
    """
    from txn_analysis.reading.inputs.find_files import STANDARD_INPUT, find_files, standard_input

    if STANDARD_INPUT in paths:
        find_files([path for path in paths if path != STANDARD_INPUT])
        check_new_warehouse(settings)
    with (
        standard_input([*paths], progress().stage("reading standard input")),
        spark_when_needed(settings, _input_bytes(paths, settings)) as spark,
    ):
        yield spark


def _input_bytes(paths: Sequence[str], settings: Settings) -> int:
    """Bytes of all files; what cannot be found or, by a first look, not be read is refused before Spark starts."""
    from txn_analysis.reading.inputs.find_files import find_files

    if settings.partition:
        from txn_analysis.runs.asked_places import asked_for  # takes Arrow, and as long as all before the first line

        asked_for(settings)  # refuses partitions without their topic
    files = find_files([*paths])
    input_bytes = sum(file.size_bytes for file in files)
    with progress().stage("finding files", count(len(files), "file"), input_bytes):
        pass  # the first line, before what takes a moment to import
    from txn_analysis.reading.inputs.planning import check_at_first_sight
    from txn_analysis.reading.topic_config import read_topic_configs

    if not settings.skip_unrecognised:
        check_at_first_sight(files)
    if settings.topic_config is not None:
        read_topic_configs(settings.topic_config)
    from txn_analysis.runs.decisions import read_decisions

    read_decisions(settings)
    check_new_warehouse(settings)
    return input_bytes


def _pictures(warehouse: Warehouse, report: AuditReport) -> Pictures:
    with progress().stage("drawing"):
        from txn_analysis.questions.loaded_report import pictures

        return pictures(warehouse, report)


def deliver_report(report: AuditReport, asked: Shown, settings: Settings, pictures: Pictures | None) -> int:
    """Writes a report to where it is wanted, in each form, and says with which code the command ends."""
    # Not needed for --help.
    from txn_analysis.report.figures import Reader, run_options
    from txn_analysis.report.formats import findings_csv, findings_ndjson, json_report, prometheus_text
    from txn_analysis.report.markdown import chat_message, markdown_report
    from txn_analysis.report.terminal import WIDTH, print_styled
    from txn_analysis.report.text_report import report_lines, text_report

    texts: dict[str, Callable[[], str | Iterable[str]]] = {
        "json": lambda: json_report(report),
        "ndjson": lambda: findings_ndjson(report),
        "csv": lambda: findings_csv(report),
        "text": lambda: text_report(report, asked.width or WIDTH, reader),
        "markdown": lambda: markdown_report(report, reader),
        "chat": lambda: chat_message(report, reader),
        # The one figure that is of this machine's clock: an alert must see that no audit succeeded any more.
        "prometheus": lambda: prometheus_text(report, now_ms()),
    }
    options = run_options(settings, report.run.cluster)
    # Nothing is judged by the moment of reading: it says how old the files are, and whether a plan has expired.
    reader = Reader(options, settings.fail_on, asked.read_ms or now_ms(), asked.show_accepted)
    if asked.depth is not None:
        note("--depth: no effect here; every batch is kept")
    if asked.prints("chat"):
        note("chat is an old name: markdown (-o FILE.md), whose first six lines it is")
    for target in asked.targets:
        if target.form == "html":
            emit_page(report, pictures, reader, target.file)
        elif target.form == "text" and is_terminal(target.file):
            columns = asked.width or min(max(shutil.get_terminal_size().columns, _NARROWEST), _WIDEST)
            with quiet_pipe(sys.stdout) as stream:
                print_styled(report_lines(report, columns, reader), stream)
        else:
            deliver([target], texts)
    return exit_code(report.outcome_at(settings.fail_on), settings)


_KEY_BYTES = 32
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def pseudonym_key(file: str) -> bytes:
    """The key of `report --anonymize` in a file; where there is none, a new one, readable by its owner alone.

    Raises:
        ConfigError: it cannot be read or made, others may read it, or it is too short to be one.
    """
    try:
        path = Path(file).expanduser()
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(FileExistsError):
            made = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(made, "w", encoding="ascii") as stream:
                stream.write(secrets.token_hex(_KEY_BYTES) + "\n")
        key, mode = path.read_bytes().strip(), path.stat().st_mode
    except (OSError, RuntimeError) as error:
        why = getattr(error, "strerror", None) or error
        raise ConfigError(f"pseudonym_key {file}: {why}; name a file that can be written, of yours alone") from error
    if mode & _OTHERS:
        raise ConfigError(f"pseudonym_key {file}: others may read it, and undo every pseudonym: chmod 600 {file}")
    if len(key) < _KEY_BYTES:
        raise ConfigError(f"pseudonym_key {file}: is no key, {_KEY_BYTES} bytes or more; name another file")
    return key
