"""The verbs that fill a warehouse and say what it holds: `audit`, `ingest`, `report`, `captures`, `forget`."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from txn_analysis.cli.asking import forms_of
from txn_analysis.cli.keeping_verbs import prune_after
from txn_analysis.cli.night_pages import calendar_page
from txn_analysis.cli.options import (
    Anonymize,
    Now,
    Paths,
    Request,
    RunId,
    Schema,
    ShowAccepted,
    Topics,
    Width,
)
from txn_analysis.cli.output import (
    check_metrics,
    deliver,
    deliver_text,
    emit_page,
    is_terminal,
    metrics_of,
    quiet_pipe,
    read_at,
    reader_of,
)
from txn_analysis.cli.pseudonym_key import pseudonym_key
from txn_analysis.cli.spark import check_new_warehouse, check_warehouse, progress, spark_when_needed, stored
from txn_analysis.cli.verbs import exit_code
from txn_analysis.settings import INPUT
from txn_analysis.text.escape import escape
from txn_analysis.text.words import count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from contextlib import AbstractContextManager

    from txn_analysis.report.figures import Reader
    from txn_analysis.report.model import AuditReport
    from txn_analysis.report.pictures import Pictures
    from txn_analysis.runs.run_tables import Forgotten
    from txn_analysis.settings import Settings
    from txn_analysis.storage.warehouse import Warehouse

_NARROWEST, _WIDEST = 80, 120  # columns of a report on a terminal, if nobody says


def audit(
    request: Request,
    paths: Paths,
    width: Width = None,
    now: Now = None,
    show_accepted: ShowAccepted = False,
) -> int:
    """Find transactions that nobody can end any more.

    Reads what was copied off Kafka brokers (logs or dumps of them, snapshots, transaction indexes,
    __transaction_state), judges every open transaction, writes findings and abort plan into the warehouse, and prints
    the report.

    Exit code: 0 nothing hangs, 1 something does (see --fail-on), 2 something could not be read or done, 3 it could
    not be told (see --accept-inconclusive).
    """
    settings = request.settings()
    check_metrics(request, settings)
    read_ms = read_at(now)
    with _given(paths, settings), spark_when_needed(settings, _input_bytes(paths, settings)) as spark:
        from txn_analysis.pipeline.steps import audit as run_audit

        report = run_audit(spark, paths, settings, progress())
        pictures = None
        if request.prints("html"):
            from txn_analysis.storage.opening import open_warehouse

            pictures = _pictures(open_warehouse(spark, settings.warehouse), report)
    reader = reader_of(report, settings, read_ms, shows_accepted=show_accepted)
    code = deliver_report(report, request, settings, width, pictures, reader)
    prune_after(settings)
    return code


def ingest(request: Request, paths: Paths) -> int:
    """Fill the input tables from files, without judging."""
    settings = request.settings()
    with _given(paths, settings), spark_when_needed(settings, _input_bytes(paths, settings)) as spark:
        from txn_analysis.pipeline.steps import ingest as run_ingest

        ingested = run_ingest(spark, paths, settings, progress())
    words = f"{count(ingested.input_count, 'input')}, {ingested.new_input_count} new to the warehouse"
    text = f"capture {ingested.capture}: {words}; {ingested.account}"
    forms = {"json": lambda: json.dumps(asdict(ingested), indent=2) + "\n", "text": lambda: text + "\n"}
    deliver(request.targets, forms)
    return 0


def report(
    request: Request,
    run_id: RunId = None,
    topic: Topics = None,
    width: Width = None,
    now: Now = None,
    show_accepted: ShowAccepted = False,
    anonymize: Anonymize = False,
    schema: Schema = False,
) -> int:
    """Print the report of a run again.

    By default it is the cluster's last run.

    Exit code: 0 nothing hangs, 1 something does (see --fail-on), 2 there is no such run or topic, 3 the files do not
    tell (see --accept-inconclusive). With --topic the code is about that topic alone.
    """
    if schema:
        from txn_analysis.report.formats import report_schema

        deliver_text(request.targets, json.dumps(report_schema(), indent=2) + "\n")
        return 0
    settings = request.settings()
    read_ms = read_at(now)
    key = pseudonym_key(settings.pseudonym_key) if anonymize else None
    with stored(settings) as warehouse:
        from txn_analysis.questions.loaded_report import load_report

        loaded = load_report(warehouse, settings, run_id, tuple(topic or ()))
        pictures = _pictures(warehouse, loaded) if request.prints("html") else None
        if key is not None:
            from txn_analysis.questions.loaded_report import names_of
            from txn_analysis.report.anonymous import anonymized

            loaded, pictures = anonymized(loaded, pictures, key, names_of(warehouse, loaded))
    reader = reader_of(loaded, settings, read_ms, shows_accepted=show_accepted)
    return deliver_report(loaded, request, settings, width, pictures, reader)


def captures(request: Request) -> int:
    """List the captures in the warehouse, and their runs.

    They are those of all clusters, or of --cluster, each cluster's oldest first. CopiedAt is
    the newest timestamp of a broker's clock in the capture. With -o FILE.html it is a calendar of
    their nights: what each run answered, how many transactions were new, gone and still there, and a link to each
    night's page that lies in the same folder.

    Exit code: 0, or 2 if there is no such warehouse.
    """
    settings, cluster = request.settings(), request.flags["cluster"]
    with stored(settings) as warehouse:
        # Not needed for --help.
        from txn_analysis.questions.answers import captures_answer
        from txn_analysis.runs.run_tables import captures as held

        has_rows = any(target.form != "html" for target in request.targets)
        answer, nights = captures_answer(held(warehouse, cluster) if has_rows else ()), []
        if request.prints("html"):
            from txn_analysis.questions.night_calendar import night_calendar

            nights = night_calendar(warehouse, settings, cluster)
    for target in request.targets:
        page = partial(calendar_page, nights, settings, cluster, target.file)
        deliver([target], {**forms_of(answer), "html": page})
    return 0


def forget(
    request: Request,
    capture: Annotated[
        str,
        typer.Option(
            "--capture", metavar="NAME", help="The capture, as the verb `captures` lists it.", rich_help_panel=INPUT
        ),
    ],
) -> int:
    """Take one capture out of the warehouse.

    The runs that judged it go with it. Runs of later captures that used it stay, and their reports say so; their abort
    plans are not printed any more. Gaps that it filled are open again in later audits. Copied
    files are not touched.

    Exit code: 0, or 2 if there is no such warehouse or capture.
    """
    settings = request.settings()
    check_warehouse(settings)
    with spark_when_needed(settings, 0) as spark:
        # Not needed for --help.
        from txn_analysis.runs.run_tables import forget as forget_capture
        from txn_analysis.storage.opening import open_warehouse

        forgotten = forget_capture(open_warehouse(spark, settings.warehouse), settings.cluster, capture)
    forms = {"json": lambda: json.dumps(forgotten._asdict(), indent=2) + "\n", "text": lambda: _in_words(forgotten)}
    deliver(request.targets, forms)
    if forgotten.abort_count:
        aborts = count(forgotten.abort_count, "abort")
        print(f"note: its runs recommended {aborts}, which `verify` does not follow any more", file=sys.stderr)
    return 0


def _in_words(forgotten: Forgotten) -> str:
    runs = f" ({', '.join(forgotten.runs)})" if forgotten.runs else ""
    gone = f"{count(forgotten.input_count, 'input')}, {count(len(forgotten.runs), 'run')}{runs}"
    lines = [f"forgot capture {escape(forgotten.capture)} of cluster {escape(forgotten.cluster)}: {gone}"]
    stays = "had it behind it, and stays: audit its files again to judge without it"
    lines += [f"{run} {stays}" for run in forgotten.resting_runs]
    return "".join(f"{line}\n" for line in lines)


def _given(paths: list[str], settings: Settings) -> AbstractContextManager[None]:
    """Keeps standard input, where it is among the paths; what is wrong with the others is said before it is read."""
    from txn_analysis.reading.inputs.find_files import find_files
    from txn_analysis.reading.inputs.standard_input import STANDARD_INPUT, standard_input

    if STANDARD_INPUT in paths:
        find_files([path for path in paths if path != STANDARD_INPUT])
        check_new_warehouse(settings)
    return standard_input(paths, progress().stage("reading standard input"))


def _input_bytes(paths: list[str], settings: Settings) -> int:
    """Bytes of all files; what cannot be found or, by a first look, not be read is refused before Spark starts."""
    from txn_analysis.reading.inputs.find_files import find_files

    if settings.partition:
        from txn_analysis.runs.asked_places import asked_for  # takes Arrow, and as long as all before the first line

        asked_for(settings)  # refuses partitions without their topic
    files = find_files(paths)
    input_bytes = sum(file.size_bytes for file in files)
    with progress().stage("finding files", count(len(files), "file"), input_bytes):
        pass  # the first line, before what takes a moment to import
    from txn_analysis.reading.inputs.planning import check_at_first_sight
    from txn_analysis.reading.topic_config import read_topic_configs

    if not settings.skip_unrecognised:
        check_at_first_sight(files)
    if settings.topic_config is not None:
        read_topic_configs(settings.topic_config)
    if settings.accepted is not None:
        from txn_analysis.runs.decisions import read_decisions

        read_decisions(settings.accepted)
    check_new_warehouse(settings)
    return input_bytes


def _pictures(warehouse: Warehouse, report: AuditReport) -> Pictures:
    with progress().stage("drawing"):
        from txn_analysis.questions.loaded_report import pictures

        return pictures(warehouse, report)


def deliver_report(
    report: AuditReport,
    request: Request,
    settings: Settings,
    width: int | None,
    pictures: Pictures | None,
    reader: Reader,
) -> int:
    """Writes a report to where it is wanted, in each form, and says with which code the command ends."""
    # Not needed for --help.
    from txn_analysis.report.chat import chat_message
    from txn_analysis.report.formats import findings_csv, findings_ndjson, json_report
    from txn_analysis.report.terminal import print_styled
    from txn_analysis.report.text_report import WIDTH, report_lines, text_report

    texts: dict[str, Callable[[], str | Iterable[str]]] = {
        "json": lambda: json_report(report),
        "ndjson": lambda: findings_ndjson(report),
        "csv": lambda: findings_csv(report),
        "text": lambda: text_report(report, width or WIDTH, reader),
        "chat": lambda: chat_message(report, reader),
        "prometheus": lambda: metrics_of(report),
    }
    for target in request.targets:
        if target.form == "html":
            emit_page(report, pictures, reader, target.file)
        elif target.form == "text" and is_terminal(target.file):
            columns = width or min(max(shutil.get_terminal_size().columns, _NARROWEST), _WIDEST)
            with quiet_pipe(sys.stdout) as stream:
                print_styled(report_lines(report, columns, reader), stream)
        else:
            deliver([target], texts)
    return exit_code(report.outcome_at(settings.fail_on), settings)
