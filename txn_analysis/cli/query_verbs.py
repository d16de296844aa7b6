"""The verbs that ask a finished run as `kafka-transactions.sh` asks a cluster.

`find-hanging`, `list`, `describe`, `describe-producers`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from txn_analysis.cli.asking import (
    Broker,
    Coordinators,
    DurationFilter,
    IdleFilter,
    Patterns,
    States,
    filters_of,
    forms_of,
    refuse_broker,
)
from txn_analysis.cli.options import Partitions, ProducerIds, Request, RunId, Topics
from txn_analysis.cli.output import deliver, run_options
from txn_analysis.cli.spark import asked_run
from txn_analysis.cli.verbs import exit_code
from txn_analysis.judge.outcome import in_doubt, outcome_of
from txn_analysis.text import count, escape, listed, shell_word
from txn_analysis.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from txn_analysis.tables import Finding

_MOST_PLACES = 5


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
        str | None,
        typer.Option("--since-run", "--since", metavar="RUN_ID", help="Only what did not hang in this run yet."),
    ] = None,
) -> int:
    """List the hanging transactions of a run.

    The columns are those of kafka-transactions.sh. CoordinatorEpoch is -1 where no marker was seen, as the tool prints
    it, and also where it is unknown. Duration(min) is the time since the last write. TransactionalId and Rule are
    added.

    Exit code: 0 nothing is listed, 1 something is (or is at or above --fail-on), 2 there is no such run, topic or the
    like, 3 it could not be told of something that is asked about (see --accept-inconclusive).
    """
    settings = request.settings()
    refuse_broker(broker)
    from txn_analysis.plan.standing import unaccepted
    from txn_analysis.questions import answers as queries
    from txn_analysis.questions import filters as asked
    from txn_analysis.runs.decisions import accepted_of

    filters = filters_of(topic, partition, state, producer_id, duration_filter, transactional_id_pattern, coordinator)
    with asked_run(settings, run_id) as tables:
        asked.check_seen(tables, filters)
        known = [] if since is None else tables.of(since).findings()
        findings, has_state, sight, run = tables.findings(), tables.has_state, tables.sight, tables.run
        answer = queries.find_hanging(findings, filters, known)
        asked_about = queries.asked_about(findings, filters, known, has_state=has_state)
        accepted = accepted_of(tables.warehouse, settings, run, asked_about)
        opened = unaccepted(asked_about, accepted)
    deliver(request.targets, forms_of(answer))
    more = f"txn-analysis report --run {shell_word(run.run_id)}{run_options(settings, run.cluster)}"
    if left_out := len(asked_about) - len(opened):
        typer.echo(f"note: {count(left_out, 'open transaction')} accepted, which the exit code leaves out", err=True)
    _say_what_is_not_listed(opened, more, has_state=has_state, fail_on=settings.fail_on)
    if sight.missing is not None:
        typer.echo(f"note: {escape(sight.missing)}; more says: {more}", err=True)
    outcome = outcome_of(opened, has_state=has_state, sight=sight, fail_on=settings.fail_on)
    return exit_code(outcome, settings)


def _say_what_is_not_listed(opened: Sequence[Finding], more: str, *, has_state: bool, fail_on: Verdict) -> None:
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
) -> int:
    """List transactional ids and their last known state.

    It is their coordinator's last word on them. Coordinator is the partition of __transaction_state whose leader
    coordinates the id: the files do not say which broker that was. --duration-filter counts up to the moment of the
    copy, and keeps only running transactions whose start is known.
    """
    settings = request.settings()
    refuse_broker(broker)
    from txn_analysis.questions import answers as queries
    from txn_analysis.questions import filters as asked

    filters = filters_of(topic, partition, state, producer_id, duration_filter, transactional_id_pattern, coordinator)
    with asked_run(settings, run_id) as tables:
        asked.check_seen(tables, filters, of_coordinator=True)
        answer = queries.list_transactions(tables.current_states(), tables.as_of_ms, filters)
    deliver(request.targets, forms_of(answer))
    return 0


def describe(
    request: Request,
    transactional_id: Annotated[
        list[str], typer.Option("--transactional-id", metavar="ID", help="The id to describe; may be repeated.")
    ],
    run_id: RunId = None,
) -> int:
    """Show the coordinator's last record of an id.

    CoordinatorId is the partition of __transaction_state that holds the id. The duration is up to the moment of the
    copy; it and the start are None while no transaction is running, and where the dump does not print the start.
    """
    from txn_analysis.questions import answers as queries

    with asked_run(request.settings(), run_id) as tables:
        answer = queries.describe(tables.current_states(*transactional_id), tables.as_of_ms, *transactional_id)
    deliver(request.targets, forms_of(answer))
    return 0


def query(
    request: Request,
    sql: Annotated[
        str, typer.Argument(metavar="SQL", help="One SELECT over tables and views; docs/queries.md has twelve.")
    ],
    run_id: RunId = None,
) -> int:
    """Answer any other question, by SQL.

    A table's name means its rows of the run. The views opened, ended, ids, all_findings and all_runs add addresses,
    transactional ids, times, and what other nights said. Nothing is written, and no other file is read.

    Exit code: 0 it is answered, 2 it is no question, or names what there is not.
    """
    from txn_analysis.report.formats import Answer, Column
    from txn_analysis.runs.ask import ask, cells

    with asked_run(request.settings(), run_id) as tables:
        found = ask(tables.finished, sql)
    deliver(request.targets, forms_of(Answer(tuple(map(Column, found.column_names)), cells(found))))
    return 0


def describe_producers(
    request: Request,
    topic: Topics = None,
    partition: Partitions = None,
    every: Annotated[
        bool, typer.Option("--all", help="Of every partition, or of all that --topic and --partition name.")
    ] = False,
    run_id: RunId = None,
    producer_id: ProducerIds = None,
    broker: Broker = None,
) -> int:
    """Show the producers of one partition, or of all.

    As their brokers would, at the end of the files. With --all each row begins with its topic and partition.
    """
    settings = request.settings()
    refuse_broker(broker)
    filters = filters_of(topic, partition, producer_ids=producer_id)
    for flag, given in (("--topic", filters.topics), ("--partition", filters.partitions)):
        if not every and len(given) != 1:
            raise typer.BadParameter("give --topic and --partition once each, or --all", param_hint=flag)
    from txn_analysis.questions import answers as queries
    from txn_analysis.questions.filters import check_seen

    wanted = filters.producer_ids
    with asked_run(settings, run_id) as tables:
        check_seen(tables, filters)
        if every:
            answer = queries.describe_all_producers(tables.all_producers(**filters.places), wanted)
        else:
            place = filters.topics[0], filters.partitions[0]
            answer = queries.describe_producers(tables.producers(*place), *place, wanted)
    deliver(request.targets, forms_of(answer))
    return 0
