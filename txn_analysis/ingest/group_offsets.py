"""Which consumer groups have offsets in a segment of `__consumer_offsets`, and of which producer.

Read again from the files, and only for partitions that an open transaction blocks: from dumps made with
`--offsets-decoder`, and from segments as brokers wrote them. A dump without the decoder prints no group, and gives
none. Of a record the group is read, nothing else; it names readers in the report and decides nothing.

Formats: `OffsetCommitKey` and `GroupMetadataKey` (versions 0 to 2 of the key: version, group, ...); the decoder's text
of 2.5 to 3.7 (`offset_commit::group=…,partition=…`), and its JSON of 3.8 and newer.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from struct import Struct
from typing import TYPE_CHECKING

from txn_analysis.ingest.batch_headers import CODEC_MASK, CODECS, CONTROL, HeaderWalk
from txn_analysis.ingest.body import MAX_RECORD_BYTES
from txn_analysis.ingest.record_batch import BadBatchError, records_of
from txn_analysis.ingest.sections import BINARY_GRAMMARS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from txn_analysis.ingest.body import Readable

_CHUNK_BYTES = 4 << 20
_BATCHES_AT_ONCE = 64
_KEY_HEAD = Struct(">hH")
_OFFSET_COMMITS = frozenset({0, 1})  # key versions; 2 is the metadata of a group, 3 and more are of other protocols
_BATCH = re.compile(rb"baseOffset: \d+ lastOffset: (\d+) .*? producerId: (-?\d+) ")
_JSON_KEYS = (b'{"type":"0",', b'{"type":"1",')
_TEXT_KEY = b"offset_commit::group="
_DECODER = json.JSONDecoder()


@dataclass(frozen=True)
class GroupOffset:
    """One group's offsets in one batch; `producer_id` is None where it was committed without a transaction."""

    group: str
    producer_id: int | None
    last_offset: int


def group_offsets(text: Readable, start: int, end: int, grammar: str, base_offset: int) -> Iterator[GroupOffset]:
    """The groups of one section of `__consumer_offsets`, once for each batch that holds offsets of them.

    Args:
        text: the input.
        start: first byte of the section's body.
        end: the byte after it.
        grammar: of the section; says whether it is text or a broker's own file.
        base_offset: the offset in the file's name.
    """
    if grammar in BINARY_GRAMMARS:
        return _of_segment(text, start, end, base_offset)
    return _of_dump(text, start, end)


def _of_segment(text: Readable, start: int, end: int, base_offset: int) -> Iterator[GroupOffset]:
    for block in HeaderWalk(text.read, start, end, base_offset).blocks():
        for at in range(0, len(block), _BATCHES_AT_ONCE):
            found = block.part(at, at + _BATCHES_AT_ONCE)
            columns = (found.position, found.size, found.last_offset, found.is_legacy)
            names = ("attributes", "producer_id", "record_count")
            rows = zip(*(c.tolist() for c in (*columns, *map(found.number, names))), strict=True)
            for position, size, last, is_legacy, attributes, producer_id, record_count in rows:
                if is_legacy or attributes & CONTROL:
                    continue
                batch = text.read(position, position + size)
                for group in _groups_in(batch, CODECS[attributes & CODEC_MASK], record_count):
                    yield GroupOffset(group, producer_id if producer_id >= 0 else None, last)


def _groups_in(batch: bytes, codec: str, record_count: int) -> set[str]:
    groups = set()
    try:
        for record in records_of(batch, codec, record_count):
            group = _group_of_key(record.key)
            if group is not None:
                groups.add(group)
    except BadBatchError:
        return groups  # what is wrong with the log is said by the coverage
    return groups


def _group_of_key(key: bytes | None) -> str | None:
    if key is None or len(key) < _KEY_HEAD.size:
        return None
    version, length = _KEY_HEAD.unpack_from(key)
    name = key[_KEY_HEAD.size : _KEY_HEAD.size + length]
    return name.decode(errors="replace") if version in _OFFSET_COMMITS and len(name) == length else None


def _of_dump(text: Readable, start: int, end: int) -> Iterator[GroupOffset]:
    last_offset, producer_id = -1, None
    seen: set[str] = set()
    for line in _lines(text, start, end):
        if batch := _BATCH.match(line):
            last_offset, number = int(batch[1]), int(batch[2])
            producer_id = number if number >= 0 else None
            seen = set()
        elif (group := _group_of_line(line)) is not None and group not in seen:
            seen.add(group)
            yield GroupOffset(group, producer_id, last_offset)


def _group_of_line(line: bytes) -> str | None:
    """The group of an offset commit that the decoder printed. Brokers write no header keys, so the first key counts."""
    if not line.startswith(b"| offset: "):
        return None
    key = line.partition(b" key: ")[2]
    if key.startswith(_TEXT_KEY):
        named = key[len(_TEXT_KEY) :].rpartition(b" payload: ")[0]
        return named.rpartition(b",partition=")[0].decode(errors="replace") or None
    if not key.startswith(_JSON_KEYS):
        return None
    try:
        group = _DECODER.raw_decode(key.decode(errors="replace"))[0]["data"]["group"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return group if isinstance(group, str) else None


def _lines(text: Readable, start: int, end: int) -> Iterator[bytes]:
    """The lines of a span; of one that is longer than any record only the beginning."""
    rest = b""
    while start < end and (chunk := text.read(start, min(start + _CHUNK_BYTES, end))):
        start += len(chunk)
        *whole, rest = (rest + chunk).split(b"\n")
        yield from whole
        rest = rest[:MAX_RECORD_BYTES]
    if rest:
        yield rest
