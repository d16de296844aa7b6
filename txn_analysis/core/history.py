"""One history: everything that one audit judges from, as rows of the content tables."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from txn_analysis.ingest.java_hash import state_partition
from txn_analysis.ingest.sections import CLUSTER_ID, LOG_KINDS, SNAPSHOT, STATE, STATED_OF_PARTITION
from txn_analysis.judge.records import StateRecord
from txn_analysis.judge.state_sections import SectionRecord
from txn_analysis.reconstruct.copies import cuts_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from txn_analysis.config import Settings
    from txn_analysis.ingest.batches import Batches
    from txn_analysis.reconstruct.segments import SectionKey

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
        """The sections, with the offsets that their batches reach over."""
        reached: dict[SectionKey, tuple[int, int]] = {}
        for part in self.batches:
            first, end = int(part.columns["base_offset"].min()), int(part.columns["last_offset"].max()) + 1
            known = reached.get(part.section, (first, end))
            reached[part.section] = min(first, known[0]), max(end, known[1])
        return [
            s | dict(zip(("first_offset", "end_offset"), reached.get(_key(s), (None, None)), strict=True))
            for s in self.sections
        ]

    @cached_property
    def cuts(self) -> Mapping[SectionKey, Sequence[int]]:
        """The offsets at which its logs must be cut, so that copies and snapshots can be compared; by section."""
        return cuts_of(self.known_sections)

    @property
    def cluster_ids(self) -> set[str]:
        """Every `cluster.id` that a log directory states."""
        return {s["stated"] for s in self.sections if s["kind"] == CLUSTER_ID}

    def linkable(self) -> dict[tuple[str, int], list[Row]]:
        """The sections by topic and partition, of partitions that have files here."""
        kinds = {*LOG_KINDS, SNAPSHOT, *STATED_OF_PARTITION}
        places = by((s for s in self.known_sections if s["kind"] in kinds), "topic", "partition")
        is_there = {
            place: any(s["kind"] not in STATED_OF_PARTITION for s in sections) for place, sections in places.items()
        }
        return {(str(place[0]), int(place[1])): found for place, found in places.items() if is_there[place]}

    def histories(self, producer_ids: AbstractSet[int]) -> dict[str, list[StateRecord]]:
        """The coordinator's records of the ids that have, or had in any record, one of these producer ids."""
        if not producer_ids:
            return {}
        asked = {row["transactional_id"] for row in self.records if not named_in(row).isdisjoint(producer_ids)}
        found: defaultdict[str, list[StateRecord]] = defaultdict(list)
        dumps = [s["capture_rank"] for s in self.sections if s["kind"] == STATE]
        for row in self.records:
            name = row["transactional_id"]
            if name is not None and name in asked:
                found[name].append(self._state_record(row, min(dumps, default=0)))
        return found

    def section_records(self) -> Iterator[SectionRecord]:
        """The judged capture's records as coverage asks for them."""
        count = self.settings.transaction_state_partitions
        for row in self.records:
            if row["capture_rank"]:
                continue
            is_console = row["state_partition"] is None
            hashed = own_partition(row, count)
            yield SectionRecord(
                row["input_id"],
                row["section_index"],
                is_console,
                hashed if is_console else row["state_partition"],
                hashed,
                row["offset"],
                row["recorded_ms"],
                row["last_update_ms"],
                bool(row["is_after_gap"]),
                row["is_undecodable"],
                row["transactional_id"],
            )

    def _state_record(self, row: Row, dumped_rank: int) -> StateRecord:
        """As `Evidence.states` on Spark: its place in the history of its id, and the partition that holds it."""
        if row["state_partition"] is not None:
            return StateRecord.of(row, row["state_partition"], (-dumped_rank, True, row["offset"], "", 0))
        order = (-row["capture_rank"], False, row["input_moment_ms"] or 0, row["input_id"], row["ordinal"])
        return StateRecord.of(row, own_partition(row, self.settings.transaction_state_partitions), order)


def own_partition(row: Row, partition_count: int) -> int | None:
    """The partition of `__transaction_state` that the id of a record hashes to; None where it was not decoded."""
    hashed = row["transactional_id_hash"]
    return None if hashed is None else state_partition(hashed, partition_count)


def named_in(row: Row) -> set[int | None]:
    """The producer ids that a record stands for (KIP-890's tagged fields)."""
    return {row["producer_id"], row["previous_producer_id"], row["next_producer_id"]}


def _key(section: Row) -> SectionKey:
    return section["input_id"], section["section_index"]


def by(rows: Iterable[Row], *names: str) -> dict[tuple[Any, ...], list[Row]]:
    """The rows in groups that agree in the named columns."""
    groups: defaultdict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        groups[tuple(row[name] for name in names)].append(row)
    return dict(groups)
