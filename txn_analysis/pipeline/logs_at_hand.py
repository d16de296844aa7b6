"""Reconstruct in memory, where all that a run rests on is so little that Spark's jobs would take longer than the work.

The same pure functions as in Spark's tasks (`pipeline.on_spark.logs`), and the same rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.columns.records import Record, fields_of, plain, records_of
from txn_analysis.kafka.batches import batches_of
from txn_analysis.kafka.sections import LOG_KINDS, STATED_OF_PARTITION, TOPIC_ID
from txn_analysis.log.copies import COMPARED_COLUMNS, Comparison, Pair, compare, overlapping, pairs_to_compare
from txn_analysis.log.open_transactions import link_partition
from txn_analysis.log.pieces import LogPiece, by_place
from txn_analysis.log.segments import segments_of
from txn_analysis.log.snapshots import SnapshotEntry
from txn_analysis.log.summary import FOLD_COLUMNS, Folded, fold
from txn_analysis.log.transactions import LINKED_SCHEMA, PieceKey, ended_by_run, linked_pieces, open_rows
from txn_analysis.spark.parallel import in_parallel
from txn_analysis.tables import (
    ENDED_TRANSACTIONS,
    LOG_BATCHES,
    LOG_PIECES,
    PARTITION_HEALTH,
    PRODUCER_SNAPSHOTS,
    TRANSACTIONS,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from txn_analysis.log.open_transactions import LinkedPartition
    from txn_analysis.log.sections import LogSection, SectionKey
    from txn_analysis.pipeline.run import Run
    from txn_analysis.runs.evidence import Evidence
    from txn_analysis.tables import Table

Row = dict[str, Any]
Place = tuple[str, int]


@dataclass(frozen=True)
class LinkedLogs:
    """The linked partitions of one run, and what was folded again of the sections that had to be cut."""

    partitions: Mapping[Place, LinkedPartition]
    folded: Sequence[Folded]
    cut: Collection[SectionKey]

    @property
    def used(self) -> set[PieceKey]:
        """The pieces that the logs were linked from."""
        return {piece for linked in self.partitions.values() for piece in linked.used_pieces}


def linked_logs(evidence: Evidence, as_of_ms: int | None) -> LinkedLogs:
    """Bring the evidence of each partition together and link it."""
    known = _Known(evidence)
    whole, snapshots = in_parallel(
        partial(_held, evidence, LOG_PIECES, LogPiece), partial(_held, evidence, PRODUCER_SNAPSHOTS, SnapshotEntry)
    )
    entries = by_place(snapshots)
    cuts = evidence.cuts
    folded = [fold(part, cuts[part.section]) for key in cuts for part in batches_of(known.batches(key, FOLD_COLUMNS))]
    anew = (piece for part in folded for piece in records_of(LogPiece, part.pieces))
    pieces = by_place(chain((piece for piece in whole if piece.section not in cuts), anew))
    partitions = {}
    for place, sections in by_place(evidence.log_sections).items():
        if not all(section.kind in STATED_OF_PARTITION for section in sections):
            held = pieces.get(place, [])
            compared = known.comparisons(sections, held) if place in known.overlapping else {}
            partitions[place] = link_partition(sections, held, entries.get(place, []), compared, as_of_ms)
    return LinkedLogs(partitions, folded, cuts.keys())


@dataclass(frozen=True)
class _Known:
    """The batches of the evidence, which are read once they are asked for: where a log is cut, or copies differ."""

    evidence: Evidence

    @cached_property
    def overlapping(self) -> set[Place]:
        return overlapping(self.evidence.log_sections)

    @cached_property
    def _batches(self) -> pa.Table:
        return self.evidence.held(LOG_BATCHES, *{*FOLD_COLUMNS, *COMPARED_COLUMNS})

    def batches(self, section: SectionKey, columns: Sequence[str]) -> pa.RecordBatch:
        """The batches of one section."""
        is_own = pc.and_(*(pc.equal(self._batches[name], value) for name, value in zip(_SECTION, section, strict=True)))
        found = self._batches.filter(is_own).select(list(columns))
        return pa.RecordBatch.from_arrays([c.combine_chunks() for c in found.columns], schema=found.schema)

    def comparisons(self, sections: Iterable[LogSection], pieces: list[LogPiece]) -> dict[Pair, Comparison]:
        """Of all copies of one partition that differ somewhere, how."""
        logs = [section for section in sections if section.kind in {*LOG_KINDS, TOPIC_ID}]
        return {pair: self._compared(pair) for pair in pairs_to_compare(segments_of(logs, pieces))}

    def _compared(self, pair: Pair) -> Comparison:
        return compare(*(self._between(pair, section) for section in (pair.a, pair.b)))

    def _between(self, pair: Pair, section: SectionKey) -> pa.Table:
        found = pa.Table.from_batches([self.batches(section, COMPARED_COLUMNS)])
        base = found["base_offset"]
        return found.filter(pc.and_(pc.greater_equal(base, pair.start), pc.less(base, pair.stop)))


_SECTION = ("input_id", "section_index")
_KEYS = ("input_id", "ingest_id")


def _held(evidence: Evidence, table: Table, kind: type[Record]) -> list[Record]:
    """The rows of a table that are evidence, as records of all of its columns that they have."""
    names = [name for name in table.names if name in fields_of(kind) or name in _KEYS]
    return records_of(kind, evidence.held(table, *names))


def write_linked(linked: LinkedLogs, run: Run) -> None:
    """Fill the tables `partition_health`, `transactions` and `ended_transactions` with what a run linked."""
    ingest_of = run.evidence.ingest_of
    health, rows = [], []
    for (topic, partition), found in linked.partitions.items():
        pieces = [*map(plain, linked_pieces(found.used_pieces, ingest_of, linked.cut))]
        health.append(found.health.row(run_id=run.run_id, topic=topic, partition=partition, linked_pieces=pieces))
        rows += [transaction.row(topic=topic, partition=partition) for transaction in found.transactions]
    decided = pa.RecordBatch.from_pylist(rows, schema=LINKED_SCHEMA)
    parts = [decided, *(part.transactions for part in linked.folded)]
    in_parallel(
        partial(run.replace_rows, health, PARTITION_HEALTH),
        partial(run.replace, [open_rows(decided, run.run_id)], TRANSACTIONS),
        partial(run.replace, [ended_by_run(part, run.run_id, linked.used) for part in parts], ENDED_TRANSACTIONS),
    )
