"""Ingest: files become rows of the input tables. Plan byte ranges, scan them in parallel, fold what was scanned."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from hashlib import blake2b
from operator import attrgetter
from typing import Any, NamedTuple

import pyarrow as pa

from txn_analysis.columns.arrays import by_key
from txn_analysis.columns.records import Record, batch_of, records_of
from txn_analysis.engine.engine import is_on_spark
from txn_analysis.errors import ConfigError, InputError
from txn_analysis.files.remote_file import ahead
from txn_analysis.kafka.names import LOG, LOG_KINDS, SNAPSHOT
from txn_analysis.log.segments import SectionKey, certain_moment_ms, rival_positions
from txn_analysis.pipeline.ingest_tasks import PLACES, read_tasks
from txn_analysis.reading.inputs.accounting import (
    ReadPiece,
    changed_text,
    rejected_bytes,
    rejected_in_log,
    rejected_outside,
)
from txn_analysis.reading.inputs.find_files import find_files
from txn_analysis.reading.inputs.manifest import manifest_inputs, split_manifests
from txn_analysis.reading.inputs.planned_input import PlannedInput, check_inputs, cluster_ids
from txn_analysis.reading.inputs.planning import plan_inputs, split_ranges, without_changed
from txn_analysis.reading.log_dir.producer_files import CHANGED
from txn_analysis.reading.rows import MOMENTS, READ_KINDS, REJECTED, Moment
from txn_analysis.reading.text.section import Section
from txn_analysis.report.terminal import Progress
from txn_analysis.runs.asked_places import asked_for, check_places
from txn_analysis.runs.prunes import check_content, unpruned_name
from txn_analysis.settings import Settings
from txn_analysis.spark.jobs import described, followed
from txn_analysis.spark.workers import cores_of
from txn_analysis.tables import INPUTS, REJECTS
from txn_analysis.tables.inputs import Asked, ReadInput, ReadSection, RejectedSpan
from txn_analysis.tables.keeping import TakenContent
from txn_analysis.tables.readings import READING_VERSION
from txn_analysis.text import count, escape, listed
from txn_analysis.warehouse.commits import commit_inputs, inputs_of
from txn_analysis.warehouse.delta_tables import Warehouse

_MOST_NAMED = 5


@dataclass(frozen=True)
class Ingested:
    """What one call read: the capture it belongs to, its inputs, and how many of them were new to the warehouse.

    The capture has `earlier_count` inputs of earlier calls beside them, with this newest moment of a broker's clock.
    """

    capture: str
    input_count: int
    new_input_count: int
    text_bytes: int
    parsed_bytes: int
    rejected_bytes: int
    earlier_count: int = 0
    earlier_moment_ms: int | None = None

    @property
    def account(self) -> str:
        """One line that accounts for every byte of the inputs."""
        return f"{self.parsed_bytes} parsed + {self.rejected_bytes} rejected = {self.text_bytes} bytes of text"


def ingest(warehouse: Warehouse, paths: Sequence[str], settings: Settings, progress: Progress) -> Ingested:
    """Read files into the input tables, as one capture of one cluster.

    Content that the warehouse already holds is not read again, whatever its name, but where today's reading of its kind
    is another one. The rows become evidence only with the last write, that of `inputs`; an ingest that was cut short
    leaves nothing that counts.

    Raises:
        InputError: a file is missing, unreadable or not understood (unless `skip_unrecognised`).
    """
    asked = asked_for(settings)
    planned = _plan(warehouse, paths, settings, progress, asked)
    stored_inputs = inputs_of(warehouse, input_id=[each.input_id for each in planned])
    known = {row.content: row for row in stored_inputs if not row.is_read_otherwise}
    new = [p for p in planned if (p.input_id, p.kind) not in known]
    is_again = any(row.is_read_otherwise for row in stored_inputs)
    content = _read_content(warehouse, new, settings, progress, is_again=is_again) if new else Content(ingest_id="")
    settled = _settled(planned, content)
    _say_changed(planned, settled, progress)
    if content.rejects:
        rejects = batch_of(RejectedSpan, content.rejects, REJECTS.arrow_schema, ingest_id=content.ingest_id)
        warehouse.replace([rejects], REJECTS, ingest_id=content.ingest_id)
    rows = _account(settled, content, known, settings, asked)
    earlier = {TakenContent(row.ingest_id, row.input_id) for row in rows if row.ingest_id != content.ingest_id}
    check_content(warehouse, earlier)
    with progress.stage("noting inputs"):
        commit_inputs(warehouse, rows, stored_inputs)
    others = _others_of_capture(warehouse, rows) if settings.capture else []  # else its name comes of these inputs
    return Ingested(
        capture=rows[0].capture,
        input_count=len(rows),
        new_input_count=len(new),
        text_bytes=sum(row.text_bytes for row in rows),
        parsed_bytes=sum(row.parsed_bytes for row in rows),
        rejected_bytes=sum(row.rejected_bytes for row in rows),
        earlier_count=len(others),
        earlier_moment_ms=max(
            (row.newest_moment_ms for row in others if row.newest_moment_ms is not None), default=None
        ),
    )


def _others_of_capture(warehouse: Warehouse, rows: Sequence[ReadInput]) -> list[ReadInput]:
    """The inputs that earlier calls gave to the capture of these, and this one did not."""
    input_ids, names = {row.input_id for row in rows}, {"cluster": [rows[0].cluster], "capture": [rows[0].capture]}
    return [row for row in warehouse.records(ReadInput, INPUTS, **names) if row.input_id not in input_ids]


def _plan(
    warehouse: Warehouse, paths: Sequence[str], settings: Settings, progress: Progress, asked: Asked | None
) -> Sequence[PlannedInput]:
    """What each file is; every byte was looked at once.

    Raises:
        InputError: as of `ingest`.
    """
    files = find_files(paths)
    with (
        progress.stage("recognising files", total_bytes=sum(file.size_bytes for file in files)) as tell,
        followed(tell),
        described(f"ingest: recognise {count(len(files), 'file')}"),
    ):
        warehouse.create()
        _check_capture(warehouse, settings, asked)
        manifests, others = split_manifests(files)
        planning = plan_inputs(
            warehouse.session,
            others,
            is_on_spark=partial(is_on_spark, settings),
            is_verified=settings.verify,
            asked=asked,
        )
        of_manifests, misfits = manifest_inputs(manifests, others, planning.inputs, is_verified=settings.verify)
        check_inputs([*planning.inputs, *([] if misfits else of_manifests)], settings.skip_unrecognised, misfits)
        if not any(p.sections for p in planning.inputs):
            raise InputError(["nothing to read: none of the inputs was recognised"])
        check_places(settings.topic, settings.partition, planning.partitions, "this call")
    if planning.left_out:
        with progress.stage("leaving out", planning.left_out):
            pass  # said between two stages
    return [*planning.inputs, *of_manifests]


class _AskedCapture(NamedTuple):
    asked: Asked | None


def _check_capture(warehouse: Warehouse, settings: Settings, asked: Asked | None) -> None:
    """Refuse to fill a capture that was asked for other partitions: what it lacks would not be known any more.

    Raises:
        ConfigError: it was.
    """
    if settings.capture is None:
        return
    capture_inputs = warehouse.records(_AskedCapture, INPUTS, cluster=[settings.cluster], capture=[settings.capture])
    if any(row.asked != asked for row in capture_inputs):
        name = escape(settings.capture)
        raise ConfigError(f"--capture {name}: it was filled with other --topic and --partition: give another name")


def _account(
    settled: Sequence[PlannedInput],
    content: Content,
    known: Mapping[ContentKey, ReadInput],
    settings: Settings,
    asked: Asked | None,
) -> list[ReadInput]:
    """One row of `inputs` for each input; content that was read before keeps what was found then."""
    rejects, clusters = content.rejects_by_input(), cluster_ids(settled)
    # Others read of the same files are another capture; so are the same dumps in folders of another cluster.
    beside = [
        f"{p.input_id} {clusters[p.input_id]}" for p in settled if p.input_id in clusters and not p.is_broker_file
    ]
    named = [*(p.input_id for p in settled), *map(str, asked or ()), *beside]
    capture = settings.capture or "capture-" + _digest(named)[:12]
    rows = []
    for planned in settled:
        row = read_input(planned, settings.cluster, capture, content, rejects[planned.input_id], asked)
        row = row._replace(cluster_id=clusters.get(planned.input_id))
        rows.append(row.as_read_by(known.get(row.content, row)))
    return rows


def _digest(ids: Iterable[str]) -> str:
    return blake2b("\n".join(sorted(ids)).encode(), digest_size=16).hexdigest()


def _read_content(
    warehouse: Warehouse, planned: list[PlannedInput], settings: Settings, progress: Progress, *, is_again: bool
) -> Content:
    """Read inputs; `is_again` says that an earlier reading of some is in the warehouse."""
    outside = ahead(rejected_outside, planned, is_object=lambda p: p.version is not None)
    again = [f"reading {READING_VERSION}"] if is_again else []  # what an earlier reading found stays what it is
    ingest_id = unpruned_name(warehouse, _digest([*(p.input_id for p in planned), *again]))
    content = Content(ingest_id, [r for _, rejects in outside for r in rejects()])
    size = sum(p.text_bytes for p in planned)
    words = f"ingest: read {count(len(planned), 'file')} into Delta tables"
    with progress.stage("reading", total_bytes=size) as tell, followed(tell), described(words):
        on_spark = is_on_spark(settings, size)
        parallelism = cores_of(warehouse.spark, size) if on_spark else 1
        ranges = split_ranges(planned, READ_KINDS, settings.range_bytes, parallelism)
        tasks = read_tasks(ranges, content.ingest_id, is_on_spark=on_spark)
        content.learn(warehouse.fill(tasks, ingest_id=content.ingest_id))
    content.account(planned)
    return content


def _settled(planned: Sequence[PlannedInput], content: Content) -> Sequence[PlannedInput]:
    """The inputs that count: of a log directory that changed while it was read, only what was still there."""
    changed = {r.input_id for r in content.rejects if r.reason == CHANGED}
    if not changed:
        return planned
    if text := next((p for p in planned if p.input_id in changed and not p.is_broker_file), None):
        raise changed_text(text)
    kept, known = without_changed(planned, changed), {p.input_id for p in planned}
    unread = [p for p in kept if p.input_id not in known]
    content.rejects = [r for r in content.rejects if r.input_id not in changed]
    content.rejects += [
        RejectedSpan(p.input_id, 0, start, end - start, why) for p in unread for start, end, why in p.rejects
    ]
    return kept


def _say_changed(planned: Sequence[PlannedInput], settled: Sequence[PlannedInput], progress: Progress) -> None:
    """Name the files of log directories that were replaced or removed while they were read."""
    ids = {p.input_id for p in settled}
    changed = [escape(p.path) for p in planned if p.input_id not in ids]
    if changed:
        with progress.stage("leaving out", f"files that changed while they were read: {listed(changed, _MOST_NAMED)}"):
            pass  # said between two stages


ContentKey = tuple[str, str | None]
"""An input, and what it was recognised as: what was not understood may be by a newer version."""


@dataclass
class Content:
    """What reading new inputs found besides rows: the spans not understood, each input's newest broker clock, and the
    place of each piece by its section.
    """

    ingest_id: str
    rejects: list[RejectedSpan] = field(default_factory=list)
    moments_ms: dict[str, int] = field(default_factory=dict)
    pieces: dict[SectionKey, list[ReadPiece]] = field(default_factory=lambda: defaultdict(list))

    def offsets(self, section: SectionKey) -> tuple[int | None, int | None]:
        """The first and the end offset of a section's batches; None where it has none."""
        pieces = self.pieces.get(section, [])
        first = min((piece.first_offset for piece in pieces), default=None)
        return first, max((piece.last_offset + 1 for piece in pieces), default=None)

    def rival_positions(self, section: SectionKey) -> tuple[int, ...] | None:
        """Where two parts of a section's text claim the same batches."""
        rivals = rival_positions((p.first_position, p.end_position) for p in self.pieces.get(section, []))
        return None if rivals is None else tuple(rivals)

    def rejects_by_input(self) -> dict[str, list[RejectedSpan]]:
        """The spans that were not understood, by input."""
        return by_key(self.rejects, attrgetter("input_id"))

    def learn(self, task_rows: Mapping[str, pa.Table]) -> None:
        """Take in what tasks told of what they read; see `ingest_tasks`."""
        for piece in _records_named(ReadPiece, task_rows, PLACES):
            self.pieces[piece.input_id, piece.section_index].append(piece)
        for (input_id, _), pieces in self.pieces.items():
            self._saw(input_id, certain_moment_ms((p.first_position, p.end_position, p.max_moment_ms) for p in pieces))
        for moment in _records_named(Moment, task_rows, MOMENTS):
            self._saw(moment.input_id, moment.moment_ms)
        self.rejects += _records_named(RejectedSpan, task_rows, REJECTED)

    def account(self, planned: Iterable[PlannedInput]) -> None:
        """Add what of sections of logs no piece accounts for, once all of them are read."""
        for p in planned:
            for s in p.sections:
                if s.kind == LOG or (s.kind in LOG_KINDS and p.is_broker_file):
                    self.rejects += rejected_in_log(p, s, self.pieces[p.input_id, s.index])

    def _saw(self, input_id: str, moment_ms: int | None) -> None:
        """A broker's clock in an input; None where it is not known."""
        if moment_ms is not None:
            self.moments_ms[input_id] = max(moment_ms, self.moments_ms.get(input_id, moment_ms))


