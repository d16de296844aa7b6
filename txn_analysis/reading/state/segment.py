"""Segments of `__transaction_state` as brokers wrote them: every record decoded, compressed ones as well.

A reader that is compiled where there are many finds id and value of each record, or that these are none. Layouts:
kafka-formats.md, 5.1, 5.2 and 5.5, and `DefaultRecord`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from struct import iter_unpack
from typing import Any

import numpy as np
import pyarrow as pa

from txn_analysis.columns.arrays import ABSENT, Array
from txn_analysis.columns.compiled import NO_PLACE, compiled
from txn_analysis.kafka.batch_headers import CODEC_MASK, CONTROL, HEADER_BYTES, LOG_APPEND_TIME, Headers, Held
from txn_analysis.kafka.names import CODECS, java_hash
from txn_analysis.kafka.record_batch import (
    KEY_BYTES,
    KEY_START,
    MOST_LENGTH_BYTES,
    OFFSET_DELTA,
    SMALLEST_RECORD_BYTES,
    TIME_DELTA,
    VALUE_BYTES,
    VALUE_START,
    BadBatchError,
    checked,
    decompressed,
    read_record,
    varint,
)
from txn_analysis.kafka.transactions import TopicPartition
from txn_analysis.reading.state.records import (
    IS_TOMBSTONE,
    PLACE_COLUMNS,
    UNREAD,
    ListReader,
    PartitionList,
    ReadRecords,
    StateColumns,
    offsets_leave_gaps,
)
from txn_analysis.reading.state.values import (
    FLEXIBLE,
    JSON_NUMBERS,
    PLAIN,
    PRODUCER_ID_BYTES,
    TAGGED_FIELDS,
    BadValueError,
    is_topic_name,
    sorted_partitions,
)
from txn_analysis.reading.text.section import times
from txn_analysis.reading.text.text import Text

NOT_ASCII = -1
"""Stands for the hash of an id that is not plain ASCII."""

_PYTHON_US = 150  # for each record
_SIGN, _SPACE, _TILDE, _UINT32_MASK = 0x80, 0x20, 0x7E, 2**32 - 1
_PRODUCER_ID, _, _, _EPOCH, _, _TIMEOUT_MS, _STATUS, _UPDATED_MS, _START_MS, _ = range(len(JSON_NUMBERS))
_TAG_TABLE = np.array([(JSON_NUMBERS.index(name), size) for name, (_, size) in TAGGED_FIELDS.items()])
_TAG_COUNT = len(_TAG_TABLE)
_ID_START, _ID_STOP, _LIST_START, _LIST_STOP = range(4)


@dataclass(frozen=True)
class SegmentRecords:
    """Records of some batches, as columns.

    Attributes:
        read: their ids and values; UNREAD where the value is none, and without an id where the key is none.
        offset_delta: to the base offset of the batch.
        time_delta: to its base timestamp.
        skipped_bytes: of the largest tagged field of the value that is not known; ABSENT without such fields.
        is_lost: the rest of the batch from this offset on, which cannot be read.
        first: of each batch, and behind the last one, its first record.
    """

    read: ReadRecords
    offset_delta: Array
    time_delta: Array
    skipped_bytes: Array
    is_lost: Array
    first: Array


def read_batches(data: bytes, starts: Array, stops: Array, counts: Array, last_deltas: Array) -> SegmentRecords:
    """The records of some batches.

    Args:
        data: where these are, uncompressed.
        starts: where the records of each batch begin.
        stops: where they end.
        counts: how many each says that it has; ABSENT where it must not be read.
        last_deltas: the last offset of each, as a delta.
    """
    room = int((np.minimum(np.maximum(counts, 0), (stops - starts) // SMALLEST_RECORD_BYTES) + 1).sum())
    kind, id_hash, first = np.full(room, UNREAD), np.zeros(room, np.int64), np.zeros(len(starts) + 1, np.int64)
    sizes = len(PLACE_COLUMNS), len(JSON_NUMBERS), 4
    places, numbers, beside = (np.full((size, room), ABSENT) for size in sizes)
    columns = kind, id_hash, places, numbers, beside, first, np.zeros(6, np.int64)
    run = _read_batches.for_work(room * _PYTHON_US)
    run(np.frombuffer(data, np.uint8), starts, stops, counts, last_deltas, _TAG_TABLE, *columns)
    offset_delta, time_delta, skipped_bytes, is_lost = beside[:, : first[-1]]
    named = dict(zip((*PLACE_COLUMNS, *JSON_NUMBERS), (*places, *numbers), strict=True))
    read = ReadRecords(kind, id_hash, named).part(0, int(first[-1]))
    return SegmentRecords(read, offset_delta, time_delta, skipped_bytes, is_lost > 0, first)


_OFFSET_DELTA, _TIME_DELTA, _SKIPPED_BYTES, _IS_LOST = range(4)


@compiled
def _number(raw: Array, at: int, stop: int, size: int) -> tuple[int, int]:
    """A signed number of so many bytes, and where it ends; else as of a varint."""
    if at < 0 or at + size > stop:
        return 0, NO_PLACE
    value = -1 if raw[at] >= _SIGN else 0
    for k in range(at, at + size):
        value = value << 8 | int(raw[k])
    return value, at + size


@compiled
def _length(raw: Array, at: int, stop: int, size: int, version: int) -> tuple[int, int]:
    """The length of a string or an array, and where it ends; -1 is null."""
    if version == 0:
        return _number(raw, at, stop, size)
    value, at = varint(raw, at, stop, MOST_LENGTH_BYTES)
    return value - 1, at


@compiled
def _list_stop(raw: Array, at: int, stop: int, version: int) -> int:
    """Where the list of a value's topics and partitions ends; NO_PLACE where none is whole."""
    topics, at = _length(raw, at, stop, 4, version)
    for _ in range(topics):
        size, at = _length(raw, at, stop, 2, version)
        if at == NO_PLACE or size < 0 or size > stop - at:
            return NO_PLACE
        ids, at = _length(raw, at + size, stop, 4, version)
        if at == NO_PLACE or ids > (stop - at) // 4:
            return NO_PLACE
        at += 4 * max(ids, 0)
        if version == 1:
            tags, at = varint(raw, at, stop, MOST_LENGTH_BYTES)
            if at == NO_PLACE or tags != 0:
                return NO_PLACE
    return at


