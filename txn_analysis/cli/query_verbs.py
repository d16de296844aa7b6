"""The verbs that ask a finished run.

Those of `kafka-transactions.sh`: `find-hanging`, `list`, `describe`, `describe-producers`; and those that say why:
`explain` for open transactions, `ended` for those that came to an end.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from txn_analysis.cli.options import (
    Format,
    Partitions,
    ProducerIds,
    Request,
    RowFormat,
    RunId,
    Topics,
    number,
    repeated,
)
from txn_analysis.cli.output import emit, run_options
from txn_analysis.cli.spark import asked_run
from txn_analysis.cli.verbs import exit_code
from txn_analysis.errors import ConfigError
from txn_analysis.judge.outcome import in_doubt, outcome_of
from txn_analysis.kafka.names import INT32_MAX, INT64_MAX, MAX_STATE_PARTITIONS
from txn_analysis.text.escape import escape, shell_word
from txn_analysis.text.words import count, listed
from txn_analysis.verdict import Verdict

if TYPE_CHECKING:
    from txn_analysis.questions.filters import Filters
    from txn_analysis.report.formats import Answer
    from txn_analysis.tables import Finding

_MOST_PLACES = 5
_STATE_PARTITION_PREFIX = "__transaction_state-"
_STATE_PARTITION = re.compile("[0-9]{1,7}")
_STATES = ("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "PrepareEpochFence")


Patterns = Annotated[
    list[str] | None,
    repeated("--transactional-id-pattern", "REGEX", "Only transactional ids that match as a whole"),
]
IdleFilter = Annotated[
    list[int] | None,
    number("--duration-filter", "MS", "Only what was idle for longer than this.", most=INT64_MAX),
]
DurationFilter = Annotated[
    list[int] | None,
    number("--duration-filter", "MS", "Only transactions that have run for longer than this.", most=INT64_MAX),
]
Broker = Annotated[
    str | None,
    typer.Option("--broker", "--broker-id", metavar="ID", help="Refused: the files do not say which broker leads."),
]
Coordinators = Annotated[
    list[str] | None,
    repeated("--coordinator", "NAME", "Only ids of this partition, such as __transaction_state-3"),
]
States = Annotated[list[str] | None, repeated("--state", "STATE", "Only this state, such as Ongoing, in any case")]
StartOffset = Annotated[
    int | None,
    number("--start-offset", "N", "Only the one that begins at this offset.", most=INT64_MAX),
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


def find_hanging(
    request: Request,
    run_id: RunId = None,
    topic: Topics = None,
    partition: Partitions = None,
    state: States = None,
    producer_id: ProducerIds = None,
    duration_filter: IdleFilter = None,
    transactional_id_pattern: Patterns = None,
    coordinator: Coordinators = None,
    broker: Broker = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="RUN_ID", help="Only what did not hang in this run yet.")
    ] = None,
    format: RowFormat = "text",  # noqa: A002 the flag's own name
) -> int:
    """List the hanging transactions of a run.

    The columns are those of kafka-transactions.sh. CoordinatorEpoch is -1 where no marker was seen, as the tool prints
    it, and also where it is unknown. Duration(min) is the time since the last write. TransactionalId and Rule are
    added.

    Exit code: 0 nothing is listed, 1 something is (or is at or above --fail-on), 2 there is no such run, topic or the
    like, 3 it could not be told of something that is asked about (see --accept-inconclusive).
    """
    settings = request.settings()
    _refuse_broker(broker)
    from txn_analysis.questions import answers as queries
    from txn_analysis.questions import filters as asked

    filters = _filters(topic, partition, state, producer_id, duration_filter, transactional_id_pattern, coordinator)
    with asked_run(settings, run_id) as tables:
        asked.check_seen(tables, filters)
        known = [] if since is None else tables.of(since).findings()
        findings, has_state, sight, run = tables.findings(), tables.has_state, tables.sight, tables.run
        answer = queries.find_hanging(findings, filters, known)
        opened = queries.asked_about(findings, filters, known, has_state=has_state)
    emit(as_printed(answer, format), request.output)
    more = f"txn-analysis report --run {shell_word(run.run_id)}{run_options(settings, run.cluster)}"
    _say_what_is_not_listed(opened, more, has_state=has_state, fail_on=settings.fail_on)
    if sight.missing is not None:
        typer.echo(f"note: {escape(sight.missing)}; more says: {more}", err=True)
    outcome = outcome_of(opened, has_state=has_state, sight=sight, fail_on=settings.fail_on)
    return exit_code(outcome, settings)


def _say_what_is_not_listed(opened: list[Finding], more: str, *, has_state: bool, fail_on: Verdict) -> None:
    """On stderr, what the exit code rests on beside the rows."""
    doubtful = in_doubt(opened, has_state=has_state)
    others = [row for row in opened if fail_on.severity <= row.verdict.severity < Verdict.HANGING.severity]
    for rows, what in ((others, f"at or above --fail-on {fail_on.value}"), (doubtful, "of which it could not be told")):
        if rows:
            places = listed(sorted({f"{escape(row.topic)}-{row.partition}" for row in rows}), _MOST_PLACES)
            number = count(len(rows), "open transaction")
            typer.echo(f"note: {number} {what}, on {places}; more says: {more}", err=True)


def list_(
    request: Request,
    run_id: RunId = None,
    topic: Topics = None,
    partition: Partitions = None,
    state: States = None,
    producer_id: ProducerIds = None,
    duration_filter: DurationFilter = None,
    transactional_id_pattern: Patterns = None,
    coordinator: Coordinators = None,
    broker: Broker = None,
    format: RowFormat = "text",  # noqa: A002 the flag's own name
) -> int:
    """List transactional ids and their last known state.

    It is their coordinator's last word on them. Coordinator is the partition of __transaction_state whose leader
    coordinates the id: the files do not say which broker that was. --duration-filter counts up to the moment of the
    copy, and keeps only running transactions whose start is known.
    """
    settings = request.settings()
    _refuse_broker(broker)
    from txn_analysis.questions import answers as queries
    from txn_analysis.questions import filters as asked

    filters = _filters(topic, partition, state, producer_id, duration_filter, transactional_id_pattern, coordinator)
    with asked_run(settings, run_id) as tables:
        asked.check_seen(tables, filters, of_coordinator=True)
        answer = queries.list_transactions(tables.current_states(), tables.as_of_ms, filters)
    emit(as_printed(answer, format), request.output)
    return 0


def describe(
    request: Request,
    transactional_id: Annotated[
        list[str], typer.Option("--transactional-id", metavar="ID", help="The id to describe; may be repeated.")
    ],
    run_id: RunId = None,
    format: RowFormat = "text",  # noqa: A002 the flag's own name
) -> int:
    """Show the coordinator's last record of an id.

    CoordinatorId is the partition of __transaction_state that holds the id. The duration is up to the moment of the
    copy; it and the start are None while no transaction is running, and where the dump does not print the start.
    """
    from txn_analysis.questions import answers as queries

    with asked_run(request.settings(), run_id) as tables:
        answer = queries.describe(tables.current_states(*transactional_id), tables.as_of_ms, *transactional_id)
    emit(as_printed(answer, format), request.output)
    return 0


def describe_producers(
    request: Request,
    topic: Annotated[list[str], typer.Option("--topic", metavar="TOPIC", help="The topic.")],
    partition: Annotated[list[int], number("--partition", "N", "The partition.", most=INT32_MAX)],
    run_id: RunId = None,
    producer_id: ProducerIds = None,
    broker: Broker = None,
    format: RowFormat = "text",  # noqa: A002 the flag's own name
) -> int:
    """Show the producers of one partition.

    As its broker would, at the end of the files.
    """
    settings = request.settings()
    _refuse_broker(broker)
    if len(topic) + len(partition) > 2:
        raise ConfigError("describe-producers shows one partition: give --topic and --partition once each")
    from txn_analysis.questions import answers as queries
    from txn_analysis.questions import filters as asked

    wanted = tuple(producer_id or ())
    with asked_run(settings, run_id) as tables:
        asked.check_seen(tables, asked.Filters(tuple(topic), tuple(partition), producer_ids=wanted))
        answer = queries.describe_producers(tables.producers(topic[0], partition[0]), topic[0], partition[0], wanted)
    emit(as_printed(answer, format), request.output)
    return 0


def explain(
    request: Request,
    run_id: RunId = None,
    topic: Topics = None,
    partition: Partitions = None,
    start_offset: StartOffset = None,
    producer_id: ProducerIds = None,
    format: Format = "text",  # noqa: A002 the flag's own name
) -> int:
    """Show why an open transaction has its verdict.

    Its timeline, the rules, the cause, and what would change it. Without a filter all open transactions of the run are
    explained, as long as there are not more than 20.
    """
    settings = request.settings()
    from txn_analysis.questions import explain as explanations
    from txn_analysis.questions.filters import check_seen

    filters = _filters(topic, partition, producer_ids=producer_id)
    with asked_run(settings, run_id) as tables:
        check_seen(tables, filters)
        explained = explanations.explain(tables.finished, filters, start_offset)
    form = explanations.explanations_json if format == "json" else explanations.explanations_text
    emit(form(explained), request.output)
    return 0


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
    format: RowFormat = "text",  # noqa: A002 the flag's own name
) -> int:
    """List ended transactions, and who or what ended them.

    The client, a timeout, a fencing, or an administrator. An abort of the coordinator looks to its client like any
    other (KAFKA-9803); the coordinator's records tell them apart. Stale tells which transactions held records of an
    older one, which a commit published (KIP-890).
    """
    settings = request.settings()
    from txn_analysis.questions.ended import EndedFilters, ended_answer
    from txn_analysis.questions.filters import check_seen

    filters = _filters(topic, partition, producer_ids=producer_id, patterns=transactional_id_pattern)
    wanted = EndedFilters(None if outcome == "any" or stale else outcome, cause, stale, limit)
    with asked_run(settings, run_id) as tables:
        check_seen(tables, filters)
        answer, left_out_count = ended_answer(tables.finished, filters, wanted)
    emit(as_printed(answer, format), request.output)
    if left_out_count:
        typer.echo(f"note: {left_out_count} older ones are not shown; raise --limit or say more", err=True)
    return 0


def as_printed(answer: Answer, form: RowFormat) -> str:
    """Rows as they are asked for."""
    forms = {"text": answer.text, "json": answer.json, "ndjson": answer.ndjson, "csv": answer.csv}
    return forms[form]()


def _refuse_broker(broker: str | None) -> None:
    if broker is not None:
        raise ConfigError("--broker: dumps do not say which broker leads a partition; use --topic and --partition")


def _filters(
    topics: list[str] | None,
    partitions: list[int] | None,
    states: list[str] | None = None,
    producer_ids: list[int] | None = None,
    durations_ms: list[int] | None = None,
    patterns: list[str] | None = None,
    coordinators: list[str] | None = None,
) -> Filters:
    """What is asked for; several durations add, so that the shortest one counts."""
    from txn_analysis.questions.filters import Filters

    return Filters(
        topics=tuple(topics or ()),
        partitions=tuple(partitions or ()),
        states=tuple(map(_known_state, states or ())),
        producer_ids=tuple(producer_ids or ()),
        duration_ms=min(durations_ms) if durations_ms else None,
        transactional_id_patterns=tuple(patterns or ()),
        state_partitions=tuple(map(_state_partition, coordinators or ())),
    )


def _state_partition(coordinator: str) -> int:
    number = coordinator.removeprefix(_STATE_PARTITION_PREFIX)
    if number == coordinator or not _STATE_PARTITION.fullmatch(number) or int(number) >= MAX_STATE_PARTITIONS:
        raise ConfigError(
            f"--coordinator {coordinator}: dumps do not say which broker coordinates an id; "
            f"give a partition, such as {_STATE_PARTITION_PREFIX}3"
        )
    return int(number)


def _known_state(state: str) -> str:
    known = {name.lower(): name for name in _STATES}
    if state.lower() not in known:
        raise ConfigError(f"--state {state}: unknown; the states are {', '.join(_STATES)}")
    return known[state.lower()]
