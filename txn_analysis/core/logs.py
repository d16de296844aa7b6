"""The logs of histories in memory: folded in one go, then linked partition by partition."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.columns.records import records_of
from txn_analysis.coordinator.marker_columns import ENDED_COLUMNS, MARKERS, markers_of_ended, markers_of_health
from txn_analysis.kafka.sections import LOG_KINDS
from txn_analysis.kafka.transactions import OpenTransaction, PartitionView, TopicPartition
from txn_analysis.log.copies import Comparison, Pair, compare, pairs_to_compare
from txn_analysis.log.open_transactions import link_partition
from txn_analysis.log.pieces import LogPiece, by_place
from txn_analysis.log.rivals import UNCUT
from txn_analysis.log.segments import segments_of
from txn_analysis.log.snapshots import SnapshotEntry
from txn_analysis.log.summary import fold_all
from txn_analysis.log.transactions import PIECE_KEY, PieceKey
from txn_analysis.tables import PARTITION_HEALTH, TRANSACTIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from txn_analysis.core.history import History
    from txn_analysis.kafka.batches import Batches
    from txn_analysis.log.open_transactions import LinkedPartition
    from txn_analysis.log.sections import LogSection

Row = dict[str, Any]

_ENDED = pa.schema([TRANSACTIONS.arrow_schema.field(name) for name in ENDED_COLUMNS])
_NONE_ENDED = pa.RecordBatch.from_pylist([], schema=_ENDED)
_BARE = pa.schema([PARTITION_HEALTH.arrow_schema.field(name) for name in ("topic", "partition", "bare_markers")])


@dataclass
class Fold:
    """Of one history the pieces of its logs, cut where its copies and snapshots are compared.

    `ended` are the rows of `ended_transactions` of its parts.
    """

    pieces: list[LogPiece] = field(default_factory=list)
    ended: list[pa.RecordBatch] = field(default_factory=list)


def folds_of(histories: Sequence[History]) -> list[Fold]:
    """The logs of some histories."""
    parts = [(n, part) for n, history in enumerate(histories) for part in _parts(history)]
    found = [Fold() for _ in histories]
    if parts:
        cuts = [histories[n].cuts.get(part.section, UNCUT) for n, part in parts]
        folded = fold_all([part for _, part in parts], cuts)
        for part, piece in zip(folded.part.tolist(), records_of(LogPiece, folded.pieces), strict=True):
            found[parts[part][0]].pieces.append(piece)
        bounds = np.searchsorted(folded.part_of_transaction, np.arange(len(parts) + 1)).tolist()
        for (number, _), (first, end) in zip(parts, pairwise(bounds), strict=True):
            if end > first:
                found[number].ended.append(folded.transactions.slice(first, end - first))
    return found


def _parts(history: History) -> Iterable[Batches]:
    return (part for part in history.batches if len(part))


@dataclass
class Linked:
    """All partitions of one history, linked: what is open in them, what each of them says, the pieces used."""

    opened: list[OpenTransaction] = field(default_factory=list)
    followed: dict[tuple[str, int], LinkedPartition] = field(default_factory=dict)
    used: set[PieceKey] = field(default_factory=set)

    @cached_property
    def health(self) -> list[Row]:
        """Rows of `partition_health`, of which only what is open asks."""
        return [own.health.row(topic=topic, partition=number) for (topic, number), own in self.followed.items()]

    @property
    def ended(self) -> list[Row]:
        """Rows of `transactions`, of those that span pieces and ended."""
        return [
            transaction.row(topic=topic, partition=number)
            for (topic, number), own in self.followed.items()
            for transaction in own.transactions
            if not transaction.is_open
        ]


def linked_logs(history: History, pieces: Iterable[LogPiece], as_of_ms: int | None) -> Linked:
    """Every partition of one history, followed to its end."""
    found = Linked()
    pieces_at, snapshots_at = by_place(pieces), by_place(map(SnapshotEntry.of, history.snapshots))
    for where, sections in sorted(history.linkable().items()):
        own = pieces_at.get(where, [])
        compared = _comparisons(history, sections, own)
        linked = link_partition(sections, own, snapshots_at.get(where, []), compared, as_of_ms)
        found.followed[where] = linked
        opened = (transaction for transaction in linked.transactions if transaction.is_open)
        found.opened += [OpenTransaction.of(each.row(topic=where[0], partition=where[1])) for each in opened]
        found.used.update(linked.used_pieces)
    found.opened.sort(key=lambda t: (t.topic_partition, t.txn_start_offset, t.producer_id))
    return found


def end_markers(ended: Iterable[pa.RecordBatch], linked: Linked) -> pa.Table:
    """Every end marker of the logs, as rows of `MARKERS`."""
    used = pa.array([" ".join(map(str, key)) for key in linked.used], pa.string())
    whole = (part.filter(pc.is_in(_keys(part), used)) for part in ended)
    own = pa.RecordBatch.from_pylist(linked.ended, schema=_ENDED) if linked.ended else _NONE_ENDED
    health = pa.RecordBatch.from_pylist(linked.health, schema=_BARE)
    found = [*markers_of_ended(iter([*whole, own])), *markers_of_health(iter([health]))]
    return pa.Table.from_batches(found, MARKERS)


def _keys(rows: pa.RecordBatch) -> pa.Array:
    return pc.binary_join_element_wise(*(rows.column(name).cast(pa.string()) for name in PIECE_KEY), " ")


def views_of_health(linked: Linked) -> dict[TopicPartition, PartitionView]:
    """By partition what is known of its log."""
    return {view.topic_partition: view for view in map(PartitionView.of, linked.health)}


def _comparisons(history: History, sections: list[LogSection], pieces: list[LogPiece]) -> dict[Pair, Comparison]:
    """Of all copies of one partition that differ somewhere, how."""
    if sum(s.kind in LOG_KINDS for s in sections) < 2:
        return {}
    pairs = pairs_to_compare(segments_of(sections, pieces))
    return {pair: compare(*[_batches_between(history, key, pair) for key in (pair.a, pair.b)]) for pair in pairs}


def _batches_between(history: History, section: tuple[str, int], pair: Pair) -> pa.Table:
    """The batches of one section that begin where two copies differ."""
    found = pa.Table.from_batches([part.rows() for part in _parts(history) if part.section == section])
    base = found["base_offset"]
    return found.filter(pc.and_(pc.greater_equal(base, pair.start), pc.less(base, pair.stop)))
