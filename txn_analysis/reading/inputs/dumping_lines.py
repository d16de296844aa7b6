"""Whether a `Dumping …` line is a line of the dump, or text that a client put into a record.

Keys, values and header keys are printed raw (kafka-formats.md, 1.5), so a record can hold any line, also a whole forged
section. The text before is therefore walked from line to line as the tool wrote it, record by record by the lengths
that each record line states. A `Dumping …` line counts where this walk arrives exactly at it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import NamedTuple

from txn_analysis.kafka.batch_headers import HEADER_BYTES, Read
from txn_analysis.kafka.names import BROKER_WRITTEN_TOPICS, INT64_MAX
from txn_analysis.reading.dump.records import REPLACED, BatchRange, least_bytes, legacy_end, sized_end, walk_records
from txn_analysis.reading.grammar.forms import (
    ABORTED_TRANSACTION,
    ANY_DECODER_ERROR,
    ANY_TEXT_PAYLOAD,
    BATCH,
    DUMPING,
    DUMPING_START,
    END_MARKER,
    INDEX_ENTRY,
    INVALID_BYTES,
    JSON_KEY,
    JSON_PAYLOAD,
    KEY,
    LEGACY_BATCH,
    METADATA_SNAPSHOT,
    NAMED_CONTROL,
    OTHER_CONTROL,
    PAYLOAD,
    PRODUCER,
    RECORD,
    STARTING_OFFSET,
    TEXT_KEY,
    TIME_INDEX_ENTRY,
)
from txn_analysis.reading.grammar.line_form import NEWEST, REST_OF_LINE, any_text, either
from txn_analysis.reading.grammar.lines import RecordHead, read_head, read_old_head
from txn_analysis.reading.grammar.noise import NOISE_LINE, noise_end, others_end
from txn_analysis.reading.inputs.sections import DumpedFile, parse_dump_path

LOOK_BACK_BYTES = 1 << 20
_RECORD_HEAD_BYTES = 1 << 16
_STUCK = 0
_LEAST_SECTION_BYTES = len("]\nDumping a-0/00000000000000000000.log\n")

# Every repetition has a bound that no line of the tool reaches; a client's text could keep another one busy for hours.
_LINE = BATCH.of((2, 1), NEWEST)
_BATCH = re.compile(
    _LINE.part("base_offset", "record_count").bounded("base_offset", "last_offset", "record_count")
    + (any_text(400) + _LINE.part("position").bounded("position") + b" ")
    + (any_text(100) + _LINE.part("size").bounded("size").lstrip() + _LINE.label("magic") + REST_OF_LINE)
    + (_LINE.label("codec") + rb"(?P<codec>\w+)" + REST_OF_LINE + rb"\n")
)
_LEGACY_BATCH = re.compile(
    (LEGACY_BATCH.part("last_offset", "position").bounded() + b" " + any_text(100) + rb"(?<!key)(?<!value)")
    + (LEGACY_BATCH.part("size", "magic").bounded().lstrip() + b" " + REST_OF_LINE + rb"\n")
)
_HEADER_KEYS = re.compile(rb"[^\]\n]*\]")
_CONTROL_END = re.compile(either(END_MARKER.loose(), OTHER_CONTROL.loose(), NAMED_CONTROL.loose()) + rb"\n")
_PRODUCER_START = PRODUCER.part("producer_id").loose() + PRODUCER.label("producer_epoch")
_ABORTED_START = ABORTED_TRANSACTION.part("version").loose() + ABORTED_TRANSACTION.label("producer_id")
_FIXED_LINE = re.compile(
    (b"(?:" + _PRODUCER_START + REST_OF_LINE + b"|" + _ABORTED_START + REST_OF_LINE + b"|" + INVALID_BYTES.loose())
    + (b"|" + INDEX_ENTRY.loose() + b"|" + TIME_INDEX_ENTRY.loose())
    + rb"|[^\n]* is empty\.|[^\n]* passed sanity check\.)\n"
)
_DUMPING = re.compile(
    (DUMPING.loose("path") + rb"\n(?:(?:" + NOISE_LINE.pattern + b"){0,64}")
    + (b"(?:" + STARTING_OFFSET.loose() + b"|" + METADATA_SNAPSHOT + rb")\n)?")
)
_ANCHOR = re.compile(
    (rb"\n(?=" + BATCH.label("base_offset") + rb"\d|" + RECORD.label("offset") + rb"\d|")
    + (LEGACY_BATCH.part("last_offset").loose() + LEGACY_BATCH.label("position") + b"|" + DUMPING_START)
    + (b"|" + _PRODUCER_START + b"|" + _ABORTED_START + b")")
)

# An id in the decoders' text form may hold anything, but its length is that of the key less 4 bytes; the JSON form has
# no raw newline.
_STATE_KEY_OVERHEAD_BYTES = 4  # version and length of the id (kafka-formats.md, 5.1)

# Expressions are found fastest by a text that they begin with.
_PRINTED_SIZE = re.compile(rb"ize: (?:(?<=ey[sS]ize: )|(?<=alue[sS]ize: ))(\d{6,10})(?!\d)")


@dataclass(frozen=True)
class _Walk:
    """Where the walk stands between two lines, and what the lines before demand of the next ones."""

    at: int
    due: int | None = 0  # record lines that the batch still has to print; None where that is not known
    is_deep: bool = False
    next_position: int | None = None
    last_offset: int = -1
    is_decoded: bool = False  # the section is of a topic whose records a decoder prints, and clients do not write
    ends_certainly: bool = True  # no header key can go on behind the last record: they are raw text without a length
    batch: _OwnBatch | None = None  # of the records that come next; None where that cannot be told


class _OwnBatch(NamedTuple):
    """What says how large the header keys of a batch's records can be, and where they stand in the text."""

    record_count: int
    size_bytes: int
    is_plain: bool
    start: int


