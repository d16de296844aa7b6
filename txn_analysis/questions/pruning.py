"""What an age takes out of a warehouse: of each cluster the old runs and files that nothing newer needs.

How old something is, the brokers' clocks say: the newest capture of a cluster is not old, whatever the calendar says,
and a warehouse that nobody fed loses nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from operator import attrgetter
from typing import NamedTuple

from txn_analysis.columns.arrays import by_key
from txn_analysis.plan.standing import TOLD
from txn_analysis.questions import verify as repairs
from txn_analysis.questions.old_evidence import OldEvidence, partitions_of
from txn_analysis.report.model import Item
from txn_analysis.runs.nights import withdrawn
from txn_analysis.runs.prunes import TakenInput, clear, keys_of, take
from txn_analysis.runs.run_tables import Capture, captures, newest_run, run_tables
from txn_analysis.tables import FINDINGS, INPUTS, RUNS, Prune
from txn_analysis.tables.inputs import ReadInput, RunRecord
from txn_analysis.tables.keeping import TakenContent, TakenPartition
from txn_analysis.warehouse.delta_tables import Warehouse
from txn_analysis.warehouse.rows import Size

SCHEMA_VERSION = 1
_NOT_JUDGED = "no run judged all of a capture of it yet"
_NOT_DATED = "no broker's clock and no run says how old its captures are"


class KeptCapture(Item):
    """An old capture that stays as a whole, and why."""

    capture: str
    why: str


class PrunedItem(Item):
    """What a prune takes of one cluster; captures and runs oldest first.

    `captures` are taken, `captures_kept` stay although they are old, as something newer needs them: `kept` says what.
    So do `runs_kept`. `before_ms` is null where nothing says how old the captures are; `why` says why nothing, or
    no capture, is taken. `row_count` counts rows of all tables that count for nothing then, `size_bytes` their files.
    """

    cluster: str
    prune_id: str | None
    before_ms: int | None
    captures: tuple[str, ...] = ()
    captures_kept: tuple[str, ...] = ()
    kept: tuple[KeptCapture, ...] = ()
    input_count: int = 0
    runs: tuple[str, ...] = ()
    runs_kept: tuple[str, ...] = ()
    row_count: int = 0
    size_bytes: int = 0
    why: str | None = None


class PruneAnswer(Item):
    """What a prune did, or would do.

    `clear_from_ms` says from when on the rows that it took may be deleted, by the next prune. `cleared_row_count` are
    rows that earlier prunes took and this one deleted, `freed_file_count` and `freed_bytes` files that nobody reads any
    more: taken out of the tables a grace period ago, or left by an audit that was killed a week ago.
    """

    schema_version: int = SCHEMA_VERSION
    is_rehearsal: bool
    pruned_ms: int
    clear_from_ms: int
    clusters: tuple[PrunedItem, ...]
    cleared_row_count: int
    freed_file_count: int
    freed_bytes: int


class _Going(NamedTuple):
    """What goes of one cluster; None where nothing does."""

    item: PrunedItem
    prune: Prune | None = None
    inputs: tuple[TakenInput, ...] = ()


def prune(warehouse: Warehouse, keep_ms: int, now_ms: int, grace_ms: int, *, is_rehearsal: bool = False) -> PruneAnswer:
    """Take out of a warehouse what is older than an age, as far as nothing newer needs it; finish earlier prunes.

    Args:
        warehouse: whose clusters are pruned, all of them.
        keep_ms: what is older than the newest capture of its cluster by more is old.
        now_ms: this machine's clock.
        grace_ms: how long rows, and then files, are still there for whoever began to read them before.
        is_rehearsal: nothing is written.

    Raises:
        WarehouseError: the warehouse cannot be written, or others were faster every time.
    """
    items, cleared = list[PrunedItem](), Size()
    clusters = sorted({capture.cluster for capture in captures(warehouse)})
    for cluster in clusters:
        going = _going(warehouse, cluster, keep_ms, now_ms, grace_ms)
        if going.prune is not None and not is_rehearsal:
            take(warehouse, going.prune, going.inputs)
        items.append(going.item)
    if not is_rehearsal:
        cleared = clear(warehouse, now_ms)
    freed = warehouse.tidy(grace_ms, is_rehearsal=is_rehearsal)
    return PruneAnswer(
        is_rehearsal=is_rehearsal,
        pruned_ms=now_ms,
        clear_from_ms=now_ms + grace_ms,
        clusters=tuple(items),
        cleared_row_count=cleared.row_count,
        freed_file_count=freed.file_count,
        freed_bytes=freed.size_bytes,
    )


def _going(warehouse: Warehouse, cluster: str, keep_ms: int, now_ms: int, grace_ms: int) -> _Going:
    runs = sorted(warehouse.records(RunRecord, RUNS, cluster=[cluster]), key=attrgetter("run_number"))
    known = captures(warehouse, cluster)
    newest = newest_run([run for run in runs if run.asked is None], known)
    ages = {capture.name: _age_ms(capture, runs) for capture in known}
    newest_ms = max((age_ms for age_ms in ages.values() if age_ms is not None), default=None)
    if newest is None or newest_ms is None:
        why = _NOT_JUDGED if newest is None else _NOT_DATED
        return _Going(PrunedItem(cluster=cluster, prune_id=None, before_ms=None, why=why))
    before_ms = newest_ms - keep_ms
    names = [capture.name for capture in known]
    older = names[: names.index(newest.capture)]
    old = [name for name in older if (age_ms := ages[name]) is not None and age_ms < before_ms]
    inputs = warehouse.records(ReadInput, INPUTS, cluster=[cluster])
    evidence = OldEvidence(run_tables(warehouse, cluster, newest.run_id), inputs, old[::-1], before_ms)
    gone_inputs = evidence.unneeded_inputs() if old else []
    old_runs = [run for run in runs if run.as_of_ms is not None and run.as_of_ms < before_ms]
    needed = {newest.run_id, *_needed_runs(warehouse, cluster, newest, runs)} if old_runs else set[str]()
    gone_runs = tuple(run.run_id for run in old_runs if run.run_id not in needed)
    gone = {(item.capture, item.input_id) for item in gone_inputs}
    gone_captures = {capture for capture, _ in gone}
    item = PrunedItem(
        cluster=cluster,
        prune_id=None,
        before_ms=before_ms,
        captures=tuple(name for name in old if name in gone_captures),
        captures_kept=tuple(evidence.why_kept),
        kept=tuple(KeptCapture(capture=name, why=why) for name, why in evidence.why_kept.items()),
        input_count=len(gone_inputs),
        runs=gone_runs,
        runs_kept=tuple(run.run_id for run in old_runs if run.run_id in needed),
        why=evidence.why_all_stay if old else None,
    )
    if not gone_inputs and not gone_runs:
        return _Going(item)
    stay = [run.run_number for run in warehouse.records(RunRecord, RUNS) if run.run_id not in gone_runs]
    moments = {capture.name: capture.newest_moment_ms for capture in known}
    record = _record(warehouse, item, gone_inputs, now_ms, grace_ms, max(stay))
    record = record._replace(newest_moment_ms=moments[newest.capture])
    size = _size(warehouse, record)
    rows = size.row_count + len(gone_inputs) + len(gone_runs)
    shown = item.model_copy(update={"prune_id": record.prune_id, "row_count": rows, "size_bytes": size.size_bytes})
    return _Going(shown, record, tuple(TakenInput(cluster, *place) for place in sorted(gone)))


def _age_ms(capture: Capture, runs: Sequence[RunRecord]) -> int | None:
    """When a capture was copied, as its last run was told or found it; else its newest moment."""
    copied_ms = [run.as_of_ms for run in runs if run.capture == capture.name and run.as_of_ms is not None]
    return copied_ms[-1] if copied_ms else capture.newest_moment_ms


def _needed_runs(warehouse: Warehouse, cluster: str, newest: RunRecord, runs: Sequence[RunRecord]) -> set[str]:
    """Old runs that newer answers name: the first that saw what is still open, plans that are not known done, and what
    speaks against these.
    """
    tables = run_tables(warehouse, cluster, newest.run_id)
    ids = sorted(finding.finding_id for finding in tables.findings() if finding.verdict in TOLD)
    order = {run.run_id: (run.as_of_ms or 0, run.run_number) for run in runs}
    first = dict[str, str]()
    if ids:
        finding_rows = warehouse.rows(FINDINGS, "run_id", "finding_id", run_id=[*order], finding_id=ids)
        for run_id, name in zip(*(column.to_pylist() for column in finding_rows.columns), strict=True):
            first[name] = min(first.get(name, run_id), run_id, key=order.__getitem__)
    known = repairs.nights(warehouse, cluster, newest.run_id)
    plans = by_key((one.record for one in repairs.verify(known) if not one.repair.is_done), attrgetter("run_id"))
    against = {later.run_id for run in runs for _, later in withdrawn(warehouse, run, plans.get(run.run_id, ()))}
    return {*first.values(), *plans, *against}


def _record(
    warehouse: Warehouse, item: PrunedItem, inputs: Sequence[ReadInput], now_ms: int, grace_ms: int, last_number: int
) -> Prune:
    """The row of `prunes`; content that another capture has is not taken."""
    gone = {(item.cluster, one.capture, one.input_id) for one in inputs}
    named = warehouse.rows(INPUTS, "cluster", "capture", "input_id", "ingest_id").to_pylist()
    stays = {
        TakenContent(row["ingest_id"], row["input_id"])
        for row in named
        if (row["cluster"], row["capture"], row["input_id"]) not in gone
    }
    contents = {TakenContent(one.ingest_id, one.input_id) for one in inputs} - stays
    of_content = [one for one in inputs if TakenContent(one.ingest_id, one.input_id) in contents]
    what = repr((item.cluster, item.captures, item.runs, sorted(gone), now_ms))
    return Prune(
        prune_id="prune-" + blake2b(what.encode(), digest_size=6).hexdigest(),
        cluster=item.cluster,
        pruned_ms=now_ms,
        before_ms=item.before_ms or 0,
        clear_from_ms=now_ms + grace_ms,
        cleared_ms=None,
        last_run_number=last_number,
        newest_moment_ms=None,
        captures=item.captures,
        runs=item.runs,
        contents=tuple(sorted(contents)),
        partitions=tuple(TakenPartition(*place) for place in partitions_of(of_content)),
    )


def _size(warehouse: Warehouse, record: Prune) -> Size:
    """How much the rows are that a prune takes, beside those of `runs` and `inputs`."""
    contents = {*record.contents}
    named = {*warehouse.records(TakenContent, INPUTS)} - contents
    total = Size()
    for table, keys in keys_of({*record.runs}, contents, {content.ingest_id for content in named}):
        total = total.plus(warehouse.remove(table, keys, is_rehearsal=True))
    return total
