"""One history: everything that one audit judges from, as rows of the content tables."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from tests.tools.coordinator_rows import sums_of_ids
from tests.tools.records import sections_of
from txn_analysis.columns.arrays import Array
from txn_analysis.coordinator.state_records import (
    READ_STATES,
    Placing,
    StateFiles,
    by_id,
    histories_in,
    histories_of,
    with_held_by,
)
from txn_analysis.kafka.transactions import StateRecord
from txn_analysis.log.segments import SectionKey, rival_positions
from txn_analysis.settings import Settings
from txn_analysis.tables.batches import Batches
from txn_analysis.tables.inputs import InputSection, Manifest

Row = dict[str, Any]


@dataclass(frozen=True)
class History:
    """What was read of the captures of one cluster, and the settings that are true of them.

    Attributes:
        settings: as for the audit; `as_of_ms` where the moment of the copy is known.
        sections: rows of `Evidence.sections`: one for each file, or `Dumping ...` section of a dump, with the rank
            of its capture (0 for the one that is judged). `first_offset` and `end_offset` are found from the batches.
        batches: what those sections hold that are logs, in parts of any size.
        snapshots: rows of `producer_snapshots`.
        records: rows of `transaction_states`, each with `capture_rank` and, for console exports, `input_moment_ms`.
        manifests: what is said of the copying of the judged capture.
        is_partial: the capture is asked for some partitions alone.
    """

    settings: Settings
    sections: Sequence[Row]
    batches: Sequence[Batches] = ()
    snapshots: Sequence[Row] = ()
    records: Sequence[Row] = ()
    manifests: Sequence[Manifest] = ()
    is_partial: bool = False

    @cached_property
    def known_sections(self) -> list[InputSection]:
        """The sections, with the offsets that their batches reach over, and where two parts of them claim one place."""
        parts: defaultdict[SectionKey, list[Mapping[str, Array]]] = defaultdict(list)
        for part in self.batches:
            parts[part.section].append(part.columns)
        return sections_of(s | _reached(parts.get(_key(s), ())) for s in self.sections)

    @cached_property
    def of_ids(self) -> list[list[StateRecord]]:
        """The records of each transactional id, oldest first."""
        rows = pa.RecordBatch.from_pylist([{"audit": 0} | row for row in self.records], READ_STATES)
        states = pa.Table.from_batches([with_held_by(rows, self.placing.partition_count, self.placing.text_exports)])
        none, rank = np.zeros(len(rows), np.int64), np.full(len(rows), self.placing.dumped_rank)
        return histories_in(histories_of(states, none, by_id(states, none, rank))["history"])

    @cached_property
    def placing(self) -> Placing:
        """Where these belong."""
        ids = sums_of_ids((row["transactional_id_hash"], row["state_partition"]) for row in self.records)
        return Placing.of(self.settings, StateFiles.of(self.known_sections), ids)


def _reached(parts: Sequence[Mapping[str, Array]]) -> Row:
    firsts = [int(columns["base_offset"].min()) for columns in parts]
    ends = [int(columns["last_offset"].max()) + 1 for columns in parts]
    return {
        "first_offset": min(firsts, default=None),
        "end_offset": max(ends, default=None),
        "leader_epoch": max((int(columns["leader_epoch"].max()) for columns in parts), default=None),
        "rival_positions": rival_positions(map(_span, parts)) if len(parts) > 1 else None,
    }


def _span(columns: Mapping[str, Array]) -> tuple[int, int]:
    position = columns["position"]
    return int(position.min()), int((position + columns["size_bytes"]).max())


def _key(section: Row) -> SectionKey:
    return section["input_id"], section["section_index"]
