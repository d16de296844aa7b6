"""Ingest: files become rows of the input tables. Plan byte ranges, scan them in parallel, fold what was scanned."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from hashlib import blake2b
from itertools import chain
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from txn_analysis.errors import InputError
from txn_analysis.ingest.accounting import (
    RejectedSpan,
    rejected_bytes,
    rejected_in_log,
    rejected_outside,
    unproven_spans,
)
from txn_analysis.ingest.content import Content, input_row, section_row
from txn_analysis.ingest.depth import Depth
from txn_analysis.ingest.plan import PlannedInput, check_inputs
from txn_analysis.ingest.planning import plan_inputs, without_changed
from txn_analysis.ingest.producer_files import CHANGED
from txn_analysis.ingest.sections import LOG, LOG_KINDS
from txn_analysis.ingest.sources import find_files
from txn_analysis.ingest.split import split_ranges
from txn_analysis.ingest.tasks import REJECT_FIELDS, batches_of_ranges, pieces_of_ranges, records_of_sections
from txn_analysis.parallel import in_parallel
from txn_analysis.reconstruct.attached import attached_pieces
from txn_analysis.reconstruct.copies import compared
from txn_analysis.tables import (
    ABORTED_TRANSACTIONS,
    INPUTS,
    LOG_BATCHES,
    LOG_PIECES,
    PRODUCER_SNAPSHOTS,
    REJECTS,
    TRANSACTION_STATES,
)
from txn_analysis.warehouse import found_by_reading

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import DataFrame

    from txn_analysis.config import Settings
    from txn_analysis.ingest.plan import ScanRange
    from txn_analysis.reconstruct.segments import SectionKey
    from txn_analysis.report.progress import Progress
    from txn_analysis.tables import Table
    from txn_analysis.warehouse import Warehouse

_COUNTED = ("text", "parsed", "rejected")
_PLACE_OF_PIECE = (
    "input_id",
    "section_index",
    "text_start_bytes",
    "text_end_bytes",
    "text_gaps",
    "first_offset",
    "last_offset",
    "max_moment_ms",
)
_RECORD_TABLES = (
    (TRANSACTION_STATES, frozenset({"state", "console_text", "console_json"})),
    (PRODUCER_SNAPSHOTS, frozenset({"snapshot"})),
    (ABORTED_TRANSACTIONS, frozenset({"txnindex"})),
)


@dataclass(frozen=True)
class Ingested:
    """What one call read: the capture it belongs to, its inputs, and how many of them were new to the warehouse."""

    capture: str
    input_count: int
    new_input_count: int
    text_bytes: int
    parsed_bytes: int
    rejected_bytes: int

    @property
    def account(self) -> str:
        """One line that accounts for every byte of the inputs."""
        return f"{self.parsed_bytes} parsed + {self.rejected_bytes} rejected = {self.text_bytes} bytes of text"


def ingest(warehouse: Warehouse, paths: Sequence[str], settings: Settings, progress: Progress) -> Ingested:
    """Read files into the input tables, as one capture of one cluster.

    Content that the warehouse already holds is not read again, whatever its name. The rows become evidence only with
    the last write, that of `inputs`; an ingest that was cut short leaves nothing that counts.

    Raises:
        InputError: a file is missing, unreadable or not understood (unless `skip_unrecognised`).
    """
    with progress.stage("plan"):
        files = find_files(paths)
        # Delta takes seconds to get ready; the tables are made while the inputs are read for the first time.
        plan = partial(plan_inputs, warehouse.spark, files, is_verified=settings.verify)
        planning, _ = in_parallel(plan, warehouse.create)
        planned = planning.inputs
        check_inputs(planned, settings.skip_unrecognised)
        if not any(p.sections for p in planned):
            raise InputError(["nothing to read: none of the inputs was recognised"])
    if planning.left_out:
        with progress.stage("pass over", planning.left_out):
            pass
    held = warehouse.held_inputs(p.input_id for p in planned)
    known = found_by_reading(row for row in held if settings.depth is Depth.QUICK or _is_full(row))
    new = [p for p in planned if (p.input_id, p.kind) not in known]
    content = _read_content(warehouse, new, settings, progress) if new else Content(ingest_id="")
    planned = _settled(planned, content)
    _write_rejects(warehouse, content)
    capture = settings.capture or "capture-" + _digest(p.input_id for p in planned)[:12]
    rejects = content.rejects_by_input()
    rejected = {p.input_id: rejected_bytes(p, rejects[p.input_id]) for p in planned}
    rows = [
        input_row(p, settings.cluster, capture, content, rejected[p.input_id]) | known.get((p.input_id, p.kind), {})
        for p in planned
    ]
    ingested = Ingested(capture, len(planned), len(new), *(sum(r[f"{n}_bytes"] for r in rows) for n in _COUNTED))
    with progress.stage("account", ingested.account):
        shallow = {(row["input_id"], row["kind"]) for row in held} - known.keys()
        if deeper := [row for row in rows if (row["input_id"], row["kind"]) in shallow]:
            warehouse.deepen_inputs(deeper)
            held = warehouse.held_inputs(p.input_id for p in planned)
        warehouse.commit_inputs(rows, held)
    return ingested


def _is_full(row: dict[str, Any]) -> bool:
    return all(
        s["has_batches"] for s in row["sections"] or () if s["kind"] in LOG_KINDS and s["first_offset"] is not None
    )


def _digest(ids: Iterator[str]) -> str:
    return blake2b("\n".join(sorted(ids)).encode(), digest_size=16).hexdigest()


def _read_content(warehouse: Warehouse, planned: list[PlannedInput], settings: Settings, progress: Progress) -> Content:
    ingest_id = _digest(chain((p.input_id for p in planned), () if settings.depth is Depth.FULL else ("quick",)))
    content = Content(ingest_id, [r for p in planned for r in rejected_outside(p)])
    size = sum(p.text_bytes for p in planned)
    with progress.stage("scan", f"{size / 2**20:.1f} MiB"):
        logs = partial(_read_logs, warehouse, planned, content, settings)
        small = [
            partial(_write_records, warehouse, planned, content, settings, t, kinds) for t, kinds in _RECORD_TABLES
        ]
        in_parallel(logs, *small)
    return content


def _settled(planned: list[PlannedInput], content: Content) -> list[PlannedInput]:
    """The inputs that count: of a log directory that changed while it was read, only what was still there."""
    changed = {r.input_id for r in content.rejects if r.reason == CHANGED}
    if not changed:
        return planned
    kept, known = without_changed(planned, changed), {p.input_id for p in planned}
    unread = [p for p in kept if p.input_id not in known]
    content.rejects = [r for r in content.rejects if r.input_id not in changed]
    content.rejects += [
        RejectedSpan(p.input_id, 0, start, end - start, why) for p in unread for start, end, why in p.rejects
    ]
    return kept


def _write_rejects(warehouse: Warehouse, content: Content) -> None:
    if content.rejects:
        rows = [asdict(r) | {"ingest_id": content.ingest_id} for r in content.rejects]
        warehouse.replace(warehouse.rows(rows, REJECTS), REJECTS, ingest_id=content.ingest_id)


def _read_logs(warehouse: Warehouse, planned: list[PlannedInput], content: Content, settings: Settings) -> None:
    """Write the folds of all logs, and the batches of those whose batches are kept."""
    spark = warehouse.spark
    tasks = split_ranges(planned, LOG_KINDS, settings.range_bytes, spark.sparkContext.defaultParallelism)
    if tasks and settings.depth is Depth.FULL:
        content.kept = {(part.input_id, part.section.index) for task in tasks for part in task}
        _write_batches(warehouse, tasks, content)
        _write_pieces(warehouse, attached_pieces(_own(warehouse, LOG_BATCHES, content)), content)
    elif tasks:
        _write_pieces(warehouse, pieces_of_ranges(spark, tasks, content.ingest_id), content)
        content.kept = _sections_to_keep(warehouse, planned, content, settings.cluster)
        kept = [[part for part in task if (part.input_id, part.section.index) in content.kept] for task in tasks]
        _write_batches(warehouse, [task for task in kept if task], content)
    for p in planned:
        for s in p.sections:
            if s.kind == LOG or (s.kind in LOG_KINDS and p.is_broker_file):
                content.rejects += rejected_in_log(p, s, unproven_spans(s, content.pieces[p.input_id, s.index]))


def _sections_to_keep(
    warehouse: Warehouse, planned: list[PlannedInput], content: Content, cluster: str
) -> set[SectionKey]:
    """The new sections whose batches will be compared, with what is here or with what the cluster has already."""
    new = [section_row(p, s, content) | {"input_id": p.input_id} for p in planned for s in p.sections]
    own = {(row["input_id"], row["section_index"]) for row in new}
    return compared([*new, *_sections_before(warehouse, cluster)]) & own


def _sections_before(warehouse: Warehouse, cluster: str) -> list[dict[str, Any]]:
    if warehouse.is_new(INPUTS):
        return []
    known = warehouse.inputs(cluster).select("input_id", F.explode("sections").alias("s")).select("input_id", "s.*")
    return [row.asDict() for row in known.collect()]


def _write_batches(warehouse: Warehouse, tasks: list[list[ScanRange]], content: Content) -> None:
    if tasks:
        read = batches_of_ranges(warehouse.spark, tasks, content.ingest_id)
        warehouse.replace(read, LOG_BATCHES, ingest_id=content.ingest_id)


def _write_records(
    warehouse: Warehouse,
    planned: list[PlannedInput],
    content: Content,
    settings: Settings,
    table: Table,
    kinds: frozenset[str],
) -> None:
    spark = warehouse.spark
    tasks = split_ranges(planned, kinds, settings.range_bytes, spark.sparkContext.defaultParallelism)
    if not tasks:
        return
    read = records_of_sections(spark, tasks, table, content.ingest_id).persist()
    is_reject = F.col("reject_reason").isNotNull()
    warehouse.replace(read.where(~is_reject), table, ingest_id=content.ingest_id)
    span = F.struct("input_id", "section_index", *[f.name for f in REJECT_FIELDS])
    moment = F.greatest("last_update_ms", "recorded_ms") if table is TRANSACTION_STATES else F.lit(None)
    found = read.groupBy("input_id").agg(F.max(moment), F.collect_list(F.when(is_reject, span)))
    for input_id, moment_ms, spans in found.collect():
        content.saw(input_id, moment_ms)
        content.rejects += [RejectedSpan(*reject) for reject in spans]
    read.unpersist()


def _write_pieces(warehouse: Warehouse, pieces: DataFrame, content: Content) -> None:
    warehouse.replace(pieces, LOG_PIECES, ingest_id=content.ingest_id)
    for row in _own(warehouse, LOG_PIECES, content).select(*_PLACE_OF_PIECE).collect():
        content.pieces[row["input_id"], row["section_index"]].append(row.asDict(recursive=True))
        content.saw(row["input_id"], row["max_moment_ms"])


def _own(warehouse: Warehouse, table: Table, content: Content) -> DataFrame:
    return warehouse.read_uncommitted(table).where(F.col("ingest_id") == content.ingest_id)
