"""Producer snapshots and transaction indexes, as the broker wrote them, and as lines of kafka-dump-log.

Formats: kafka-formats.md, 5.6.
"""

from __future__ import annotations

import re
from struct import Struct
from typing import TYPE_CHECKING, NamedTuple

import google_crc32c
import numpy as np
import pyarrow as pa

from txn_analysis.columns.arrays import ABSENT, known, nullable
from txn_analysis.columns.records import fields_of
from txn_analysis.kafka.names import INT64_MAX, LAST_TIME_MS
from txn_analysis.reading.grammar.field_reader import NO_FORM, read_lines
from txn_analysis.reading.grammar.forms import (
    ABORTED_TRANSACTION,
    PRODUCER,
    PRODUCER_BATCH,
    PRODUCER_FORMS,
    PRODUCER_TIME,
)
from txn_analysis.reading.grammar.line_form import LineForm
from txn_analysis.reading.grammar.noise import NOISE_LINE
from txn_analysis.reading.text.window import Reject, Window, merged
from txn_analysis.tables.batches import times as known_times

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from txn_analysis.columns.arrays import Array
    from txn_analysis.reading.text.section import Section
    from txn_analysis.reading.text.text import Text
    from txn_analysis.reading.text.window import Record


class ProducerStateEntry(NamedTuple):
    """One producer in one snapshot file: a row of `producer_snapshots` without its input."""

    topic: str
    partition: int
    snapshot_offset: int
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int | None
    current_txn_start_offset: int | None
    last_timestamp_ms: int | None
    last_sequence: int | None
    last_offset: int | None


class AbortedTxn(NamedTuple):
    """One entry of one transaction index: a row of `aborted_transactions` without its input."""

    topic: str
    partition: int
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


SNAPSHOT_HEAD_BYTES, SNAPSHOT_ENTRY_BYTES, TXNINDEX_ENTRY_BYTES = 10, 46, 34
_VERSION = 1  # the only one in every release from 0.11 to 4.4
_CRC_START = 6
_HEAD = Struct(">hIi")
_ENTRY = Struct(">qhiqiqiq")
_TXNINDEX_ENTRY = Struct(">hqqqq")

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
    if any(entry[0] < 0 or entry[1] < 0 for entry in _ENTRY.iter_unpack(data[SNAPSHOT_HEAD_BYTES:])):
        return "a producer snapshot with a producer that cannot be"
    return None


def read_snapshot_file(text: Text, section: Section) -> Iterator[ProducerStateEntry | Reject]:
    """The entries of a snapshot, in file order.

    Where the file is no longer the whole snapshot that it was when it was planned, all of it is one `Reject`: what is
    missing in it would look like producers without a transaction.
    """
    data = text.read(section.text_start_bytes, section.text_end_bytes)
    if snapshot_problem(data) is not None:
        yield Reject(section.text_start_bytes, section.text_end_bytes - section.text_start_bytes, CHANGED)
        return
    for entry in _ENTRY.iter_unpack(data[SNAPSHOT_HEAD_BYTES:]):
        producer_id, epoch, last_sequence, last_offset, _, time_ms, coordinator_epoch, txn_start_offset = entry
        has_batch = last_offset >= 0
        yield ProducerStateEntry(
            topic=section.topic,
            partition=section.partition,
            snapshot_offset=section.file_base_offset,
            producer_id=producer_id,
            producer_epoch=epoch,
            coordinator_epoch=_known(coordinator_epoch),
            current_txn_start_offset=_known(txn_start_offset),
            last_timestamp_ms=time_ms if 0 <= time_ms <= LAST_TIME_MS else None,
            last_sequence=_known(last_sequence) if has_batch else None,
            last_offset=last_offset if has_batch else None,
        )


def read_txnindex_file(text: Text, section: Section) -> Iterator[AbortedTxn | Reject]:
    """The entries of a body of whole entries, in file order; else as for snapshots."""
    start, end = section.text_start_bytes, section.text_end_bytes
    data = text.read(start, end)
    whole = len(data) - len(data) % TXNINDEX_ENTRY_BYTES
    for at, (version, *numbers) in enumerate(_TXNINDEX_ENTRY.iter_unpack(data[:whole])):
        entry = AbortedTxn(section.topic, section.partition, *numbers)
        if version == 0 and min(numbers) >= 0 and entry.first_offset <= entry.last_offset:
            yield entry
        else:
            yield Reject(start + at * TXNINDEX_ENTRY_BYTES, TXNINDEX_ENTRY_BYTES, "not an entry of a txnindex")
    if start + whole < end:
        yield Reject(start + whole, end - start - whole, CHANGED)


def _known(value: int) -> int | None:
    return None if value < 0 else value


_SNAPSHOT_LINE = re.compile(
    PRODUCER.bounded("producer_id", "producer_epoch", "coordinator_epoch")
    + b" (?:"
    + PRODUCER_TIME.bounded(*PRODUCER_TIME.names)
    + rb"(?: |(?=\n)))?(?:"
    + PRODUCER_BATCH.bounded(*PRODUCER_BATCH.names)
    + rb")?\n"
)
_SNAPSHOT_FORM = LineForm(PRODUCER.fields + PRODUCER_TIME.fields + PRODUCER_BATCH.fields)
_TXNINDEX_LINE = re.compile(ABORTED_TRANSACTION.bounded(*ABORTED_TRANSACTION.names[1:]) + rb"\n")


