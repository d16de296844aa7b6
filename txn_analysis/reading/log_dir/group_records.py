"""The groups that commit offsets in `__consumer_offsets`, in segments and in dumps with `--offsets-decoder`; as rows.

Of a record the key is read, nothing else: `OffsetCommitKey` has versions 0 and 1 (version, group, topic, partition);
2 is the metadata of a group, and 3 and more are of other protocols.

The decoder prints keys (kafka-formats.md, 1.7) as text from 2.5 to 3.7, `offset_commit::group=…,partition=…`, and as
JSON from 3.8 on. Text is not escaped, but the printed size of the key says where a name ends; JSON says so itself.
Brokers write no header keys, so the first key of a line is its key.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from txn_analysis.columns.arrays import ABSENT, Array, slices
from txn_analysis.columns.compiled import NO_PLACE, compiled
from txn_analysis.kafka.batch_headers import CODEC_MASK, CONTROL, HEADER_BYTES, Headers, Read
from txn_analysis.kafka.names import CODECS
from txn_analysis.kafka.record_batch import (
    KEY_BYTES,
    KEY_START,
    MAX_RECORDS_BYTES,
    SMALLEST_RECORD_BYTES,
    BadBatchError,
    decompressed,
    read_record,
)
from txn_analysis.reading.grammar.forms import KEY
from txn_analysis.reading.grammar.lines import Candidates, Lines, read_head
from txn_analysis.tables import GROUP_OFFSETS
from txn_analysis.tables.batches import Batches, GroupNames

_BLOCK_BYTES = 4 << 20
_LAST_COMMIT_VERSION = 1
_KEY_HEAD_BYTES = 4  # the version, and the length of the group
_PYTHON_US = 10  # for each record


def read_group_records(read: Read, headers: Headers) -> GroupNames | None:
    """The groups that the records of some neighbouring batches commit offsets of; None where a record cannot be read.

    Args:
        read: the bytes of the file from one position to another, cut at its end.
        headers: the headers of the batches.
    """
    if headers.is_legacy.any() or (headers.size > MAX_RECORDS_BYTES).any():
        return None
    batch: list[Array] = []
    names: list[pa.LargeBinaryArray] = [pa.array([], pa.large_binary())]
    count = headers.number("record_count")
    try:
        for rows, data, starts, stops in _bodies(read, headers):
            commits, name_starts, name_stops = _commits(data, starts, stops, count[rows])
            batch.append(rows[commits])
            names.append(slices(data, name_starts, name_stops))
    except BadBatchError:
        return None
    return GroupNames(np.concatenate([np.empty(0, np.int64), *batch]), pa.concat_arrays(names))


def _bodies(read: Read, headers: Headers) -> Iterator[tuple[Array, bytes, Array, Array]]:
    """The records of all data batches: of which batches, some data, and where in it each one's begin and end.

    A bounded number of bytes at a time, of compressed ones a batch at a time.

    Raises:
        BadBatchError: the file is shorter than it was, or a batch is not what its codec says.
    """
    attributes, start, stop = headers.number("attributes"), headers.position, headers.position + headers.size
    is_data, codec = attributes & CONTROL == 0, attributes & CODEC_MASK
    first = 0
    while first < len(headers):
        last = max(first + 1, int(np.searchsorted(stop, start[first] + _BLOCK_BYTES, "right")))
        base = int(start[first])
        data = read(base, int(stop[last - 1]))
        if len(data) < stop[last - 1] - base:
            raise BadBatchError("the file is shorter than it was")
        rows = np.arange(first, last)[is_data[first:last]]
        plain, packed = rows[codec[rows] == 0], rows[codec[rows] != 0]
        yield plain, data, start[plain] - base + HEADER_BYTES, stop[plain] - base
        for row in packed.tolist():
            body = decompressed(data[start[row] - base + HEADER_BYTES : stop[row] - base], CODECS[codec[row]])
            yield np.array([row]), body, np.array([0]), np.array([len(body)])
        first = last


def _commits(data: bytes, start: Array, stop: Array, count: Array) -> Array:
    """Of each offset commit: which of the batches it is in, and where in the data its group's name begins and ends.

    Raises:
        BadBatchError: a batch does not hold as many whole records as it counts.
    """
    most = int(np.minimum(count, (stop - start) // SMALLEST_RECORD_BYTES).sum())
    spans: Array = np.empty((3, most), np.int64)
    read_records = _read_records.for_work(most * _PYTHON_US)
    total = read_records(np.frombuffer(data, np.uint8), start, stop, count, np.zeros(6, np.int64), *spans)
    if total == NO_PLACE:
        raise BadBatchError("a record cannot be read")
    return spans[:, :total]


@compiled
def _name(raw: Array, at: int, end: int) -> tuple[int, int]:
    """Where the group's name stands in a key that is an offset commit's; an end before the start where it is none.

    Two times NO_PLACE where the key is shorter than it says.
    """
    if end - at < 2 or int(raw[at]) << 8 | int(raw[at + 1]) > _LAST_COMMIT_VERSION:
        return 0, NO_PLACE
    if end - at < _KEY_HEAD_BYTES:
        return NO_PLACE, NO_PLACE
    start = at + _KEY_HEAD_BYTES
    stop = start + (int(raw[at + 2]) << 8 | int(raw[at + 3]))
    return (start, stop) if stop <= end else (NO_PLACE, NO_PLACE)


@compiled
def _read_records(
    raw: Array,
    starts: Array,
    stops: Array,
    counts: Array,
    record: Array,
    batch: Array,
    name_starts: Array,
    name_stops: Array,
) -> int:
    """Fills the last three arrays by the commits in the records of some batches, and says how many there are.

    NO_PLACE where one of the batches holds other records than it counts.
    """
    total = 0
    for k in range(len(starts)):
        at, stop = starts[k], stops[k]
        for _ in range(counts[k]):
            at = read_record(raw, at, stop, record)
            if at == NO_PLACE:
                return NO_PLACE
            if record[KEY_BYTES] > 0:
                name_start, name_stop = _name(raw, record[KEY_START], record[KEY_START] + record[KEY_BYTES])
                if name_start == NO_PLACE:
                    return NO_PLACE
                if name_stop != NO_PLACE:
                    batch[total], name_starts[total], name_stops[total] = k, name_start, name_stop
                    total += 1
        if at != stop:
            return NO_PLACE
    return total


_KEY = re.compile(
    rb'(?P<json>\{"type":"[01]",(?:"data":\{"group":"(?P<plain>[^"\\]*)")?)|(?P<text>offset_commit::group=)|'
    rb'\{"type":"|Unknown record type |group_metadata::group=|unknown::version='
)
"""How the decoder begins a key. Whatever else stands there is no key that was decoded."""
_PARTITION = b",partition="
_KEY_BYTES = 2 + 2 + 2 + 4  # of its version, of the lengths of group and topic, and of the partition
_DECODER = json.JSONDecoder()


class _NotDecodedError(Exception):
    """A key was not decoded, or is not what the decoder prints."""


def read_group_lines(lines: Lines, batches: Candidates) -> GroupNames | None:
    """The groups that the records of some batches commit offsets of; None where the key of a record is not decoded.

    Args:
        lines: the slice of the dump.
        batches: its batches.
    """
    count = batches.columns["record_count"]
    is_data = ~np.asarray(batches.columns["is_control"], bool)
    batch = np.searchsorted(batches.line, lines.record_lines) - 1  # of each record line
    if (batch < 0).any() or (np.bincount(batch, minlength=len(batches)) != count)[is_data].any():
        return None
    of_data = is_data[batch]
    try:
        names = [_group_of(lines.text(line)) for line in lines.record_lines[of_data].tolist()]
    except _NotDecodedError:
        return None
    named = [row for row, name in enumerate(names) if name is not None]
    return GroupNames(batch[of_data][named], pa.array([names[row] for row in named], pa.large_binary()))


def _group_of(line: bytes) -> bytes | None:
    """The group that a record commits an offset of; None where it is another record of the decoder's."""
    key = line.partition(KEY)[2]
    printed_key = _KEY.match(key)
    if printed_key is None:
        raise _NotDecodedError
    if printed_key["text"] is not None:
        head = read_head(line, 0, len(line))
        return _group_of_text(key, printed_key.end(), head.key_bytes if head else 0)
    if printed_key["json"] is None:
        return None
    return printed_key["plain"] if printed_key["plain"] is not None else _group_of_json(key)


