"""Reconstruct: brings the evidence of each partition together and links it; what is shuffled grows with producers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructField, StructType

from txn_analysis.reconstruct.link import link_partition
from txn_analysis.tables import PARTITION_HEALTH, TRANSACTIONS
from txn_analysis.tables._schema import BIGINT, INT, STRING, array, struct

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

    from txn_analysis.evidence import Evidence

_LOG_KINDS = ("log", "state", "snapshot")
_PIECE_KEY = struct(input_id=STRING, section_index=INT, first_position=BIGINT)
_OWN = ("run_id", "topic", "partition")
LINKED = StructType(
    [
        StructField("topic", STRING),
        StructField("partition", INT),
        StructField("health", StructType([f for f in PARTITION_HEALTH.schema if f.name not in _OWN])),
        StructField("transactions", array(StructType([f for f in TRANSACTIONS.schema if f.name not in _OWN]))),
        StructField("used_pieces", array(_PIECE_KEY)),
    ]
)


def linked_partitions(evidence: Evidence, as_of_ms: int | None) -> DataFrame:
    """One row per partition: its health, its transactions that are open or span pieces, and the pieces used."""
    sections = evidence.sections.where(F.col("kind").isin(*_LOG_KINDS))
    pieces = evidence.pieces.drop("transactions", "text_gaps")
    items = _items(sections, "section", pieces, evidence.snapshots)
    return items.groupBy("topic", "partition").applyInArrow(_linker(as_of_ms), LINKED)


def _items(sections: DataFrame, section: str, pieces: DataFrame, snapshots: DataFrame) -> DataFrame:
    """All evidence as one frame: a row holds a section, a piece or a row of a snapshot."""
    frames = {section: sections, "piece": pieces, "snapshot": snapshots}
    packed = [
        frame.select("topic", "partition", F.struct(*frame.columns).alias(name)) for name, frame in frames.items()
    ]
    joined = packed[0].unionByName(packed[1], allowMissingColumns=True)
    return joined.unionByName(packed[2], allowMissingColumns=True)


def _linker(as_of_ms: int | None) -> Callable[[pa.Table], pa.Table]:
    schema = to_arrow_schema(LINKED)

    def link(table: pa.Table) -> pa.Table:
        columns = {name: [v for v in table[name].to_pylist() if v] for name in ("section", "piece", "snapshot")}
        linked = link_partition(columns["section"], columns["piece"], columns["snapshot"], as_of_ms)
        row: dict[str, Any] = {
            "topic": table["topic"][0].as_py(),
            "partition": table["partition"][0].as_py(),
            "health": linked.health,
            "transactions": linked.transactions,
            "used_pieces": linked.used_pieces,
        }
        return pa.Table.from_pylist([row], schema=schema)

    return link


def partition_health(linked: DataFrame, run_id: str) -> DataFrame:
    """The partition_health table of a run."""
    return linked.select(F.lit(run_id).alias("run_id"), "topic", "partition", "health.*")


def transactions(linked: DataFrame, evidence: Evidence, run_id: str) -> DataFrame:
    """The transactions table of a run: those that linking decided, and those that lie inside one piece."""
    decided = linked.select("topic", "partition", F.explode("transactions").alias("t")).select(
        "topic", "partition", "t.*"
    )
    used = linked.select(F.explode("used_pieces").alias("p")).select("p.*").distinct()
    inside = evidence.pieces.join(used, used.columns, "left_semi").select(
        "topic", "partition", F.explode("transactions").alias("t")
    )
    rows = decided.unionByName(_ended_inside(inside), allowMissingColumns=True)
    return rows.withColumn("run_id", F.lit(run_id)).select(*TRANSACTIONS.schema.names)


def _ended_inside(inside: DataFrame) -> DataFrame:
    names = {
        "producer_id": "producer_id",
        "txn_start_offset": "start_offset",
        "first_producer_epoch": "first_epoch",
        "max_producer_epoch": "max_epoch",
        "last_offset": "last_offset",
        "last_sequence": "last_sequence",
        "record_count": "record_count",
        "size_bytes": "size_bytes",
        "last_timestamp_ms": "last_timestamp_ms",
        "first_appended_before_ms": "first_before_ms",
        "appended_after_ms": "last_after_ms",
        "appended_before_ms": "last_before_ms",
        "end_offset": "end_offset",
        "end_timestamp_ms": "end_timestamp_ms",
        "end_producer_epoch": "end_epoch",
        "coordinator_epoch": "end_coordinator_epoch",
    }
    epoch = F.col("t.end_coordinator_epoch")
    return inside.select(
        "topic",
        "partition",
        *[F.col(f"t.{source}").alias(name) for name, source in names.items()],
        F.lit(True).alias("is_txn_start_exact"),
        F.coalesce("t.end_marker", F.lit("ended")).alias("outcome"),
        F.when(epoch.isNull(), "unknown").otherwise("marker").alias("coordinator_epoch_basis"),
    )