_SNAPSHOT_SCHEMA = pa.schema([(name, field.type) for name, field in fields_of(ProducerStateEntry).items()])


def read_snapshot_section(text: Text, section: Section) -> Iterator[ProducerStateEntry | Reject | pa.RecordBatch]:
    """The entries of the body of a `.snapshot` section, tools 1.1 to 4.4; of newer tools as many rows at once.

    A line that is not wholly an entry becomes a `Reject`; every other byte of the body is parsed.
    """
    return merged(_entries(text, section, _snapshot_entry, _snapshot_rows, "not an entry of a snapshot"))


def read_txnindex_section(text: Text, section: Section) -> Iterator[AbortedTxn | Reject | pa.RecordBatch]:
    """The entries of the body of a `.txnindex` section, in file order; else as for snapshots."""
    return merged(_entries(text, section, _aborted_txn, None, "not an entry of a txnindex"))


def _entries(
    text: Text,
    section: Section,
    read_one: Callable[[bytes, Section], Record | None],
    read_many: Callable[[bytes, Array, Array, Section], tuple[pa.RecordBatch, Array]] | None,
    reason: str,
) -> Iterator[Record | Reject | pa.RecordBatch]:
    window = Window(text.read, section.text_start_bytes, section.text_end_bytes)
    while window.remaining > 0:
        data, at = window.lines(), window.offset
        if not data:
            yield window.reject_line(reason)
            continue
        ends = np.flatnonzero(np.frombuffer(data, np.uint8) == ord("\n"))
        starts = np.append(0, ends[:-1] + 1)
        is_read = np.zeros(len(starts), bool)
        if read_many is not None:
            rows, is_read = read_many(data, starts, ends, section)
            if len(rows):
                yield rows
        for start, end in zip(starts[~is_read].tolist(), ends[~is_read].tolist(), strict=True):
            entry = read_one(data[start : end + 1], section)
            if entry is not None:
                yield entry
            elif not NOISE_LINE.match(data, start):
                yield Reject(at + start, end + 1 - start, reason)
        window.advance(len(data))


def _snapshot_rows(data: bytes, starts: Array, ends: Array, section: Section) -> tuple[pa.RecordBatch, Array]:
    """The entries that the compiled reader takes, and which lines these are; the same that `_snapshot_entry` says."""
    lines = read_lines(data, starts, ends, PRODUCER_FORMS)
    if lines is None:
        return pa.RecordBatch.from_pylist([], _SNAPSHOT_SCHEMA), np.zeros(len(starts), bool)
    read, form = lines
    last_timestamp, timestamp = read["last_timestamp"], read["timestamp"]
    is_read = (form != NO_FORM) & np.logical_and.reduce([values >= ABSENT for values in read.values()])
    is_read &= (last_timestamp == timestamp) | (last_timestamp == ABSENT) | (timestamp == ABSENT)
    numbers = {
        "producer_id": read["producer_id"],
        "producer_epoch": read["producer_epoch"],
        "coordinator_epoch": read["coordinator_epoch"],
        "current_txn_start_offset": read["txn_start_offset"],
        "last_timestamp_ms": known_times(np.maximum(last_timestamp, timestamp)),
        "last_sequence": read["last_sequence"],
        "last_offset": read["last_offset"],
    }
    count = int(is_read.sum())
    alike = {"topic": section.topic, "partition": section.partition, "snapshot_offset": section.file_base_offset}
    columns = {
        name: pa.repeat(pa.scalar(value, _SNAPSHOT_SCHEMA.field(name).type), count) for name, value in alike.items()
    }
    for name, values in numbers.items():
        columns[name] = nullable(values[is_read]).cast(_SNAPSHOT_SCHEMA.field(name).type)
    return pa.RecordBatch.from_pydict(columns, schema=_SNAPSHOT_SCHEMA), is_read


def _numbers(printed: re.Match[bytes] | None, form: LineForm) -> dict[str, int] | None:
    """The numbers of a line, -1 where one is not printed; None where one is outside its field's range in Kafka."""
    if printed is None:
        return None
    numbers = {name: ABSENT if word is None else int(word) for name, word in printed.groupdict().items()}
    is_in_range = form.holds(numbers) and all(ABSENT <= number <= INT64_MAX for number in numbers.values())
    return numbers if is_in_range else None


def _snapshot_entry(line: bytes, section: Section) -> ProducerStateEntry | None:
    n = _numbers(_SNAPSHOT_LINE.fullmatch(line), _SNAPSHOT_FORM)
    if n is None:
        return None
    times = {n["last_timestamp"], n["timestamp"]} - {ABSENT}
    if len(times) > 1:  # both print the same stored field
        return None
    return ProducerStateEntry(
        topic=section.topic,
        partition=section.partition,
        snapshot_offset=section.file_base_offset,
        producer_id=n["producer_id"],
        producer_epoch=n["producer_epoch"],
        coordinator_epoch=known(n["coordinator_epoch"]),
        current_txn_start_offset=known(max(n["scala_offset"], n["java_offset"])),
        last_timestamp_ms=next((time for time in times if time <= LAST_TIME_MS), None),
        last_sequence=known(n["last_sequence"]),
        last_offset=known(n["last_offset"]),
    )


def _aborted_txn(line: bytes, section: Section) -> AbortedTxn | None:
    n = _numbers(_TXNINDEX_LINE.fullmatch(line), ABORTED_TRANSACTION)
    if n is None or n["last_offset"] < n["first_offset"]:
        return None
    return AbortedTxn(section.topic, section.partition, **n)
