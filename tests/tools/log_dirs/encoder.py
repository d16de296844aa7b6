"""Writes what brokers write: batches of format 2, segments, snapshots. Knows nothing of the code that reads it."""

import gzip
import struct
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
from google_crc32c import value as crc32c

from tests.tools.forms.broker import ProducerEntry
from tests.tools.forms.model import Batch, History, Record, Segment, StateRecord, StateValue
from tests.tools.forms.state_writer import STATE_CODES

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
CONTROL_CODES = {"ABORT": 0, "COMMIT": 1, "LEADER_CHANGE": 2}


def varint(value: int) -> bytes:
    """A zigzag varint."""
    return unsigned_varint((value << 1) ^ (value >> 63))


def unsigned_varint(value: int) -> bytes:
    """An unsigned varint, of which flexible versions make their lengths."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def record(offset_delta: int, time_delta: int, key: bytes | None, value: bytes | None) -> bytes:
    """One record without headers."""
    body = b"\0" + varint(time_delta) + varint(offset_delta)
    for content in (key, value):
        body += varint(-1) if content is None else varint(len(content)) + content
    body += varint(0)
    return varint(len(body)) + body


def compressed(data: bytes, codec: str) -> bytes:
    """The records of a batch as Java's clients compress them."""
    if codec == "gzip":
        return gzip.compress(data, mtime=0)
    if codec == "snappy":
        blocks = [pa.compress(data[at : at + 1000], codec="snappy", asbytes=True) for at in range(0, len(data), 1000)]
        return b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1) + b"".join(struct.pack(">i", len(b)) + b for b in blocks)
    if codec in {"lz4", "zstd"}:
        sink = pa.BufferOutputStream()
        with pa.CompressedOutputStream(sink, codec) as stream:
            stream.write(data)
        return bytes(sink.getvalue())
    return data


def encoded(batch: Batch) -> bytes:
    """A batch with its records; the size and the checksum are what comes of it."""
    base_ms = -1 if batch.max_timestamp_ms is None else batch.max_timestamp_ms
    if batch.delete_horizon_ms is not None:
        base_ms = batch.delete_horizon_ms
    body = b"".join(_record(batch, each, base_ms) for each in batch.all_records())
    attributes = CODECS.index(batch.codec) | (8 if batch.timestamp_type == "LogAppendTime" else 0)
    attributes |= 16 * batch.is_transactional | 32 * batch.is_control | 64 * (batch.delete_horizon_ms is not None)
    checked = struct.pack(
        ">hiqqqhii",
        attributes,
        batch.last_offset - batch.base_offset,
        base_ms,
        _or_none(batch.max_timestamp_ms),
        _or_none(batch.producer_id),
        _or_none(batch.producer_epoch),
        _or_none(batch.base_sequence),
        batch.record_count,
    ) + compressed(body, batch.codec)
    return framed(checked, batch.base_offset, batch.leader_epoch, is_valid=batch.is_valid)


def framed(checked: bytes, base_offset: int = 0, leader_epoch: int = 0, *, is_valid: bool = True) -> bytes:
    """A batch of what its checksum covers: all from its attributes on."""
    crc = crc32c(checked) ^ (0 if is_valid else 1)
    return struct.pack(">qiibI", base_offset, len(checked) + 9, leader_epoch, 2, crc) + checked


def _record(batch: Batch, each: Record, base_ms: int) -> bytes:
    delta = each.offset - batch.base_offset
    time_delta = (-1 if each.timestamp_ms is None else each.timestamp_ms) - base_ms
    if batch.is_control:
        key = struct.pack(">hh", 0, CONTROL_CODES[str(batch.marker)])
        return record(delta, time_delta, key, struct.pack(">hi", 0, _or_none(batch.coordinator_epoch)))
    if each.state is not None:
        return record(delta, time_delta, state_key(each.state), state_value(each.state.value))
    made_up = None if each.key_bytes is None else b"k" * each.key_bytes
    own_key = made_up if each.raw_key is None else each.raw_key
    return record(delta, time_delta, own_key, None if each.value_bytes is None else b"v" * each.value_bytes)


