"""The verbs that ask a finished run as `kafka-transactions.sh` asks a cluster; and `query`, for every other question.

`find-hanging`, `list`, `describe`, `describe-producers`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from txn_analysis.cli.options import (
    ENDING,
    ROWS,
    OfProducers,
    OfRun,
    OfTransactions,
    argument,
    broker,
    option,
    repeated,
)
from txn_analysis.cli.output import deliver, note, rows
from txn_analysis.cli.spark import asked_run
from txn_analysis.cli.verbs import exit_code, verb
from txn_analysis.judge.outcome import in_doubt, outcome_of
from txn_analysis.text import count, escape, listed, shell_word
from txn_analysis.verdict import Verdict

if TYPE_CHECKING:
    from txn_analysis.tables import Finding

_MOST_PLACES = 5


@dataclass(frozen=True, kw_only=True)
class _FindHanging(OfTransactions):
    since_run: str | None = option("--since-run RUN_ID", "Only what did not hang in this run yet.", older=("--since",))


@verb("find-hanging", "txn-analysis find-hanging --topic orders", ROWS, uses=ENDING)
def find_hanging(asked: _FindHanging) -> int:
    """List the hanging transactions of a run.

    The columns are those of kafka-transactions.sh. CoordinatorEpoch is -1 where no marker was seen, as the tool prints
    it, and also where it is unknown. Duration(min) is the time since the last write. TransactionalId and Rule are
    added.

    Exit code: 0 nothing is listed, 1 something is (or is at or above --fail-on), 2 there is no such run, topic or the
    like, 3 it could not be told of something that is asked about (see --ok-inconclusive).
    """
    settings = asked.settings()
    from txn_analysis.plan.standing import unaccepted
    from txn_analysis.questions import answers as queries
    from txn_analysis.report.figures import run_options
    from txn_analysis.runs.decisions import accepted_of

    filters = asked.filters()
    with asked_run(settings, asked.run_id, filters) as tables:
        known = [] if asked.since_run is None else tables.of(asked.since_run).findings()
        findings, has_state, logs, run = tables.findings(), tables.has_state, tables.log_coverage, tables.run
        answer = queries.find_hanging(findings, filters, known)
        asked_about = queries.asked_about(findings, filters, known, has_state=has_state)
        accepted = accepted_of(tables.warehouse, settings, run, asked_about)
        opened = unaccepted(asked_about, accepted)
    deliver(asked.targets, rows(answer))
    more = f"txn-analysis report --run {shell_word(run.run_id)}{run_options(settings, run.cluster)}"
    if left_out := len(asked_about) - len(opened):
        note(f"{count(left_out, 'open transaction')} accepted, which the exit code leaves out")
    _note_what_is_not_listed(opened, more, has_state=has_state, fail_on=settings.fail_on)
    if logs.missing is not None:
        note(f"{escape(logs.missing)}; more says: {more}")
    outcome = outcome_of(opened, has_state=has_state, logs=logs, fail_on=settings.fail_on)
    return exit_code(outcome, settings)


def _note_what_is_not_listed(opened: Sequence[Finding], more: str, *, has_state: bool, fail_on: Verdict) -> None:
    """On stderr, what the exit code rests on beside the rows."""
    doubtful = in_doubt(opened, has_state=has_state)
    others = [row for row in opened if fail_on.severity <= row.verdict.severity < Verdict.HANGING.severity]
    for unlisted, what in (
        (others, f"at or above --fail-on {fail_on.value}"),
        (doubtful, "of which it could not be told"),
    ):
        if unlisted:
            places = listed(sorted({f"{escape(row.topic)}-{row.partition}" for row in unlisted}), _MOST_PLACES)
            note(f"{count(len(unlisted), 'open transaction')} {what}, on {places}; more says: {more}")


@verb("list", "txn-analysis list --state Ongoing --duration-filter 60000", ROWS)
def list_(asked: OfTransactions) -> int:
    """List transactional ids and their last known state.

    It is their coordinator's last word on them. Coordinator is the partition of __transaction_state whose leader
    coordinates the id: the files do not say which broker that was. --duration-filter counts up to the moment of the
    copy, and keeps only running transactions whose start is known.
    """
    from txn_analysis.questions.answers import list_transactions

    filters = asked.filters()
    with asked_run(asked.settings(), asked.run_id, filters, of_coordinator=True) as tables:
        answer = list_transactions(tables.current_states(), tables.as_of_ms, filters)
    deliver(asked.targets, rows(answer))
    return 0


@dataclass(frozen=True, kw_only=True)
class _Describe(OfRun):
    transactional_ids: tuple[str, ...] = repeated("--transactional-id ID", "The id to describe", required=True)


@verb("describe", "txn-analysis describe --transactional-id billing-worker-17", ROWS)
def describe(asked: _Describe) -> int:
    """Show the coordinator's last record of an id.

    CoordinatorId is the partition of __transaction_state that holds the id. The duration is up to the moment of the
    copy; it and the start are None while no transaction is running, and where the dump does not print the start.
    """
    from txn_analysis.questions.answers import describe as described

    with asked_run(asked.settings(), asked.run_id) as tables:
        ids = asked.transactional_ids
        answer = described(tables.current_states(*ids), tables.as_of_ms, *ids)
    deliver(asked.targets, rows(answer))
    return 0


@dataclass(frozen=True, kw_only=True)
class _Query(OfRun):
    sql: str = argument(
        "SQL", "One SELECT over tables and views (docs/queries.md has twelve), or DESCRIBE NAME.", required=True
    )


@verb(
    "query",
    'txn-analysis query "DESCRIBE findings"\n'
    'txn-analysis query "SELECT topic, count(*) AS hanging FROM findings GROUP BY topic ORDER BY topic"\n'
    'txn-analysis query "SELECT address, size_bytes FROM ended ORDER BY size_bytes DESC NULLS LAST LIMIT 10"',
    ROWS,
)
def query(asked: _Query) -> int:
    """Answer any other question, by SQL.

    A name means its rows of one run. Views: `opened`, open transactions with their verdicts, and `ended`, ended
    ones with outcome, size and times, both with address and transactional id; `ids`, whose a producer id is;
    `decided`, what the coordinator decided when; `all_findings` and `all_runs`, every night of the cluster. Tables:
    `partition_health`, what readers of a partition do not see; `transaction_states`, each record of the
    coordinator, and `current_states`, the newest of each id; `inputs`, what files were read, and `rejects`, what of
    them was not understood; `log_batches`, `log_pieces`, `transactions`, `ended_transactions`,
    `aborted_transactions`, `producer_snapshots`, `group_offsets`, `findings`, `abort_plan`, `runs`, `prunes`.
    `DESCRIBE NAME` lists the columns of one, and what they say. Nothing is written, and no other file is read.

    Exit code: 0 it is answered, 2 it is no question, or names what there is not.
    """
    from txn_analysis.report.formats import Answer, Column
    from txn_analysis.runs.ask import ask, cells

    with asked_run(asked.settings(), asked.run_id) as tables:
        table = ask(tables.finished, asked.sql)
    deliver(asked.targets, rows(Answer(tuple(map(Column, table.column_names)), cells(table))))
    return 0


@dataclass(frozen=True, kw_only=True)
class _DescribeProducers(OfProducers):
    is_all: bool = option("--all", "Of every partition, or of all that --topic and --partition name.")
    broker: str | None = broker()


@verb("describe-producers", "txn-analysis describe-producers --topic orders --partition 0", ROWS)
def describe_producers(asked: _DescribeProducers) -> int:
    """Show the producers of one partition, or of all.

    As their brokers would, at the end of the files. With --all each row begins with its topic and partition.
    """
    settings = asked.settings()
    filters = asked.filters()
    for flag, given in (("--topic", filters.topics), ("--partition", filters.partitions)):
        if not asked.is_all and len(given) != 1:
            raise click.BadParameter("give --topic and --partition once each, or --all", param_hint=flag)
    from txn_analysis.questions import answers as queries

    with asked_run(settings, asked.run_id, filters) as tables:
        answer = queries.describe_producers(tables, filters, is_all=asked.is_all)
    deliver(asked.targets, rows(answer))
    return 0
