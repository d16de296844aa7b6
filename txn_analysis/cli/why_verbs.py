"""The verbs that say why: `explain` for open transactions and for offsets, `ended` for what came to an end, `who`.

And `stats`: what transactions did, and how long it took; `at-risk`: what will happen, and when.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from txn_analysis.cli.asking import Patterns, filters_of, forms_of
from txn_analysis.cli.options import (
    Partitions,
    ProducerIds,
    Request,
    RunId,
    Schema,
    Topics,
    number,
)
from txn_analysis.cli.output import deliver, deliver_text, moment_of, run_options
from txn_analysis.cli.spark import asked_run
from txn_analysis.cli.verbs import exit_code
from txn_analysis.errors import ConfigError
from txn_analysis.judge.outcome import Outcome
from txn_analysis.kafka.names import INT32_MAX, INT64_MAX

if TYPE_CHECKING:
    from txn_analysis.questions.filters import Filters

StartOffset = Annotated[
    int | None,
    number("--start-offset", "N", "Only the one that begins at this offset.", most=INT64_MAX),
]
OneOffset = Annotated[
    int | None,
    number("--offset", "N", "What is at this offset of one partition, in place of a transaction.", most=INT64_MAX),
]
Outcomes = Annotated[
    Literal["ABORT", "COMMIT", "any"], typer.Option("--outcome", help="Only those that ended like this.")
]
CauseName = Annotated[
    str | None, typer.Option("--cause", metavar="NAME", help="Only this cause, such as coordinator_timeout.")
]
Stale = Annotated[
    bool, typer.Option("--stale", help="Only those with records of an older transaction, whatever their outcome.")
]
Limit = Annotated[int, number("--limit", "N", "At most so many, the newest first.", most=INT32_MAX, least=1)]
MostGroups = Annotated[int, number("--limit", "N", "At most so many rows. [50]", most=INT32_MAX, least=1)]
Within = Annotated[
    int,
    number("--within", "MINUTES", "Up to so many minutes after the copy. [60]", most=INT32_MAX, least=1),
]
MostRisks = Annotated[int, number("--limit", "N", "At most so many, the soonest first. [50]", most=INT32_MAX, least=1)]
PutTogether = Annotated[
    Literal["application", "id", "topic"],
    typer.Option("--by", help="What one row is: the application whose an id looks, a transactional id, or a topic."),
]
Since = Annotated[str | None, typer.Option("--since", metavar="TIME", help="Only what ended then or later.")]
Until = Annotated[str | None, typer.Option("--until", metavar="TIME", help="Only what ended before.")]


def explain(
    request: Request,
    run_id: RunId = None,
    topic: Topics = None,
    partition: Partitions = None,
    start_offset: StartOffset = None,
    offset: OneOffset = None,
    producer_id: ProducerIds = None,
    schema: Schema = False,
) -> int:
    """Explain an open transaction, or what is at an offset.

    For a transaction it prints the evidence, the cause, a timeline, the rules, and what would change the verdict.
    Without a filter it explains all open transactions of the run, if there are not more than 20. With --offset it says
    what is at that offset, and why a consumer does not get past it.

    Exit code: 0 it is explained, 2 there is no such run or topic, 3 the files do not tell what a consumer gets at the
    offset (see --accept-inconclusive).
    """
    settings = request.settings()
    from txn_analysis.questions import explain as explanations
    from txn_analysis.questions.answers import json_text, schema_text
    from txn_analysis.questions.filters import check_seen
    from txn_analysis.questions.offset_answer import OffsetAnswer

    filters = filters_of(topic, partition, producer_ids=producer_id)
    if schema:
        deliver_text(request.targets, schema_text(list[explanations.Explanation] if offset is None else OffsetAnswer))
        return 0
    if offset is not None:
        if start_offset is not None or producer_id or len(filters.topics) != 1 or len(filters.partitions) != 1:
            raise ConfigError("--offset is of one partition: give --topic and --partition once each, and nothing else")
        return _explain_offset(request, filters, run_id, offset)
    with asked_run(settings, run_id) as tables:
        check_seen(tables, filters)
        explained = explanations.explain(tables, filters, start_offset)
    texts = {"json": lambda: json_text(explained), "text": lambda: explanations.explanations_text(explained)}
    deliver(request.targets, texts)
    return 0


def _explain_offset(request: Request, filters: Filters, run_id: str | None, offset: int) -> int:
    settings = request.settings()
    from txn_analysis.questions.answers import json_text
    from txn_analysis.questions.filters import check_seen
    from txn_analysis.questions.offset import explain_offset
    from txn_analysis.questions.offset_answer import offset_text

    with asked_run(settings, run_id) as tables:
        check_seen(tables, filters)
        answer = explain_offset(tables.finished, filters.topics[0], filters.partitions[0], offset)
        options = run_options(settings, tables.run.cluster)
    deliver(request.targets, {"json": lambda: json_text(answer), "text": lambda: offset_text(answer, options)})
    return exit_code(Outcome.CLEAN if answer.is_told else Outcome.COULD_NOT_TELL, settings)


def ended(
    request: Request,
    run_id: RunId = None,
    topic: Topics = None,
    partition: Partitions = None,
    producer_id: ProducerIds = None,
    transactional_id_pattern: Patterns = None,
    outcome: Outcomes = "ABORT",
    cause: CauseName = None,
    stale: Stale = False,
    limit: Limit = 1000,
) -> int:
    """List ended transactions, and who or what ended them.

    That is the client, a timeout, a fencing, or an administrator. To a client every abort of the coordinator looks the
    same (KAFKA-9803); the coordinator's records tell them apart. Stale says which transactions held records of an older
    one, which a commit published (KIP-890).
    """
    settings = request.settings()
    from txn_analysis.questions.ended import EndedFilters, cost_of_timeouts, ended_answer
    from txn_analysis.questions.filters import check_seen

    filters = filters_of(topic, partition, producer_ids=producer_id, patterns=transactional_id_pattern)
    wanted = EndedFilters(None if outcome == "any" or stale else outcome, cause, stale, limit)
    with asked_run(settings, run_id) as tables:
        check_seen(tables, filters)
        answer, left_out_count = ended_answer(tables.finished, filters, wanted)
    deliver(request.targets, forms_of(answer))
    if left_out_count:
        typer.echo(f"note: {left_out_count} older ones are not shown; raise --limit or say more", err=True)
    if (costs := cost_of_timeouts(answer)) is not None:
        typer.echo(f"note: {costs}", err=True)
    return 0


def who(
    request: Request,
    group: Annotated[str | None, typer.Option("--group", metavar="G", help="A consumer group.")] = None,
    transactional_id: Annotated[
        str | None, typer.Option("--transactional-id", metavar="ID", help="A transactional id.")
    ] = None,
    producer_id: Annotated[int | None, number("--producer-id", "ID", "A producer id.", most=INT64_MAX)] = None,
    run_id: RunId = None,
    schema: Schema = False,
) -> int:
    """Show who a group, an id or a producer is.

    It prints the partition of __consumer_offsets or __transaction_state that holds it (its leader is the coordinator),
    its history, where it wrote, its open transactions, and what blocks it.

    Exit code: 0 it is shown, 2 it was never seen, 3 the files do not tell (see --accept-inconclusive).
    """
    settings = request.settings()
    from txn_analysis.questions import owners
    from txn_analysis.questions.answers import json_text, schema_text
    from txn_analysis.questions.owners_text import owner_text

    if schema:
        deliver_text(request.targets, schema_text(owners.OwnerAnswer))
        return 0
    if sum(one is not None for one in (group, transactional_id, producer_id)) != 1:
        raise ConfigError("give one of --group, --transactional-id and --producer-id")
    with asked_run(settings, run_id) as tables:
        if group is not None:
            answer = owners.who_is_group(tables, group)
        elif transactional_id is not None:
            answer = owners.who_is_id(tables, transactional_id)
        else:
            answer = owners.who_is_producer(tables, producer_id or 0)
        options = run_options(settings, tables.run.cluster)
    deliver(request.targets, {"json": lambda: json_text(answer), "text": lambda: owner_text(answer, options)})
    return exit_code(Outcome.CLEAN if answer.is_told else Outcome.COULD_NOT_TELL, settings)


def stats(
    request: Request,
    by: PutTogether = "application",
    since: Since = None,
    until: Until = None,
    run_id: RunId = None,
    topic: Topics = None,
    partition: Partitions = None,
    producer_id: ProducerIds = None,
    transactional_id_pattern: Patterns = None,
    limit: MostGroups = 50,
    schema: Schema = False,
) -> int:
    """Count what transactions did.

    By application, transactional id or topic: how many committed, were aborted, and why; how many are empty or open;
    their sizes, how long they took, and how long their markers; and what the files cannot say of that. One transaction
    counts once on each partition. --since and --until are times of end markers, by the brokers' clocks.

    Exit code: 0, or 2 where there is no such run, topic or the like.
    """
    settings = request.settings()
    from txn_analysis.questions.answers import json_text, schema_text
    from txn_analysis.questions.filters import check_seen
    from txn_analysis.questions.stats import stats_of
    from txn_analysis.questions.stats_answer import By, StatsAnswer, stats_csv, stats_ndjson, stats_text
    from txn_analysis.questions.stats_columns import Window

    if schema:
        deliver_text(request.targets, schema_text(StatsAnswer))
        return 0
    bounds = (("--since", since), ("--until", until))
    window = Window(*(None if text is None else moment_of(flag, text) for flag, text in bounds))
    if window.since_ms is not None and window.until_ms is not None and window.since_ms >= window.until_ms:
        raise ConfigError("--until must be later than --since: what ends at --until is left out")
    filters = filters_of(topic, partition, producer_ids=producer_id, patterns=transactional_id_pattern)
    with asked_run(settings, run_id) as tables:
        check_seen(tables, filters)
        answer = stats_of(tables, filters, By(by), window, limit)
    forms = {
        "text": lambda: stats_text(answer),
        "json": lambda: json_text(answer),
        "ndjson": lambda: stats_ndjson(answer),
        "csv": lambda: stats_csv(answer),
    }
    deliver(request.targets, forms)
    if answer.left_out_count and any(target.form in {"csv", "ndjson"} for target in request.targets):
        typer.echo(f"note: {answer.left_out_count} more rows are not shown; raise --limit", err=True)
    return 0


def at_risk(
    request: Request,
    within: Within = 60,
    run_id: RunId = None,
    topic: Topics = None,
    partition: Partitions = None,
    limit: MostRisks = 50,
) -> int:
    """List what will happen, to whom and when.

    Partitions and groups that are stuck come first. Then, by their moment: open transactions that will be late, those
    that their coordinator will abort, hidden records that retention may delete, a disk that will be full. Moments count
    from the copy of the files: what the cluster did since is not known.

    Exit code: 0, or 2 where there is no such run, topic or the like.
    """
    settings = request.settings()
    from txn_analysis.questions import at_risk as risks
    from txn_analysis.questions.filters import check_seen

    filters = filters_of(topic, partition)
    with asked_run(settings, run_id) as tables:
        check_seen(tables, filters)
        answer, left_out_count = risks.at_risk(tables, filters, within * 60_000, limit)
    deliver(request.targets, forms_of(answer))
    if left_out_count:
        typer.echo(f"note: {left_out_count} more rows are not shown; raise --limit or say more", err=True)
    return 0
