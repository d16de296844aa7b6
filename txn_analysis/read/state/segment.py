"""Segments of `__transaction_state` as brokers wrote them: every record decoded, compressed ones as well.

Layouts: kafka-formats.md, 5.1 and 5.2 (`TransactionLogKey`, `TransactionLogValue` versions 0 and 1). A record's fields
are held against the same ranges as those of a dump (`state_values`).
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from struct import error as StructError
from typing import TYPE_CHECKING, Any, NamedTuple

from txn_analysis.kafka.batch_format import CODECS, LAST_TIME_MS
from txn_analysis.kafka.batch_headers import CODEC_MASK, CONTROL, LOG_APPEND_TIME, HeaderWalk
from txn_analysis.kafka.checksums import crcs, is_right
from txn_analysis.kafka.record_batch import BadBatchError, Cursor, CutShortError, records_of
from txn_analysis.read.state.records import RecordPlace, batch_place, state_record, undecodable_record
from txn_analysis.read.state.value_sizes import can_hold_producer_id
from txn_analysis.read.state.values import BadValueError, json_id, json_value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from txn_analysis.kafka.batch_headers import Headers
    from txn_analysis.kafka.record_batch import LogRecord
    from txn_analysis.read.inputs.window import Readable, Span
    from txn_analysis.read.state.records import BatchPlace, ReadStateRecord, TransactionLogValue

_RECORD_TYPE = 0  # of a key; 4.1 calls it so, before it was the key's version
_PLAIN, _FLEXIBLE = 0, 1  # value versions
_BATCHES_AT_ONCE = 64
_MOST_LENGTH_BYTES = 5  # of a length or a tag, as a varint
_NO_CONTENT = "not the content of a transaction state record"
_KEY_HEAD = Struct(">hh")
_HEAD = Struct(">qhib")
_TIMES = Struct(">qq")
_TAGS = {
    0: ("previousProducerId", 8),
    1: ("nextProducerId", 8),
    2: ("clientTransactionVersion", 2),
    3: ("nextProducerEpoch", 2),
}


class _Header(NamedTuple):
    """What decoding needs of a batch's header."""

    base_offset: int
    last_offset: int
    attributes: int
    base_ms: int
    max_ms: int
    record_count: int
    leader_epoch: int

    def time_ms(self, record: LogRecord) -> int:
        """When the broker appended the record."""
        return self.max_ms if self.attributes & LOG_APPEND_TIME else self.base_ms + record.timestamp_delta

    @property
    def place(self) -> BatchPlace:
        """Where the batch stands."""
        return batch_place(self.base_offset, self.last_offset, self.leader_epoch)


def read_state_segment(text: Readable, section: Span) -> Iterator[ReadStateRecord]:
    """The records of a segment of `__transaction_state`, in offset order.

    Their `ordinal` is their offset. A record, or a whole batch, that exists and cannot be read is an undecodable
    record: no absence may be concluded around it.
    """
    walk = HeaderWalk(text.read, section.text_start_bytes, section.text_end_bytes, section.file_base_offset)
    reader = _Reader(section.partition)
    for block in walk.blocks():
        # Their neighbours are wanted as well, so that they are read together.
        for at in range(0, len(block), _BATCHES_AT_ONCE):
            yield from reader.batches(text, block.part(at, at + _BATCHES_AT_ONCE))


@dataclass
class _Reader:
    partition: int
    last_offset: int | None = None  # of the last record that was read
    has_lost: bool = False

    def batches(self, text: Readable, found: Headers) -> Iterator[ReadStateRecord]:
        """The records of some neighbouring batches."""
        start = int(found.position[0])
        data = text.read(start, int(found.position[-1] + found.size[-1]))
        names = ("attributes", "base_timestamp", "max_timestamp", "record_count", "leader_epoch")
        columns = [found.base_offset, found.last_offset, *(found.number(name) for name in names)]
        headers = [_Header(*values) for values in zip(*(column.tolist() for column in columns), strict=True)]
        ends = (found.position + found.size - start).tolist()
        right = (crcs(found).tolist(), found.is_legacy.tolist())
        for header, at, end, crc, is_legacy in zip(headers, (0, *ends[:-1]), ends, *right, strict=True):
            batch = data[at:end]
            if len(batch) < end - at or is_legacy or not is_right(batch, crc):
                yield self._lost(header, header.base_offset, None, None)
            else:
                yield from self._records(header, batch)

    def _records(self, header: _Header, batch: bytes) -> Iterator[ReadStateRecord]:
        next_offset = header.base_offset
        try:
            for record in records_of(batch, CODECS[header.attributes & CODEC_MASK], header.record_count):
                offset = header.base_offset + record.offset_delta
                if not next_offset <= offset <= header.last_offset:
                    raise BadBatchError("offsets of records run backwards")
                next_offset = offset + 1
                if not header.attributes & CONTROL:
                    yield self._record(header, record, offset)
                self.last_offset = offset
        except BadBatchError:
            yield self._lost(header, next_offset, None, None)

    def _record(self, header: _Header, record: LogRecord, offset: int) -> ReadStateRecord:
        time_ms = header.time_ms(record)
        try:
            transactional_id, value = decoded(record.key, record.value)
        except BadValueError as problem:
            return self._lost(header, offset, offset, time_ms, problem.transactional_id)
        return state_record(self._place(header, offset, offset, time_ms), transactional_id, value)

    def _lost(
        self,
        header: _Header,
        ordinal: int,
        offset: int | None,
        time_ms: int | None,
        transactional_id: str | None = None,
    ) -> ReadStateRecord:
        place = self._place(header, ordinal, offset, time_ms)
        self.has_lost = True
        return undecodable_record(place, transactional_id)

    def _place(self, header: _Header, ordinal: int, offset: int | None, time_ms: int | None) -> RecordPlace:
        if offset is None:
            is_after_gap = None
        elif self.last_offset is None:
            is_after_gap = True if self.has_lost else None
        else:
            is_after_gap = offset != self.last_offset + 1
        recorded_ms = time_ms if time_ms is not None and 0 <= time_ms <= LAST_TIME_MS else None
        return RecordPlace(ordinal, self.partition, offset, recorded_ms, is_after_gap, *header.place)


