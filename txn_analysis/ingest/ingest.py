"""Ingest: files become rows of the input tables. Plan byte ranges, scan them in parallel, fold what was scanned."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict, dataclass, field
from functools import partial
from hashlib import blake2b
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
from txn_analysis.ingest.plan import PlannedInput, check_inputs
from txn_analysis.ingest.planning import plan_inputs, without_changed
from txn_analysis.ingest.producer_files import CHANGED
from txn_analysis.ingest.sections import LOG_KINDS
from txn_analysis.ingest.sources import find_files
from txn_analysis.ingest.split import split_ranges
from txn_analysis.ingest.tasks import REJECT_FIELDS, batches_of_ranges, records_of_sections
from txn_analysis.reconstruct.partitions import folded_pieces
from txn_analysis.tables import (
    ABORTED_TRANSACTIONS,
    INPUTS,
    LOG_BATCHES,
    LOG_PIECES,
    PRODUCER_SNAPSHOTS,
    REJECTS,
    TRANSACTION_STATES,
)
from txn_analysis.tables.inputs import SECTION
from txn_analysis.warehouse import in_parallel

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from txn_analysis.config import Settings
    from txn_analysis.ingest.plan import Section
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
    held = _held(warehouse, planned)
    # Content that was not recognised then, and is now, must be read after all.
    known = {(row["input_id"], row["kind"]): row for row in held}
    new = [p for p in planned if (p.input_id, p.kind) not in known]
    content = _read_content(warehouse, new, settings, progress) if new else _Content(ingest_id="")
    planned = _settled(planned, content)
    _write_rejects(warehouse, content)
    capture = settings.capture or "capture-" + _digest(p.input_id for p in planned)[:12]
    rejects = content.rejects_by_input()
    rejected = {p.input_id: rejected_bytes(p, rejects[p.input_id]) for p in planned}
    rows = [
        _input_row(p, settings.cluster, capture, content, rejected[p.input_id], known.get((p.input_id, p.kind)))
        for p in planned
    ]
    ingested = Ingested(capture, len(planned), len(new), *(sum(r[f"{n}_bytes"] for r in rows) for n in _COUNTED))
    with progress.stage("account", ingested.account):
        already = {r["input_id"] for r in held if (r["cluster"], r["capture"]) == (settings.cluster, capture)}
        fresh = [r for r in rows if r["input_id"] not in already]
        if fresh:
            warehouse.commit_inputs(fresh)
    return ingested


def _held(warehouse: Warehouse, planned: list[PlannedInput]) -> list[dict[str, Any]]:
    """Rows of `inputs` that list any of these contents, of whatever cluster and capture."""
    if warehouse.is_new(INPUTS):
        return []
    ids = warehouse.spark.createDataFrame([(p.input_id,) for p in planned], "input_id string")
    rows = warehouse.read(INPUTS).join(F.broadcast(ids), "input_id", "left_semi")
    return [row.asDict(recursive=True) for row in rows.collect()]


def _digest(ids: Iterator[str]) -> str:
    return blake2b("\n".join(sorted(ids)).encode(), digest_size=16).hexdigest()


@dataclass
class _Content:
    """What reading new inputs found besides rows: the spans not understood, each input's newest broker clock, and the
    first and the end offset of each section with batches.
    """

    ingest_id: str
    rejects: list[RejectedSpan] = field(default_factory=list)
    moments_ms: dict[str, int] = field(default_factory=dict)
    offsets: dict[SectionKey, tuple[int, int]] = field(default_factory=dict)

    def rejects_by_input(self) -> dict[str, list[RejectedSpan]]:
        """The spans that were not understood, by input."""
        found: dict[str, list[RejectedSpan]] = defaultdict(list)
        for reject in self.rejects:
            found[reject.input_id].append(reject)
        return found

    def saw(self, input_id: str, moment_ms: int | None) -> None:
        if moment_ms is not None:
            self.moments_ms[input_id] = max(moment_ms, self.moments_ms.get(input_id, moment_ms))


def _read_content(
    warehouse: Warehouse, planned: list[PlannedInput], settings: Settings, progress: Progress
) -> _Content:
    content = _Content(_digest(p.input_id for p in planned), [r for p in planned for r in rejected_outside(p)])
    size = sum(p.text_bytes for p in planned)
    with progress.stage("scan", f"{size / 2**20:.1f} MiB"):
        logs = partial(_write_batches, warehouse, planned, content, settings)
        small = [
            partial(_write_records, warehouse, planned, content, settings, t, kinds) for t, kinds in _RECORD_TABLES
        ]
        in_parallel(logs, *small)
    with progress.stage("fold"):
        if any(s.kind in LOG_KINDS for p in planned for s in p.sections):
            _write_pieces(warehouse, planned, content)
    return content


def _settled(planned: list[PlannedInput], content: _Content) -> list[PlannedInput]:
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


def _write_rejects(warehouse: Warehouse, content: _Content) -> None:
    if content.rejects:
        rows = [asdict(r) | {"ingest_id": content.ingest_id} for r in content.rejects]
        warehouse.replace(warehouse.rows(rows, REJECTS), REJECTS, ingest_id=content.ingest_id)


def _write_batches(warehouse: Warehouse, planned: list[PlannedInput], content: _Content, settings: Settings) -> None:
    spark = warehouse.spark
    tasks = split_ranges(planned, LOG_KINDS, settings.range_bytes, spark.sparkContext.defaultParallelism)
    if tasks:
        read = batches_of_ranges(spark, tasks, content.ingest_id)
        warehouse.replace(read, LOG_BATCHES, ingest_id=content.ingest_id)


def _write_records(
    warehouse: Warehouse,
    planned: list[PlannedInput],
    content: _Content,
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


def _write_pieces(warehouse: Warehouse, planned: list[PlannedInput], content: _Content) -> None:
    of_ingest = F.col("ingest_id") == content.ingest_id
    folded = folded_pieces(warehouse.read_uncommitted(LOG_BATCHES).where(of_ingest))
    warehouse.replace(folded, LOG_PIECES, ingest_id=content.ingest_id)
    pieces = warehouse.read_uncommitted(LOG_PIECES).where(of_ingest).select(*_PLACE_OF_PIECE)
    by_section = defaultdict(list)
    for row in pieces.collect():
        by_section[row["input_id"], row["section_index"]].append(row.asDict(recursive=True))
        content.saw(row["input_id"], row["max_moment_ms"])
    content.offsets = {
        key: (min(p["first_offset"] for p in found), max(p["last_offset"] for p in found) + 1)
        for key, found in by_section.items()
    }
    for p in planned:
        for s in p.sections:
            if s.kind == "log" or (s.kind in LOG_KINDS and p.is_broker_file):
                content.rejects += rejected_in_log(p, s, unproven_spans(s, by_section[p.input_id, s.index]))


def _input_row(
    planned: PlannedInput, cluster: str, capture: str, content: _Content, rejected: int, known: dict[str, Any] | None
) -> dict[str, Any]:
    """One row of `inputs`; content that was read before keeps what was found then."""
    read = {
        "ingest_id": content.ingest_id,
        "parsed_bytes": planned.text_bytes - rejected,
        "rejected_bytes": rejected,
        "newest_moment_ms": content.moments_ms.get(planned.input_id),
    }
    sections = [_section_row(s, content.offsets.get((planned.input_id, s.index))) for s in planned.sections]
    if known:
        read = {name: known[name] for name in read}
        sections = known["sections"]
    names = ("input_id", "path", "kind", "grammar", "compression", "size_bytes", "text_bytes", "problem")
    place = {"cluster": cluster, "capture": capture, "sections": sections}
    return {name: getattr(planned, name) for name in names} | place | read


def _section_row(section: Section, offsets: tuple[int, int] | None) -> dict[str, Any]:
    first_offset, end_offset = offsets or (None, None)
    fields = asdict(section) | {
        "section_index": section.index,
        "first_offset": first_offset,
        "end_offset": end_offset,
    }
    return {name: fields[name] for name in SECTION.names}
