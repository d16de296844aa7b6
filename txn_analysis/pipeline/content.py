"""What reading new inputs finds besides the rows of the content tables, and the rows of `inputs` that come of it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from txn_analysis.columns.records import records_of
from txn_analysis.log.rivals import certain_moment_ms, rival_positions
from txn_analysis.pipeline.ingest_tasks import MOMENTS, PLACES, REJECTED, Moment
from txn_analysis.read.inputs.accounting import ReadPiece
from txn_analysis.tables.inputs import ReadInput, ReadSection, RejectedSpan

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from txn_analysis.columns.records import Record
    from txn_analysis.log.segments import SectionKey
    from txn_analysis.read.inputs.planned_input import PlannedInput, Section


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
        found = self.pieces.get(section, [])
        first = min((piece.first_offset for piece in found), default=None)
        return first, max((piece.last_offset + 1 for piece in found), default=None)

    def rival_positions(self, section: SectionKey) -> tuple[int, ...] | None:
        """Where two parts of a section's text claim the same batches."""
        found = rival_positions((p.first_position, p.end_position) for p in self.pieces.get(section, []))
        return None if found is None else tuple(found)

    def rejects_by_input(self) -> dict[str, list[RejectedSpan]]:
        """The spans that were not understood, by input."""
        found: dict[str, list[RejectedSpan]] = defaultdict(list)
        for reject in self.rejects:
            found[reject.input_id].append(reject)
        return found

    def learn(self, told: Mapping[str, pa.Table]) -> None:
        """Take in what tasks told of what they read; see `ingest_tasks`."""
        for piece in _told(ReadPiece, told, PLACES):
            self.pieces[piece.input_id, piece.section_index].append(piece)
        for (input_id, _), pieces in self.pieces.items():
            self._saw(input_id, certain_moment_ms((p.first_position, p.end_position, p.max_moment_ms) for p in pieces))
        for moment in _told(Moment, told, MOMENTS):
            self._saw(moment.input_id, moment.moment_ms)
        self.rejects += _told(RejectedSpan, told, REJECTED)

    def _saw(self, input_id: str, moment_ms: int | None) -> None:
        """A broker's clock in an input; None where it is not known."""
        if moment_ms is not None:
            self.moments_ms[input_id] = max(moment_ms, self.moments_ms.get(input_id, moment_ms))


def _told(kind: type[Record], told: Mapping[str, pa.Table], name: str) -> list[Record]:
    return records_of(kind, told[name]) if name in told else []


def read_input(planned: PlannedInput, cluster: str, capture: str, content: Content, rejected: int) -> ReadInput:
    """What came of one input; `rejected` are bytes of it."""
    return ReadInput(
        cluster=cluster,
        capture=capture,
        input_id=planned.input_id,
        ingest_id=content.ingest_id,
        path=planned.path,
        kind=planned.kind,
        grammar=planned.grammar,
        compression=planned.compression,
        size_bytes=planned.size_bytes,
        text_bytes=planned.text_bytes,
        parsed_bytes=planned.text_bytes - rejected,
        rejected_bytes=rejected,
        newest_moment_ms=content.moments_ms.get(planned.input_id),
        problem=planned.problem,
        sections=tuple([read_section(planned, section, content) for section in planned.sections]),
    )


def read_section(planned: PlannedInput, section: Section, content: Content) -> ReadSection:
    """What came of one section of an input."""
    key = planned.input_id, section.index
    first_offset, end_offset = content.offsets(key)
    return ReadSection(
        section_index=section.index,
        kind=section.kind,
        dump_path=section.dump_path,
        topic=section.topic,
        partition=section.partition,
        file_base_offset=section.file_base_offset,
        first_offset=first_offset,
        end_offset=end_offset,
        text_start_bytes=section.text_start_bytes,
        text_end_bytes=section.text_end_bytes,
        torn_bytes=section.torn_bytes,
        is_start_proven=section.is_start_proven,
        grammar=section.grammar,
        stated=section.stated,
        rival_positions=content.rival_positions(key),
    )