@compiled
def _tags_stop(raw: Array, at: int, stop: int, tags: Array, numbers: Array, beside: Array, row: int) -> int:
    """Fills a row by the tagged fields of a value, which writers put in order; where they end.

    Those that are not known are skipped, as Kafka's own readers do.
    """
    count, at = varint(raw, at, stop, MOST_LENGTH_BYTES)
    before = -1
    for _ in range(count):
        tag, at = varint(raw, at, stop, MOST_LENGTH_BYTES)
        size, at = varint(raw, at, stop, MOST_LENGTH_BYTES)
        if at == NO_PLACE or tag <= before or size > stop - at:
            return NO_PLACE
        before = tag
        if tag >= _TAG_COUNT:
            beside[_SKIPPED_BYTES, row] = max(beside[_SKIPPED_BYTES, row], size)
            at += size
        elif size != tags[tag, 1]:
            return NO_PLACE
        else:
            numbers[tags[tag, 0], row], at = _number(raw, at, stop, size)
    return at


@compiled
def _read_value(
    raw: Array, at: int, stop: int, tags: Array, places: Array, numbers: Array, beside: Array, row: int
) -> int:
    """Fills a row by a value; its version, or UNREAD where not exactly a value stands there."""
    version, at = _number(raw, at, stop, 2)
    if at == NO_PLACE or version not in (0, 1):
        return UNREAD
    numbers[_PRODUCER_ID, row], at = _number(raw, at, stop, 8)
    numbers[_EPOCH, row], at = _number(raw, at, stop, 2)
    numbers[_TIMEOUT_MS, row], at = _number(raw, at, stop, 4)
    numbers[_STATUS, row], at = _number(raw, at, stop, 1)
    if at == NO_PLACE:
        return UNREAD
    places[_LIST_START, row] = at
    at = _list_stop(raw, at, stop, version)
    places[_LIST_STOP, row] = at
    numbers[_UPDATED_MS, row], at = _number(raw, at, stop, 8)
    numbers[_START_MS, row], at = _number(raw, at, stop, 8)
    if version == 1:
        at = _tags_stop(raw, at, stop, tags, numbers, beside, row)
    return version if at == stop else UNREAD


