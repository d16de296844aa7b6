"""The verbs that judge, and the report: `audit`, `ingest`, `report`."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict
from typing import TYPE_CHECKING

from txn_analysis.cli.options import (
    ENDING,
    JUDGING,
    READING,
    Format,
    Now,
    PageFile,
    Paths,
    ReportFormat,
    ReportFormatOption,
    Request,
    RunId,
    Schema,
    TextOrJson,
    Width,
)
from txn_analysis.cli.output import (
    Prometheus,
    check_output,
    emit,
    emit_page,
    emit_styled,
    is_terminal,
    read_at,
    run_options,
    write_metrics,
)
from txn_analysis.cli.query_verbs import Topics  # noqa: TC001 typer reads the annotations
from txn_analysis.cli.spark import check_new_warehouse, progress, spark_when_needed, stored
from txn_analysis.cli.verbs import exit_code, verb
from txn_analysis.errors import InputError
from txn_analysis.text.words import count

if TYPE_CHECKING:
    import typer

    from txn_analysis.report.model import AuditReport
    from txn_analysis.report.pictures import Pictures
    from txn_analysis.settings import Settings
    from txn_analysis.storage.stored import Stored

_WIDTHS = (80, 120)
_NO_STANDARD_INPUT = (
    "-: standard input is not read, since tasks read a dump in parts: write it to a file first, with > orders-0.txt "
    "in place of the pipe, and give that file"
)


def audit(
    request: Request,
    paths: Paths,
    prometheus: Prometheus = None,
    format: ReportFormatOption = ReportFormat.TEXT,  # noqa: A002 the flag's own name
    html: PageFile = None,
    width: Width = None,
    now: Now = None,
) -> int:
    """Find transactions that nobody will ever end.

    Reads what was copied off Kafka brokers (logs or dumps of them, snapshots, transaction indexes,
    __transaction_state), judges every open transaction, writes findings and abort plan into the warehouse, and prints
    the report.

    Exit code: 0 nothing hangs, 1 something does (see --fail-on), 2 something could not be read or done, 3 it could
    not be told (see --accept-inconclusive).
    """
    settings = request.settings()
    check_output(prometheus, "--prometheus")
    check_output(html, "--html")
    read_ms = read_at(now)
    with spark_when_needed(settings, _input_bytes(paths, settings)) as spark:
        from txn_analysis.pipeline.steps import audit as run_audit

        report = run_audit(spark, paths, settings, progress())
        pictures = None
        if html or format is ReportFormat.HTML:
            from txn_analysis.storage.opening import open_warehouse

            pictures = _pictures(open_warehouse(spark, settings.warehouse), report)
    if prometheus is not None:
        write_metrics(report, prometheus)
    if html:
        emit_page(report, pictures, settings, html, "--html", read_ms)
    return _deliver(report, request, settings, format, width, pictures, read_ms)


def ingest(request: Request, paths: Paths, format: Format = TextOrJson.TEXT) -> int:  # noqa: A002 the flag's own name
    """Fill the input tables from files, without judging."""
    settings = request.settings()
    with spark_when_needed(settings, _input_bytes(paths, settings)) as spark:
        from txn_analysis.pipeline.steps import ingest as run_ingest

        ingested = run_ingest(spark, paths, settings, progress())
    if format is TextOrJson.JSON:
        emit(json.dumps(asdict(ingested), indent=2) + "\n", request.output)
        return 0
    emit(
        f"capture {ingested.capture}: {count(ingested.input_count, 'input')}, {ingested.new_input_count} new to the "
        f"warehouse; {ingested.account}\n",
        request.output,
    )
    return 0


def report(
    request: Request,
    run_id: RunId = None,
    topic: Topics = None,
    format: ReportFormatOption = ReportFormat.TEXT,  # noqa: A002 the flag's own name
    html: PageFile = None,
    width: Width = None,
    now: Now = None,
    schema: Schema = False,
) -> int:
    """Print the report of a run again.

    By default of the cluster's last one.

    Exit code: 0 nothing hangs, 1 something does (see --fail-on), 2 there is no such run or topic, 3 it could not be
    told (see --accept-inconclusive); of --topic alone, where it is given.
    """
    if schema:
        from txn_analysis.report.formats import report_schema

        emit(json.dumps(report_schema(), indent=2) + "\n", request.output)
        return 0
    settings = request.settings()
    check_output(html, "--html")
    read_ms = read_at(now)
    with stored(settings) as warehouse:
        from txn_analysis.questions.loaded_report import load_report

        loaded = load_report(warehouse, settings, run_id, tuple(topic or ()))
        pictures = _pictures(warehouse, loaded) if html or format is ReportFormat.HTML else None
    if html:
        emit_page(loaded, pictures, settings, html, "--html", read_ms)
    return _deliver(loaded, request, settings, format, width, pictures, read_ms)


def add_to(app: typer.Typer) -> None:
    """Adds these verbs to the command line."""
    verb(
        app,
        "audit",
        "txn-analysis audit segments/ transaction-state/ --state-copied-last",
        reads_files=True,
        uses=(*JUDGING, *ENDING),
    )(audit)
    verb(app, "ingest", "txn-analysis ingest --capture tonight 'broker-1/*.txt'", reads_files=True, uses=READING)(
        ingest
    )
    verb(app, "report", "txn-analysis report --topic orders", uses=ENDING)(report)


def _input_bytes(paths: list[str], settings: Settings) -> int:
    """Bytes of all files; what cannot be found or, by a first look, not be read is refused before Spark starts."""
    from txn_analysis.read.inputs.find_files import find_files

    if "-" in paths:
        raise InputError([_NO_STANDARD_INPUT])
    files = find_files(paths)
    input_bytes = sum(file.size_bytes for file in files)
    with progress().stage("finding files", count(len(files), "file"), input_bytes):
        pass  # the first line, before what takes a moment to import
    from txn_analysis.read.inputs.first_look import check_at_first_sight
    from txn_analysis.read.topic_config import read_topic_configs

    if not settings.skip_unrecognised:
        check_at_first_sight(files)
    if settings.topic_config is not None:
        read_topic_configs(settings.topic_config)
    check_new_warehouse(settings)
    return input_bytes


def _pictures(warehouse: Stored, report: AuditReport) -> Pictures:
    with progress().stage("drawing"):
        from txn_analysis.questions.loaded_report import pictures

        return pictures(warehouse, report)


def _deliver(
    report: AuditReport,
    request: Request,
    settings: Settings,
    form: ReportFormat,
    width: int | None,
    pictures: Pictures | None,
    read_ms: int,
) -> int:
    # Not needed for --help.
    from txn_analysis.report.formats import json_report
    from txn_analysis.report.terminal import print_styled
    from txn_analysis.report.text_report import WIDTH, report_lines, text_report

    if form is ReportFormat.HTML:
        emit_page(report, pictures, settings, request.output, read_ms=read_ms)
    elif form is ReportFormat.JSON:
        emit(json_report(report), request.output)
    elif is_terminal(request.output):
        lines = report_lines(
            report, width or _terminal_width(), run_options(settings, report.run.cluster), settings.fail_on, read_ms
        )
        emit_styled(lambda stream: print_styled(lines, stream))
    else:
        emit(
            text_report(report, width or WIDTH, run_options(settings, report.run.cluster), settings.fail_on, read_ms),
            request.output,
        )
    return exit_code(report.outcome_at(settings.fail_on), settings)


def _terminal_width() -> int:
    narrowest, widest = _WIDTHS
    return min(max(shutil.get_terminal_size().columns, narrowest), widest)
