"""Ingest: files become rows of the input tables. Plan byte ranges, scan them in parallel, fold what was scanned."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from hashlib import blake2b
from itertools import chain
from typing import TYPE_CHECKING, Any

from txn_analysis.depth import Depth
from txn_analysis.errors import InputError
from txn_analysis.kafka.sections import LOG, LOG_KINDS
from txn_analysis.log.copies import compared
from txn_analysis.log.sections import log_sections
from txn_analysis.pipeline.content import Content, input_row, section_row
from txn_analysis.pipeline.ingest_tasks import FOLDS, RECORD_KINDS, log_tasks, record_tasks
from txn_analysis.pipeline.job_progress import followed
from txn_analysis.read.inputs.accounting import (
    RejectedSpan,
    rejected_bytes,
    rejected_in_log,
    rejected_outside,
    unproven_spans,
)
from txn_analysis.read.inputs.byte_ranges import split_ranges
from txn_analysis.read.inputs.find_files import find_files
from txn_analysis.read.inputs.planned_input import PlannedInput, check_inputs
from txn_analysis.read.inputs.planning import plan_inputs, without_changed
from txn_analysis.read.log_dir.producer_files import CHANGED
from txn_analysis.storage.commits import commit_inputs, deepen_inputs, found_by_reading, held_inputs
from txn_analysis.tables import INPUTS, LOG_BATCHES, REJECTS
from txn_analysis.tables.inputs import READING_VERSION

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from txn_analysis.log.sections import SectionKey
    from txn_analysis.report.progress import Progress
    from txn_analysis.settings import Settings
    from txn_analysis.storage.warehouse import Warehouse

_COUNTED = ("text", "parsed", "rejected")


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
    files = find_files(paths)
    with progress.stage("plan", total_bytes=sum(file.size_bytes for file in files)) as tell, followed(tell):
        warehouse.create()
        planning = plan_inputs(warehouse.session, files, is_verified=settings.verify)
        planned = planning.inputs
        check_inputs(planned, settings.skip_unrecognised)
        if not any(p.sections for p in planned):
            raise InputError(["nothing to read: none of the inputs was recognised"])
    if planning.left_out:
        with progress.stage("pass over", planning.left_out):
            pass
    held = held_inputs(warehouse, (p.input_id for p in planned))
    known = found_by_reading(row for row in held if _is_read_as_now(row, settings.depth))
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
        read_otherwise = {(row["input_id"], row["kind"]) for row in held} - known.keys()
        if deeper := [row for row in rows if (row["input_id"], row["kind"]) in read_otherwise]:
            deepen_inputs(warehouse, deeper)
            held = held_inputs(warehouse, (p.input_id for p in planned))
        commit_inputs(warehouse, rows, held)
    return ingested


def _is_read_as_now(row: dict[str, Any], depth: Depth) -> bool:
    """Reading its content again would keep no more of it."""
    return row["reading_version"] == READING_VERSION and (depth is Depth.QUICK or _is_full(row))


def _is_full(row: dict[str, Any]) -> bool:
    return all(
        s["has_batches"] for s in row["sections"] or () if s["kind"] in LOG_KINDS and s["first_offset"] is not None
    )


def _digest(ids: Iterator[str]) -> str:
    return blake2b("\n".join(sorted(ids)).encode(), digest_size=16).hexdigest()


def _read_content(warehouse: Warehouse, planned: list[PlannedInput], settings: Settings, progress: Progress) -> Content:
    how = (str(READING_VERSION), *(() if settings.depth is Depth.FULL else ("quick",)))
    ingest_id = _digest(chain((p.input_id for p in planned), how))
    content = Content(ingest_id, [r for p in planned for r in rejected_outside(p)])
    size = sum(p.text_bytes for p in planned)
    with progress.stage("scan", total_bytes=size) as tell, followed(tell):
        _fill_tables(warehouse, planned, content, settings)
    for p in planned:
        for s in p.sections:
            if s.kind == LOG or (s.kind in LOG_KINDS and p.is_broker_file):
                content.rejects += rejected_in_log(p, s, unproven_spans(s, content.pieces[p.input_id, s.index]))
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
        warehouse.replace_rows(rows, REJECTS, ingest_id=content.ingest_id)


def _fill_tables(warehouse: Warehouse, planned: list[PlannedInput], content: Content, settings: Settings) -> None:
    """Fill all tables from one look at every text; a quick audit looks again at the few logs whose batches it keeps."""
    parallelism = warehouse.parallelism(sum(p.text_bytes for p in planned))
    logs = split_ranges(planned, LOG_KINDS, settings.range_bytes, parallelism)
    records = record_tasks(split_ranges(planned, RECORD_KINDS, settings.range_bytes, parallelism), content.ingest_id)
    fill = partial(warehouse.fill, ingest_id=content.ingest_id)
    if settings.depth is Depth.FULL:
        content.kept = {(part.input_id, part.section.index) for task in logs for part in task}
        content.learn(fill(log_tasks(logs, (LOG_BATCHES, *FOLDS), content.ingest_id) + records))
        return
    content.learn(fill(log_tasks(logs, FOLDS, content.ingest_id) + records))
    content.kept = _sections_to_keep(warehouse, planned, content, settings.cluster)
    kept = [[part for part in task if (part.input_id, part.section.index) in content.kept] for task in logs]
    fill(log_tasks([task for task in kept if task], (LOG_BATCHES,), content.ingest_id))


def _sections_to_keep(
    warehouse: Warehouse, planned: list[PlannedInput], content: Content, cluster: str
) -> set[SectionKey]:
    """The new sections whose batches will be compared, with what is here or with what the cluster has already."""
    new = [section_row(p, s, content) | {"input_id": p.input_id} for p in planned for s in p.sections]
    own = {(row["input_id"], row["section_index"]) for row in new}
    return compared(log_sections([*new, *_sections_before(warehouse, cluster)])) & own


def _sections_before(warehouse: Warehouse, cluster: str) -> list[dict[str, Any]]:
    known = warehouse.listed(INPUTS, "input_id", "sections", cluster=[cluster])
    return [section | {"input_id": row["input_id"]} for row in known for section in row["sections"] or ()]
