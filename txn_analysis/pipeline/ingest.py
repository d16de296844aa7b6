"""Ingest: files become rows of the input tables. Plan byte ranges, scan them in parallel, fold what was scanned."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING

from txn_analysis.columns.records import batch_of, plain, records_of
from txn_analysis.errors import InputError
from txn_analysis.kafka.names import LOG, LOG_KINDS
from txn_analysis.pipeline.content import Content, read_input
from txn_analysis.pipeline.ingest_tasks import READ_KINDS, read_tasks
from txn_analysis.pipeline.job_progress import followed, note
from txn_analysis.read.inputs.accounting import rejected_bytes, rejected_in_log, rejected_outside, unproven_spans
from txn_analysis.read.inputs.find_files import find_files
from txn_analysis.read.inputs.planned_input import check_inputs
from txn_analysis.read.inputs.planning import plan_inputs, split_ranges, without_changed
from txn_analysis.read.log_dir.producer_files import CHANGED
from txn_analysis.storage.commits import commit_inputs
from txn_analysis.tables import INPUTS, REJECTS
from txn_analysis.tables.inputs import ReadInput, RejectedSpan

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Self

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
    known = {row.content: row for row in held}
    new = [p for p in planned if (p.input_id, p.kind) not in known]
    content = _read_content(warehouse, new, settings, progress) if new else Content(ingest_id="")
    settled = _settled(planned, content)
    _write_rejects(warehouse, content)
    rows = _account(settled, content, known, settings)
    ingested = Ingested.of(rows, len(new))
    with progress.stage("noting inputs"):
        commit_inputs(warehouse, [*map(plain, rows)], [*map(plain, held)])
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


def _held(warehouse: Warehouse, inputs: Iterable[PlannedInput]) -> Sequence[ReadInput]:
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


def _digest(ids: Iterable[str]) -> str:
    return blake2b("\n".join(sorted(ids)).encode(), digest_size=16).hexdigest()


def _read_content(warehouse: Warehouse, planned: list[PlannedInput], settings: Settings, progress: Progress) -> Content:
    content = Content(_digest(p.input_id for p in planned), [r for p in planned for r in rejected_outside(p)])
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
        rows = batch_of(RejectedSpan, content.rejects, REJECTS.arrow_schema, ingest_id=content.ingest_id)
        warehouse.replace([rows], REJECTS, ingest_id=content.ingest_id)


def _fill_tables(warehouse: Warehouse, planned: list[PlannedInput], content: Content, settings: Settings) -> None:
    """Fill all tables from one look at every text."""
    parallelism = warehouse.parallelism(sum(p.text_bytes for p in planned))
    ranges = split_ranges(planned, READ_KINDS, settings.range_bytes, parallelism)
    content.learn(warehouse.fill(read_tasks(ranges, content.ingest_id), ingest_id=content.ingest_id))