class StartProver:
    """Decides for the `Dumping …` lines of one text, in order, whether they are real.

    Args:
        read: the text from one byte to another, cut at its end.
        is_decoded: how to read the records before the first `Dumping …` line that the walk meets.
    """

    def __init__(self, read: Read, *, is_decoded: bool) -> None:
        self._read = read
        self._is_decoded = is_decoded
        self._walk: _Walk | None = None
        self._is_stuck = False
        self._blocked_until = 0
        self.anchor = 0  # the byte where the walk was begun

    def is_proven(self, start: int) -> bool:
        """Whether the `Dumping …` line at byte `start` cannot stand inside a record."""
        if start < self._blocked_until:
            return False
        if self._walk is None or start - self._walk.at > LOOK_BACK_BYTES:
            self._begin(max(0, start - LOOK_BACK_BYTES), start)
        if self._walk is None or self._is_stuck:
            return False
        origin = self._walk.at
        text = self._read(origin, start)
        batch = self._walk.batch and self._walk.batch._replace(start=self._walk.batch.start - origin)
        walk = replace(self._walk, at=0, batch=batch)
        while walk.at < len(text):
            step = _step(text, walk)
            if isinstance(step, int):
                self._is_stuck = step == _STUCK
                self._blocked_until = origin + step
                break
            walk = step
        batch = walk.batch and walk.batch._replace(start=origin + walk.batch.start)
        self._walk = replace(walk, at=origin + walk.at, batch=batch)
        is_due = walk.due not in {0, None}
        return self._walk.at == start and not is_due and (walk.ends_certainly or self._has_no_room(batch, start))

    def _has_no_room(self, batch: _OwnBatch | None, end: int) -> bool:
        """The records that end here take up so much of their batch that no section fits into their header keys."""
        if batch is None or not batch.is_plain:
            return False
        text = self._read(batch.start, end)
        walk = walk_records(text, 0, len(text), BatchRange(0, INT64_MAX, batch.record_count))
        room = batch.size_bytes - HEADER_BYTES - least_bytes(walk.records)
        return others_end(text, walk.end, len(text)) == len(text) and room < _LEAST_SECTION_BYTES

    def _begin(self, window_start: int, start: int) -> None:
        self._is_stuck = False
        if window_start == 0:
            self.anchor = 0
            self._walk = _Walk(0)
            return
        anchor = _ANCHOR.search(self._read(window_start - 1, start))
        if anchor is None:
            self._walk = None
            return
        self.anchor = window_start + anchor.start()
        self._walk = _Walk(self.anchor, due=None, is_decoded=self._is_decoded)


def printed_reach(text: bytes, start: int, end: int) -> list[tuple[int, int]]:
    """Records in [start, end) that print 100 kB or more: where their sizes stand, and a byte that they end before.

    Such a record can hide the record line that it belongs to from a look back of 1 MiB.
    """
    reaches: list[tuple[int, int]] = []
    rest_of_line = text.find(b"\n", start, end) + 1
    # Without keySize there is no record line; batch lines have no k.
    if rest_of_line and text.find(b"k", rest_of_line, end) < 0:
        end = rest_of_line
    if text.find(KEY, start, end) < 0 and text.find(PAYLOAD, start, end) < 0:
        return reaches
    line_end = last_label = -1
    for printed in _PRINTED_SIZE.finditer(text, start, end):
        if printed.end() > line_end:
            newline = text.find(b"\n", printed.end(), end)
            line_end = newline if newline >= 0 else end
            last_label = max(text.rfind(label, printed.end(), line_end) for label in (KEY, PAYLOAD))
        if last_label >= printed.end():
            reach = _RECORD_HEAD_BYTES + 2 * len(REPLACED) * int(printed[1])
            reaches.append((printed.start(), printed.start() + reach))
    return reaches


