"""Producer snapshots and transaction indexes, as the broker wrote them, and as lines of kafka-dump-log.

All give rows of `producer_snapshots` and `aborted_transactions`. Formats: kafka-formats.md, 2 and 5.6. So does one
answer to DescribeProducers, `described-producers.json`, which `txn-capture` writes beside a fetched log: an object with
the partition, `first_offset` (the first one that was fetched), `high_watermark` (as it was before the answer) and
`producers`; what the broker has no value for is null. Fields of tomorrow are read over.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from struct import Struct
from typing import Any

import google_crc32c
import numpy as np
import pyarrow as pa

from txn_analysis.columns.arrays import ABSENT, Array, Columns, names_in, numbers_of
from txn_analysis.columns.values import Json
from txn_analysis.kafka.names import DESCRIBED_FORMAT, INT32_MAX, OFFSET_MAX
from txn_analysis.reading.grammar.field_reader import read_every_line
from txn_analysis.reading.grammar.forms import ABORTED_TRANSACTION, PRODUCER_FORMS
from txn_analysis.reading.grammar.line_form import LineForms
from txn_analysis.reading.grammar.noise import NOISE_LINE
from txn_analysis.reading.text.section import Section, rows_read, times
from txn_analysis.reading.text.text import Text
from txn_analysis.reading.text.window import Reject, Window, merged
from txn_analysis.tables import ABORTED_TRANSACTIONS, PRODUCER_SNAPSHOTS

RowsOf = Callable[[Section, Mapping[str, Array]], pa.RecordBatch]

_HEAD = Struct(">hIi")
_VERSION = 1  # the only one in every release from 0.11 to 4.4
_CRC_START = 6
_ENTRY = np.dtype(
    [
        ("producer_id", ">i8"),
        ("producer_epoch", ">i2"),
        ("last_sequence", ">i4"),
        ("last_offset", ">i8"),
        ("offset_delta", ">i4"),
        ("last_timestamp", ">i8"),
        ("coordinator_epoch", ">i4"),
        ("txn_start_offset", ">i8"),
    ]
)
_ABORTED = ("producer_id", "first_offset", "last_offset", "last_stable_offset")
_TXNINDEX_ENTRY = np.dtype([("version", ">i2"), *((name, ">i8") for name in _ABORTED)])
SNAPSHOT_HEAD_BYTES = _HEAD.size
SNAPSHOT_ENTRY_BYTES, TXNINDEX_ENTRY_BYTES = _ENTRY.itemsize, _TXNINDEX_ENTRY.itemsize

CHANGED = "the file changed while it was read"


def snapshot_problem(data: bytes) -> str | None:
    """Why a `.snapshot` file is not to be believed; None where it is whole (`ProducerStateManager.readSnapshot`)."""
    if len(data) < SNAPSHOT_HEAD_BYTES:
        return "a producer snapshot that is cut short"
    version, crc, count = _HEAD.unpack_from(data)
    if version != _VERSION:
        return f"a producer snapshot of version {version}, which no broker up to 4.4 writes"
    if len(data) != SNAPSHOT_HEAD_BYTES + SNAPSHOT_ENTRY_BYTES * count:
        return "a producer snapshot that is cut short, or longer than it says"
    if int(google_crc32c.value(data[_CRC_START:])) != crc:
        return "a producer snapshot whose checksum is wrong"
    entries = np.frombuffer(data, _ENTRY, offset=SNAPSHOT_HEAD_BYTES)
    if (entries["producer_id"] < 0).any() or (entries["producer_epoch"] < 0).any():
        return "a producer snapshot with a producer that cannot be"
    return None


def read_snapshot_file(text: Text, section: Section) -> Iterator[Reject | pa.RecordBatch]:
    """The entries of a snapshot, in file order.

    Where the file is no longer the whole snapshot that it was when it was planned, all of it is one `Reject`: what is
    missing in it would look like producers without a transaction.
    """
    data = text.read(section.text_start_bytes, section.text_end_bytes)
    if snapshot_problem(data) is not None:
        yield Reject(section.text_start_bytes, section.text_end_bytes - section.text_start_bytes, CHANGED)
        return
    entries = np.frombuffer(data, _ENTRY, offset=SNAPSHOT_HEAD_BYTES)
    columns = {name: np.maximum(entries[name].astype(np.int64), ABSENT) for name in names_in(_ENTRY)}
    columns["last_sequence"] = np.where(columns["last_offset"] < 0, ABSENT, columns["last_sequence"])
    yield snapshot_rows(section, columns)


def read_txnindex_file(text: Text, section: Section) -> Iterator[Reject | pa.RecordBatch]:
    """The entries of a body of whole entries, in file order; else as for snapshots."""
    start, end = section.text_start_bytes, section.text_end_bytes
    data = text.read(start, end)
    entries = np.frombuffer(data, _TXNINDEX_ENTRY, len(data) // TXNINDEX_ENTRY_BYTES)
    columns = {name: entries[name].astype(np.int64) for name in _ABORTED}
    is_good = (entries["version"] == 0) & np.logical_and.reduce([values >= 0 for values in columns.values()])
    is_good &= columns["first_offset"] <= columns["last_offset"]
    yield _aborted_rows(section, {name: values[is_good] for name, values in columns.items()})
    for at in np.flatnonzero(~is_good).tolist():
        yield Reject(start + at * TXNINDEX_ENTRY_BYTES, TXNINDEX_ENTRY_BYTES, "not an entry of a txnindex")
    if start + entries.nbytes < end:
        yield Reject(start + entries.nbytes, end - start - entries.nbytes, CHANGED)


def snapshot_rows(section: Section, columns: Mapping[str, Array]) -> pa.RecordBatch:
    """Producers of a snapshot, or of an answer to DescribeProducers, as rows of `producer_snapshots`."""
    of_table = {
        "topic": section.topic,
        "partition": section.partition,
        "snapshot_offset": section.file_base_offset,
        "current_txn_start_offset": columns["txn_start_offset"],
        "last_timestamp_ms": times(columns["last_timestamp"]),
    }
    return rows_read(PRODUCER_SNAPSHOTS, len(columns["producer_id"]), {**columns, **of_table})


def _aborted_rows(section: Section, columns: Mapping[str, Array]) -> pa.RecordBatch:
    place = {"topic": section.topic, "partition": section.partition}
    return rows_read(ABORTED_TRANSACTIONS, len(columns["producer_id"]), {**columns, **place})


def read_snapshot_section(text: Text, section: Section) -> Iterator[Reject | pa.RecordBatch]:
    """The entries of the body of a `.snapshot` section, tools 1.1 to 4.4.

    A line that is not wholly an entry becomes a `Reject`; every other byte of the body is parsed.
    """
    return merged(_read_lines(text, section, _read_producers, snapshot_rows, "not an entry of a snapshot"))


def read_txnindex_section(text: Text, section: Section) -> Iterator[Reject | pa.RecordBatch]:
    """The entries of the body of a `.txnindex` section, in file order; else as for snapshots."""
    return merged(_read_lines(text, section, _read_aborted, _aborted_rows, "not an entry of a txnindex"))


def _read_producers(data: bytes, starts: Array, ends: Array) -> tuple[Columns, Array]:
    read, is_read = _read(data, starts, ends, PRODUCER_FORMS)
    last_timestamp, timestamp = read["last_timestamp"], read["timestamp"]  # both print the same stored field
    is_read &= (last_timestamp == timestamp) | (last_timestamp == ABSENT) | (timestamp == ABSENT)
    return read | {"last_timestamp": np.maximum(last_timestamp, timestamp)}, is_read


def _read_aborted(data: bytes, starts: Array, ends: Array) -> tuple[Columns, Array]:
    read, is_read = _read(data, starts, ends, ABORTED_TRANSACTION.alone)
    return read, is_read & (read["first_offset"] <= read["last_offset"])


def _read(data: bytes, starts: Array, ends: Array, forms: LineForms) -> tuple[Columns, Array]:
    """What lines print, whose numbers are Kafka's."""
    read, is_read = read_every_line(data, starts, ends, forms)
    return read, is_read & np.logical_and.reduce([values >= ABSENT for values in read.values()])