def _group_of_text(key: bytes, start: int, key_bytes: int) -> bytes:
    """A name that `,partition=`, the topic and `-` follow, where the key's size says; no topic has a comma."""
    stop = start + key_bytes - _KEY_BYTES + len(_PARTITION)
    end = key.rfind(b",", start, max(stop, start))
    if key_bytes < _KEY_BYTES or key[stop : stop + 1] != b"-" or not key.startswith(_PARTITION, end):
        raise _NotDecodedError
    return key[start:end]


def _group_of_json(key: bytes) -> bytes:
    """The group in a key that an escape, or another order of its fields, keeps from being read in place."""
    try:
        group = _DECODER.raw_decode(key.decode(errors="replace"))[0]["data"]["group"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise _NotDecodedError from None
    if not isinstance(group, str):
        raise _NotDecodedError
    return group.encode(errors="replace")


def group_rows(batches: Batches, groups: GroupNames) -> pa.RecordBatch:
    """Rows of `group_offsets` of one scanned range; none where it was not read whole, and so proves nothing.

    Args:
        batches: of the range, a part of `__consumer_offsets`.
        groups: what their records commit offsets of.
    """
    schema = GROUP_OFFSETS.arrow_schema
    if not _is_whole(batches):
        return pa.RecordBatch.from_pylist([], schema)
    columns = batches.columns
    start, last = columns["text_start_bytes"], columns["last_offset"]
    place = batches.place._asdict() | {
        "text_start_bytes": int(start[0]),
        "text_end_bytes": int(start[-1] + columns["text_bytes"][-1]),
    }
    stretches = [(None, None, int(last[-1])), *_last_commits(batches, groups)]
    named = [dict(zip(("group_id", "producer_id", "last_offset"), values, strict=True)) for values in stretches]
    return pa.RecordBatch.from_pylist([place | row for row in named], schema)


def _is_whole(batches: Batches) -> bool:
    """Nothing stands between the batches, and nothing speaks against one of them."""
    columns = batches.columns
    start = columns["text_start_bytes"]
    is_joined = start[1:] == (start + columns["text_bytes"])[:-1]
    return bool(is_joined.all() and not columns["is_contested"].any() and (columns["is_valid"] != 0).all())


def _last_commits(batches: Batches, groups: GroupNames) -> list[tuple[str, int | None, int]]:
    """Each group and producer once, with the last offset of the last batch in which they meet."""
    names = groups.name.dictionary_encode()
    met = pa.table(
        {
            "name": names.indices,
            "producer_id": batches.columns["producer_id"][groups.batch],
            "last_offset": batches.columns["last_offset"][groups.batch],
        }
    )
    last = met.group_by(["name", "producer_id"], use_threads=False).aggregate([("last_offset", "max")]).to_pydict()
    known = [name.decode(errors="replace") for name in names.dictionary.to_pylist()]
    return [
        (known[name], None if producer_id == ABSENT else producer_id, offset)
        for name, producer_id, offset in zip(last["name"], last["producer_id"], last["last_offset_max"], strict=True)
    ]