@compiled
def ascii_hash(raw: Array, start: int, stop: int) -> int:
    """Java's hash of an id, without its sign; NOT_ASCII where it is not plain ASCII."""
    hashed = 0
    for at in range(start, stop):
        byte = int(raw[at])
        if byte < _SPACE or byte > _TILDE:
            return NOT_ASCII
        hashed = (31 * hashed + byte) & _UINT32_MASK
    return hashed


@compiled
def _read_key(raw: Array, at: int, stop: int, id_hash: Array, places: Array, row: int) -> bool:
    """Fills a row by a key; whether it is one of an id, to the byte."""
    record_type, behind = _number(raw, at, stop, 2)
    size, behind = _number(raw, behind, stop, 2)
    if behind == NO_PLACE or record_type != 0 or size != stop - behind:
        return False
    places[_ID_START, row], places[_ID_STOP, row], id_hash[row] = behind, stop, ascii_hash(raw, behind, stop)
    return True


@compiled
def _read_batches(
    raw: Array,
    starts: Array,
    stops: Array,
    counts: Array,
    last_deltas: Array,
    tags: Array,
    kind: Array,
    id_hash: Array,
    places: Array,
    numbers: Array,
    beside: Array,
    first: Array,
    record: Array,
) -> None:
    """Fills rows by the records of batches, and one for what of a batch is lost."""
    row = 0
    for batch in range(len(starts)):
        first[batch] = row
        at, stop, next_delta = starts[batch], stops[batch], 0
        for _ in range(counts[batch]):
            at = read_record(raw, at, stop, record)
            delta = record[OFFSET_DELTA]
            if at == NO_PLACE or delta < next_delta or delta > last_deltas[batch]:
                at = NO_PLACE
                break
            beside[_OFFSET_DELTA, row], beside[_TIME_DELTA, row] = delta, record[TIME_DELTA]
            key, key_bytes, value = record[KEY_START], record[KEY_BYTES], record[VALUE_START]
            if key_bytes >= 0 and _read_key(raw, key, key + key_bytes, id_hash, places, row):
                if record[VALUE_BYTES] < 0:
                    kind[row] = IS_TOMBSTONE
                else:
                    stop_of_value = value + record[VALUE_BYTES]
                    kind[row] = _read_value(raw, value, stop_of_value, tags, places, numbers, beside, row)
            next_delta = delta + 1
            row += 1
        if at != stop or counts[batch] < 0:
            kind[row], places[_ID_START, row], id_hash[row] = UNREAD, NO_PLACE, 0
            beside[_OFFSET_DELTA, row], beside[_IS_LOST, row] = next_delta, 1
            row += 1
    first[len(starts)] = row


_BLOCK_BYTES = 4 << 20


