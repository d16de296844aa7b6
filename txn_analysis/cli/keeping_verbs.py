"""The verbs by which people say what stays: `accept`, and what goes: `forget`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from txn_analysis.cli.options import (
    ONE,
    ROWS,
    Forms,
    OfRun,
    Request,
    age,
    argument,
    moment,
    option,
    removed,
    schema,
)
from txn_analysis.cli.output import deliver, deliver_schema, deliver_text, note, now_ms, one, rows
from txn_analysis.cli.spark import asked_run, check_warehouse, spark_when_needed, stored
from txn_analysis.cli.verbs import verb
from txn_analysis.errors import AuditError, ConfigError
from txn_analysis.settings import INPUT, Settings
from txn_analysis.text import count, escape, iso_utc

if TYPE_CHECKING:
    from txn_analysis.questions.pruning import PruneAnswer, PrunedItem
    from txn_analysis.runs.run_tables import Forgotten

_DECISIONS = Forms(
    (*ROWS.names, "toml"),
    "How to print them; toml are entries of a file for --accepted, and nothing is kept then.",
)


@dataclass(frozen=True, kw_only=True)
class _Accept(OfRun):
    names: tuple[str, ...] = argument(
        "[ADDRESS]...",
        "TOPIC-PARTITION@OFFSET, a transaction by its first offset; or a finding_id of the JSON report.",
        nargs=-1,
    )
    findings: tuple[str, ...] = option("--finding ID", multiple=True, hidden=True)  # as 1.0 spelled it
    all_of: str | None = option("--all-of RUN_ID", "Every open transaction of a run but those in progress.")
    until_ms: int | None = option(
        "--until DATE", "It holds for files that were copied before; ISO-8601, UTC.", type=moment
    )
    reason: str | None = option("--reason TEXT", "Why; every report can show it.")
    by: str | None = option("--by NAME", "Who decides.")
    export: bool = option("--export", "Print, as TOML, what 1.0 kept in a table of the warehouse.")
    withdraw: bool = removed("--withdraw", "delete its entry in the file")


@verb(
    "accept",
    "txn-analysis accept orders-0@161 --until 2026-12-24 --reason 'gone with the topic'",
    _DECISIONS,
    uses=("accepted",),
)
def accept(asked: _Accept) -> int:
    """Accept findings until a date.

    An accepted finding is no alarm: the second line of reports counts it, --show-accepted lists it, and headline, exit
    code and metrics of runs whose files were copied before the date leave it out. Its verdict stays, and so does its
    record in the abort plan. It comes back on that date, or once its evidence changes: verdict, rule, producer epoch,
    last offset, transactional id, or whether its producer may write there again.

    Decisions are entries of one TOML file, accepted.toml in the warehouse, or that of --accepted: keep it in git. To
    withdraw one, delete its entries there. What 1.0 kept in a table holds until its date; --export writes it as
    entries, and one of the file counts in its place.

    Exit code: 0 it is kept, 2 there is no such run or finding, or the date is not after the run's files.
    """
    settings, names = asked.settings(), [*asked.names, *asked.findings] or None
    if asked.export:
        if names or asked.all_of or asked.until_ms or asked.reason or asked.by:
            raise ConfigError("--export prints what is kept: give nothing else")
        return _export(asked, settings)
    if (names is None) == (asked.all_of is None):
        raise ConfigError("give an address such as orders-0@161, or --all-of RUN_ID")
    if asked.all_of is not None and asked.run_id is not None:
        raise ConfigError("--all-of names the run: leave out --run")
    if asked.until_ms is None or not asked.reason:
        raise ConfigError("give --until DATE and --reason TEXT")
    with asked_run(settings, asked.all_of or asked.run_id) as tables:
        # Not needed for --help.
        from txn_analysis.questions.answers import ACCEPT
        from txn_analysis.report.formats import answer_of
        from txn_analysis.runs import decisions

        decided = decisions.decide(tables, names, asked.until_ms, asked.reason, asked.by)
        if decided and not asked.prints("toml"):
            decisions.keep(settings, decided)
            note(f"kept in {decisions.file_of(settings)}: to withdraw it, delete its entries there")
    deliver(asked.targets, rows(answer_of(ACCEPT, decided)) | {"toml": lambda: decisions.toml_of(decided)})
    return 0


def _export(asked: Request, settings: Settings) -> int:
    with stored(settings) as warehouse:
        from txn_analysis.runs import decisions

        return deliver_text(asked.targets, decisions.toml_of(decisions.kept_in_table(warehouse, settings.cluster)))


@dataclass(frozen=True, kw_only=True)
class ForgetOld(Request):
    """The options by which what is old goes."""

    older_than_ms: int | None = option(
        "--older-than AGE",
        "What is older goes: a number of m, h, d or w, such as 90d. [keep_ms]",
        older=("--keep",),
        type=age,
    )
    grace_ms: int | None = option(
        "--grace AGE",
        "How long what goes is still there for whoever began to read it before; longer than the longest audit. "
        "[prune_grace_ms, 1d]",
        type=age,
    )
    dry_run: bool = option("--dry-run", "With --older-than: say what would go, and change nothing.")
    schema: bool = schema()


@dataclass(frozen=True, kw_only=True)
class _Forget(ForgetOld):
    capture: str | None = option("--capture NAME", "The capture, as the verb `captures` lists it.", heading=INPUT)


@verb(
    "forget",
    "txn-analysis forget --capture capture-127d9c186fa3\n"
    "txn-analysis forget --warehouse txn-warehouse --older-than 90d --dry-run",
    ONE,
    reads_files=True,
)
def forget(asked: _Forget) -> int:
    """Take captures out of the warehouse.

    --capture says that a capture never was evidence of this cluster. The runs that judged it go with it. Runs of later
    captures that used it stay, and their reports say so; their abort plans are not printed any more. Gaps that it
    filled are open again in later audits. Copied files are not touched.

    --older-than takes only captures that nothing newer needs, of all clusters, with their runs. Age is counted from the
    newest capture of each cluster, by the brokers' clocks. What is newer stays, and what newer answers need: each
    cluster's newest run, plans that are not known to be done, the first run that saw what is still open, and each
    capture whose evidence newer ones rest on, whole and named with the reason. Rows are deleted after the grace period,
    and files once as long has passed again: by the next such calls, every night one. Killed anywhere, it is finished by
    the same command.

    Exit code: 0, or 2 if there is no such warehouse or capture, no age, or the warehouse cannot be written.
    """
    if asked.capture is None:
        return forget_old(asked)
    if asked.older_than_ms is not None or asked.grace_ms is not None or asked.dry_run or asked.schema:
        raise ConfigError("--capture takes one capture at once: leave out --older-than, --grace, --dry-run, --schema")
    settings = asked.settings()
    check_warehouse(settings)
    with spark_when_needed(settings, 0) as spark:
        # Not needed for --help.
        from txn_analysis.runs.run_tables import forget as forget_capture
        from txn_analysis.warehouse.opening import open_warehouse

        forgotten = forget_capture(open_warehouse(spark, settings.warehouse), settings.cluster, asked.capture)
    forms = {"json": lambda: json.dumps(forgotten._asdict(), indent=2) + "\n", "text": lambda: _forgot(forgotten)}
    deliver(asked.targets, forms)
    if forgotten.abort_count:
        note(f"its runs recommended {count(forgotten.abort_count, 'abort')}, which `verify` does not follow any more")
    return 0


def _forgot(forgotten: Forgotten) -> str:
    runs = f" ({', '.join(forgotten.runs)})" if forgotten.runs else ""
    gone = f"{count(forgotten.input_count, 'input')}, {count(len(forgotten.runs), 'run')}{runs}"
    lines = [f"forgot capture {escape(forgotten.capture)} of cluster {escape(forgotten.cluster)}: {gone}"]
    stays = "had it behind it, and stays: audit its files again to judge without it"
    lines += [f"{run} {stays}" for run in forgotten.resting_runs]
    return "".join(f"{line}\n" for line in lines)


def forget_old(asked: ForgetOld) -> int:
    """Takes out of the warehouse what is older than an age, or says what would go."""
    from txn_analysis.questions.pruning import PruneAnswer

    if asked.schema:
        return deliver_schema(asked.targets, PruneAnswer)
    settings = asked.settings()
    given = (settings.keep_ms, asked.older_than_ms), (settings.prune_grace_ms, asked.grace_ms)
    keep_ms, grace_ms = (usual if flag is None else flag for usual, flag in given)
    if not keep_ms:
        raise ConfigError("give --capture NAME, or --older-than AGE, such as 90d (keep_ms in the settings), above 0")
    answer = _forgotten(settings, keep_ms, grace_ms or 0, is_rehearsal=asked.dry_run)
    deliver(asked.targets, one(answer, lambda: in_words(answer)))
    return 0


def _forgotten(settings: Settings, keep_ms: int, grace_ms: int, *, is_rehearsal: bool = False) -> PruneAnswer:
    with stored(settings) as warehouse:
        from txn_analysis.questions.pruning import prune

        return prune(warehouse, keep_ms, now_ms(), grace_ms, is_rehearsal=is_rehearsal)


def forget_after(settings: Settings) -> None:
    """What an audit ends with where the settings say how long is kept; one line on stderr.

    Where it fails, the audit's exit code stays: that answers what hangs, and the next night prunes again.
    """
    if settings.keep_ms is None:
        return
    try:
        answer = _forgotten(settings, settings.keep_ms, settings.prune_grace_ms)
    except AuditError as error:
        note(f"what is old stays, as pruning failed: {error}")
        return
    gone = [item for item in answer.clusters if item.prune_id is not None]
    runs, inputs = sum(len(item.runs) for item in gone), sum(item.input_count for item in gone)
    note(f"pruned {count(runs, 'run')} and {count(inputs, 'file')} that were too old")


def in_words(answer: PruneAnswer) -> str:
    """What went, or would go; cluster by cluster, then what earlier prunes left."""
    lines = [line for item in answer.clusters for line in _of_cluster(item, answer)]
    if answer.cleared_row_count:
        lines.append(f"deleted {count(answer.cleared_row_count, 'row')} that earlier calls took")
    would = "would free" if answer.is_rehearsal else "freed"
    freed = f"{count(answer.freed_file_count, 'file')}, {answer.freed_bytes:,} bytes"
    lines.append(f"{would} {freed}, that nobody reads any more")
    is_later = answer.clear_from_ms > answer.pruned_ms and not answer.is_rehearsal
    if is_later and any(item.prune_id for item in answer.clusters):
        lines.append(f"the rows are deleted by the first forget --older-than after {iso_utc(answer.clear_from_ms)}")
    return "".join(f"{line}\n" for line in lines)


def _of_cluster(item: PrunedItem, answer: PruneAnswer) -> list[str]:
    cluster = f"cluster {escape(item.cluster)}"
    if item.before_ms is None:
        return [f"{cluster}: nothing goes: {item.why}"]
    kept = f"{cluster}: what was copied before {iso_utc(item.before_ms)} is old"
    if item.prune_id is None:
        lines = [f"{kept}; nothing goes"]
    else:
        go = "would go" if answer.is_rehearsal else f"taken by {item.prune_id}"
        what = f"{count(len(item.runs), 'run')}, {count(item.input_count, 'file')} of"
        size = f"{item.row_count:,} rows, {item.size_bytes:,} bytes"
        lines = [f"{kept}; {go}: {what} {count(len(item.captures), 'capture')} ({size})"]
    if item.runs_kept:
        lines.append(f"  {count(len(item.runs_kept), 'old run')} stay, for what is still open or not known to be done")
    if item.captures_kept:
        why = f": {item.why}" if item.why else ""
        lines.append(f"  {count(len(item.captures_kept), 'old capture')} stay whole{why}")
        lines += [f"    {escape(one.capture)}: {escape(one.why)}" for one in item.kept if not item.why]
    return lines