def _or_none(value: int | None) -> int:
    return -1 if value is None else value


def segment_bytes(segment: Segment) -> bytes:
    """The content of a `.log` file."""
    return b"".join(encoded(batch) for batch in segment.batches)


def state_key(state: StateRecord) -> bytes:
    """TransactionLogKey."""
    name = state.transactional_id.encode()
    return struct.pack(">hh", 0, len(name)) + name


def state_value(value: StateValue | None, tags: Mapping[int, bytes] | None = None) -> bytes | None:
    """TransactionLogValue, version 0 or 1; further tagged fields may be given."""
    if value is None:
        return None
    is_flexible = value.version > 0
    head = struct.pack(
        ">hqhib",
        value.version,
        value.producer_id,
        value.producer_epoch,
        value.timeout_ms,
        STATE_CODES[value.state],
    )
    times = struct.pack(">qq", value.last_update_ms, _or_none(value.start_ms))
    tagged = dict(tags or {})
    if value.client_transaction_version:
        tagged[2] = struct.pack(">h", value.client_transaction_version)
    tail = b"".join(unsigned_varint(tag) + unsigned_varint(len(tagged[tag])) + tagged[tag] for tag in sorted(tagged))
    return (
        head + _partitions(value, is_flexible) + times + (unsigned_varint(len(tagged)) + tail if is_flexible else b"")
    )


def _partitions(value: StateValue, is_flexible: bool) -> bytes:
    by_topic: dict[str, list[int]] = {}
    for topic, partition in value.partitions:
        by_topic.setdefault(topic, []).append(partition)
    is_null = value.state == "Empty"
    if is_flexible:
        out = unsigned_varint(0 if is_null else len(by_topic) + 1)
    else:
        out = struct.pack(">i", -1 if is_null else len(by_topic))
    for topic, ids in by_topic.items():
        name = topic.encode()
        out += unsigned_varint(len(name) + 1) if is_flexible else struct.pack(">h", len(name))
        out += name + (unsigned_varint(len(ids) + 1) if is_flexible else struct.pack(">i", len(ids)))
        out += struct.pack(f">{len(ids)}i", *ids) + (b"\0" if is_flexible else b"")
    return out


def snapshot_bytes(producers: Mapping[int, ProducerEntry]) -> bytes:
    """The content of a `.snapshot` file."""
    entries = b"".join(
        struct.pack(
            ">qhiqiqiq",
            producer_id,
            entry.producer_epoch,
            _or_none(entry.last_sequence),
            _or_none(entry.last_offset),
            entry.offset_delta,
            _or_none(entry.last_timestamp_ms),
            _or_none(entry.coordinator_epoch),
            _or_none(entry.txn_start_offset),
        )
        for producer_id, entry in producers.items()
    )
    body = struct.pack(">i", len(producers)) + entries
    return struct.pack(">hI", 1, crc32c(body)) + body


def write_log(log_dir: Path, history: History) -> Path:
    """A partition's folder with its segments."""
    folder = log_dir / f"{history.topic}-{history.partition}"
    folder.mkdir(parents=True, exist_ok=True)
    for segment in history.segments:
        (folder / f"{segment.base_offset:020}.log").write_bytes(segment_bytes(segment))
    return folder


def as_written(history: History) -> History:
    """The same log with the sizes and checksums that encoding gives its batches."""
    return replace(
        history,
        segments=tuple(replace(s, batches=tuple(_measured(batch) for batch in s.batches)) for s in history.segments),
    )


def _measured(batch: Batch) -> Batch:
    data = encoded(batch)
    (crc,) = struct.unpack_from(">I", data, 17)
    return replace(batch, size_bytes=len(data), crc=crc)