def _read_lines(
    text: Text,
    section: Section,
    read: Callable[[bytes, Array, Array], tuple[Columns, Array]],
    rows_of: RowsOf,
    reason: str,
) -> Iterator[Reject | pa.RecordBatch]:
    window = Window(text.read, section.text_start_bytes, section.text_end_bytes)
    while window.remaining > 0:
        data, at = window.lines(), window.offset
        if not data:
            yield window.reject_line(reason)
            continue
        ends = np.flatnonzero(np.frombuffer(data, np.uint8) == ord("\n"))
        starts = np.append(0, ends[:-1] + 1)
        columns, is_read = read(data, starts, ends)
        yield rows_of(section, {name: values[is_read] for name, values in columns.items()})
        for start, end in zip(starts[~is_read].tolist(), ends[~is_read].tolist(), strict=True):
            if not NOISE_LINE.match(data, start):
                yield Reject(at + start, end + 1 - start, reason)
        window.advance(len(data))


_DESCRIBED_VERSION = 1
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
    if not isinstance(answer, dict) or (answer.get("format"), answer.get("version")) != (
        DESCRIBED_FORMAT,
        _DESCRIBED_VERSION,
    ):
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


def keys_once(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    """An object of foreign JSON, for `object_pairs_hook`.

    Raises:
        ValueError: a key is there twice: nobody could say which value counts.
    """
    named = dict(pairs)
    if len(named) < len(pairs):
        raise ValueError("a name occurs twice")
    return named
