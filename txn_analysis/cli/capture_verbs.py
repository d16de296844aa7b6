"""The verbs about what a warehouse holds: `captures` lists it, `forget` takes a capture out of it."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from txn_analysis.cli.options import Format, Request, RowFormat, RowFormatOption, TextOrJson
from txn_analysis.cli.output import emit
from txn_analysis.cli.query_verbs import as_printed
from txn_analysis.cli.spark import check_warehouse, spark_when_needed, stored
from txn_analysis.cli.verbs import verb
from txn_analysis.text.escape import escape
from txn_analysis.text.words import count

if TYPE_CHECKING:
    from txn_analysis.pipeline.forget import Forgotten


def captures(request: Request, format: RowFormatOption = RowFormat.TEXT) -> int:  # noqa: A002 the flag's own name
    """List the captures in the warehouse, and their runs.

    Of all clusters, or of the one that --cluster names; of each cluster oldest first, as runs order them. CopiedAt is
    the newest timestamp of a broker's clock in the capture.

    Exit code: 0, or 2 where there is no such warehouse.
    """
    with stored(request.settings()) as warehouse:
        # Not needed for --help.
        from txn_analysis.questions.captures_answer import captures_answer
        from txn_analysis.runs.captures import captures as held

        answer = captures_answer(held(warehouse, request.cluster))
    emit(as_printed(answer, format), request.output)
    return 0


def forget(
    request: Request,
    capture: Annotated[
        str, typer.Option("--capture", metavar="NAME", help="The capture, as the verb `captures` lists it.")
    ],
    format: Format = TextOrJson.TEXT,  # noqa: A002 the flag's own name
) -> int:
    """Take one capture out of the warehouse.

    The runs that judged it go with it. Runs of later captures that had it behind them stay, and say so wherever they
    are asked; no abort plan of them is printed any more. Gaps that it filled are open again in later audits. Copied
    files are not touched.

    Exit code: 0, or 2 where there is no such warehouse or capture.
    """
    settings = request.settings()
    check_warehouse(settings)
    with spark_when_needed(settings, 0) as spark:
        # Not needed for --help.
        from txn_analysis.pipeline.forget import forget as forget_capture
        from txn_analysis.storage.opening import open_warehouse

        forgotten = forget_capture(open_warehouse(spark, settings.warehouse), settings.cluster, capture)
    if format is TextOrJson.JSON:
        emit(json.dumps(forgotten._asdict(), indent=2) + "\n", request.output)
        return 0
    emit(_in_words(forgotten), request.output)
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


def add_to(app: typer.Typer) -> None:
    """Adds these verbs to the command line."""
    verb(app, "captures", "txn-analysis captures --warehouse txn-warehouse")(captures)
    verb(app, "forget", "txn-analysis forget --capture capture-127d9c186fa3", reads_files=True)(forget)
