"""Scan of a broker's own segment files: the headers of a range of batches become the same columns as lines of dumps.

They are those of a deep dump of the same segment, but for where a batch stands in a text. Of records only the end
markers are looked into, and the keys of `__consumer_offsets`, which brokers write themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from txn_analysis.columns.arrays import ABSENT, Array, rows_at
from txn_analysis.kafka.batch_headers import (
    CODEC_MASK,
    CONTROL,
    DELETE_HORIZON,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    SMALL_FILE_BYTES,
    TRANSACTIONAL,
    Headers,
    HeaderWalk,
    Held,
    Read,
    SmallSegments,
    Source,
    layout,
)
from txn_analysis.kafka.names import (
    BINARY,
    BINARY_VERIFIED,
    CODECS,
    CONTROL_KEY_BYTES,
    GROUP_TOPIC,
    LOG,
    MARKER_VALUE_BYTES,
    STATE,
    TIMES,
    is_brokers_time,
    is_brokers_topic,
)
from txn_analysis.kafka.record_batch import BadBatchError, checked, crcs, only_record
from txn_analysis.reading.log_dir.group_records import read_group_records
from txn_analysis.reading.text.section import ScanRange, times
from txn_analysis.reading.text.text import Text
from txn_analysis.tables.batches import Batches

_SEQUENCES = 2**31
_BY_CLIENT, _BY_BROKER = map(TIMES.index, ("CreateTime", "LogAppendTime"))
_END_MARKERS = {0: "ABORT", 1: "COMMIT"}
_OTHER_CONTROLS = {
    2: "LEADER_CHANGE",
    3: "SNAPSHOT_HEADER",
    4: "SNAPSHOT_FOOTER",
    5: "KRAFT_VERSION",
    6: "KRAFT_VOTERS",
}
# The batch of an end marker as brokers write it (kafka-formats.md, 5.4): the lengths are always the same.
_MARKER_BATCH_BYTES = 78
_MARKER = layout(
    (
        ("head", "V5", HEADER_BYTES),  # the record's length, attributes, timestamp and offset deltas; length of the key
        ("key_version", ">i2", HEADER_BYTES + 5),
        ("type", ">i2", HEADER_BYTES + 7),
        ("value_length", "i1", HEADER_BYTES + 9),
        ("value_version", ">i2", HEADER_BYTES + 10),
        ("coordinator_epoch", ">i4", HEADER_BYTES + 12),
        ("header_count", "i1", HEADER_BYTES + 16),
    )
)
_MARKER_HEAD = np.frombuffer(bytes((2 * 16, 0, 0, 0, 2 * CONTROL_KEY_BYTES)), "V5")
_NO_MARKER = (None, ABSENT)


def scan_segment(text: Text, part: ScanRange) -> Batches:
    """The batches in a range of a segment; see `headers_of` and `scan_headers`."""
    return scan_headers(text, part, headers_of(text, part))


def headers_of(text: Text, part: ScanRange) -> Headers:
    """The headers in a range of a segment; `part` begins and ends where batches do (`Section.cuts`).

    Nothing comes of a range that is no longer in the file: what is missing then breaks the chain of positions.
    """
    walk = HeaderWalk(text, part.start, part.end, part.section.file_base_offset)
    is_there = part.start < part.end and bool(text.read(part.end - 1, part.end))
    return Headers.joined(list(walk.blocks()) if is_there else [])


def scan_headers(text: Text, part: ScanRange, headers: Headers, is_right: Array | None = None) -> Batches:
    """The batches with these headers, which a range of a segment has.

    `is_valid` is ABSENT where the checksum was not looked at, since it decides no verdict; see `rows_to_verify`.
    `is_right` says it of all, where it is known.
    """
    section = part.section
    if is_right is None:
        is_every = section.grammar == BINARY_VERIFIED or section.kind == STATE
        of_range, is_brokers = np.zeros(len(headers), np.int64), is_brokers_topic(section.topic)
        rows = np.arange(len(headers)) if is_every else rows_to_verify(headers, of_range, are_times_brokers=is_brokers)
        columns = _columns(text.read, headers, _validity(text, headers, rows))
    else:
        columns = _columns(text.read, headers, is_right.astype(np.int8))
    groups = read_group_records(text.read, headers) if section.topic == GROUP_TOPIC else None
    return Batches(part.place, columns, groups)


def is_small_segment(part: ScanRange) -> bool:
    """Whether a range is all of a small segment, as `scan_small_segments` reads it."""
    section = part.section
    is_plain = section.kind == LOG and section.grammar == BINARY and section.topic != GROUP_TOPIC
    return is_plain and part.start == 0 and part.end == section.text_end_bytes <= SMALL_FILE_BYTES


def scan_small_segments(read: Sequence[tuple[ScanRange, bytes]]) -> Iterator[Batches | ScanRange]:
    """The batches of some small segments, as `scan_segment` finds them in each; one that is not whole is left."""
    parts = [part for part, _ in read]
    small = SmallSegments.of([data for _, data in read], [part.section.file_base_offset for part in parts])
    headers, data = small.headers, Held(small.data)
    is_brokers = np.array([is_brokers_topic(part.section.topic) for part in parts])[small.segment]
    rows = rows_to_verify(headers, small.segment, are_times_brokers=is_brokers)
    columns = _columns(data.read, headers, _validity(data, headers, rows))
    for name in ("position", "text_start_bytes"):
        columns[name] = headers.position - small.starts[small.segment]
    bounds = np.searchsorted(small.segment, np.arange(len(parts) + 1)).tolist()
    for part, is_whole, first, stop in zip(parts, small.is_whole.tolist(), bounds, bounds[1:], strict=False):
        if is_whole:
            yield Batches(part.place, rows_at(columns, slice(first, stop)))
        else:
            yield part


def _validity(source: Source, headers: Headers, rows: Array) -> Array:
    is_valid = np.full(len(headers), ABSENT, np.int8)
    is_valid[rows] = checked(source, headers, rows)
    return is_valid


def _columns(read: Read, headers: Headers, is_valid: Array) -> dict[str, Array]:
    nothing = np.zeros(len(headers), bool)
    columns = {
        "is_valid": is_valid,
        "is_contested": nothing,
        "may_be_header_keys": nothing,
        "record_line_count": np.full(len(headers), ABSENT),
        "text_start_bytes": headers.position,
        "text_bytes": headers.size,
    }
    return columns | _header_columns(headers) | _marker_columns(read, headers)


def _header_columns(headers: Headers) -> dict[str, Array]:
    is_legacy = headers.is_legacy
    attributes = _attributes(headers)
    sequence = _since_magic_2(headers, "base_sequence")
    last_sequence = (sequence + headers.number("last_offset_delta")) % _SEQUENCES
    time_ms = np.where(is_legacy, headers.legacy["timestamp"], headers.peeks["max_timestamp"])
    has_no_time = headers.peeks["magic"] == 0
    return {
        "base_offset": headers.base_offset,
        "last_offset": headers.last_offset,
        "record_count": _since_magic_2(headers, "record_count"),
        "producer_id": _since_magic_2(headers, "producer_id"),
        "producer_epoch": _since_magic_2(headers, "producer_epoch"),
        "base_sequence": sequence,
        "last_sequence": np.where(sequence < 0, ABSENT, last_sequence),
        "is_transactional": _has(headers, TRANSACTIONAL),
        "is_control": _has(headers, CONTROL),
        "position": headers.position,
        "size_bytes": headers.size,
        "max_timestamp_ms": times(np.where(has_no_time, ABSENT, time_ms)),
        "timestamp_type": np.where(has_no_time, ABSENT, np.where(attributes & LOG_APPEND_TIME, _BY_BROKER, _BY_CLIENT)),
        "leader_epoch": _since_magic_2(headers, "leader_epoch"),
        "delete_horizon_ms": times(np.where(_has(headers, DELETE_HORIZON), headers.peeks["base_timestamp"], ABSENT)),
        "codec": attributes & CODEC_MASK,
        "crc": crcs(headers),
    }


def _since_magic_2(headers: Headers, name: str) -> Array:
    """A field of the headers that the old formats lack."""
    values: Array = np.where(headers.is_legacy, ABSENT, headers.number(name))
    return values


def _attributes(headers: Headers) -> Array:
    of_legacy = headers.legacy["attributes"].astype(np.int64)
    attributes: Array = np.where(headers.is_legacy, of_legacy, headers.number("attributes"))
    return attributes


def _has(headers: Headers, attribute: int) -> Array:
    """Which of the headers, of format 2, have an attribute."""
    has: Array = ~headers.is_legacy & (headers.peeks["attributes"] & attribute != 0)
    return has


def rows_to_verify(headers: Headers, of_range: Array, *, are_times_brokers: bool | Array) -> Array:
    """The rows whose checksums are always looked at, in file order.

    All control batches; of each producer with transactional data after its last end marker in its range the first and
    the last such batch, as a transaction that is open begins and ends with one of them; the broker-clock moments that
    bound these in time, and the newest and the last of each range; and batches of an old format beside others, as a
    damaged header can look like that.

    Args:
        headers: the batches of some ranges.
        of_range: of each batch the number of its range; ascending.
        are_times_brokers: every batch was written by a broker, and its time is one; for all, or for each.
    """
    is_control = _has(headers, CONTROL)
    chosen = is_control.copy()
    edges = _edges_of_open_data(headers, of_range, is_control)
    chosen[edges] = True
    is_append_time = _has(headers, LOG_APPEND_TIME)
    by_broker = is_brokers_time(
        is_control=is_control, is_append_time=is_append_time, is_brokers_topic=are_times_brokers
    )
    moments = np.flatnonzero(by_broker & ~is_control & ~headers.is_legacy)
    if len(moments):
        first = _firsts(of_range[moments])
        chosen[moments[np.append(first[1:], len(moments)) - 1]] = True
        chosen[_newest(headers.number("max_timestamp"), moments, first)] = True
        after, before = np.searchsorted(moments, edges), np.searchsorted(moments, edges, "right") - 1
        for place in (after, before):
            is_there = (place >= 0) & (place < len(moments))
            near, of_edge = moments[place[is_there]], of_range[edges[is_there]]
            chosen[near[of_range[near] == of_edge]] = True
    if headers.is_legacy.any():
        is_new, is_edge = np.concatenate([[True], ~headers.is_legacy, [True]]), np.diff(of_range, prepend=-1, append=-1)
        is_new_before, is_new_after = is_new[:-2] | (is_edge[:-1] != 0), is_new[2:] | (is_edge[1:] != 0)
        chosen |= headers.is_legacy & (is_new_before | is_new_after)
    return np.flatnonzero(chosen)


def _firsts(*keys: Array) -> Array:
    """Where runs of equal keys begin."""
    differs = [key[1:] != key[:-1] for key in keys]
    return np.flatnonzero(np.append(True, np.any(differs, axis=0)))


def _newest(time_ms: Array, moments: Array, first: Array) -> Array:
    """Of each run of moments the first one of the newest."""
    moments_ms = time_ms[moments]
    newest = np.repeat(np.maximum.reduceat(moments_ms, first), np.diff(np.append(first, len(moments_ms))))
    first_newest: Array = np.minimum.reduceat(np.where(moments_ms == newest, moments, len(time_ms)), first)
    return first_newest


def _edges_of_open_data(headers: Headers, of_range: Array, is_control: Array) -> Array:
    producer = np.where(headers.is_legacy, ABSENT, headers.number("producer_id"))
    is_marker = is_control & (headers.peeks["record_count"] > 0)
    rows = np.flatnonzero((producer != ABSENT) & (is_marker | (_has(headers, TRANSACTIONAL) & ~is_control)))
    rows = rows[np.lexsort((producer[rows], of_range[rows]))]
    if not len(rows):
        return rows
    first = _firsts(producer[rows], of_range[rows])
    last = np.append(first[1:], len(rows)) - 1
    last_marker = np.maximum.reduceat(np.where(is_marker[rows], np.arange(len(rows)), -1), first)
    opens = np.maximum(last_marker + 1, first)
    is_open = opens <= last
    return np.unique(np.concatenate([rows[opens[is_open]], rows[last[is_open]]]))


def _marker_columns(read: Read, headers: Headers) -> dict[str, Array]:
    """What the one record of each control batch says: COMMIT, ABORT or another control type, and the epoch."""
    control: Any = np.full(len(headers), None, object)
    epochs = np.full(len(headers), ABSENT, np.int64)
    rows = np.flatnonzero(_has(headers, CONTROL) & (headers.peeks["record_count"] == 1))
    markers = headers.raw[rows].view(_MARKER)
    is_usual = (headers.size[rows] == _MARKER_BATCH_BYTES) & (_attributes(headers)[rows] & CODEC_MASK == 0)
    is_usual &= (markers["head"] == _MARKER_HEAD) & (markers["value_length"] == 2 * MARKER_VALUE_BYTES)
    is_usual &= (markers["header_count"] == 0) & (markers["coordinator_epoch"] >= ABSENT)
    is_usual &= (markers["key_version"] >= 0) & (markers["value_version"] >= 0)
    for number, word in _END_MARKERS.items():
        control[rows[is_usual & (markers["type"] == number)]] = word
    is_usual &= np.isin(markers["type"], list(_END_MARKERS))
    epochs[rows[is_usual]] = markers["coordinator_epoch"][is_usual]
    for row in rows[~is_usual].tolist():
        control[row], epochs[row] = _unusual_marker(read, headers, row)
    return {"marker": control, "coordinator_epoch": epochs}


def _unusual_marker(read: Read, headers: Headers, row: int) -> tuple[str | None, int]:
    """Control type and coordinator epoch of any control batch (kafka.common.record.ControlRecordType)."""
    start = int(headers.position[row])
    batch = read(start, start + int(headers.size[row]))
    codec = CODECS[int(_attributes(headers)[row]) & CODEC_MASK]
    try:
        offset_delta, key, value = only_record(batch, codec)
    except BadBatchError:
        return _NO_MARKER
    version, number = (int.from_bytes(key[at : at + 2], "big", signed=True) for at in (0, 2))
    if len(key) != CONTROL_KEY_BYTES or version < 0 or offset_delta != 0:
        return _NO_MARKER
    if number not in _END_MARKERS:
        return _OTHER_CONTROLS.get(number, "UNKNOWN"), ABSENT
    epoch = int.from_bytes(value[2:], "big", signed=True)
    if len(value) != MARKER_VALUE_BYTES or value[0] >= 0x80 or epoch < ABSENT:
        return _NO_MARKER
    return _END_MARKERS[number], epoch
