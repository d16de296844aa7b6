"""Ingest: files become rows of the input tables. Plan byte ranges, scan them in parallel, fold what was scanned."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import asdict, dataclass, field
from functools import partial
from hashlib import blake2b
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F

from txn_analysis.errors import InputError
from txn_analysis.ingest.accounting import RejectedSpan, rejected_in_log, rejected_outside, unproven_spans
from txn_analysis.ingest.plan import PlannedInput, check_inputs, plan_inputs, split_ranges
from txn_analysis.ingest.sources import find_files
from txn_analysis.ingest.tasks import REJECT_FIELDS, batches_of_ranges, records_of_sections
from txn_analysis.reconstruct.fold import FOLD_COLUMNS, fold
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
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame

    from txn_analysis.config import Settings
    from txn_analysis.ingest.plan import Section
    from txn_analysis.report.progress import Progress
    from txn_analysis.tables import Table
    from txn_analysis.warehouse import Warehouse

_LOG_KINDS = frozenset({"log", "state"})
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
    rejected_bytes: int


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
        planned, _ = in_parallel(partial(plan_inputs, warehouse.spark, files), warehouse.create)
        check_inputs(planned, settings.skip_unrecognised)
        if not any(p.sections for p in planned):
            raise InputError(["nothing to read: none of the inputs was recognised"])
    capture = settings.capture or "capture-" + _digest(p.input_id for p in planned)[:12]
    held = [] if warehouse.is_new(INPUTS) else [r.asDict() for r in warehouse.read(INPUTS).drop("sections").collect()]
    # Content that was not recognised then, and is now, must be read after all.
    known = {(row["input_id"], row["kind"]): row for row in held}
    new = [p for p in planned if (p.input_id, p.kind) not in known]
    content = _read_content(warehouse, new, settings, progress) if new else _Content(ingest_id="")
    with progress.stage("account"):
        rejected = content.rejected_bytes()
        rows = [
            _input_row(p, settings.cluster, capture, content, rejected[p.input_id], known.get((p.input_id, p.kind)))
            for p in planned
        ]
        already = {r["input_id"] for r in held if (r["cluster"], r["capture"]) == (settings.cluster, capture)}
        fresh = [r for r in rows if r["input_id"] not in already]
        if fresh:
            warehouse.append(warehouse.rows(fresh, INPUTS), INPUTS)
    sizes = (sum(r["text_bytes"] for r in rows), sum(r["rejected_bytes"] for r in rows))
    return Ingested(capture, len(planned), len(new), *sizes)


def _digest(ids: Iterator[str]) -> str:
    return blake2b("\n".join(sorted(ids)).encode(), digest_size=16).hexdigest()


@dataclass
class _Content:
    """What reading new inputs found besides rows: the spans not understood, and each input's newest broker clock."""

    ingest_id: str
    rejects: list[RejectedSpan] = field(default_factory=list)
    moments_ms: dict[str, int] = field(default_factory=dict)

    def rejected_bytes(self) -> Counter[str]:
        """Bytes that were not understood, by input."""
        counts: Counter[str] = Counter()
        for reject in self.rejects:
            counts[reject.input_id] += reject.length_bytes
        return counts

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
        if any(s.kind in _LOG_KINDS for p in planned for s in p.sections):
            _write_pieces(warehouse, planned, content)
        if content.rejects:
            rows = [asdict(r) | {"ingest_id": content.ingest_id} for r in content.rejects]
            warehouse.replace(warehouse.rows(rows, REJECTS), REJECTS, ingest_id=content.ingest_id)
    return content


def _write_batches(warehouse: Warehouse, planned: list[PlannedInput], content: _Content, settings: Settings) -> None:
    spark = warehouse.spark
    tasks = split_ranges(planned, _LOG_KINDS, settings.range_bytes, spark.sparkContext.defaultParallelism)
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
    batches = warehouse.read(LOG_BATCHES).where(F.col("ingest_id") == content.ingest_id)
    cuts = _cuts(batches, planned)

    def run(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for part in parts:
            if part.num_rows:
                yield fold(pa.Table.from_batches([part]), cuts)

    folded = batches.select(*FOLD_COLUMNS).mapInArrow(run, LOG_PIECES.schema)
    warehouse.replace(folded, LOG_PIECES, ingest_id=content.ingest_id)
    pieces = warehouse.read(LOG_PIECES).where(F.col("ingest_id") == content.ingest_id)
    place = ("input_id", "section_index", "text_start_bytes", "text_end_bytes", "text_gaps", "max_moment_ms")
    by_section = defaultdict(list)
    for row in pieces.select(*place).collect():
        by_section[row["input_id"], row["section_index"]].append(row.asDict(recursive=True))
        content.saw(row["input_id"], row["max_moment_ms"])
    for p in planned:
        for s in p.sections:
            if s.kind == "log":
                content.rejects += rejected_in_log(p, s, unproven_spans(s, by_section[p.input_id, s.index]))


def _cuts(batches: DataFrame, planned: list[PlannedInput]) -> Mapping[tuple[str, int], Sequence[int]]:
    """Where the pieces of a partition must end: at its snapshots, and where copies of its segments begin and end."""
    cuts: dict[tuple[str, int], set[int]] = defaultdict(set)
    file_count: dict[tuple[str, int], int] = defaultdict(int)
    for section in (s for p in planned for s in p.sections):
        place = (section.topic, section.partition)
        file_count[place] += section.kind in _LOG_KINDS
        if section.kind == "snapshot":
            cuts[place].add(section.file_base_offset)
    if any(count > 1 for count in file_count.values()):
        for place, bounds in _overlapping(batches).items():
            cuts[place] |= bounds
    return {place: sorted(offsets) for place, offsets in cuts.items()}


def _overlapping(batches: DataFrame) -> dict[tuple[str, int], set[int]]:
    """Bounds of all files of the partitions that have copies; as many rows as there are files."""
    files = batches.groupBy("topic", "partition", "input_id", "section_index").agg(
        F.min("base_offset").alias("first"), (F.max("last_offset") + 1).alias("end")
    )
    spans: dict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)
    for row in files.collect():
        spans[row["topic"], row["partition"]].append((row["first"], row["end"]))
    return {
        place: {offset for span in found for offset in span}
        for place, found in spans.items()
        if any(after[0] < before[1] for before, after in pairwise(sorted(found)))
    }


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
    if known:
        read = {name: known[name] for name in read}
    names = ("input_id", "path", "kind", "grammar", "compression", "size_bytes", "text_bytes", "problem")
    sections = [_section_row(s) for s in planned.sections]
    place = {"cluster": cluster, "capture": capture, "sections": sections}
    return {name: getattr(planned, name) for name in names} | place | read


def _section_row(section: Section) -> tuple[Any, ...]:
    fields = asdict(section) | {"section_index": section.index}
    return tuple(fields[name] for name in SECTION.names)
