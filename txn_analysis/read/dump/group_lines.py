"""The groups in dumps of `__consumer_offsets` that were made with `--offsets-decoder`.

Formats (kafka-formats.md, 1.7): the decoder's text of 2.5 to 3.7, `offset_commit::group=…,partition=…`, and its JSON of
3.8 and newer. Text is not escaped, but the printed size of the key says where a name ends (`OffsetCommitKey`: version,
group, topic, partition); JSON says so itself. Brokers write no header keys, so the first key of a line is its key.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from txn_analysis.columns.compiled import compiled
from txn_analysis.kafka.batches import GroupNames
from txn_analysis.read.dump.lines import slices

if TYPE_CHECKING:
    from txn_analysis.columns.arrays import Array
    from txn_analysis.read.dump.batch_lines import Candidates
    from txn_analysis.read.dump.lines import Lines
    from txn_analysis.read.dump.regions import Regions

_NOT_DECODED, _NO_COMMIT, _TEXT, _JSON, _OTHER_JSON = range(5)
# How the decoder begins a key, the longer of two first. Whatever else stands there is no key that was decoded.
_KEYS = (
    (b'{"type":"0","data":{"group":"', _JSON),
    (b'{"type":"1","data":{"group":"', _JSON),
    (b'{"type":"0",', _OTHER_JSON),
    (b'{"type":"1",', _OTHER_JSON),
    (b'{"type":"', _NO_COMMIT),
    (b"Unknown record type ", _NO_COMMIT),
    (b"offset_commit::group=", _TEXT),
    (b"group_metadata::group=", _NO_COMMIT),
    (b"unknown::version=", _NO_COMMIT),
)
_SIZE_LABEL, _KEY_LABEL, _PARTITION_LABEL = b"ize: ", b" key: ", b",partition="
_TEXTS = (*(text for text, _ in _KEYS), _SIZE_LABEL, _KEY_LABEL, _PARTITION_LABEL)
_SIZE, _KEY, _PARTITION = range(len(_KEYS), len(_TEXTS))
_KINDS = np.array([kind for _, kind in _KEYS], np.int64)
_LENGTHS = np.array([len(text) for text in _TEXTS], np.int64)
_BYTES = np.array([np.frombuffer(text.ljust(max(_LENGTHS)), np.uint8) for text in _TEXTS])
_QUOTE, _BACKSLASH, _COMMA, _MINUS, _ZERO, _NINE = b'"\\,-09'
_NO_PLACE = -1
_MOST_KEY_BYTES = 1 << 20
_KEY_BYTES = 2 + 2 + 2 + 4  # of its version, of the lengths of group and topic, and of the partition
_PYTHON_US = 30  # for each line
_DECODER = json.JSONDecoder()


def read_group_lines(lines: Lines, batches: Candidates, regions: Regions) -> GroupNames | None:
    """The groups that the records of some batches commit offsets of; None where the key of a record is not decoded.

    Args:
        lines: the slice of the dump.
        batches: its batches.
        regions: the text under each of them.
    """
    count = batches.columns["record_count"]
    is_data = ~np.asarray(batches.columns["is_control"], bool)
    if (regions.record_count != count)[is_data].any():
        return None
    rows = np.flatnonzero(is_data)
    batch = np.repeat(rows, count[rows])
    line = regions.records[np.isin(np.repeat(np.arange(len(batches)), regions.record_count), rows)]
    kinds, starts, stops = (np.zeros(len(line), np.int64) for _ in range(3))
    read_keys = _read_keys.for_work(len(line) * _PYTHON_US)
    raw = np.frombuffer(lines.data, np.uint8)
    read_keys(raw, lines.starts[line], lines.ends[line], _BYTES, _LENGTHS, _KINDS, kinds, starts, stops)
    if (kinds == _NOT_DECODED).any():
        return None
    named, others = (np.flatnonzero(is_kind) for is_kind in ((kinds == _TEXT) | (kinds == _JSON), kinds == _OTHER_JSON))
    parsed = [_group_of_json(lines.data[starts[row] : lines.ends[line[row]]]) for row in others.tolist()]
    if None in parsed:
        return None
    names = [slices(lines.data, starts[named], stops[named]), pa.array(parsed, pa.large_binary())]
    return GroupNames(batch[np.concatenate([named, others])], pa.concat_arrays(names))


def _group_of_json(key: bytes) -> bytes | None:
    """The group in a key that an escape, or another order of its fields, keeps from being read in place."""
    try:
        group = _DECODER.raw_decode(key.decode(errors="replace"))[0]["data"]["group"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return group.encode(errors="replace") if isinstance(group, str) else None


@compiled
def _stands_at(raw: Array, at: int, end: int, texts: Array, lengths: Array, text: int) -> bool:
    if end - at < lengths[text]:
        return False
    for k in range(lengths[text]):  # noqa: SIM110 what is compiled knows no generators
        if raw[at + k] != texts[text, k]:
            return False
    return True


@compiled
def _behind(raw: Array, at: int, end: int, texts: Array, lengths: Array, text: int) -> int:
    """The place behind the first such text; _NO_PLACE where there is none."""
    for place in range(at, end):
        if raw[place] == texts[text, 0] and _stands_at(raw, place, end, texts, lengths, text):
            return place + int(lengths[text])
    return _NO_PLACE


@compiled
def _number(raw: Array, at: int, end: int) -> int:
    value = 0
    while at < end and _ZERO <= raw[at] <= _NINE and value < _MOST_KEY_BYTES:
        value = 10 * value + int(raw[at]) - _ZERO
        at += 1
    return value


@compiled
def _end_of_text(raw: Array, at: int, end: int, key_bytes: int, texts: Array, lengths: Array) -> int:
    """Where a name ends that `,partition=`, the topic and `-` follow; _NO_PLACE where the key's size contradicts."""
    stop = at + key_bytes - _KEY_BYTES + lengths[_PARTITION]
    if key_bytes < _KEY_BYTES or stop >= end or raw[stop] != _MINUS:
        return _NO_PLACE
    place = stop - 1
    while place > at and raw[place] != _COMMA:  # no topic has one
        place -= 1
    return place if _stands_at(raw, place, end, texts, lengths, _PARTITION) else _NO_PLACE


