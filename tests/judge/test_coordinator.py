"""The coordinator's side as frames: last record wins, tombstones stay known, several ids for one producer id."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from chispa import assert_df_equality
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from txn_analysis.evidence import state_partition_of
from txn_analysis.judge.coordinator import coordinator_facts, current_states
from txn_analysis.tables import TRANSACTION_STATES, TRANSACTIONS
from txn_analysis.tables._schema import BIGINT, BOOLEAN, INT, struct

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ORDER = struct(age=INT, is_dump=BOOLEAN, place=BIGINT)
STATES = StructType([*TRANSACTION_STATES.schema.fields, StructField("record_order", ORDER)])


def record(
    offset: int, transactional_id: str, state: str | None, producer_id: int | None = 7, **changes: Any
) -> dict[str, Any]:
    return {
        "ingest_id": "ingest",
        "input_id": "input",
        "section_index": 0,
        "ordinal": offset,
        "state_partition": 1,
        "offset": offset,
        "recorded_ms": 1_000 + offset,
        "transactional_id": transactional_id,
        "is_tombstone": state is None,
        "is_undecodable": False,
        "state": state,
        "producer_id": producer_id,
        "producer_epoch": 0,
        "timeout_ms": 60_000,
        "topic_partitions": [("orders", 0)] if state == "Ongoing" else [],
        "last_update_ms": 1_000 + offset,
        "record_order": (0, True, offset),
    } | changes


def states(spark: SparkSession, *records: dict[str, Any]) -> DataFrame:
    return spark.createDataFrame([tuple(r.get(n) for n in STATES.names) for r in records], STATES)


def open_data(spark: SparkSession, *producer_ids: int) -> DataFrame:
    rows = [{"topic": "orders", "partition": 0, "producer_id": p, "last_marker_ms": None} for p in producer_ids]
    schema = StructType([f for f in TRANSACTIONS.schema if f.name in rows[0]])
    return spark.createDataFrame([tuple(r[n] for n in schema.names) for r in rows], schema)


def test_the_last_record_in_offset_order_is_the_current_state(spark: SparkSession) -> None:
    found = current_states(
        states(
            spark,
            record(5, "billing", "CompleteCommit"),
            record(3, "billing", "Ongoing"),
            record(1, "ledger", "Empty", producer_id=8),
            record(9, "ledger", None, producer_id=None),
        )
    )
    expected = spark.createDataFrame(
        [("billing", "CompleteCommit", 7, False), ("ledger", None, None, True)],
        "transactional_id string, state string, producer_id bigint, is_tombstone boolean",
    )
    assert_df_equality(
        found.select(*expected.columns), expected, ignore_row_order=True, ignore_nullable=True, ignore_metadata=True
    )


def test_what_is_known_of_each_producer_id(spark: SparkSession) -> None:
    facts = coordinator_facts(
        open_data(spark, 7, 8, 9, 10),
        states(
            spark,
            record(1, "ended", "CompleteCommit", producer_id=7),
            record(2, "live", "Ongoing", producer_id=7),
            record(3, "rotated", "Empty", producer_id=8),
            record(4, "rotated", "Empty", producer_id=80),
            record(5, "expired", "Empty", producer_id=9),
            record(6, "expired", None, producer_id=None),
        ),
        max_clock_skew_ms=0,
    )
    expected = spark.createDataFrame(
        [
            (7, "live", "Ongoing", True, True),  # of two ids, the one that lists the partition
            (8, "rotated", "Empty", False, False),
            (9, "expired", "Tombstone", False, False),
        ],
        "producer_id bigint, transactional_id string, coordinator_state string, is_listed boolean, "
        "runs_under_producer_id boolean",
    )
    assert_df_equality(
        facts.select(*expected.columns), expected, ignore_row_order=True, ignore_nullable=True, ignore_metadata=True
    )


@pytest.mark.parametrize(
    ("hashed", "partition"), [(0, 0), (5, 1), (-5, 1), (2**31 - 1, 3), (-(2**31), 0), (-(2**31) + 1, 3)]
)
def test_the_partition_of_a_hash(spark: SparkSession, hashed: int, partition: int) -> None:
    frame = spark.createDataFrame([(hashed,)], StructType([StructField("hashed", INT)]))
    assert frame.select(state_partition_of(F.col("hashed"), 4)).collect()[0][0] == partition
