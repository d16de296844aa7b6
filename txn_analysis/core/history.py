"""One history: everything that one audit judges from, as rows of the content tables."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from txn_analysis.coordinator.partition_count import sums_of_ids
from txn_analysis.coordinator.state_records import Placing
from txn_analysis.coordinator.state_row import StateFiles, StateRow
from txn_analysis.kafka.sections import STATED_OF_PARTITION
from txn_analysis.log.copies import cuts_of
from txn_analysis.log.pieces import by_place
from txn_analysis.log.rivals import rival_positions
from txn_analysis.log.sections import log_sections

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from txn_analysis.columns.arrays import Array
    from txn_analysis.kafka.batches import Batches
    from txn_analysis.log.rivals import Cuts
    from txn_analysis.log.sections import LogSection, SectionKey
    from txn_analysis.settings import Settings

Row = dict[str, Any]


@dataclass(frozen=True)
class History:
    """What was read of the captures of one cluster, and the settings that are true of them.

    Attributes:
        settings: as for the audit; `as_of_ms` where the moment of the copy is known.
        sections: rows of `Evidence.section_rows`: one for each file, or `Dumping ...` section of a dump, with the rank
            of its capture (0 for the one that is judged). `first_offset` and `end_offset` are found from the batches.
        batches: what those sections hold that are logs, in parts of any size.
        snapshots: rows of `producer_snapshots`.
        records: rows of `transaction_states`, each with `capture_rank` and, for console exports, `input_moment_ms`.
    """

    settings: Settings
    sections: Sequence[Row]
    batches: Sequence[Batches] = ()
    snapshots: Sequence[Row] = ()
    records: Sequence[Row] = ()

    @cached_property
    def known_sections(self) -> list[Row]:
        """The sections, with the offsets that their batches reach over, and where two parts of them claim one place."""
        parts: defaultdict[SectionKey, list[Mapping[str, Array]]] = defaultdict(list)
        for part in self.batches:
            parts[part.section].append(part.columns)
        return [s | _reached(parts.get(_key(s), ())) for s in self.sections]

    @cached_property
    def log_sections(self) -> list[LogSection]:
        """The sections of its logs, as typed rows."""
        return log_sections(self.known_sections)

    @cached_property
    def cuts(self) -> Mapping[SectionKey, Cuts]:
        """Where its logs must be cut, so that copies and snapshots can be compared; by section."""
        return cuts_of(self.log_sections)

    @cached_property
    def state_files(self) -> StateFiles:
        """The files of it that hold the coordinator's side."""
        return StateFiles.of(self.known_sections)

    @cached_property
    def state_rows(self) -> list[StateRow]:
        """The coordinator's records."""
        return [StateRow.of(row) for row in self.records]

    @cached_property
    def placing(self) -> Placing:
        """Where these belong."""
        ids = sums_of_ids((row.transactional_id_hash, row.state_partition) for row in self.state_rows)
        return Placing.of(self.settings, self.state_files, ids)

    def linkable(self) -> dict[tuple[str, int], list[LogSection]]:
        """The sections by topic and partition, of partitions that have files here."""
        places = by_place(self.log_sections).items()
        return {place: own for place, own in places if any(s.kind not in STATED_OF_PARTITION for s in own)}


def _reached(parts: Sequence[Mapping[str, Array]]) -> Row:
    firsts = [int(columns["base_offset"].min()) for columns in parts]
    ends = [int(columns["last_offset"].max()) + 1 for columns in parts]
    return {
        "first_offset": min(firsts, default=None),
        "end_offset": max(ends, default=None),
        "rival_positions": rival_positions(map(_span, parts)) if len(parts) > 1 else None,
    }


def _span(columns: Mapping[str, Array]) -> tuple[int, int]:
    position = columns["position"]
    return int(position.min()), int((position + columns["size_bytes"]).max())


def _key(section: Row) -> SectionKey:
    return section["input_id"], section["section_index"]
