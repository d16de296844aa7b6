"""The ended transactions of a run with the cause of their end, and the stale records that they published."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import Window
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema

from txn_analysis.judge.endings import EndedTransaction, IdHistory, ending_of
from txn_analysis.judge.history import by_id, in_order
from txn_analysis.judge.state_frames import histories, records_in
from txn_analysis.tables._schema import BIGINT, INT, STRING
from txn_analysis.tables.findings import CAUSE
from txn_analysis.tables.spark_types import spark_struct

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import DataFrame

Row = dict[str, Any]

ENDED = spark_struct(
    topic=STRING,
    partition=INT,
    producer_id=BIGINT,
    txn_start_offset=BIGINT,
    end_offset=BIGINT,
    outcome=STRING,
    end_timestamp_ms=BIGINT,
    record_count=BIGINT,
    transactional_id=STRING,
    cause=CAUSE,
    stale_because=STRING,
)


def ended_transactions(transactions: DataFrame) -> DataFrame:
    """The ended rows of `transactions` of one run, each with the time of its producer's end marker before its own."""
    in_log_order = Window.partitionBy("topic", "partition", "producer_id").orderBy("end_offset")
    ended = transactions.where("outcome != 'open'")
    return ended.withColumn("previous_end_ms", F.lag("end_timestamp_ms").over(in_log_order))


def with_causes(ended: DataFrame, states: DataFrame, max_clock_skew_ms: int) -> DataFrame:
    """Why each ended transaction ended.

    In:  `ended`, rows of `ended_transactions`; `states`, the records that are evidence.
    Out: one row per ended transaction, see `ENDED`; `stale_because` says why it held records of an older transaction,
         which its commit published (KIP-890), and is NULL where nothing shows that.
    """
    asked = ended.select(*EndedTransaction._fields)
    records = histories(asked, states)
    grouped = records.groupBy("asked_producer_id").cogroup(asked.groupBy("producer_id"))
    return grouped.applyInArrow(_reader(max_clock_skew_ms), ENDED)


def _reader(max_clock_skew_ms: int) -> Callable[[pa.Table, pa.Table], pa.Table]:
    schema = to_arrow_schema(ENDED)

    def read(history: pa.Table, asked: pa.Table) -> pa.Table:
        """All records of the ids that had one producer id, and the ended transactions of that producer id."""
        ordered = {name: IdHistory(in_order(found)) for name, found in sorted(by_id(records_in(history)).items())}
        ended = [EndedTransaction(**row) for row in asked.to_pylist()]
        return pa.Table.from_pylist([_answer(one, ordered, max_clock_skew_ms) for one in ended], schema=schema)

    return read


def _answer(ended: EndedTransaction, histories_by_id: Mapping[str, IdHistory], max_clock_skew_ms: int) -> Row:
    """Of several ids that had the producer id, the one that explains the end best."""
    known: list[tuple[str | None, IdHistory]] = [*histories_by_id.items()] or [(None, IdHistory([]))]
    endings = [(name, ending_of(ended, history, max_clock_skew_ms)) for name, history in known]
    name, ending = max(endings, key=lambda found: found[1].cause.confidence.rank)
    cause = asdict(ending.cause) | {"confidence": ending.cause.confidence.value}
    return ended._asdict() | {"transactional_id": name, "cause": cause, "stale_because": ending.stale_because}