def _step(text: bytes, walk: _Walk) -> _Walk | int:
    """The walk after its next line or record.

    Or, where `text` ends first, the place before which nothing can be a line of the dump; `_STUCK` where no line of a
    dump stands here, or a record does not say how long its text is.
    """
    if batch := _BATCH.match(text, walk.at):
        return _step_batch(text, walk, batch)
    if legacy := _LEGACY_BATCH.match(text, walk.at):
        end = legacy_end(text, legacy.end(), len(text))
        return replace(walk, at=end, due=None, next_position=None) if walk.due in {0, None} else _STUCK
    if head := read_head(text, walk.at, len(text)) or read_old_head(text, walk.at, len(text)):
        return _step_record(text, walk, head)
    line = NOISE_LINE.match(text, walk.at)  # also between a batch's line and its records
    if line is None and walk.due in {0, None}:
        if dumping := _DUMPING.match(text, walk.at):
            file = parse_dump_path(dumping["path"].decode(errors="replace"))
            is_decoded = isinstance(file, DumpedFile) and file.topic in BROKER_WRITTEN_TOPICS
            return _Walk(dumping.end(), due=None, is_decoded=is_decoded)
        line = _FIXED_LINE.match(text, walk.at)
    if line is None and (stopped := others_end(text, walk.at, len(text))) > walk.at:
        return replace(walk, at=stopped, due=0 if walk.is_decoded else walk.due)
    return replace(walk, at=line.end()) if line else _STUCK


def _step_batch(text: bytes, walk: _Walk, batch: re.Match[bytes]) -> _Walk | int:
    base, last, count, position, size = (int(number) for number in batch.groups()[:5])
    is_chained = walk.next_position is None or (position == walk.next_position and base > walk.last_offset)
    if walk.due not in {0, None} or not is_chained:
        return _STUCK
    is_deep = walk.is_deep or (count > 0 and text.startswith(b"| ", noise_end(text, batch.end(), len(text))))
    return replace(
        walk,
        at=batch.end(),
        due=count if is_deep else 0,
        is_deep=is_deep,
        next_position=position + size,
        last_offset=last,
        batch=_OwnBatch(count, size, batch["codec"].lower() == b"none", batch.end()),
    )


def _step_record(text: bytes, walk: _Walk, head: RecordHead) -> _Walk | int:
    keys = _HEADER_KEYS.match(text, head.end)
    end = None if keys is None or walk.due == 0 else _record_end(text, head, keys.end(), is_decoded=walk.is_decoded)
    if keys is None or end is None:
        return _STUCK
    if end > len(text):
        return end
    is_control = _CONTROL_END.match(text, keys.end()) is not None
    return replace(
        walk,
        at=end,
        due=walk.due and walk.due - 1,
        ends_certainly=is_control or walk.is_decoded,
        batch=walk.batch if keys[0] == b"]" else None,
    )


def _record_end(text: bytes, head: RecordHead, at: int, *, is_decoded: bool) -> int | None:
    """Where the record's text ends whose header keys end at a byte; None where its lengths do not say."""
    if control := _CONTROL_END.match(text, at):
        return control.end()
    sizes = head.key_bytes, head.value_bytes
    if is_decoded and (end := _decoded_end(text, at, sizes[0])):
        return end
    end = sized_end(text, at, len(text), sizes)
    if end is None:
        # The text may end first.
        end = at + sum(len(label) + size for label, size in zip((KEY, PAYLOAD), sizes, strict=True) if size >= 0) + 1
        return end if end > len(text) and text.startswith((KEY, PAYLOAD), at) else None
    return None if REPLACED in text[at:end] else end


def _decoded_end(text: bytes, at: int, key_bytes: int) -> int | None:
    if error := ANY_DECODER_ERROR.match(text, at):
        return error.end()
    if json := JSON_KEY.match(text, at):
        has_value = json[0].endswith((b"}}\n", b" payload: <DELETE>\n")) and JSON_PAYLOAD.search(json[0])
        return json.end() if has_value else None
    key = TEXT_KEY.match(text, at)
    value = ANY_TEXT_PAYLOAD.match(text, key.end() + key_bytes - _STATE_KEY_OVERHEAD_BYTES) if key else None
    return value.end() if value else None
