"""The verbs by which people say what stays: `accept`."""

from __future__ import annotations

from typing import Annotated

import typer

from txn_analysis.cli.asking import forms_of
from txn_analysis.cli.options import Request, RunId, repeated
from txn_analysis.cli.output import deliver, moment_of
from txn_analysis.cli.spark import asked_run
from txn_analysis.errors import ConfigError


def accept(
    request: Request,
    finding: Annotated[
        list[str] | None,
        repeated(
            "--finding", "FINDING", "TOPIC-PARTITION@START, such as orders-0@161, or a finding_id of the JSON report"
        ),
    ] = None,
    all_of: Annotated[
        str | None,
        typer.Option("--all-of", metavar="RUN_ID", help="Every open transaction of a run but those in progress."),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option("--until", metavar="DATE", help="It holds for files that were copied before; ISO-8601, UTC."),
    ] = None,
    reason: Annotated[
        str | None, typer.Option("--reason", metavar="TEXT", help="Why; every report can show it.")
    ] = None,
    by: Annotated[str | None, typer.Option("--by", metavar="NAME", help="Who decides.")] = None,
    withdraw: Annotated[
        bool, typer.Option("--withdraw", help="What was accepted is accepted no more, in place of --until.")
    ] = False,
    run_id: RunId = None,
) -> int:
    """Accept findings until a date.

    An accepted finding is no alarm: the second line of reports counts it, --show-accepted lists it, and headline, exit
    code and metrics of runs whose files were copied before the date leave it out. Its verdict stays, and so does its
    record in the abort plan. It comes back on that date, or once its evidence changes: verdict, rule, producer epoch,
    last offset, transactional id, or whether its producer may write there again.

    Exit code: 0 it is kept, 2 there is no such run or finding, or the date is not after the run's files.
    """
    if (finding is None) == (all_of is None):
        raise ConfigError("give --finding, or --all-of RUN_ID")
    if all_of is not None and run_id is not None:
        raise ConfigError("--all-of names the run: leave out --run")
    if (until is None) is not withdraw or not reason:
        raise ConfigError("give --until DATE and --reason TEXT; or --withdraw and --reason TEXT")
    is_printed = request.prints("toml")
    if withdraw and is_printed:
        raise ConfigError("--withdraw: take the entry out of the file instead")
    until_ms = None if until is None else moment_of("--until", until)
    with asked_run(request.settings(), all_of or run_id) as tables:
        # Not needed for --help.
        from txn_analysis.questions.answers import ACCEPT
        from txn_analysis.report.formats import answer_of
        from txn_analysis.runs import decisions

        decided = decisions.decide(tables, finding, until_ms, reason, by)
        if not is_printed and decided:
            decisions.keep(tables.warehouse, decided)
    forms = forms_of(answer_of(ACCEPT, decided)) | {"toml": lambda: decisions.toml_of(decided)}
    deliver(request.targets, forms)
    return 0
