"""Whether what a record line prints fills the key and value sizes that it states, for many lines at once.

Sizes are bytes of the record. The tool prints text: bytes that are no UTF-8 become U+FFFD, a terminal's charset may
replace characters by `?` or write them in other bytes, and a decoder prints what it likes (kafka-formats.md, 1.5).
So a size proves a line, and refutes it only where nothing of this can explain the difference.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.read.dump.proof.without_payload import RecordHeads, read_bare_heads
from txn_analysis.read.dump.record_expressions import RECORD_HEAD

if TYPE_CHECKING:
    from txn_analysis.columns.arrays import Array
    from txn_analysis.read.dump.lines import Lines

KEY, PAYLOAD = b" key: ", b" payload: "
REPLACED, _QUESTION_MARK = "\ufffd".encode(), b"?"
_MAX_INT64_DIGITS = "9223372036854775807"
_NOT_AN_OFFSET = -1


def read_heads(lines: Lines, index: Array, is_control: Array) -> RecordHeads:
    """The heads of the lines at `index`, which begin like record lines; `is_control` is that of their batches."""
    read = RecordHeads(np.empty(len(index), np.int64), np.empty(len(index), bool), np.empty(len(index), bool))
    for are_control in (True, False):
        rows = np.flatnonzero(is_control == are_control)
        if len(rows):
            own = index[rows]
            heads = read_bare_heads(lines, own, are_control=are_control) or read_any_heads(lines.taken(own))
            read.offset[rows], read.is_filled[rows] = heads.offset, heads.is_filled
            read.is_credible[rows] = heads.is_credible
    return read


def read_any_heads(records: pa.LargeBinaryArray) -> RecordHeads:
    """The heads of any lines that begin like record lines, newlines included, by the grammar's regular expression."""
    read = pc.extract_regex(records, RECORD_HEAD.decode())
    is_head = np.asarray(pc.is_valid(read), bool)
    head, *numbers = read.flatten()
    offset, key, value, key28, value28 = (pc.fill_null(pc.cast(n, pa.string()), "") for n in numbers)
    is_offset = pc.or_(pc.less(pc.binary_length(offset), 19), pc.less_equal(offset, _MAX_INT64_DIGITS))
    is_offset = pc.and_(is_offset, pc.not_equal(offset, ""))
    offsets = pc.cast(pc.if_else(is_offset, offset, str(_NOT_AN_OFFSET)), pa.int64()).to_numpy()
    sizes = [_number(key, key28), _number(value, value28)]
    head_bytes = pc.fill_null(pc.binary_length(head), 0).to_numpy()
    is_filled, is_credible = _fill(records, head_bytes, *sizes)
    return RecordHeads(offsets, is_head & is_filled, is_head & is_credible)


def is_encoded_otherwise(text: bytes) -> bool:
    """Whether the tool may have printed other bytes than the record holds: replaced ones, or another charset's."""
    if REPLACED in text or _QUESTION_MARK in text:
        return True
    try:
        text.decode()
    except UnicodeDecodeError:
        return True
    return False


def _number(one: pa.Array, other: pa.Array) -> Array:
    words = pc.binary_join_element_wise(one, other, "")
    number: Array = pc.cast(pc.if_else(pc.equal(words, ""), "-1", words), pa.int64()).to_numpy()
    return number


def _fill(records: pa.LargeBinaryArray, head_bytes: Array, key: Array, value: Array) -> tuple[Array, Array]:
    starts: Array = np.frombuffer(records.buffers()[1], np.int64, len(records) + 1, records.offset * 8)
    raw = np.frombuffer(records.buffers()[2] or b"", np.uint8)
    content, end = starts[:-1] + head_bytes, starts[1:] - 1
    end = np.where(raw[starts[1:] - 1] == ord("\n"), end, end + 1)
    printed = end - content
    labels = np.where(key >= 0, len(KEY), 0) + np.where(value >= 0, len(PAYLOAD), 0)
    sizes = np.maximum(key, 0) + np.maximum(value, 0)
    payload_at = content + np.where(key >= 0, len(KEY) + key, 0)
    is_labelled = ((key < 0) | _stands_at(raw, content, KEY)) & ((value < 0) | _stands_at(raw, payload_at, PAYLOAD))
    is_filled = (printed == 0) | ((printed == labels + sizes) & is_labelled)
    is_credible = is_filled.copy()
    unmeasured = np.flatnonzero(~is_filled & (_stands_at(raw, content, KEY) | _stands_at(raw, content, PAYLOAD)))
    if len(unmeasured):
        text = records.take(pa.array(unmeasured))
        is_credible[unmeasured] = _is_explained(text, (printed - labels - sizes)[unmeasured])
        # Where most lines do not fill their sizes, a decoder printed them, and sizes say nothing of the others either.
        if is_credible[printed > 0].sum() * 2 < (printed > 0).sum():
            is_credible[unmeasured] = True
    return is_filled, is_credible


def _stands_at(raw: Array, at: Array, needle: bytes) -> Array:
    stands: Array = np.asarray(at + len(needle) <= len(raw), bool)
    for k, byte in enumerate(needle):
        stands &= raw[np.minimum(at + k, len(raw) - 1)] == byte
    return stands


def _is_explained(text: pa.Array, surplus: Array) -> Array:
    """Whether replaced characters account for `surplus`, the bytes that are printed beyond the sizes.

    U+FFFD, 3 bytes, stands for 1 to 3 bytes of the record; `?` for a character of up to 4. Text that is no UTF-8 is in
    a charset that this cannot measure.
    """
    replaced = pc.count_substring(text, REPLACED).to_numpy()
    questions = pc.count_substring(text, _QUESTION_MARK).to_numpy()
    explained: Array = (surplus <= 2 * replaced) & (surplus >= -3 * questions)
    for k in np.flatnonzero(~explained).tolist():
        explained[k] = _is_no_utf8(text[k].as_py())
    return explained


def _is_no_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return True
    return False
