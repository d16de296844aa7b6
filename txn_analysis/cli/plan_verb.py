"""The verb `abort-plan`: what a run recommends to send, in one of three renderings."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from txn_analysis.cli.options import Request, RunId  # noqa: TC001 typer reads the annotations
from txn_analysis.cli.output import emit
from txn_analysis.cli.spark import spark_session
from txn_analysis.cli.verbs import verb

if TYPE_CHECKING:
    from txn_analysis.advise.abort_plan import AbortRecord
    from txn_analysis.config import Settings


class Rendering(StrEnum):
    """The forms of a plan."""

    WRITE_TXN_MARKERS = "write-txn-markers"
    NDJSON = "ndjson"
    COMMANDS = "commands"


def abort_plan(
    request: Request,
    run_id: RunId = None,
    rendering: Annotated[
        Rendering,
        typer.Option(
            "--rendering", "--format", help="Kafka's request as JSON, one record a line, or a commented script."
        ),
    ] = Rendering.WRITE_TXN_MARKERS,
    api_version: Annotated[
        int,
        typer.Option(
            "--api-version", min=0, max=2, help="Of WriteTxnMarkers: 0 for brokers before 2.8, 2 from 4.2 on."
        ),
    ] = 1,
) -> int:
    """Print the abort markers that a run recommends. Nothing is sent anywhere.

    Only hanging transactions are in it. Read `not_before_ms`, `not_after_ms` and `precondition` of each record (ndjson,
    commands) before you send one: a marker for a transaction that still lives loses acknowledged data silently.

    Exit code: 0 also where there is something to abort, 2 there is no such run.
    """
    settings = request.settings()
    records = _records(settings, run_id)
    emit(_rendered(records, rendering, api_version), request.output)
    return 0


def add_to(app: typer.Typer) -> None:
    """Adds this verb to the command line."""
    verb(app, "abort-plan", "txn-analysis abort-plan --format commands -o plan.txt")(abort_plan)


def _records(settings: Settings, run_id: str | None) -> list[AbortRecord]:
    with spark_session(settings) as spark:
        # Spark takes a second to import.
        from txn_analysis.advise.abort_plan import AbortRecord
        from txn_analysis.queries import run_tables
        from txn_analysis.tables import ABORT_PLAN
        from txn_analysis.warehouse import Warehouse

        tables = run_tables(Warehouse(spark, settings.warehouse), settings.cluster, run_id)
        rows = tables.rows(ABORT_PLAN).orderBy("topic", "partition", "producer_id", "txn_start_offset").collect()
        return [AbortRecord(**row.asDict(recursive=True)) for row in rows]


def _rendered(records: list[AbortRecord], rendering: Rendering, api_version: int) -> str:
    # Not needed for --help.
    from txn_analysis.advise.renderings import commands, ndjson, write_txn_markers

    if rendering is Rendering.NDJSON:
        return ndjson(records)
    if rendering is Rendering.COMMANDS:
        return commands(records)
    document, left_out = write_txn_markers(records, api_version)
    for line in left_out:
        print(line, file=sys.stderr)
    return document