def decoded(key: bytes | None, value: bytes | None) -> tuple[str, TransactionLogValue | None]:
    """Id and value of a record; a value that is None is a tombstone.

    Raises:
        BadValueError: a key or value version that is not known, or one that does not hold what its version says.
    """
    try:
        transactional_id = _id(key)
    except (StructError, UnicodeDecodeError):
        raise BadValueError(_NO_CONTENT) from None
    try:
        return transactional_id, None if value is None else _value(value)
    except (StructError, IndexError, CutShortError, UnicodeDecodeError):
        problem = BadValueError(_NO_CONTENT)
    except BadValueError as found:
        problem = found
    problem.transactional_id = transactional_id
    raise problem


def _id(key: bytes | None) -> str:
    record_type, length = _KEY_HEAD.unpack_from(key or b"")
    if key is None or record_type != _RECORD_TYPE or length != len(key) - _KEY_HEAD.size:
        raise BadValueError("not the key of a transaction state record")
    return json_id({"transactionalId": key[_KEY_HEAD.size :].decode()})


def _value(data: bytes) -> TransactionLogValue:
    """The value; its list was read as the broker wrote it, whatever fields of a newer Kafka stand behind it."""
    fields = _Fields(data)
    version = fields.number(2)
    if version not in {_PLAIN, _FLEXIBLE}:
        raise BadValueError("a value version that is not known")
    is_flexible = version == _FLEXIBLE
    producer_id, epoch, timeout_ms, status = fields.unpack(_HEAD)
    partitions = fields.partitions(is_flexible=is_flexible)
    last_update_ms, start_ms = fields.unpack(_TIMES)
    tags, skipped_bytes = fields.tags() if is_flexible else ({}, None)
    if not fields.is_at_end:
        raise BadValueError("more than a value")
    named = tags | {
        "producerId": producer_id,
        "producerEpoch": epoch,
        "transactionTimeoutMs": timeout_ms,
        "transactionStatus": status,
        "transactionPartitions": partitions,
        "transactionLastUpdateTimestampMs": last_update_ms,
        "transactionStartTimestampMs": start_ms,
    }
    found = json_value(named, is_flexible=is_flexible)
    if skipped_bytes is None:
        return found
    return found._replace(may_list_more=False, may_name_more=can_hold_producer_id(skipped_bytes))


class _Fields(Cursor):
    """Reads Kafka's field types; past the end it raises StructError, IndexError or CutShortError."""

    def unpack(self, fields: Struct) -> tuple[int, ...]:
        self._at += fields.size
        return fields.unpack_from(self._data, self._at - fields.size)

    def number(self, size: int) -> int:
        return int.from_bytes(self._bytes(size), "big", signed=True)

    def _bytes(self, size: int) -> bytes:
        if not 0 <= size <= len(self._data) - self._at:
            raise BadValueError("a value that is cut short")
        self._at += size
        return self._data[self._at - size : self._at]

    def _length(self, size: int, *, is_flexible: bool) -> int:
        """Of a string or array; -1 is null."""
        return self.unsigned_varint(_MOST_LENGTH_BYTES) - 1 if is_flexible else self.number(size)

    def partitions(self, *, is_flexible: bool) -> list[dict[str, Any]] | None:
        count = self._length(4, is_flexible=is_flexible)
        if count < 0:
            return None
        found = []
        for _ in range(count):
            topic = self._bytes(self._length(2, is_flexible=is_flexible)).decode()
            ids = [self.number(4) for _ in range(self._length(4, is_flexible=is_flexible))]
            if is_flexible and self.unsigned_varint(_MOST_LENGTH_BYTES):
                raise BadValueError("a tagged field of a topic")
            found.append({"topic": topic, "partitionIds": ids})
        return found

    def tags(self) -> tuple[dict[str, int], int | None]:
        """The tagged fields that are known, and the size of the largest other one; None where there is no other.

        Those are skipped, as Kafka's own readers do. Writers put them in the order of their tags
        (RawTaggedFieldWriter).
        """
        found: dict[str, int] = {}
        skipped_bytes, before = None, -1
        for _ in range(self.unsigned_varint(_MOST_LENGTH_BYTES)):
            tag, size = self.unsigned_varint(_MOST_LENGTH_BYTES), self.unsigned_varint(_MOST_LENGTH_BYTES)
            content = self._bytes(size)
            if tag <= before:
                raise BadValueError("tagged fields out of order")
            before = tag
            if tag not in _TAGS:
                skipped_bytes = max(skipped_bytes or 0, size)
                continue
            name, length = _TAGS[tag]
            if size != length:
                raise BadValueError("a tagged field of another size")
            found[name] = int.from_bytes(content, "big", signed=True)
        return found, skipped_bytes
