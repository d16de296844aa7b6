"""The evidence of a run as frames of Spark, for an audit whose inputs are too many to be held."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from txn_analysis.runs.evidence import Evidence
from txn_analysis.storage.on_spark.types import spark_struct
from txn_analysis.tables import LOG_PIECES, PRODUCER_SNAPSHOTS
from txn_analysis.tables._schema import BIGINT, BOOLEAN, INT, STRING
from txn_analysis.tables.inputs import SECTION

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

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