@compiled
def _read_key(
    raw: Array, start: int, end: int, texts: Array, lengths: Array, kinds_of_keys: Array
) -> tuple[int, int, int]:
    """Which kind of key a line has, and where the name in it stands; of _OTHER_JSON where the key begins."""
    at = _behind(raw, start, end, texts, lengths, _KEY)
    if at == _NO_PLACE:
        return _NOT_DECODED, 0, 0
    for text in range(len(kinds_of_keys)):
        if not _stands_at(raw, at, end, texts, lengths, text):
            continue
        kind, name = kinds_of_keys[text], at + lengths[text]
        if kind == _TEXT:
            size_at = _behind(raw, start, at, texts, lengths, _SIZE)
            stop = _end_of_text(raw, name, end, _number(raw, size_at, at), texts, lengths)
            return (_NOT_DECODED, 0, 0) if stop == _NO_PLACE else (kind, name, stop)
        if kind == _JSON:
            stop = name
            while stop < end and raw[stop] != _QUOTE and raw[stop] != _BACKSLASH:
                stop += 1
            if stop < end and raw[stop] == _QUOTE:
                return kind, name, stop
            return _OTHER_JSON, at, 0
        return kind, at, 0
    return _NOT_DECODED, 0, 0


@compiled
def _read_keys(
    raw: Array,
    starts: Array,
    ends: Array,
    texts: Array,
    lengths: Array,
    kinds_of_keys: Array,
    kinds: Array,
    name_starts: Array,
    name_stops: Array,
) -> None:
    """Fills the last three arrays by the record lines, up to the first one whose key is not decoded."""
    for k in range(len(starts)):
        kinds[k], name_starts[k], name_stops[k] = _read_key(raw, starts[k], ends[k], texts, lengths, kinds_of_keys)
        if kinds[k] == _NOT_DECODED:
            return
