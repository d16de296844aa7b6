"""The verbs that say why: `explain`, and `ended` for what came to an end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from txn_analysis.cli.asking import Patterns, addresses_of, filters_of, forms_of
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
from txn_analysis.kafka.address import Address
from txn_analysis.kafka.names import INT32_MAX, INT64_MAX

if TYPE_CHECKING:
    from txn_analysis.questions.filters import Filters

Addresses = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="ADDRESS",
        help="TOPIC-PARTITION@OFFSET, a transaction by its first offset; or TOPIC-PARTITION:OFFSET.",
    ),
]
# As 1.0 spelled an address.
StartOffset = Annotated[int | None, typer.Option("--start-offset", min=0, max=INT64_MAX, hidden=True)]
OneOffset = Annotated[int | None, typer.Option("--offset", min=0, max=INT64_MAX, hidden=True)]
Outcomes = Annotated[
    Literal["ABORT", "COMMIT", "any"] | None,
    typer.Option("--outcome", help="Only those that ended like this. [ABORT]"),
]
CauseName = Annotated[
    str | None, typer.Option("--cause", metavar="NAME", help="Only this cause, such as coordinator_timeout.")
]
Stale = Annotated[
    bool, typer.Option("--stale", help="Only those with records of an older transaction, whatever their outcome.")
]
Limit = Annotated[
    int | None,
    number("--limit", "N", "At most so many, the newest first. [1000; 50 with --by]", INT32_MAX, least=1),
]
PutTogether = Annotated[
    Literal["application", "id", "topic"] | None,
    typer.Option("--by", help="Count them by the application whose an id looks, by transactional id, or by topic."),
]
Since = Annotated[str | None, typer.Option("--since", metavar="TIME", help="With --by: only what ended then or later.")]
Until = Annotated[str | None, typer.Option("--until", metavar="TIME", help="With --by: only what ended before.")]


def explain(
    request: Request,
    address: Addresses = None,
    transactional_id: Annotated[
        str | None, typer.Option("--transactional-id", metavar="ID", help="Who a transactional id is.")
    ] = None,
    producer_id: Annotated[int | None, number("--producer-id", "ID", "Who a producer is.", most=INT64_MAX)] = None,
    group: Annotated[str | None, typer.Option("--group", metavar="G", help="Who blocks a consumer group.")] = None,
    run_id: RunId = None,
    topic: Topics = None,
    partition: Partitions = None,
    start_offset: StartOffset = None,
    offset: OneOffset = None,
    schema: Schema = False,
) -> int:
    """Explain a transaction, an offset, an id or a group.

    Of an open transaction (orders-0@161) it prints the evidence, the cause, a timeline, the rules, and what would
    change the verdict; without an address, of all open transactions of the run or of --topic, if there are not more
    than 20. Of an offset (orders-0:205) it says what is there, and why a consumer does not get past it. Of an id, a
    producer or a group: the partition of __transaction_state or __consumer_offsets that holds it (its leader is the
    coordinator), its history, where it wrote, its open transactions, and what blocks it.

    Exit code: 0 it is explained, 2 there is no such run or topic, or it was never seen, 3 the files do not tell (see
    --accept-inconclusive).
    """
    whose = [one for one in (group, transactional_id, producer_id) if one is not None]
    if len(whose) > 1:
        raise ConfigError("give one of --group, --transactional-id and --producer-id")
    places = _places(address, topic, partition, start_offset, offset)
    if whose and not (topic or places) and start_offset is None:
        return _explain_owner(request, run_id, group, transactional_id, producer_id, schema=schema)
    if group is not None or transactional_id is not None:
        raise ConfigError("--group and --transactional-id ask who it is: leave out address, --topic and --start-offset")
    if places and not places[0].is_transaction:
        if len(places) > 1 or producer_id is not None:
            raise ConfigError(f"{places[0]}: is an offset of one partition: give it alone")
        return _explain_offset(request, places[0], run_id, schema=schema)
    settings = request.settings()
    from txn_analysis.questions import explain as explanations
    from txn_analysis.questions.answers import json_text, schema_text
    from txn_analysis.questions.filters import check_seen

    if schema:
        deliver_text(request.targets, schema_text(list[explanations.Explanation]))
        return 0
    filters = filters_of(topic, partition, producer_ids=None if producer_id is None else [producer_id])
    with asked_run(settings, run_id) as tables:
        for place in places:
            check_seen(tables, filters_of([place.topic], [place.partition]))
        check_seen(tables, filters)
        explained = explanations.explain(tables, filters, start_offset, places)
    texts = {"json": lambda: json_text(explained), "text": lambda: explanations.explanations_text(explained)}
    deliver(request.targets, texts)
    return 0


def _places(
    addresses: list[str] | None,
    topics: list[str] | None,
    partitions: list[int] | None,
    start_offset: int | None,
    offset: int | None,
) -> list[Address]:
    """What is asked about, an offset first; as an address, or as options of 1.0 say an offset.

    Raises:
        ConfigError: an address is none, or options stand beside it.
    """
    if offset is not None:
        if addresses or start_offset is not None or len(topics or ()) != 1 or len(partitions or ()) != 1:
            raise ConfigError("--offset is of one partition: give its address, such as orders-0:205, and nothing else")
        return [Address((topics or [""])[0], (partitions or [0])[0], offset, is_transaction=False)]
    if addresses and (topics or partitions or start_offset is not None):
        raise ConfigError("an address names topic and partition: leave out --topic, --partition and --start-offset")
    return sorted(addresses_of(addresses), key=lambda address: address.is_transaction)


def _explain_offset(request: Request, place: Address, run_id: str | None, *, schema: bool) -> int:
    settings = request.settings()
    from txn_analysis.questions.answers import json_text, schema_text
    from txn_analysis.questions.filters import check_seen
    from txn_analysis.questions.offset import explain_offset
    from txn_analysis.questions.offset_answer import OffsetAnswer, offset_text

    if schema:
        deliver_text(request.targets, schema_text(OffsetAnswer))
        return 0
    with asked_run(settings, run_id) as tables:
        check_seen(tables, filters_of([place.topic], [place.partition]))
        answer = explain_offset(tables.finished, place.topic, place.partition, place.offset)
        options = run_options(settings, tables.run.cluster)
    deliver(request.targets, {"json": lambda: json_text(answer), "text": lambda: offset_text(answer, options)})
    return exit_code(Outcome.CLEAN if answer.is_told else Outcome.COULD_NOT_TELL, settings)


def _explain_owner(
    request: Request,
    run_id: str | None,
    group: str | None,
    transactional_id: str | None,
    producer_id: int | None,
    *,
    schema: bool,
) -> int:
    settings = request.settings()
    from txn_analysis.questions import owners
    from txn_analysis.questions.answers import json_text, schema_text
    from txn_analysis.questions.owners_text import owner_text

    if schema:
        deliver_text(request.targets, schema_text(owners.OwnerAnswer))
        return 0
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


def ended(
    request: Request,
    by: PutTogether = None,
    run_id: RunId = None,
    topic: Topics = None,
    partition: Partitions = None,
    producer_id: ProducerIds = None,
    transactional_id_pattern: Patterns = None,
    outcome: Outcomes = None,
    cause: CauseName = None,
    stale: Stale = False,
    since: Since = None,
    until: Until = None,
    limit: Limit = None,
    schema: Schema = False,
) -> int:
    """List ended transactions and who ended them; or count.

    Who ended one is its client, a timeout, a fencing, or an administrator. To a client every abort of the coordinator
    looks the same (KAFKA-9803); the coordinator's records tell them apart. Stale says which transactions held records
    of an older one, which a commit published (KIP-890).

    With --by they are counted by application, transactional id or topic: how many committed, were aborted, and why;
    how many are empty or open; their sizes, how long they took, and how long their markers; and what the files cannot
    say of that. One transaction counts once on each partition.

    Exit code: 0, or 2 where there is no such run, topic or the like.
    """
    listing = (outcome is not None, cause is not None, stale)
    counting = (since is not None, until is not None, schema)
    if by is not None and any(listing):
        raise ConfigError("--outcome, --cause and --stale list transactions: leave them out, or --by")
    if by is None and any(counting):
        raise ConfigError("--since, --until and --schema are of counts: give --by application, id or topic")
    filters = filters_of(topic, partition, producer_ids=producer_id, patterns=transactional_id_pattern)
    if by is not None:
        return _ended_by(request, filters, by, (since, until), run_id, limit or 50, schema=schema)
    settings = request.settings()
    from txn_analysis.questions.ended import EndedFilters, cost_of_timeouts, ended_answer
    from txn_analysis.questions.filters import check_seen

    outcome = outcome or "ABORT"
    wanted = EndedFilters(None if outcome == "any" or stale else outcome, cause, stale, limit or 1000)
    with asked_run(settings, run_id) as tables:
        check_seen(tables, filters)
        answer, left_out_count = ended_answer(tables.finished, filters, wanted)
    deliver(request.targets, forms_of(answer))
    if left_out_count:
        typer.echo(f"note: {left_out_count} older ones are not shown; raise --limit or say more", err=True)
    if (costs := cost_of_timeouts(answer)) is not None:
        typer.echo(f"note: {costs}", err=True)
    return 0


def _ended_by(
    request: Request,
    filters: Filters,
    by: str,
    bounds: tuple[str | None, str | None],
    run_id: str | None,
    limit: int,
    *,
    schema: bool,
) -> int:
    settings = request.settings()
    from txn_analysis.questions.answers import json_text, schema_text
    from txn_analysis.questions.filters import check_seen
    from txn_analysis.questions.stats import Window, stats_of
    from txn_analysis.questions.stats_answer import By, StatsAnswer, stats_csv, stats_ndjson, stats_text

    if schema:
        deliver_text(request.targets, schema_text(StatsAnswer))
        return 0
    flags = zip(("--since", "--until"), bounds, strict=True)
    window = Window(*(None if text is None else moment_of(flag, text) for flag, text in flags))
    if window.since_ms is not None and window.until_ms is not None and window.since_ms >= window.until_ms:
        raise ConfigError("--until must be later than --since: what ends at --until is left out")
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