def _records_named(kind: type[Record], task_rows: Mapping[str, pa.Table], name: str) -> list[Record]:
    return records_of(kind, task_rows[name]) if name in task_rows else []


def read_input(
    planned: PlannedInput,
    cluster: str,
    capture: str,
    content: Content,
    rejects: Sequence[RejectedSpan],
    asked: Asked | None = None,
) -> ReadInput:
    """What came of one input, and what of it was not understood; `asked` are the partitions that its capture is asked
    for.
    """
    rejected, unread_bytes = rejected_bytes(planned, rejects), Counter[int | None]()
    for span in rejects:
        unread_bytes[span.section_index] += span.length_bytes
    of_reading = {
        "cluster": cluster,
        "capture": capture,
        "ingest_id": content.ingest_id,
        "path": os.fsencode(planned.path).decode(errors="backslashreplace"),  # a name is bytes, and a table holds UTF-8
        "parsed_bytes": planned.text_bytes - rejected,
        "rejected_bytes": rejected,
        "newest_moment_ms": content.moments_ms.get(planned.input_id),
        "sections": tuple([read_section(planned, one, content, unread_bytes[one.index]) for one in planned.sections]),
        "asked": asked,
        "reading_version": READING_VERSION,
    }
    return ReadInput(**(_alike(planned, ReadInput) | of_reading))


def read_section(planned: PlannedInput, section: Section, content: Content, unread_bytes: int) -> ReadSection:
    """What came of one section of an input; the dump of a snapshot is torn by what of it was not understood."""
    key = planned.input_id, section.index
    if section.kind == SNAPSHOT and not planned.is_broker_file:
        section = replace(section, torn_bytes=unread_bytes)
    first_offset, end_offset = content.offsets(key)
    epochs = [p.leader_epoch for p in content.pieces.get(key, []) if p.leader_epoch is not None]
    return ReadSection(
        **_alike(section, ReadSection),
        section_index=section.index,
        first_offset=first_offset,
        end_offset=end_offset,
        rival_positions=content.rival_positions(key),
        leader_epoch=max(epochs, default=None),
    )


def _alike(planned: PlannedInput | Section, kind: type[ReadInput | ReadSection]) -> dict[str, Any]:
    """What was planned, of the fields of a record that have the same names."""
    return {field.name: getattr(planned, field.name) for field in fields(planned) if field.name in kind._fields}