class StateSegmentReader:
    """Reads a segment of `__transaction_state` from front to back, in offset order.

    The `ordinal` of a record is its offset. A record, or the rest of a batch, that exists and cannot be read is an
    undecodable record: no absence may be concluded around it.
    """

    def __init__(self, text: Text, partition: int) -> None:
        self._text = text
        self._partition = partition
        self._last_offset: int | None = None  # of the last record that was read
        self._has_lost = False
        self.is_right = np.zeros(0, bool)  # whether each batch that was read last has the checksum that it states

    def read(self, headers: Headers) -> Iterator[pa.RecordBatch]:
        """The records of the next batches, by their headers; when all are read, `is_right` has their checksums."""
        end, is_packed = headers.position + headers.size, headers.number("attributes") & CODEC_MASK != 0
        packed = np.append(np.flatnonzero(is_packed), len(headers))
        right, first = [np.zeros(0, bool)], 0
        if len(headers):
            self._text.will_read([(int(headers.position[0]), int(end[-1]))])
        while first < len(headers):  # neighbours are read together, a compressed batch is unpacked by itself
            stop = int(np.searchsorted(end, headers.position[first] + _BLOCK_BYTES, "right"))
            stop = min(stop, int(packed[np.searchsorted(packed, first)]))
            stop = max(stop, first + 1)
            yield self._rows(headers.part(first, stop), is_packed=bool(is_packed[first]))
            right.append(self.is_right)
            first = stop
        self.is_right = np.concatenate(right)

    def _rows(self, headers: Headers, *, is_packed: bool) -> pa.RecordBatch:
        start = int(headers.position[0])
        data = self._text.read(start, int(headers.position[-1] + headers.size[-1]))
        starts = headers.position - start
        self.is_right = checked(Held(data, start), headers, np.arange(len(headers)))
        count = np.where(self.is_right & ~headers.is_legacy, headers.number("record_count"), ABSENT)
        stops, starts = starts + headers.size, starts + HEADER_BYTES
        if is_packed and count[0] >= 0:
            try:
                data = decompressed(data[HEADER_BYTES:], CODECS[int(headers.number("attributes")[0]) & CODEC_MASK])
                starts, stops = np.array([0]), np.array([len(data)])
            except BadBatchError:
                count = np.array([ABSENT])
        records = read_batches(data, starts, stops, count, headers.last_offset - headers.base_offset)
        _hash_other_ids(data, records.read)
        return self._placed(headers, StateColumns.of(data, records.read, _LIST_READERS), records)

    def _placed(self, headers: Headers, columns: StateColumns, records: SegmentRecords) -> pa.RecordBatch:
        """The records as rows, end markers left out; and what they leave for the next ones to know."""
        batch = np.repeat(np.arange(len(headers)), np.diff(records.first))
        attributes, is_lost = headers.number("attributes")[batch], records.is_lost
        offset = headers.base_offset[batch] + records.offset_delta
        appended_ms = headers.number("base_timestamp")[batch] + records.time_delta
        time_ms = np.where(attributes & LOG_APPEND_TIME, headers.number("max_timestamp")[batch], appended_ms)
        known = np.flatnonzero(~is_lost)
        is_after_gap = np.full(len(batch), ABSENT)
        has_lost = self._has_lost or (len(known) > 0 and known[0] > 0)
        is_after_gap[known] = offsets_leave_gaps(offset[known], self._last_offset, has_lost=has_lost)
        skipped = np.where(columns.read.kind == UNREAD, ABSENT, records.skipped_bytes)
        place = {
            "ordinal": offset,
            "state_partition": self._partition,
            "offset": np.where(is_lost, ABSENT, offset),
            "recorded_ms": times(np.where(is_lost, ABSENT, time_ms)),
            "is_after_gap": is_after_gap,
            "batch_base_offset": headers.base_offset[batch],
            "batch_last_offset": headers.last_offset[batch],
            "leader_epoch": headers.number("leader_epoch")[batch],
            # The list was read as the broker wrote it, whatever fields of a newer Kafka stand behind it.
            "may_list_more": np.where(skipped == ABSENT, ABSENT, 0),
            "may_name_more": np.where(skipped == ABSENT, ABSENT, skipped >= PRODUCER_ID_BYTES),
        }
        is_state = (attributes & CONTROL == 0) | is_lost
        if len(known):
            self._last_offset = int(offset[known[-1]])
        self._has_lost |= bool((is_state & (columns.read.kind == UNREAD)).any())
        rows = columns.rows(0, len(batch), place)
        return rows if is_state.all() else rows.filter(pa.array(is_state))


def _hash_other_ids(data: bytes, read: ReadRecords) -> None:
    """Java's hash of ids that are not plain ASCII; what is no UTF-8 is no id."""
    for row in np.flatnonzero((read.id_hash == NOT_ASCII) & (read["id_start"] != ABSENT)).tolist():
        name = data[read["id_start"][row] : read["id_stop"][row]]
        try:
            read.id_hash[row] = java_hash(name.decode()) % 2**32
        except UnicodeDecodeError:
            read.kind[row], read.id_hash[row], read["id_start"][row] = UNREAD, 0, ABSENT


def _list_reader(version: int) -> ListReader:
    def read(data: bytes) -> PartitionList | None:
        raw: Any = data  # few bytes: plain ones are read sooner than those of an array
        stop, partitions = len(data), list[TopicPartition]()
        count, at = _length.plain(raw, 0, stop, 4, version)
        try:
            for _ in range(count):
                size, at = _length.plain(raw, at, stop, 2, version)
                topic = data[at : at + size].decode()
                if not is_topic_name(topic):
                    return None
                count_of_topic, at = _length.plain(raw, at + size, stop, 4, version)
                end = at + 4 * max(count_of_topic, 0)
                partitions += [TopicPartition(topic, number) for (number,) in iter_unpack(">i", data[at:end])]
                at = end + (version == FLEXIBLE)  # the number of tagged fields takes a byte
            return PartitionList(sorted_partitions(partitions))
        except (BadValueError, UnicodeDecodeError):
            return None

    return read


_LIST_READERS = {version: _list_reader(version) for version in (PLAIN, FLEXIBLE)}
