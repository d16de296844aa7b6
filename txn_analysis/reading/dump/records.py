"""What stands under each batch line of a deep dump: its own records, its end marker, and lines that are none of them.

Where a record is one line without content, as in dumps without payloads, many batches are judged at once by the
compiled reader. All others are walked record by record: read forwards by the sizes that their lines state, as their
texts may hold anything. No key, value or header leaves this module.

Sizes are bytes of the record. What is printed is text: bytes that are no UTF-8 become U+FFFD, whose 3 bytes stand for 1
to 3 of them; a terminal's charset may replace a character of up to 4 bytes by `?`, or write it in other bytes; and a
decoder prints what it likes (kafka-formats.md, 1.5). Header keys have no printed size at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from txn_analysis.columns.arrays import ABSENT, Array
from txn_analysis.reading.grammar.field_reader import NO_FORM, read_lines
from txn_analysis.reading.grammar.forms import (
    BARE_RECORD_FORMS,
    BATCH_LINE_START,
    KEY,
    LEGACY_BATCH_LINE_START,
    LEGACY_RECORD,
    PAYLOAD,
    RECORD_LINE_START,
)
from txn_analysis.reading.grammar.lines import (
    Candidates,
    Lines,
    RecordHead,
    Regions,
    are_only,
    read_head,
    read_markers,
)
from txn_analysis.reading.grammar.noise import noise_end, others_end

REPLACED = "\ufffd".encode()

_HEADER_KEYS_BYTES = 1 << 16
_MOST_HEADER_ENDS = 256  # how many `]` of a record's header keys are tried as their end
_LINE_STARTS = (BATCH_LINE_START, RECORD_LINE_START, LEGACY_BATCH_LINE_START)
_NEXT_BATCH_LINE = b"\n" + BATCH_LINE_START
_MOST_LINES = 4096  # of a record whose text does not fill its sizes
_QUESTION_BYTES = 4  # of a character that `?` stands for, at most


class BatchRange(NamedTuple):
    """The offsets and the number of records that a batch line states."""

    base_offset: int
    last_offset: int
    record_count: int

    @classmethod
    def of(cls, batches: Candidates, row: int) -> BatchRange:
        """What the batch line of one row states."""
        return cls(*(int(batches.columns[name][row]) for name in cls._fields))


class Record(NamedTuple):
    """What the line of a record states, with -1 for a size of null, and where its text ends, newline included.

    `reach` is the last byte that its text may end at, as far as replaced bytes leave that open. `is_filled`: its text
    fills the stated sizes, or something explains why not.
    """

    offset: int
    timestamp_ms: int
    key_bytes: int
    value_bytes: int
    end: int
    reach: int
    is_filled: bool


class Walk(NamedTuple):
    """Records of one batch in the order of the text, all that could be read; where the last one ends, and their reach.

    `has_more`: another record line follows, or the text shows one of another batch.
    """

    records: list[Record]
    end: int
    reach: int
    has_more: bool

    @property
    def filled_count(self) -> int:
        """How many records there are before the first one whose text does not fill its sizes."""
        return next((n for n, record in enumerate(self.records) if not record.is_filled), len(self.records))


def walk_records(data: bytes, start: int, stop: int, batch: BatchRange, *, has_header_keys: bool = True) -> Walk:
    """Reads up to the batch's count of records from `start` on; none may end behind `stop`.

    Brokers write no header keys (`has_header_keys`), so that their list ends with the first `]`.
    """
    records: list[Record] = []
    at = reach = start
    before = batch.base_offset - 1
    while len(records) < batch.record_count:
        head = _next_head(data, at, stop)
        if head is None:
            return Walk(records, at, max(reach, at), has_more=False)
        if not before < head.offset <= batch.last_offset:
            return Walk(records, at, max(reach, at), has_more=True)
        record, own_reach = _read_record(data, head, stop, _MOST_HEADER_ENDS if has_header_keys else 1)
        reach = max(reach, own_reach)
        if record is None:
            return Walk(records, at, reach, has_more=False)
        records.append(record)
        at, before = record.end, head.offset
    return Walk(records, at, reach, has_more=_next_head(data, at, stop) is not None)


def _next_head(data: bytes, at: int, stop: int) -> RecordHead | None:
    return read_head(data, at, stop) or read_head(data, noise_end(data, at, stop), stop)


def _read_record(data: bytes, head: RecordHead, stop: int, most_ends: int) -> tuple[Record | None, int]:
    """The record of a line's head, None where its end is not found; and how far its text may reach, behind `stop` where
    nothing says so.
    """
    sizes = head.key_bytes, head.value_bytes
    stated = head.offset, max(head.timestamp_ms, 0), *sizes
    content = closed = 0
    for close in _header_ends(data, head.end, stop, most_ends):
        end = sized_end(data, close, stop, sizes)
        if end is not None:
            return Record(*stated, end, end, is_filled=True), end
        closed += 1
        content = content or (close if data.startswith((KEY, PAYLOAD), close) else 0)
    if closed in {0, _MOST_HEADER_ENDS}:
        return None, stop + 1
    if not content:
        return None, head.end
    ends = _unsized_ends(data, content, stop, sizes)
    reach = max(content + sum(max(size, 0) for size in sizes), ends.farthest)
    return Record(*stated, ends.nearest, reach, ends.is_explained) if ends.nearest else None, reach


def _header_ends(data: bytes, start: int, stop: int, at_most: int) -> Iterator[int]:
    """Places right after each `]` that may close the header keys, which are printed raw: before the next batch line."""
    stop = min(stop, start + _HEADER_KEYS_BYTES)
    for _ in range(at_most):
        close = data.find(b"]", start, stop)
        if close < 0 or data.find(_NEXT_BATCH_LINE, start, close) >= 0:
            return
        start = close + 1
        yield start


def sized_end(data: bytes, at: int, stop: int, sizes: tuple[int, int]) -> int | None:
    """Where a record without content ends behind its header keys, or one whose content has exactly these sizes."""
    bare = at
    for label, size in zip((KEY, PAYLOAD), sizes, strict=True):
        if size >= 0 and data.startswith(label, at, stop):
            at += len(label) + size
    if data.startswith(b"\n", at, stop):
        return at + 1
    return bare + 1 if data.startswith(b"\n", bare, stop) else None


def legacy_end(data: bytes, at: int, stop: int) -> int:
    """Where the records of message format 0 or 1 end that begin at a byte; they have no header keys."""
    while head := LEGACY_RECORD.match(data, at, stop):
        end = sized_end(data, head.end(), stop, (int(head["key_bytes"]), int(head["value_bytes"])))
        if end is None or REPLACED in data[at:end]:  # whose sizes say nothing of what is printed
            break
        at = end
    return at


class _Ends(NamedTuple):
    """Where a content may end that has other bytes than its record: 0 for nowhere."""

    nearest: int
    farthest: int
    is_explained: bool


def _unsized_ends(data: bytes, at: int, stop: int, sizes: tuple[int, int]) -> _Ends:
    """The ends before a line that the tool could print next: those that replaced characters explain, else that of the
    first line.
    """
    stated = sum(len(label) + size for label, size in zip((KEY, PAYLOAD), sizes, strict=True) if size >= 0)
    nearest = farthest = replaced = questions = 0
    counted, of_line = at, None
    for newline in _line_ends(data, at, stop):
        replaced += data.count(REPLACED, counted, newline)  # up to a newline, which cuts none of them in two
        questions += data.count(b"?", counted, newline)
        counted = newline
        surplus = newline - at - stated
        is_end = newline + 1 == stop or data.startswith(_LINE_STARTS, newline + 1)
        is_explained = -(_QUESTION_BYTES - 1) * questions <= surplus <= (len(REPLACED) - 1) * replaced
        if is_end and (is_explained or (of_line is None and _is_no_utf8(data[at:newline]))):
            nearest, farthest = nearest or newline + 1, newline + 1
        of_line = (newline + 1) * is_end if of_line is None else of_line
        if surplus > (len(REPLACED) - 1) * replaced:
            break
    return _Ends(nearest or of_line or 0, farthest or of_line or 0, is_explained=nearest > 0)


def _line_ends(data: bytes, at: int, stop: int) -> Iterator[int]:
    for _ in range(_MOST_LINES):
        at = data.find(b"\n", at, stop)
        if at < 0:
            return
        yield at
        at += 1


def is_encoded_otherwise(text: bytes) -> bool:
    """Whether the tool may have printed other bytes than the record holds: replaced ones, or another charset's."""
    return REPLACED in text or b"?" in text or _is_no_utf8(text)


