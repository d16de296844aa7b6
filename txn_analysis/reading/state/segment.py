"""Segments of `__transaction_state` as brokers wrote them: every record decoded, compressed ones as well."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from txn_analysis.columns.arrays import ABSENT
from txn_analysis.kafka.batch_headers import CODEC_MASK, CONTROL, HEADER_BYTES, LOG_APPEND_TIME, Held
from txn_analysis.kafka.names import CODECS, java_hash
from txn_analysis.kafka.record_batch import MOST_LENGTH_BYTES, BadBatchError, checked, decompressed, varint
from txn_analysis.kafka.transactions import TopicPartition
from txn_analysis.reading.state.compiled_segment import NOT_ASCII, read_batches
from txn_analysis.reading.state.records import UNREAD, PartitionList, StateColumns, offsets_leave_gaps
from txn_analysis.reading.state.value_sizes import FLEXIBLE, PLAIN, PRODUCER_ID_BYTES
from txn_analysis.reading.state.values import BadValueError, is_topic_name, sorted_partitions
from txn_analysis.tables.batches import times

if TYPE_CHECKING:
    from collections.abc import Iterator

    from txn_analysis.kafka.batch_headers import Headers
    from txn_analysis.reading.state.compiled_segment import SegmentRecords
    from txn_analysis.reading.state.records import ListReader, ReadRecords
    from txn_analysis.reading.text.text import Text

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


class _ListCursor:
    """Reads a list that is whole, from front to back."""

    def __init__(self, data: bytes) -> None:
        self._data, self._numbers = data, np.frombuffer(data, np.uint8)
        self._at = 0

    def number(self, size: int) -> int:
        return int.from_bytes(self.bytes(size), "big", signed=True)

    def bytes(self, size: int) -> bytes:
        self._at += size
        return self._data[self._at - size : self._at]

    def length(self, size: int, version: int) -> int:
        """Of a string or array; -1 is null."""
        if version != FLEXIBLE:
            return self.number(size)
        length, self._at = varint.plain(self._numbers, self._at, len(self._data), MOST_LENGTH_BYTES)
        return length - 1


def _list_reader(version: int) -> ListReader:
    def read(data: bytes) -> PartitionList | None:
        cursor, partitions = _ListCursor(data), list[TopicPartition]()
        try:
            for _ in range(cursor.length(4, version)):
                topic = cursor.bytes(cursor.length(2, version)).decode()
                if not is_topic_name(topic):
                    return None
                partitions += [TopicPartition(topic, cursor.number(4)) for _ in range(cursor.length(4, version))]
                if version == FLEXIBLE:
                    cursor.bytes(1)  # the number of tagged fields
            return PartitionList(sorted_partitions(partitions))
        except (BadValueError, UnicodeDecodeError):
            return None

    return read


_LIST_READERS = {version: _list_reader(version) for version in (PLAIN, FLEXIBLE)}
