"""What reading new inputs finds besides the rows of the content tables, and the rows of `inputs` that come of it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from txn_analysis.kafka.sections import LOG_KINDS
from txn_analysis.log.rivals import PiecePlace, certain_moment_ms, rival_positions
from txn_analysis.pipeline.ingest_tasks import MOMENTS, PLACES, REJECTED
from txn_analysis.read.inputs.accounting import RejectedSpan
from txn_analysis.tables.inputs import READING_VERSION, SECTION

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from txn_analysis.log.sections import SectionKey
    from txn_analysis.read.inputs.planned_input import PlannedInput, Section


@dataclass
class Content:
    """What reading new inputs found besides rows: the spans not understood, each input's newest broker clock, the place
    of each piece by its section, and the sections whose batches are kept.
    """

    ingest_id: str
    rejects: list[RejectedSpan] = field(default_factory=list)
    moments_ms: dict[str, int] = field(default_factory=dict)
    pieces: dict[SectionKey, list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))
    kept: set[SectionKey] = field(default_factory=set)

    def offsets(self, section: SectionKey) -> tuple[int | None, int | None]:
        """The first and the end offset of a section's batches; None where it has none."""
        found = self.pieces.get(section, [])
        first = min((p["first_offset"] for p in found), default=None)
        return first, max((p["last_offset"] + 1 for p in found), default=None)

    def rival_positions(self, section: SectionKey) -> list[int] | None:
        """Where two parts of a section's text claim the same batches."""
        return rival_positions((p["first_position"], p["end_position"]) for p in self.pieces.get(section, []))

    def rejects_by_input(self) -> dict[str, list[RejectedSpan]]:
        """The spans that were not understood, by input."""
        found: dict[str, list[RejectedSpan]] = defaultdict(list)
        for reject in self.rejects:
            found[reject.input_id].append(reject)
        return found

    def learn(self, told: Mapping[str, pa.Table]) -> None:
        """Take in what tasks told of what they read; see `ingest.tasks`."""
        for row in _rows(told, PLACES):
            self.pieces[row["input_id"], row["section_index"]].append(row)
        for (input_id, _), pieces in self.pieces.items():
            self._saw(input_id, certain_moment_ms([*map(PiecePlace.of, pieces)]))
        for row in _rows(told, MOMENTS):
            self._saw(row["input_id"], row["moment_ms"])
        self.rejects += [RejectedSpan(**row) for row in _rows(told, REJECTED)]

    def _saw(self, input_id: str, moment_ms: int | None) -> None:
        """A broker's clock in an input; None where it is not known."""
        if moment_ms is not None:
            self.moments_ms[input_id] = max(moment_ms, self.moments_ms.get(input_id, moment_ms))


def _rows(told: Mapping[str, pa.Table], name: str) -> list[dict[str, Any]]:
    return told[name].to_pylist() if name in told else []


def input_row(planned: PlannedInput, cluster: str, capture: str, content: Content, rejected: int) -> dict[str, Any]:
    """One row of `inputs`."""
    names = ("input_id", "path", "kind", "grammar", "compression", "size_bytes", "text_bytes", "problem")
    return {name: getattr(planned, name) for name in names} | {
        "cluster": cluster,
        "capture": capture,
        "ingest_id": content.ingest_id,
        "parsed_bytes": planned.text_bytes - rejected,
        "rejected_bytes": rejected,
        "newest_moment_ms": content.moments_ms.get(planned.input_id),
        "reading_version": READING_VERSION,
        "sections": [section_row(planned, s, content) for s in planned.sections],
    }


def section_row(planned: PlannedInput, section: Section, content: Content) -> dict[str, Any]:
    """One of the `sections` in a row of `inputs`."""
    key = planned.input_id, section.index
    first_offset, end_offset = content.offsets(key)
    fields = asdict(section) | {
        "section_index": section.index,
        "first_offset": first_offset,
        "end_offset": end_offset,
        "rival_positions": content.rival_positions(key),
        "has_batches": key in content.kept if section.kind in LOG_KINDS else None,
    }
    return {name: fields[name] for name in SECTION.names}
