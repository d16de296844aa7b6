"""The groups in dumps of `__consumer_offsets` that were made with `--offsets-decoder`.

Formats (kafka-formats.md, 1.7): the decoder's text of 2.5 to 3.7, `offset_commit::group=…,partition=…`, and its JSON of
3.8 and newer. Text is not escaped, but the printed size of the key says where a name ends (`OffsetCommitKey`: version,
group, topic, partition); JSON says so itself. Brokers write no header keys, so the first key of a line is its key.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from txn_analysis.read.dump.records import KEY
from txn_analysis.tables.batches import GroupNames

if TYPE_CHECKING:
    from txn_analysis.read.dump.batch_lines import Candidates, Lines

_SIZE = re.compile(rb"ey[sS]ize: (\d{1,10}) ")
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
    head, _, key = line.partition(KEY)
    found, size = _KEY.match(key), _SIZE.search(head)
    if found is None:
        raise _NotDecodedError
    if found["text"] is not None:
        return _group_of_text(key, found.end(), int(size[1]) if size else 0)
    if found["json"] is None:
        return None
    return found["plain"] if found["plain"] is not None else _group_of_json(key)


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
