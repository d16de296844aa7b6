"""Frames of the coordinator's records and of end markers, as the tasks of Spark are given them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import StructField, StructType

from tests.judge.cases import OPEN
from txn_analysis.coordinator.end_markers import EndMarker
from txn_analysis.kafka.transactions import StateRecord
from txn_analysis.pipeline.on_spark.views import open_rows
from txn_analysis.storage.on_spark.types import record_struct, spark_schema, spark_struct
from txn_analysis.tables import TRANSACTION_STATES
from txn_analysis.tables._schema import BIGINT, BOOLEAN, INT, STRING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ORDER = spark_struct(age=INT, is_dump=BOOLEAN, place=BIGINT)
STATES = StructType([*spark_schema(TRANSACTION_STATES).fields, StructField("record_order", ORDER)])
PLACE = spark_struct(topic=STRING, partition=INT, producer_id=BIGINT)
MARKERS = StructType([*PLACE.fields, *record_struct(EndMarker).fields])


def states(spark: SparkSession, *rows: dict[str, Any]) -> DataFrame:
    """Rows of the table as the frame of all records that are evidence."""
    return spark.createDataFrame([tuple(row.get(name) for name in STATES.names) for row in rows], STATES)


def as_read(*rows: dict[str, Any]) -> list[StateRecord]:
    """Rows of the table as Python gets them from that frame."""
    optional = dict.fromkeys(StateRecord._fields)
    return [StateRecord.placed(optional | row | _structs(row)) for row in rows]


def _structs(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "topic_partitions": [{"topic": topic, "partition": number} for topic, number in row["topic_partitions"]],
        "record_order": dict(zip(ORDER.names, row["record_order"], strict=True)),
    }


def open_data(spark: SparkSession, *producer_ids: int) -> DataFrame:
    """Open transactions of some producers on orders-0, none of which was ever marked there."""
    return open_rows(spark, (replace(OPEN, producer_id=p, last_marker_ms=None) for p in producer_ids))


def markers(spark: SparkSession, *found: tuple[int, EndMarker]) -> DataFrame:
    """End markers of orders-0 by producer id."""
    return spark.createDataFrame([("orders", 0, producer_id, *marker) for producer_id, marker in found], MARKERS)
