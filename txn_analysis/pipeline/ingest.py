"""Ingest: files become rows of the input tables. Plan byte ranges, scan them in parallel, fold what was scanned."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from txn_analysis.columns.records import plain, records_of
from txn_analysis.depth import Depth
from txn_analysis.errors import InputError
from txn_analysis.kafka.sections import LOG, LOG_KINDS
from txn_analysis.log.copies import compared
from txn_analysis.log.sections import log_sections
from txn_analysis.pipeline.content import Content, ReadInput, ReadSection, read_input, read_section
from txn_analysis.pipeline.ingest_tasks import FOLDS, RECORD_KINDS, log_tasks, record_tasks
from txn_analysis.pipeline.job_progress import followed, note
from txn_analysis.read.inputs.accounting import (
    RejectedSpan,
    rejected_bytes,
    rejected_in_log,
    rejected_outside,
    unproven_spans,
)
from txn_analysis.read.inputs.byte_ranges import split_ranges
from txn_analysis.read.inputs.find_files import find_files
from txn_analysis.read.inputs.planned_input import check_inputs
from txn_analysis.read.inputs.planning import plan_inputs, without_changed
from txn_analysis.read.log_dir.producer_files import CHANGED
from txn_analysis.storage.commits import commit_inputs, deepen_inputs
from txn_analysis.tables import INPUTS, LOG_BATCHES, REJECTS
from txn_analysis.tables.inputs import READING_VERSION

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from typing import Self

    from txn_analysis.log.sections import SectionKey
    from txn_analysis.pipeline.content import ContentKey
    from txn_analysis.read.inputs.planned_input import PlannedInput
    from txn_analysis.report.terminal import Progress
    from txn_analysis.settings import Settings
    from txn_analysis.storage.warehouse import Warehouse

_COUNTED = ("text_bytes", "parsed_bytes", "rejected_bytes")


@dataclass(frozen=True)
class Ingested:
    """What one call read: the capture it belongs to, its inputs, and how many of them were new to the warehouse."""

    capture: str
    input_count: int
    new_input_count: int
    text_bytes: int
    parsed_bytes: int
    rejected_bytes: int

    @classmethod
    def of(cls, rows: Sequence[ReadInput], new_count: int) -> Self:
        """What some rows of one capture come to."""
        counted = (sum(getattr(row, name) for row in rows) for name in _COUNTED)
        return cls(rows[0].capture, len(rows), new_count, *counted)

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
    planned = _plan(warehouse, paths, settings, progress)
    held = _held(warehouse, planned)
    known = {row.content: row for row in held if row.reads_as_now(settings.depth)}
    new = [p for p in planned if (p.input_id, p.kind) not in known]
    content = _read_content(warehouse, new, settings, progress) if new else Content(ingest_id="")
    settled = _settled(planned, content)
    _write_rejects(warehouse, content)
    rows = _account(settled, content, known, settings)
    ingested = Ingested.of(rows, len(new))
    with progress.stage("noting inputs"):
        _commit(warehouse, rows, held, read_otherwise={row.content for row in held} - known.keys())
    return ingested


def _plan(warehouse: Warehouse, paths: Sequence[str], settings: Settings, progress: Progress) -> Sequence[PlannedInput]:
    """What each file is; every byte was looked at once.

    Raises:
        InputError: as of `ingest`.
    """
    files = find_files(paths)
    with (
        progress.stage("recognising files", total_bytes=sum(file.size_bytes for file in files)) as tell,
        followed(tell),
    ):
        warehouse.create()
        planning = plan_inputs(warehouse.session, files, is_verified=settings.verify)
        check_inputs(planning.inputs, settings.skip_unrecognised)
        if not any(p.sections for p in planning.inputs):
            raise InputError(["nothing to read: none of the inputs was recognised"])
    if planning.left_out:
        note(progress, "leaving out", planning.left_out)
    return planning.inputs


def _held(warehouse: Warehouse, inputs: Iterable[PlannedInput | ReadInput]) -> Sequence[ReadInput]:
    """The rows of `inputs` that list any of these contents, of whatever cluster and capture."""
    return records_of(ReadInput, warehouse.held(INPUTS, input_id=[each.input_id for each in inputs]))


def _account(
    settled: Sequence[PlannedInput], content: Content, known: Mapping[ContentKey, ReadInput], settings: Settings
) -> list[ReadInput]:
    """One row of `inputs` for each input; content that was read before keeps what was found then."""
    capture = settings.capture or "capture-" + _digest(p.input_id for p in settled)[:12]
    rejects = content.rejects_by_input()
    rows = []
    for planned in settled:
        rejected = rejected_bytes(planned, rejects[planned.input_id])
        row = read_input(planned, settings.cluster, capture, content, rejected)
        rows.append(row.found_as(known.get(row.content, row)))
    return rows


def _commit(
    warehouse: Warehouse, rows: Sequence[ReadInput], held: Sequence[ReadInput], read_otherwise: Collection[ContentKey]
) -> None:
    """The last write of an ingest, after that of contents that were read less deep, or by an earlier version."""
    if deeper := [row for row in rows if row.content in read_otherwise]:
        deepen_inputs(warehouse, [*map(plain, deeper)])
        held = _held(warehouse, rows)
    commit_inputs(warehouse, [*map(plain, rows)], [*map(plain, held)])


def _digest(ids: Iterator[str]) -> str:
    return blake2b("\n".join(sorted(ids)).encode(), digest_size=16).hexdigest()


def _read_content(warehouse: Warehouse, planned: list[PlannedInput], settings: Settings, progress: Progress) -> Content:
    how = (str(READING_VERSION), *(() if settings.depth is Depth.FULL else ("quick",)))
    ingest_id = _digest(chain((p.input_id for p in planned), how))
    content = Content(ingest_id, [r for p in planned for r in rejected_outside(p)])
    size = sum(p.text_bytes for p in planned)
    with progress.stage("reading", total_bytes=size) as tell, followed(tell):
        _fill_tables(warehouse, planned, content, settings)
    for p in planned:
        for s in p.sections:
            if s.kind == LOG or (s.kind in LOG_KINDS and p.is_broker_file):
                content.rejects += rejected_in_log(p, s, unproven_spans(s, content.pieces[p.input_id, s.index]))
    return content


def _settled(planned: Sequence[PlannedInput], content: Content) -> Sequence[PlannedInput]:
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
        rows = [plain(r) | {"ingest_id": content.ingest_id} for r in content.rejects]
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
    new = [(p.input_id, read_section(p, s, content)) for p in planned for s in p.sections]
    held = records_of(_HeldSections, warehouse.held(INPUTS, *_HeldSections._fields, cluster=[cluster]))
    before = [(row.input_id, section) for row in held for section in row.sections or ()]
    sections = log_sections(section._asdict() | {"input_id": input_id} for input_id, section in (*new, *before))
    return compared(sections) & {(input_id, section.section_index) for input_id, section in new}


class _HeldSections(NamedTuple):
    """What an input is made of that the warehouse holds; None in rows of early versions."""

    input_id: str
    sections: tuple[ReadSection, ...] | None