def _is_no_utf8(text: bytes) -> bool:
    """Whether a text is in another charset."""
    try:
        text.decode()
    except UnicodeDecodeError:
        return True
    return False


def least_bytes(records: Sequence[Record]) -> int:
    """Bytes of records in their batch, without header keys (`DefaultRecord.sizeInBytes`)."""
    total = 0
    for record in records:
        deltas = record.timestamp_ms - records[0].timestamp_ms, record.offset - records[0].offset
        sizes = record.key_bytes, record.value_bytes
        # Attributes and the number of headers take a byte each.
        body = 2 + sum(_varint_bytes(value) + max(value, 0) for value in sizes) + sum(map(_varint_bytes, deltas))
        total += body + _varint_bytes(body)
    return total


def _varint_bytes(value: int) -> int:
    """Length of Kafka's zig-zag variable-length integer (`ByteUtils.sizeOfVarlong`)."""
    zigzag = (value << 1) ^ (value >> 63)
    return max(1, -(-zigzag.bit_length() // 7))


@dataclass(frozen=True)
class BatchText:
    """The text under each batch line of a slice, of those that stand in no other record; the arrays are parallel.

    Attributes:
        batches: the batch lines.
        marker: what the record line right after a control batch's line says: COMMIT, ABORT or the name of another
            control type; None where it is not printed or not believed.
        coordinator_epoch: of the marker; -1 where it is not printed.
        end: behind the own records of each, as far as they are proven.
        record_count: how many records these are.
        reach: how far they may go on; behind the slice where nothing says so.
        has_more: more record lines follow them.
        is_inside: the line stands in a record of another one that is itself not proven to be the tool's.
        claims: lines that stand in records, and claim a place at or before that of the record. Where the record is
            forged, they are the segment's own.
        prints_records: some record line stands in the slice, or other text that may be of a record.
    """

    batches: Candidates
    marker: Array
    coordinator_epoch: Array
    end: Array
    record_count: Array
    reach: Array
    has_more: Array
    is_inside: Array
    claims: Candidates
    prints_records: bool


def read_batch_text(
    lines: Lines, candidates: Candidates, *, starts_segment: bool, ends_segment: bool, has_header_keys: bool
) -> BatchText:
    """Reads what stands under the lines of a slice that look like batch lines, and leaves out those that are text.

    Args:
        lines: the slice.
        candidates: its lines that look like batch lines.
        starts_segment: the slice begins where the segment's body does.
        ends_segment: the slice ends where the segment's body does.
        has_header_keys: its records may have some; those that brokers write have none.
    """
    regions = Regions.of(lines, candidates)
    line_start, start, stop, *_ = regions
    count = np.maximum(candidates.columns["record_count"], 0).astype(np.int64)
    is_control = np.asarray(candidates.columns["is_control"], bool)
    marker, coordinator_epoch, is_marker = read_markers(lines, candidates)
    is_bare = _are_bare(lines, candidates, regions)
    end, record_count = np.where(is_bare, stop, start), np.where(is_bare, count, 0)
    marked = np.flatnonzero(is_marker)
    for k in np.flatnonzero(candidates.columns["record_count"] == ABSENT).tolist():  # of message format 0 or 1
        end[k] = legacy_end(lines.data, int(start[k]), int(stop[k]))
    end[marked], record_count[marked] = lines.stops[candidates.line[marked] + 1], 1
    is_kept = np.ones(len(candidates), bool)
    is_inside, is_claim = np.zeros(len(candidates), bool), np.zeros(len(candidates), bool)
    position = candidates.columns["position"]
    # Up to the first one whose records are not read to their end, each line is proven by the one before it.
    is_proven = starts_segment
    walks: dict[int, Walk] = {}
    asked = np.flatnonzero(~is_bare & ~is_control & (stop > start) & (count > 0))
    stated = (candidates.columns[name][asked].tolist() for name in BatchRange._fields)
    for k, first, next_line, *of_batch in zip(
        asked.tolist(), start[asked].tolist(), stop[asked].tolist(), *stated, strict=True
    ):
        if not is_kept[k]:
            continue
        walk = walk_records(lines.data, first, len(lines.data), BatchRange(*of_batch), has_header_keys=has_header_keys)
        walks[k] = walk
        if walk.end > next_line:
            behind = int(np.searchsorted(line_start, walk.end))
            if is_proven:
                is_kept[k + 1 : behind] = False
                is_claim[k + 1 : behind] = position[k + 1 : behind] < position[k] + candidates.columns["size"][k]
            else:
                is_inside[k + 1 : behind] = True
        if walk.reach > len(lines.data) and not ends_segment:
            is_inside[k] = True
        is_proven = is_proven and len(walk.records) == of_batch[-1]
    reach, has_more = end.copy(), np.zeros(len(candidates), bool)
    # Where most records do not fill their sizes a decoder printed them, and sizes say nothing of the others either.
    is_filled = [record.is_filled for walk in walks.values() for record in walk.records]
    is_decoded = sum(is_filled) * 2 < len(is_filled)
    for k, walk in walks.items():
        records = walk.records if is_decoded else walk.records[: walk.filled_count]
        end[k], record_count[k] = records[-1].end if records else start[k], len(records)
        reach[k], has_more[k] = walk.reach, walk.has_more
    kept = np.flatnonzero(is_kept)
    return BatchText(
        candidates.take(kept),
        marker=marker[kept],
        coordinator_epoch=coordinator_epoch[kept],
        end=end[kept],
        record_count=record_count[kept],
        reach=reach[kept],
        has_more=has_more[kept],
        is_inside=is_inside[kept],
        claims=candidates.take(np.flatnonzero(is_claim)),
        prints_records=len(lines.record_lines) > 0 or not are_only(others_end, lines.data, start, stop).all(),
    )


def _are_bare(lines: Lines, candidates: Candidates, regions: Regions) -> Array:
    """Under which batch lines nothing stands but as many lines of records without content as the batch counts, with
    offsets that rise inside it.
    """
    is_bare: Array = regions.is_plain & ~np.asarray(candidates.columns["is_control"], bool)
    counts = np.where(is_bare, candidates.columns["record_count"], 0)
    if not counts.any():
        return is_bare
    batch, first_row = np.repeat(np.arange(len(candidates)), counts), np.cumsum(counts) - counts
    index = lines.record_lines[np.arange(len(batch)) - first_row[batch] + regions.first_record[batch]]
    alike = read_lines(lines.data, lines.starts[index], lines.ends[index], BARE_RECORD_FORMS)
    if alike is None:
        is_bare &= counts == 0
        return is_bare
    read, form = alike
    before = np.append(-1, read["offset"][:-1])
    before[first_row[counts > 0]] = candidates.columns["base_offset"][counts > 0] - 1
    is_own = (
        (form != NO_FORM) & (read["offset"] > before) & (read["offset"] <= candidates.columns["last_offset"][batch])
    )
    is_bare[batch[~is_own]] = False
    return is_bare
