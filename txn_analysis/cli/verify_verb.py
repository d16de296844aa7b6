"""The verb `verify`: what became of the aborts that earlier runs recommended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from txn_analysis.cli.asking import note_forgotten, stored
from txn_analysis.cli.options import Request, RowFormat, RowFormatOption, RunId
from txn_analysis.cli.output import emit
from txn_analysis.cli.query_verbs import as_printed
from txn_analysis.cli.verbs import exit_code, verb
from txn_analysis.judge.outcome import Outcome

if TYPE_CHECKING:
    from txn_analysis.plan.repair import Outcome as Repaired
    from txn_analysis.report.formats import Answer


def verify(
    request: Request,
    run_id: RunId = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--since", metavar="RUN_ID", help="Only what this run recommended. [all that is not known to be done]"
        ),
    ] = None,
    history: Annotated[
        bool,
        typer.Option(
            "--history", help="Every transaction that ever hung: since when, seen, recommended and ended where."
        ),
    ] = False,
    format: RowFormatOption = RowFormat.TEXT,  # noqa: A002 the flag's own name
) -> int:
    """Say what became of the aborts that were recommended.

    The logs were copied and audited again. repaired: an abort marker ended the transaction, and not the coordinator's.
    ended_by_coordinator: the coordinator's marker did. still_hanging: the log goes on without one. not_covered: the
    capture does not show it. LsoBefore and LsoAfter are the partition's last stable offset in the run that recommended
    it, and in this one.

    Exit code: 0 nothing is left to do, 1 something still hangs or is not covered, 2 there is no such run, 3 aborts are
    recommended and no later capture tells what became of them (see --accept-inconclusive).
    """
    settings = request.settings()
    with stored(settings) as warehouse:
        from txn_analysis.questions import verify as repairs
        from txn_analysis.questions.repair_answers import history_answer, in_words, verify_answer, what_is_open

        known = repairs.nights(warehouse, settings.cluster, run_id)
        note_forgotten(known.forgotten_captures)
        outcomes: list[Repaired]
        answer: Answer
        if history:
            past = repairs.past(known)
            outcomes, answer = [item.outcome for item in past], history_answer(past)
        else:
            outcomes = repairs.verify(known, since)
            answer = verify_answer(outcomes)
        words, open_plan = in_words(outcomes), repairs.unverified(known, outcomes, since)
    emit(as_printed(answer, format) + (words if format is RowFormat.TEXT else ""), request.output)
    if open_plan is not None:
        typer.echo(what_is_open(open_plan), err=True)
    return exit_code(_outcome(outcomes, is_any_open=open_plan is not None), settings)


def _outcome(outcomes: list[Repaired], *, is_any_open: bool) -> Outcome:
    """What is not done hangs, as far as is known; what no later capture tells of may, or may not."""
    if not all(outcome.repair.is_done for outcome in outcomes):
        return Outcome.FINDINGS
    return Outcome.COULD_NOT_TELL if is_any_open else Outcome.CLEAN


def add_to(app: typer.Typer) -> None:
    """Adds this verb to the command line."""
    verb(app, "verify", "txn-analysis verify --history", uses=("exit_zero", "accept_inconclusive"))(verify)
