"""The evidence of a run as frames of Spark, for an audit whose inputs are too many to be held."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from txn_analysis.runs.evidence import Evidence
from txn_analysis.storage.on_spark.types import spark_struct
from txn_analysis.tables import LOG_PIECES, PRODUCER_SNAPSHOTS, TRANSACTION_STATES
from txn_analysis.tables._schema import BIGINT, BOOLEAN, INT, STRING
from txn_analysis.tables.inputs import SECTION

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from txn_analysis.storage.warehouse import Warehouse
    from txn_analysis.tables import Table

_RANKED = spark_struct(input_id=STRING, ingest_id=STRING, capture_rank=INT, input_moment_ms=BIGINT)
_SECTIONS = spark_struct(
    input_id=STRING,
    capture_rank=INT,
    **{field.name: field.type for field in SECTION},
    is_end_proven=BOOLEAN,
    input_problem=STRING,
    log_dir=STRING,
    path=STRING,
)


@dataclass(frozen=True)
class EvidenceFrames(Evidence):
    """The evidence of a run in a warehouse that Spark reads."""

    warehouse: Warehouse

    @cached_property
    def sections(self) -> DataFrame:
        """The section rows as a frame."""
        rows = [tuple(row[name] for name in _SECTIONS.names) for row in self.section_rows]
        return self.warehouse.spark.createDataFrame(rows, _SECTIONS)

    def of(self, table: Table) -> DataFrame:
        """The rows of a content table that are evidence.

        Each with its `capture_rank` (the newest capture's) and the newest moment of its input, 0 if there is none.
        """
        ranked = [(*key, *known.values()) for key, known in self.ranked.items()]
        known = self.warehouse.spark.createDataFrame(ranked, _RANKED)
        rows = self.warehouse.frame(table).where(F.col("ingest_id").isin(self.ingests))
        return rows.join(F.broadcast(known), ["input_id", "ingest_id"])

    @property
    def pieces(self) -> DataFrame:
        """Rows of `log_pieces`."""
        return self.of(LOG_PIECES)

    @property
    def snapshots(self) -> DataFrame:
        """Rows of `producer_snapshots`."""
        return self.of(PRODUCER_SNAPSHOTS)

    def states(self, partition_count: int) -> DataFrame:
        """Rows of `transaction_states`; console records get the partition that their id hashes to.

        `record_order` sorts the records of one id: dumped ones by offset, whichever capture they are from; console
        exports, which have no offsets, by capture, then by the newest moment of each export, then by arrival. Within
        one capture a dump counts after an export.
        """
        dumps = [i["capture_rank"] for i in self.inputs for s in i["sections"] or () if s["kind"] == "state"]
        is_console = F.col("state_partition").isNull()
        age = F.when(is_console, F.col("capture_rank")).otherwise(F.lit(min(dumps, default=0)))
        exported_in = F.when(is_console, F.col("input_id")).otherwise("")
        # The offset alone says which dumped record it is: another copy has it at another place of its text.
        arrival = F.when(is_console, F.col("ordinal")).otherwise(0).alias("arrival")
        hashed = state_partition_of(F.col("transactional_id_hash"), partition_count)
        return (
            self.of(TRANSACTION_STATES)
            .withColumn("is_console", is_console)
            .withColumn(
                "record_order",
                F.struct(-age, ~F.col("is_console"), F.coalesce("offset", "input_moment_ms"), exported_in, arrival),
            )
            .withColumn("hashed_partition", hashed)
            .withColumn("state_partition", F.coalesce("state_partition", "hashed_partition"))
        )


def state_partition_of(hashed: Column, partition_count: int) -> Column:
    """The partition of `__transaction_state` for a Java string hash; `abs(MIN_VALUE)` is 0 (Kafka's `Utils.abs`)."""
    positive = F.when(hashed == F.lit(-(2**31)), F.lit(0)).otherwise(F.abs(hashed))
    return (positive % F.lit(partition_count)).cast("int")
