"""The consumer groups that wait behind an open transaction in `__consumer_offsets`, from the tables of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from txn_analysis.judge import blocked_groups as judge
from txn_analysis.storage.frames import collected
from txn_analysis.storage.on_spark.types import spark_struct
from txn_analysis.tables import GROUP_OFFSETS
from txn_analysis.tables._schema import INT, STRING

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from pyspark.sql import DataFrame

    from txn_analysis.kafka.transactions import OpenTransaction
    from txn_analysis.pipeline.run import Run

_STRETCH = ("input_id", "section_index", "text_start_bytes", "text_end_bytes")
_SECTION = spark_struct(input_id=STRING, section_index=INT)


def blocked_groups(run: Run, opened: Sequence[OpenTransaction]) -> dict[int, judge.Groups]:
    """By partition of `__consumer_offsets` with an open transaction, its groups; see `judge.blocked_groups`.

    In: `opened`, the open transactions of that topic.
    """
    partitions = {transaction.partition for transaction in opened}
    files = judge.files_that_count(judge.group_files(run.evidence.section_rows), partitions)
    if run.evidence.is_at_hand:
        keys = {(file.input_id, file.section_index) for file in files}
        rows = [r for r in run.evidence.listed(GROUP_OFFSETS) if (r["input_id"], r["section_index"]) in keys]
    else:
        producers = {transaction.producer_id for transaction in opened}
        summed_up = collected(_group_offsets(run, files, producers)) if files else []
        rows = [row | (row["stretch"] or {}) for row in summed_up]
    return judge.blocked_groups(opened, files, judge.GroupOffsets.of(rows))


def _group_offsets(run: Run, files: list[judge.GroupFile], producers: Collection[int]) -> DataFrame:
    """As many rows as there are stretches of text, and groups with offsets of an open producer or of any other."""
    keys = [(file.input_id, file.section_index) for file in files]
    wanted = run.warehouse.spark.createDataFrame(keys, _SECTION)
    own = run.evidence.of(GROUP_OFFSETS).where(F.col("partition").isin({file.partition for file in files}))
    stretch = F.when(F.col("group_id").isNull(), F.struct(*_STRETCH)).alias("stretch")
    producer_id = F.when(F.col("producer_id").isin(producers), F.col("producer_id")).alias("producer_id")
    return (
        own.join(F.broadcast(wanted), list(_SECTION.names), "left_semi")
        .groupBy("partition", "group_id", producer_id, stretch)
        .agg(F.max("last_offset").alias("last_offset"))
    )
