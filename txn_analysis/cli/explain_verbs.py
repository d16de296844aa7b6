"""The verbs that say why: `explain` for open transactions, `ended` for those that came to an end."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from txn_analysis.cli.options import Format, Request, RowFormat, RowFormatOption, RunId, TextOrJson
from txn_analysis.cli.output import emit
from txn_analysis.cli.query_verbs import Partitions, Patterns, ProducerIds, Topics, as_printed
from txn_analysis.cli.spark import asked_run
from txn_analysis.cli.verbs import verb
from txn_analysis.kafka.batch_format import INT32_MAX, INT64_MAX


class Outcome(StrEnum):
    """How a transaction ended; `any` also where the dump does not say it."""

    ABORT = "ABORT"
    COMMIT = "COMMIT"
    ANY = "any"


StartOffset = Annotated[
    int | None,
    typer.Option("--start-offset", metavar="N", min=0, max=INT64_MAX, help="Only the one that begins at this offset."),
]
Outcomes = Annotated[Outcome, typer.Option("--outcome", help="Only those that ended like this.")]
CauseName = Annotated[
    str | None, typer.Option("--cause", metavar="NAME", help="Only this cause, such as coordinator_timeout.")
]
Stale = Annotated[
    bool, typer.Option("--stale", help="Only those with records of an older transaction, whatever their outcome.")
]
Limit = Annotated[
    int, typer.Option("--limit", metavar="N", min=1, max=INT32_MAX, help="At most so many, the newest first.")
]


def explain(
    request: Request,
    run_id: RunId = None,
    topic: Topics = None,
    partition: Partitions = None,
    start_offset: StartOffset = None,
    producer_id: ProducerIds = None,
    format: Format = TextOrJson.TEXT,  # noqa: A002 the flag's own name
) -> int:
    """Show why an open transaction has its verdict.

    Its timeline, the rules, the cause, and what would change it. Without a filter all open transactions of the run are
    explained, as long as there are not more than 20.
    """
    settings = request.settings()
    from txn_analysis.questions.filters import Filters, check_seen

    filters = Filters(tuple(topic or ()), tuple(partition or ()), producer_ids=tuple(producer_id or ()))
    with asked_run(settings, run_id) as tables:
        check_seen(tables, filters)
        run = tables.finished()
        from txn_analysis.questions.explain import explain as explained_of
        from txn_analysis.report.explanation import explanations_json, explanations_text

        explained = explained_of(run, filters, start_offset)
    shown = explanations_json(explained) if format is TextOrJson.JSON else explanations_text(explained)
    emit(shown, request.output)
    return 0


def ended(
    request: Request,
    run_id: RunId = None,
    topic: Topics = None,
    partition: Partitions = None,
    producer_id: ProducerIds = None,
    transactional_id_pattern: Patterns = None,
    outcome: Outcomes = Outcome.ABORT,
    cause: CauseName = None,
    stale: Stale = False,
    limit: Limit = 1000,
    format: RowFormatOption = RowFormat.TEXT,  # noqa: A002 the flag's own name
) -> int:
    """List ended transactions, and who or what ended them.

    The client, a timeout, a fencing, or an administrator. An abort of the coordinator looks to its client like any
    other (KAFKA-9803); the coordinator's records tell them apart. Stale tells which transactions held records of an
    older one, which a commit published (KIP-890).
    """
    settings = request.settings()
    from txn_analysis.questions.filters import Filters, check_seen

    filters = Filters(
        topics=tuple(topic or ()),
        partitions=tuple(partition or ()),
        producer_ids=tuple(producer_id or ()),
        transactional_id_patterns=tuple(transactional_id_pattern or ()),
    )
    from txn_analysis.questions.ended import EndedFilters, ended_answer

    wanted = EndedFilters(None if outcome is Outcome.ANY or stale else outcome.value, cause, stale, limit)
    with asked_run(settings, run_id) as tables:
        check_seen(tables, filters)
        answer, left_out_count = ended_answer(tables.finished(), filters, wanted)
    emit(as_printed(answer, format), request.output)
    if left_out_count:
        typer.echo(f"note: {left_out_count} older ones are not shown; raise --limit or say more", err=True)
    return 0


def add_to(app: typer.Typer) -> None:
    """Adds these verbs to the command line."""
    verb(app, "explain", "txn-analysis explain --topic orders --partition 0")(explain)
    verb(app, "ended", "txn-analysis ended --topic orders --cause coordinator_timeout")(ended)
