"""`described-producers.json`: one answer to DescribeProducers, as `txn-capture` writes it beside a fetched log.

An object with the partition, `first_offset` (the first one that was fetched), `high_watermark` (as it was before the
answer) and `producers`; what the broker has no value for is null. Fields of tomorrow are read over.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from txn_analysis.columns.arrays import numbers_of
from txn_analysis.columns.values import keys_once
from txn_analysis.kafka.names import DESCRIBED_FORMAT, INT32_MAX, OFFSET_MAX
from txn_analysis.reading.log_dir.producer_files import CHANGED, snapshot_rows
from txn_analysis.reading.text.window import Reject

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from txn_analysis.reading.text.section import Section
    from txn_analysis.reading.text.text import Text

_VERSION = 1
_MOST = {"producer_id": OFFSET_MAX, "producer_epoch": INT32_MAX}
_MOST_IF_KNOWN = {
    "coordinator_epoch": INT32_MAX,
    "current_txn_start_offset": OFFSET_MAX,
    "last_timestamp_ms": OFFSET_MAX,
    "last_sequence": INT32_MAX,
}


def stated_answer(whole: Section, data: bytes) -> list[Section] | None:
    """The file as one section, with the first fetched offset and the high watermark; None where it is no such answer.

    Args:
        whole: the file as one section, of the partition of its folder.
        data: all of its bytes.
    """
    answer = _answer(data)
    if answer is None or (answer["topic"], answer["partition"]) != (whole.topic, whole.partition):
        return None
    return [replace(whole, file_base_offset=answer["first_offset"], stated=str(answer["high_watermark"]))]


def read_described_file(text: Text, section: Section) -> Iterator[Reject | pa.RecordBatch]:
    """The producers of an answer; a file that changed since it was planned is one `Reject`."""
    start, end = section.text_start_bytes, section.text_end_bytes
    answer = _answer(text.read(start, end))
    if answer is None:
        yield Reject(start, end - start, CHANGED)
        return
    named = (("current_txn_start_offset", "txn_start_offset"), ("last_timestamp_ms", "last_timestamp"))
    columns = {name: numbers_of(row[name] for row in answer["producers"]) for name in (*_MOST, *_MOST_IF_KNOWN)}
    yield snapshot_rows(section, columns | {name: columns[printed] for printed, name in named})


def _answer(data: bytes) -> dict[str, Any] | None:
    """The answer, if every number in it is one that a broker can have given."""
    try:
        answer = json.loads(data, object_pairs_hook=keys_once)
    except (ValueError, RecursionError):
        return None
    if not isinstance(answer, dict) or (answer.get("format"), answer.get("version")) != (DESCRIBED_FORMAT, _VERSION):
        return None
    producers = answer.get("producers")
    is_place = isinstance(answer.get("topic"), str) and _is_number(answer.get("partition"), INT32_MAX)
    is_offsets = all(_is_number(answer.get(name), OFFSET_MAX) for name in ("first_offset", "high_watermark"))
    if not (is_place and is_offsets and isinstance(producers, list) and all(map(_is_producer, producers))):
        return None
    ids = [row["producer_id"] for row in producers]
    return answer if len(ids) == len(set(ids)) else None


def _is_producer(row: object) -> bool:
    return (
        isinstance(row, dict)
        and all(_is_number(row.get(name), most) for name, most in _MOST.items())
        and all(name in row and (row[name] is None or _is_number(row[name], m)) for name, m in _MOST_IF_KNOWN.items())
    )


def _is_number(value: object, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most
