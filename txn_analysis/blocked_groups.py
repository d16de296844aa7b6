"""The consumer groups that wait behind an open transaction in `__consumer_offsets`, from the files of a capture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema

from txn_analysis.frames import collected
from txn_analysis.ingest.group_offsets import group_offsets
from txn_analysis.ingest.sections import LOG
from txn_analysis.ingest.text import TextError, open_text
from txn_analysis.tables._schema import BIGINT, INT, STRING, struct

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from txn_analysis.run import Run

Row = dict[str, Any]

GROUP_TOPIC = "__consumer_offsets"
_PART = struct(
    path=STRING, compression=STRING, partition=INT, start=BIGINT, end=BIGINT, grammar=STRING, base_offset=BIGINT
)
_FOUND = struct(partition=INT, group=STRING, producer_id=BIGINT, last_offset=BIGINT)


def blocked_groups(run: Run, starts: Mapping[tuple[int, int], int]) -> dict[int, Row]:
    """By partition of `__consumer_offsets`: `pending_groups` and `waiting_groups`, sorted.

    In: `starts`, the start offset of each open transaction there, by partition and producer id.

    Pending groups have offsets in an open transaction, which nobody can fetch until it ends (UNSTABLE_OFFSET_COMMIT);
    waiting groups share the partition, whose compaction stands still. Only partitions with an open transaction are
    read, once more, from the files of the judged capture.
    """
    partitions = {partition for partition, _ in starts}
    parts = _parts(run, partitions)
    if not parts:
        return {}
    files = run.warehouse.spark.createDataFrame(parts, _PART).repartition(len(parts))
    found = (
        files.mapInArrow(_read, _FOUND)
        .groupBy("partition", "group", "producer_id")
        .agg(F.max("last_offset").alias("last_offset"))
    )
    pending: dict[int, set[str]] = {partition: set() for partition in partitions}
    sharing: dict[int, set[str]] = {partition: set() for partition in partitions}
    for row in collected(found):
        start = starts.get((row["partition"], row["producer_id"]))
        is_pending = start is not None and row["last_offset"] >= start
        (pending if is_pending else sharing)[row["partition"]].add(row["group"])
    return {
        number: {
            "pending_groups": sorted(pending[number]),
            "waiting_groups": sorted(sharing[number] - pending[number]),
        }
        for number in pending
    }


def _parts(run: Run, partitions: set[int]) -> list[tuple[Any, ...]]:
    inputs = {item["input_id"]: item for item in run.evidence.inputs if item["capture_rank"] == 0}
    return [
        (
            inputs[row["input_id"]]["path"],
            inputs[row["input_id"]]["compression"],
            row["partition"],
            row["text_start_bytes"],
            row["text_end_bytes"],
            row["grammar"],
            row["file_base_offset"],
        )
        for row in run.evidence.section_rows
        if row["kind"] == LOG
        and row["topic"] == GROUP_TOPIC
        and row["partition"] in partitions
        and row["input_id"] in inputs
    ]


def _read(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    schema = to_arrow_schema(_FOUND)
    for part in parts:
        for row in part.to_pylist():
            last: dict[tuple[str, int | None], int] = {}
            for item in _of_file(row):
                last[item[:2]] = max(item[2], last.get(item[:2], -1))
            rows = [
                {"partition": row["partition"], "group": group, "producer_id": producer_id, "last_offset": offset}
                for (group, producer_id), offset in last.items()
            ]
            yield pa.RecordBatch.from_pylist(rows, schema=schema)


def _of_file(row: Row) -> Iterator[tuple[str, int | None, int]]:
    try:
        with open_text(row["path"], row["compression"]) as text:
            for item in group_offsets(text, row["start"], row["end"], row["grammar"], row["base_offset"]):
                yield item.group, item.producer_id, item.last_offset
    except (OSError, TextError):
        return  # deleted or cut since it was audited: the groups are then not known
