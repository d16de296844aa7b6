"""Reconstruct: brings the evidence of each partition together and links it; what is shuffled grows with producers."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial, reduce
from itertools import chain
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema

from txn_analysis.columns.records import Record, plain, records_of
from txn_analysis.kafka.batches import batches_of
from txn_analysis.kafka.sections import LOG_KINDS, SNAPSHOT, STATED_OF_PARTITION, TOPIC_ID
from txn_analysis.log.copies import (
    COMPARED_COLUMNS,
    Comparison,
    Pair,
    compare,
    overlapping,
    pairs_to_compare,
)
from txn_analysis.log.open_transactions import link_partition
from txn_analysis.log.pieces import LogPiece
from txn_analysis.log.sections import LogSection
from txn_analysis.log.segments import segments_of
from txn_analysis.log.snapshots import SnapshotEntry
from txn_analysis.log.summary import FOLD_COLUMNS, fold
from txn_analysis.log.transactions import LINKED_SCHEMA, PIECE_KEY, PieceKey, ended_by_run, linked_pieces, open_rows
from txn_analysis.spark.parallel import in_parallel
from txn_analysis.storage.arrow_streams import packed, unpacked
from txn_analysis.storage.on_spark.tasks import named_rows_of, rows_named
from txn_analysis.storage.on_spark.types import spark_struct
from txn_analysis.tables import ENDED_TRANSACTIONS, LOG_BATCHES, LOG_PIECES, PARTITION_HEALTH, TRANSACTIONS
from txn_analysis.tables._schema import BIGINT, BINARY, INT, STRING, array, struct

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from txn_analysis.log.rivals import Cuts
    from txn_analysis.log.sections import SectionKey
    from txn_analysis.pipeline.on_spark.evidence import EvidenceFrames
    from txn_analysis.pipeline.run import Run
    from txn_analysis.storage.on_spark.tasks import RowMaker
    from txn_analysis.storage.row_tasks import NamedRows

_PIECE_KEY = struct(input_id=STRING, section_index=INT, first_position=BIGINT)
_OWN = ("run_id", "topic", "partition")
LINKED = spark_struct(
    topic=STRING,
    partition=INT,
    health=pa.struct([f for f in PARTITION_HEALTH.arrow_schema if f.name not in _OWN]),
    transactions=BINARY,
    cut_pieces=array(_PIECE_KEY),
)
_SECTION_KEY = struct(input_id=STRING, section_index=INT)
_SECTIONS = spark_struct(input_id=STRING, section_index=INT)
_PAIR = spark_struct(start=BIGINT, stop=BIGINT, a=_SECTION_KEY, b=_SECTION_KEY)
_SIDE = spark_struct(pair=INT, side=STRING, input_id=STRING, section_index=INT, start=BIGINT, stop=BIGINT)
_COMPARED = spark_struct(
    pair=INT,
    conflict_offset=BIGINT,
    a_leader_epoch=INT,
    b_leader_epoch=INT,
    a_lost_offset=BIGINT,
    b_lost_offset=BIGINT,
)


@dataclass(frozen=True)
class Linked:
    """The linked partitions of one run, and the pieces that they were linked from.

    Attributes:
        partitions: one row per partition: its health, its transactions that are open or span pieces, and the pieces
            used of sections that had to be cut.
        folded: of the sections that had to be cut, the pieces and their ended transactions, as `named_rows_of` gives
            them; None where there are none.
        cut: those sections.
    """

    partitions: DataFrame
    folded: DataFrame | None
    cut: Collection[SectionKey]

    def unpersist(self) -> None:
        """Let go of what was kept for the tables that are made of it."""
        self.partitions.unpersist()
        if self.folded is not None:
            self.folded.unpersist()


def linked_partitions(evidence: EvidenceFrames, as_of_ms: int | None) -> Linked:
    """Bring the evidence of each partition together and link it."""
    known = evidence.log_sections
    cuts = evidence.cuts
    folded = _folded_anew(evidence, cuts).persist() if cuts else None
    pieces = evidence.pieces if folded is None else _with_cut_pieces(evidence, cuts, folded)
    sections = evidence.sections
    logs = sections.where(F.col("kind").isin(*LOG_KINDS, TOPIC_ID))
    small = pieces.drop("text_gaps")
    comparisons = _comparisons(evidence, logs, small) if overlapping(known) else {}
    linkable = sections.where(F.col("kind").isin(*LOG_KINDS, SNAPSHOT, *STATED_OF_PARTITION))
    items = _items(section=linkable, piece=small, snapshot=evidence.snapshots)
    linked = items.groupBy("topic", "partition").applyInArrow(
        _linker(evidence.ingest_of, cuts.keys(), comparisons, as_of_ms), LINKED
    )
    return Linked(linked.persist(), folded, cuts.keys())


def _folded_anew(evidence: EvidenceFrames, cuts: Mapping[SectionKey, Cuts]) -> DataFrame:
    """The pieces and the ended transactions of sections that must be cut, folded in tasks that read their batches."""

    def run(parts: Iterator[pa.RecordBatch]) -> Iterator[NamedRows]:
        for batches in chain.from_iterable(map(batches_of, parts)):
            folded = fold(batches, cuts[batches.section])
            yield LOG_PIECES.name, folded.pieces
            yield ENDED_TRANSACTIONS.name, folded.transactions

    batches = evidence.of(LOG_BATCHES).join(_keys(evidence, cuts), _SECTIONS.names, "left_semi")
    return named_rows_of(batches.select(*FOLD_COLUMNS), run)


def _with_cut_pieces(evidence: EvidenceFrames, cuts: Collection[SectionKey], folded: DataFrame) -> DataFrame:
    pieces = evidence.pieces.select(*LOG_PIECES.names)
    whole = pieces.join(_keys(evidence, cuts), _SECTIONS.names, "left_anti")
    return whole.unionByName(rows_named(folded, LOG_PIECES))


def _keys(evidence: EvidenceFrames, sections: Collection[SectionKey]) -> DataFrame:
    return F.broadcast(evidence.warehouse.spark.createDataFrame(sorted(sections), _SECTIONS))


def _comparisons(evidence: EvidenceFrames, logs: DataFrame, pieces: DataFrame) -> dict[Pair, Comparison]:
    """Of all copies that differ somewhere, how; as many as there are such stretches of files."""
    items = _items(section=logs, piece=pieces)
    pairs = [
        Pair(row["start"], row["stop"], tuple(row["a"]), tuple(row["b"]))
        for row in items.groupBy("topic", "partition").applyInArrow(_find_pairs, _PAIR).collect()
    ]
    if not pairs:
        return {}
    sides = [
        (number, side, *key, pair.start, pair.stop)
        for number, pair in enumerate(pairs)
        for side, key in (("a", pair.a), ("b", pair.b))
    ]
    wanted = F.broadcast(evidence.warehouse.spark.createDataFrame(sides, _SIDE))
    batches = evidence.of(LOG_BATCHES).join(wanted, ["input_id", "section_index"])
    batches = batches.where("base_offset >= start AND base_offset < stop").select("pair", "side", *COMPARED_COLUMNS)
    rows = [row.asDict() for row in batches.groupBy("pair").applyInArrow(_compare_sides, _COMPARED).collect()]
    return {pairs[row.pop("pair")]: Comparison(**row) for row in rows}


def _find_pairs(table: pa.Table) -> pa.Table:
    segments = segments_of(_present(table, "section", LogSection), _present(table, "piece", LogPiece))
    rows = [
        {"start": p.start, "stop": p.stop}
        | {side: dict(zip(_SECTIONS.names, key, strict=True)) for side, key in (("a", p.a), ("b", p.b))}
        for p in pairs_to_compare(segments)
    ]
    return pa.Table.from_pylist(rows, schema=to_arrow_schema(_PAIR))


def _compare_sides(table: pa.Table) -> pa.Table:
    a, b = (table.filter(pc.equal(table["side"], side)) for side in ("a", "b"))
    row = {"pair": table["pair"][0].as_py()} | asdict(compare(a, b))
    return pa.Table.from_pylist([row], schema=to_arrow_schema(_COMPARED))


def _items(**frames: DataFrame) -> DataFrame:
    """All evidence as one frame: a row holds a section, a piece or a row of a snapshot."""
    packed = [
        frame.select("topic", "partition", F.struct(*frame.columns).alias(name)) for name, frame in frames.items()
    ]
    return reduce(partial(DataFrame.unionByName, allowMissingColumns=True), packed)


def _present(table: pa.Table, name: str, kind: type[Record]) -> list[Record]:
    return [record for part in table[name].drop_null().chunks for record in records_of(kind, part)]


def _linker(
    ingest_of: Mapping[str, str],
    cut: Collection[SectionKey],
    comparisons: Mapping[Pair, Comparison],
    as_of_ms: int | None,
) -> Callable[[pa.Table], pa.Table]:
    schema, cut = to_arrow_schema(LINKED), frozenset(cut)

    def link(table: pa.Table) -> pa.Table:
        sections, pieces = _present(table, "section", LogSection), _present(table, "piece", LogPiece)
        if all(s.kind in STATED_OF_PARTITION for s in sections):  # a checkpoint names it, its files are not here
            return schema.empty_table()
        linked = link_partition(sections, pieces, _present(table, "snapshot", SnapshotEntry), comparisons, as_of_ms)
        place: dict[str, Any] = {name: table[name][0].as_py() for name in ("topic", "partition")}
        whole = linked_pieces(linked.used_pieces, ingest_of, cut)
        row: dict[str, Any] = {
            **place,
            "health": linked.health.row(linked_pieces=[*map(plain, whole)]),
            "transactions": _packed_transactions(t.row(**place) for t in linked.transactions),
            "cut_pieces": [plain(piece) for piece in linked.used_pieces if piece.section in cut],
        }
        return pa.Table.from_pylist([row], schema=schema)

    return link


def partition_health(linked: Linked, run_id: str) -> DataFrame:
    """The partition_health table of a run."""
    return linked.partitions.select(F.lit(run_id).alias("run_id"), "topic", "partition", "health.*")


def write_transactions(linked: Linked, run: Run) -> None:
    """Fill the tables `transactions` and `ended_transactions` with what a run linked."""
    decided, run_id, used = linked.partitions.select("transactions"), run.run_id, set[PieceKey]()
    ended = decided
    if linked.folded is not None:
        used = _cut_pieces(linked)
        ended = decided.union(linked.folded.where(F.col("name") == ENDED_TRANSACTIONS.name).select("rows"))
    in_parallel(
        partial(run.replace_by, decided, _unpacked(lambda rows: open_rows(rows, run_id)), TRANSACTIONS),
        partial(run.replace_by, ended, _unpacked(lambda rows: ended_by_run(rows, run_id, used)), ENDED_TRANSACTIONS),
    )


def _cut_pieces(linked: Linked) -> set[PieceKey]:
    """As many as there are ranges of text in sections that had to be cut."""
    rows = linked.partitions.select(F.explode("cut_pieces").alias("p")).select([f"p.{name}" for name in PIECE_KEY])
    return {PieceKey(*row) for row in rows.collect()}


def _packed_transactions(rows: Iterable[Mapping[str, Any]]) -> bytes | None:
    """Transactions of one partition, as rows of `transactions` without their run; None where there are none."""
    batch = pa.RecordBatch.from_pylist(list(rows), schema=LINKED_SCHEMA)
    return packed([batch], LINKED_SCHEMA) if batch.num_rows else None


def _unpacked(rows_of: Callable[[pa.RecordBatch], pa.RecordBatch]) -> RowMaker:
    """What becomes of packed transactions, one column of a frame."""

    def run(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for stream in (stream for part in parts for stream in part.column(0) if stream.is_valid):
            yield from map(rows_of, unpacked(stream).to_batches())

    return run
