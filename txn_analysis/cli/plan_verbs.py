"""The verb `abort-plan`: what a run recommends to send, in one of three renderings; and the check of such a file.

And `verify`: what became of the aborts that earlier runs recommended.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from txn_analysis.cli.options import (
    COULD_NOT_TELL,
    PLAN,
    ROWS,
    OfPlaces,
    OfRun,
    Request,
    argument,
    count_of_rows,
    option,
    repeated,
    schema,
    transaction,
)
from txn_analysis.cli.output import deliver, deliver_text, note, now_ms, rows
from txn_analysis.cli.spark import asked_run, doubts_of, note_evidence, note_newer, stored
from txn_analysis.cli.verbs import exit_code, verb
from txn_analysis.errors import AuditError
from txn_analysis.judge.outcome import Outcome
from txn_analysis.kafka.address import Address
from txn_analysis.settings import Settings
from txn_analysis.text import count

if TYPE_CHECKING:
    from txn_analysis.plan.plan_file import Part
    from txn_analysis.plan.repair import Outcome as Repaired
    from txn_analysis.tables import AbortRecord


@dataclass(frozen=True, kw_only=True)
class Printed(Request):
    """How a plan is printed; all options of `jobs/abort_plan.py`, and some of the verb."""

    api_version: int = option(
        "--api-version N",
        "Of WriteTxnMarkers: 0 for brokers before 2.8, 2 from 4.2 on.",
        type=click.IntRange(0, 2),
        default=1,
    )
    fenced: tuple[str, ...] = repeated(
        "--fenced ID",
        "You stopped the producer of this transactional id, what it had in progress has ended, and you fenced it: "
        "write-txn-markers has its records",
        older=("--ended",),
    )
    expired: bool = option("--expired", "Print a plan that is too old to be executed, to look at it.")
    yes_many: bool = option("--yes-many", "Print a plan for more partitions than plan_max_partitions (100).")


@dataclass(frozen=True, kw_only=True)
class _AbortPlan(OfPlaces, Printed):
    addresses: tuple[Address, ...] = argument(
        "[ADDRESS]...",
        "TOPIC-PARTITION@OFFSET: the transaction that begins at this offset.",
        nargs=-1,
        type=transaction,
    )
    transactional_ids: tuple[str, ...] = repeated("--transactional-id ID", "Only this id")
    max_records: int | None = option("--max-records N", "Only the first N of what is left.", type=count_of_rows)
    check: str | None = option(
        "--check FILE",
        "Print nothing, but refuse FILE (ndjson) if it was changed or has expired; with --warehouse, also if its run "
        "never recommended it.",
    )
    schema: bool = schema("Print the JSON schema of a line of ndjson instead.")


@verb(
    "abort-plan",
    "txn-analysis abort-plan --format commands -o plan.sh\ntxn-analysis abort-plan orders-0@161",
    PLAN,
)
def abort_plan(asked: _AbortPlan) -> int:
    """Print the script that sends aborts; send nothing.

    Only hanging transactions are in it. An abort of a live transaction silently loses acknowledged data. So the script
    checks the time and the brokers before each abort, and refuses if a check fails. If you send the other two forms,
    you must honour `not_before_ms`, `not_after_ms` and `precondition` of each record (ndjson). The request for
    `write-txn-markers` leaves out the records whose producer must be ended first (see --fenced). docs/runbook.md is the
    procedure.

    Exit code: 0 also if there is something to abort, 2 there is no such run, its plan has expired, or FILE is
    refused.
    """
    from txn_analysis.plan import plan_file

    if asked.schema:
        return deliver_text(asked.targets, json.dumps(plan_file.record_schema(), indent=2) + "\n")
    part = plan_file.Part(asked.topics, asked.partitions, asked.transactional_ids, asked.max_records, asked.addresses)
    if asked.check is None:
        return print_plan(asked, asked.run_id, part)
    if part != plan_file.Part():
        raise AuditError("--check takes the file as it is: leave out what narrows a plan")
    is_given = asked.flags["warehouse"] is not None
    return deliver_text(asked.targets, _checked(asked.check, asked.settings(), is_warehouse_given=is_given))


def print_plan(asked: Printed, run_id: str | None, part: Part) -> int:
    """Prints the plan of a run, or a part of it; returns the exit code."""
    from txn_analysis.plan import plan_file

    fenced = asked.fenced
    if fenced and {form for _, form in asked.targets} != {"write-txn-markers"}:
        raise AuditError(
            "--fenced belongs to --format write-txn-markers; the script takes it when it is run: sh plan.sh --ended ID"
        )
    settings = asked.settings()
    planned, max_timeout_ms = _records(settings, run_id, part, is_to_be_sent=not asked.expired)
    records = _wanted(planned, part)
    if not asked.yes_many:
        plan_file.check_size(records, settings.plan_max_partitions)
    plan_file.check_ended(records, fenced)
    printed_ms = now_ms()
    if not asked.expired:
        plan_file.check_printed(records, printed_ms)
    still_to_end = [record for record in records if record.transactional_id not in fenced]
    for line in (*plan_file.expired(records, printed_ms), *plan_file.producers_to_end(still_to_end, max_timeout_ms)):
        note(line)
    deliver(asked.targets, _renderings(records, asked.api_version, fenced, max_timeout_ms))
    return 0


def _wanted(records: list[AbortRecord], part: Part) -> list[AbortRecord]:
    wanted = list(part.of(records))
    if len(wanted) < len(records):
        note(f"{len(wanted)} of {len(records)} records of the plan")
    return wanted


def _checked(file: str, settings: Settings, *, is_warehouse_given: bool) -> str:
    from txn_analysis.plan import plan_file

    try:
        # Newlines as they are: the file is compared byte by byte.
        text = Path(file).read_bytes().decode("ascii")
    except OSError as error:
        raise AuditError(f"--check {file}: cannot be read: {error.strerror or error}; check the path") from error
    except UnicodeDecodeError as error:
        raise AuditError(f"{file}: is not ASCII, which `--format ndjson` always is") from error
    records = plan_file.read_plan(text, file)
    # What is executed is executed now.
    executed_ms = now_ms()
    plan_file.check_time(records, executed_ms, file)
    max_timeout_ms = settings.transaction_max_timeout_ms
    if is_warehouse_given:
        planned, max_timeout_ms = _records(settings, records[0].run_id, plan_file.Part())
        plan_file.check_against(records, planned, file)
    return plan_file.what_was_checked(records, executed_ms, max_timeout_ms)


def _records(
    settings: Settings, run_id: str | None, part: Part, *, is_to_be_sent: bool = True
) -> tuple[list[AbortRecord], int]:
    """The plan of a run, and the brokers' transaction.max.timeout.ms that it was told.

    A part of it that names what the run never saw is refused, as it would look like no plan; and one that is to be
    sent, if a later copy speaks against an abort of it.
    """
    with asked_run(settings, run_id) as tables:
        # Not needed for --help.
        from txn_analysis.questions import filters as asked
        from txn_analysis.runs.nights import withdrawn

        for words in doubts_of(tables):
            raise AuditError(f"no plan of it is printed: {words}")
        asked.check_seen(tables, asked.Filters(part.topics, part.partitions))
        asked.check_ids_seen(tables, part.transactional_ids)
        planned = tables.abort_plan()
        for record, later in withdrawn(tables.warehouse, tables.run, part.of(planned) if is_to_be_sent else ()):
            raise AuditError(
                f"{Address.of_transaction(record)}: run {later.run_id} judged a later copy, and recommends no abort of "
                f"it. Print the plan of that run (--run {later.run_id}), or this one as it was with --expired"
            )
        return planned, tables.max_timeout_ms


def _renderings(
    records: list[AbortRecord], api_version: int, ended: Sequence[str], max_timeout_ms: int
) -> dict[str, Callable[[], str]]:
    """The plan in each of its forms."""
    # Not needed for --help.
    from txn_analysis.plan.plan_file import ndjson, write_txn_markers
    from txn_analysis.plan.script import commands

    def request_of_kafka() -> str:
        document, left_out = write_txn_markers(records, api_version, ended)
        for line in left_out:
            print(line, file=sys.stderr)
        return document

    return {
        "commands": lambda: commands(records, max_timeout_ms),
        "ndjson": lambda: ndjson(records),
        "write-txn-markers": request_of_kafka,
    }


@dataclass(frozen=True, kw_only=True)
class _Verify(OfRun):
    since_run: str | None = option(
        "--since-run RUN_ID", "Only what this run recommended. [all that is not known to be done]", older=("--since",)
    )
    history: bool = option(
        "--history", "Every transaction that ever hung: since when, seen, recommended and ended where."
    )


@verb("verify", "txn-analysis verify --history", ROWS, uses=(*COULD_NOT_TELL, "accepted"))
def verify(asked: _Verify) -> int:
    """Tell whether each recommended abort worked.

    Copy the logs and audit them again first. repaired: an abort marker that is not the coordinator's ended the
    transaction. ended_by_coordinator: the coordinator's marker did. still_hanging: the log goes on without a marker.
    not_covered: the capture does not show it. LsoBefore and LsoAfter are the partition's last stable offset in the run
    that recommended the abort, and in this one.

    Exit code: 0 nothing is left to do, 1 something still hangs or is not covered, 2 there is no such run, 3 no later
    capture tells whether the recommended aborts worked (see --ok-inconclusive).
    """
    settings = asked.settings()
    with stored(settings) as warehouse:
        from txn_analysis.questions import verify as repairs
        from txn_analysis.questions.answers import HISTORY, VERIFY, in_words, what_is_open
        from txn_analysis.report.formats import answer_of

        known = repairs.nights(warehouse, settings.cluster, asked.run_id)
        note_evidence(known.tables)
        note_newer(known.tables, asked.run_id)
        if asked.history:
            past = repairs.past(known)
            outcomes, answer = [item.outcome for item in past], answer_of(HISTORY, past)
        else:
            outcomes = repairs.verify(known, asked.since_run)
            answer = answer_of(VERIFY, outcomes)
        open_plan = repairs.unverified(known, outcomes, asked.since_run)
        words = in_words(outcomes, open_plan)
        counted = repairs.unaccepted(known, outcomes, settings)
    deliver(asked.targets, rows(answer, words))
    if open_plan is not None:
        print(what_is_open(open_plan), file=sys.stderr)
    if left_out := len(outcomes) - len(counted):
        note(f"{count(left_out, 'transaction')} accepted, which the exit code leaves out")
    return exit_code(_outcome(counted, is_any_open=open_plan is not None), settings)


def _outcome(outcomes: list[Repaired], *, is_any_open: bool) -> Outcome:
    """What is not done hangs, as far as is known; what no later capture tells of may, or may not."""
    if not all(outcome.repair.is_done for outcome in outcomes):
        return Outcome.FINDINGS
    return Outcome.COULD_NOT_TELL if is_any_open else Outcome.CLEAN
