"""What stands between batch lines in a deep dump: end markers, and record lines that must be proven.

No key, value or header leaves this module; it only measures them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.ingest.grammar import MARKER_LINE, RECORD_LINE_START, RECORD_PREFIX

if TYPE_CHECKING:
    from collections.abc import Iterator

    from txn_analysis.ingest.batch_lines import Array, Lines

NOT_PRINTED = -1
_MAX_HEADER_ENDS = 64  # how many `]` of a record's header keys are tried as their end


def read_markers(lines: Lines, control_line: Array, base_offset: Array) -> tuple[Array, Array]:
    """What the record line right after each control batch line says.

    Returns:
        The marker word (COMMIT, ABORT, the name of another control type, or None where it is not printed), and the
        coordinator epoch (-1 where it is not printed). A record of another offset than its batch's is not believed.
    """
    words = np.full(len(control_line), None, object)
    epochs = np.full(len(control_line), NOT_PRINTED, np.int64)
    followed = np.flatnonzero(control_line + 1 < len(lines.starts))
    read = pc.extract_regex(_as_arrow(lines, control_line[followed] + 1), MARKER_LINE.decode())
    is_read = np.asarray(pc.is_valid(read), bool)
    offset, marker, epoch, other = (pc.cast(field, pa.string()) for field in read.drop_null().flatten())
    is_own = pc.cast(offset, pa.int64()).to_numpy() == base_offset[followed][is_read]
    rows = followed[is_read][is_own]
    word = pc.if_else(pc.equal(marker, ""), other, marker).to_numpy(zero_copy_only=False)
    words[rows] = word[is_own]
    number = pc.cast(pc.if_else(pc.equal(epoch, ""), str(NOT_PRINTED), epoch), pa.int64()).to_numpy()
    epochs[rows] = number[is_own]
    return words, epochs


def _as_arrow(lines: Lines, index: Array) -> pa.Array:
    text = lines.joined(index)
    sizes = (lines.ends - lines.starts)[index] + 1
    offsets = np.zeros(len(index) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    offsets[-1:] = len(text)
    return pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(index), [None, pa.py_buffer(offsets), pa.py_buffer(text)]
    )


def proven_bytes(lines: Lines, batch_line: Array, base_offset: Array, last_offset: Array, count: Array) -> Array:
    """Bytes of each batch line and of the record lines under it that are proven to be its records.

    The usual case is one line a record, all of them whole: it is decided for all batches at once. Where text of a
    record holds newlines, the record lines' own key and value sizes decide, record by record.
    """
    bounds = np.append(lines.starts, len(lines.data))
    stop_line = np.append(batch_line[1:], len(lines.starts))
    own = bounds[batch_line + 1] - lines.starts[batch_line]
    region = bounds[stop_line] - bounds[batch_line + 1]
    is_record = np.zeros(len(lines.starts) + 1, np.int64)
    is_record[lines.starting_with(RECORD_LINE_START) + 1] = 1
    records = np.cumsum(is_record)
    has_one_line_each = (records[stop_line] - records[batch_line + 1] == stop_line - batch_line - 1) & (
        stop_line - batch_line - 1 == np.maximum(count, 0)
    )
    proven: Array = own + np.where(has_one_line_each, region, 0)
    for k in np.flatnonzero(~has_one_line_each & (region > 0)).tolist():
        text = lines.data[bounds[batch_line[k] + 1] : bounds[stop_line[k]]]
        proven[k] += _measure_records(text, int(base_offset[k]), int(last_offset[k]), int(count[k]))
    return proven


@dataclass(frozen=True)
class _Sizes:
    key: int
    value: int


def _measure_records(text: bytes, base_offset: int, last_offset: int, count: int) -> int:
    """Length of the longest prefix of `text` that reads as up to `count` records, each by its own sizes."""
    at, before = 0, base_offset - 1
    for _ in range(count):
        match = RECORD_PREFIX.match(text, at)
        if not match or not before < int(match["offset"]) <= last_offset:
            return at
        sizes = _Sizes(int(match["key"] or match["key28"]), int(match["value"] or match["value28"]))
        end = next((e for close in _header_ends(text, match.end()) if (e := _record_end(text, close, sizes))), 0)
        if not end:
            return at
        at, before = end, int(match["offset"])
    return at


def _header_ends(text: bytes, start: int) -> Iterator[int]:
    """Places right after each `]` that may close the header keys, which are printed raw."""
    for _ in range(_MAX_HEADER_ENDS):
        close = text.find(b"]", start)
        if close < 0:
            return
        start = close + 1
        yield start


def _record_end(text: bytes, at: int, sizes: _Sizes) -> int:
    """Where the record ends, newline included, if key and value fill their sizes; 0 if they do not."""
    bare = at
    for label, size in ((b" key: ", sizes.key), (b" payload: ", sizes.value)):
        if size >= 0 and text.startswith(label, at):
            at += len(label) + size
    if text.startswith(b"\n", at) and at < len(text):
        return at + 1
    return bare + 1 if text.startswith(b"\n", bare) else 0
