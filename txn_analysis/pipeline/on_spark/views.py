"""The coordinator's side on Spark: its records brought to the open transactions that they may be about.

Spark only moves rows; what they say is read by the pure functions of `coordinator.view`, in its tasks and in the
pure core alike.
"""

from __future__ import annotations

import pickle
from operator import attrgetter
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.types import StructType

from txn_analysis.coordinator.history import by_id, in_order
from txn_analysis.coordinator.view import Views, views_of
from txn_analysis.kafka.transactions import OPEN_COLUMNS, OpenTransaction
from txn_analysis.pipeline.on_spark.markers import markers_in, with_markers
from txn_analysis.pipeline.on_spark.state import PICKLED, histories, records_in, told
from txn_analysis.storage.on_spark.types import spark_schema
from txn_analysis.tables import TRANSACTIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pyspark.sql import DataFrame, SparkSession


def open_rows(spark: SparkSession, opened: Iterable[OpenTransaction]) -> DataFrame:
    """Open transactions as a frame of the columns that they are made of."""
    schema = StructType([field for field in spark_schema(TRANSACTIONS) if field.name in OPEN_COLUMNS])
    values = attrgetter(*schema.names)
    return spark.createDataFrame([values(transaction) for transaction in opened], schema)


def coordinator_views(opened: DataFrame, markers: DataFrame, states: DataFrame, max_clock_skew_ms: int) -> Views:
    """What the coordinator knows of open transactions; collects as many views as there are.

    In: `opened`, see `open_rows`; `markers`, see `on_spark.markers.end_markers`; `states`, the records that are
    evidence.
    """
    asked = with_markers(opened, markers)
    records = histories(asked, states).groupBy("asked_producer_id")
    found = records.cogroup(asked.groupBy("producer_id")).applyInArrow(_viewer(max_clock_skew_ms), PICKLED)
    views: Views = {}
    for part in told(found):
        views |= part
    return views


def _viewer(max_clock_skew_ms: int) -> Callable[[pa.Table, pa.Table], pa.Table]:
    def view(history: pa.Table, asked: pa.Table) -> pa.Table:
        """All records of the ids that had one producer id, and the open transactions of that producer id."""
        rows = asked.to_pylist()
        opened = [OpenTransaction.of(row) for row in rows]
        markers = {one.key: markers_in(row) for one, row in zip(opened, rows, strict=True)}
        known = [in_order(found) for found in by_id(records_in(history)).values()]
        views = views_of(known, opened, markers, max_clock_skew_ms)
        return pa.table({"pickled": pa.array([pickle.dumps(views)] if views else [], pa.binary())})

    return view
