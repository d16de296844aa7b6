"""Decoded dumps of `__transaction_state`: the text of `--transaction-log-decoder`, tools 2.1 to 4.4.

The text form (up to 4.0) prints transactional ids raw: they may hold newlines and whole forged records. So nothing is
searched for: a record is read by its own line prefix, its id by the key's size, and a batch's records by its count.
A record whose text does not fit the sizes that its line prints was altered, and is undecodable. (Dumps print both sizes
in every form. The text form prints no value version and no tagged fields: there every size fits that they allow, in
the version that the records around it have, where those say so. What a newer Kafka's fields may hold is then open.)
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from txn_analysis.columns.arrays import ABSENT, known
from txn_analysis.kafka.names import ID_MAX_BYTES, INT64_MAX, LAST_TIME_MS
from txn_analysis.kafka.record_batch import NO_BYTES
from txn_analysis.reading.dump.scan import Slice
from txn_analysis.reading.grammar.forms import (
    BATCH_LINE_START,
    CONTROL_SUFFIX,
    DECODER_ERROR,
    FLEXIBLE_GRAMMARS,
    KEY,
    KEY_HEAD_BYTES,
    LEGACY_BATCH_LINE_START,
    LINE_START,
    OLD_DEEP,
    PAYLOAD,
    RECORD_LINE_START,
    TEXT_KEY,
    TEXT_KEY_BYTES,
    TEXT_PAYLOAD,
)
from txn_analysis.reading.grammar.lines import RecordHead, read_batch_line, read_head, read_old_head
from txn_analysis.reading.grammar.noise import noise_end, says_stop
from txn_analysis.reading.state.plain_batches import PlainBatches
from txn_analysis.reading.state.text_values import NEXT_VERSION_BYTES, TextSizes, left_open, text_value
from txn_analysis.reading.state.values import (
    MISFIT,
    BadValueError,
    ReadStateRecord,
    TransactionLogValue,
    json_content,
    json_key,
)
from txn_analysis.reading.text.section import Section
from txn_analysis.reading.text.text import Text
from txn_analysis.reading.text.window import CUT_SHORT, LINE_TOO_LONG, Reject, RejectMerging, Window

_NOT_A_LINE = "not a line of a decoded __transaction_state dump"
_STOPPED = "the tool says that it stopped, or left something out: dump the file again, without 2>&1"


@dataclass(frozen=True)
class _Batch:
    """The batch that the next records belong to; `place` is where it stands."""

    last_offset: int
    end_position: int  # where the next batch begins in the segment
    is_control: bool
    is_valid: bool
    place: tuple[int | None, int | None, int | None]


# The old form has no batches: as if all its records were in one.
_NO_BATCH = (None, None, None)
_NO_LIMIT = _Batch(INT64_MAX, 0, is_control=False, is_valid=True, place=_NO_BATCH)


class _CutError(Exception):
    """The text ends inside a record."""


@dataclass
class _Body:
    """The text of a section; `in_memory` is what of it was read already.

    An object of its own: a reader that its window held would keep the text until a search for cycles finds them.
    """

    text: Text
    in_memory: Slice | None = None

    def read(self, start: int, end: int) -> bytes:
        """The bytes of the input from one place to another, or the first of them."""
        in_memory = self.in_memory
        if in_memory is None or not in_memory.start <= start < in_memory.end:
            return self.text.read(start, end)
        return in_memory.lines.data[start - in_memory.start : end - in_memory.start]


class StateDumpReader:
    """Reads the body of a decoded `__transaction_state` section from front to back, in offset order.

    Every byte of the body that is in no `Reject` was parsed. Wherever the text proves that a record exists which could
    not be read (its own line, or the count of its batch), there is also an undecodable record, with its offset where
    that is known: no absence may be concluded around it. The `ordinal` of a record is the byte offset of its text in
    the input.
    """

    def __init__(self, text: Text, section: Section) -> None:
        self._body = _Body(text)
        self._window = Window(self._body.read, section.text_start_bytes, section.text_end_bytes)
        self._merging = RejectMerging()
        self._partition = section.partition
        self._is_old_deep = section.grammar == OLD_DEEP
        self._sizes = TextSizes(can_be_flexible=section.grammar in FLEXIBLE_GRAMMARS)
        self._batch = _NO_LIMIT if self._is_old_deep else None
        self._due_count = 0  # records that the batch has still to show
        self._last_offset: int | None = None  # of the last record that the text shows
        self._has_lost = False  # some record was not understood
        self._resume_position: int | None = (
            None  # only a batch that begins here ends the text of a record not understood
        )
        self._is_adrift = False  # lines that follow may be records of a batch whose line was not understood

    def read(self, stop: int, text_slice: Slice | None = None) -> Iterator[ReadStateRecord | Reject | pa.RecordBatch]:
        """What stands before byte `stop` of the input and was not read before; records as they come, or many as rows.

        Args:
            stop: the end of the body, or a place in it; a record that begins before it is read to its end.
            text_slice: the text up to it, where its lines are known already.
        """
        self._body.in_memory = text_slice
        yield from self._merging.items(
            self._items(stop, None if text_slice is None else PlainBatches.of(text_slice, self._partition))
        )
        if self._window.remaining <= 0:
            yield from self._merging.rest()

    def _items(self, stop: int, usual: PlainBatches | None) -> Iterator[ReadStateRecord | Reject | pa.RecordBatch]:
        while self._window.offset < stop and self._window.remaining > 0:
            self._window.need(len(BATCH_LINE_START))
            is_at_batch = not self._is_old_deep and self._window.starts_with(BATCH_LINE_START, 0)
            rows = self._usual_rows(usual) if usual and is_at_batch else None
            if rows is not None:
                yield rows
            else:
                yield from self._batch_item() if is_at_batch else self._record_items()
        if self._window.remaining <= 0:
            yield from self._missing_records()

    def _usual_rows(self, usual: PlainBatches) -> pa.RecordBatch | None:
        """The records of the next batches, if these are as usual; None where the next one is not."""
        if self._due_count or self._resume_position is not None:
            return None
        after = self._end_offset, self._last_offset
        batches = usual.next_batches(self._window.offset, self._sizes, *after, has_lost=self._has_lost)
        if batches is None:
            return None
        self._batch, self._last_offset, self._is_adrift = _batch_of(batches.last_batch), batches.last_offset, False
        self._window.move_to(batches.end_bytes)
        return batches.rows

    def _batch_item(self) -> Iterator[ReadStateRecord | Reject]:
        length = self._window.line_end()
        line = read_batch_line(self._window.peek(0, length - 1)) if length else None
        if self._resume_position is not None and (line is None or line["position"] != self._resume_position):
            yield self._window.reject_line(_NOT_A_LINE)
        elif line is None or not self._can_stand_here(line):
            if length:  # its records are about to follow, and nothing says any more how many, nor of which batch
                self._due_count, self._is_adrift, self._batch = 1, True, None
            yield from self._missing_records()
            self._batch, self._resume_position = None, None
            yield self._window.reject_line("not a batch line that can stand here")
        else:
            yield from self._missing_records()
            self._batch = _batch_of(line)
            self._due_count, self._is_adrift, self._resume_position = line["record_count"], False, None
            self._window.advance(length)

    def _can_stand_here(self, line: Mapping[str, int]) -> bool:
        """Its numbers are such as a broker writes behind what was read."""
        is_plausible = line["record_count"] >= 0 and line["leader_epoch"] >= ABSENT
        return is_plausible and self._end_offset < line["base_offset"] <= line["last_offset"]

    @property
    def _end_offset(self) -> int:
        """The last offset so far, of the batch or of a record."""
        batch_end = self._batch.last_offset if self._batch else -1
        return max(batch_end, -1 if self._last_offset is None else self._last_offset)

    def _missing_records(self) -> Iterator[ReadStateRecord]:
        """One record for all that the batch counts but the text does not show."""
        if self._due_count:
            self._due_count = 0
            yield self._lost(self._place(None))

    def _lost(self, place: ReadStateRecord, transactional_id: str | None = None) -> ReadStateRecord:
        self._has_lost = True
        return place.with_key(transactional_id)

    def _record_items(self) -> Iterator[ReadStateRecord | Reject]:
        head = self._read_head()
        if head is None:
            yield from self._stray_line()
            return
        place = self._place(head)
        self._last_offset = head.offset
        self._due_count, self._is_adrift = max(self._due_count - 1, 0), False
        try:
            length, record = self._read_record(head, place)
        except _CutError:
            yield self._lost(place, self._id_of_cut(head) if head.is_valid else None)
            yield self._window.reject_rest(CUT_SHORT)
        except BadValueError as problem:
            self._resume_position = self._batch.end_position if self._batch else None
            yield self._lost(place, problem.transactional_id if head.is_valid else None)
            yield self._window.reject_line(str(problem))
        else:
            self._window.advance(length)
            if record is not None:
                yield record

    def _stray_line(self) -> Iterator[ReadStateRecord | Reject]:
        """A line that is no record of this batch. If it should have been one, the batch will miss it; else it may be
        part of one.
        """
        is_boundary = not self._is_adrift and self._resume_position is None
        if is_boundary:
            line = self._window.peek(0, self._window.line_end() or self._window.buffered_bytes)
            if noise := noise_end(line, 0, len(line)):
                self._window.advance(noise)
                return
            if says_stop(line, 0, len(line)):
                self._due_count = 0
                yield self._lost(self._place(None, is_in_batch=False))
                yield self._window.reject_rest(_STOPPED)
                return
        start = LEGACY_BATCH_LINE_START if self._is_old_deep else RECORD_LINE_START
        if is_boundary and not self._due_count and self._window.line_end():
            self._is_adrift = self._window.starts_with(start, 0)
            yield self._lost(self._place(None, is_in_batch=False))
        # At least this line; with it those after it that cannot be anything else.
        length = self._window.plain_lines(LINE_START)
        yield self._window.reject(length, _NOT_A_LINE) if length else self._window.reject_line(_NOT_A_LINE)

    def _read_head(self) -> RecordHead | None:
        """The head of the next record line, up to its content; None where none that fits its batch stands here."""
        if self._batch is None or not (self._due_count or self._is_old_deep):
            return None
        line = self._window.peek(0, self._window.line_end()) or self._window.peek(0, self._window.buffered_bytes)
        head = (read_old_head if self._is_old_deep else read_head)(line, 0, len(line))
        before = -1 if self._last_offset is None else self._last_offset
        if head is None or not line.startswith(b"]", head.end) or head.timestamp_ms > LAST_TIME_MS:
            return None
        if not before < head.offset <= self._batch.last_offset:
            return None
        return head._replace(is_valid=head.is_valid and self._batch.is_valid, end=head.end + 1)

    def _read_record(self, head: RecordHead, place: ReadStateRecord) -> tuple[int, ReadStateRecord | None]:
        """Length of the record's text and the record (None for a control record).

        Raises:
            BadValueError: what follows the prefix is not the content of a state record.
        """
        end = self._window.line_end(head.end)
        if not end:
            raise self._unended()
        content = self._window.peek(head.end, end)
        if self._batch and self._batch.is_control:
            if not CONTROL_SUFFIX.fullmatch(content):
                raise BadValueError("not a control record")
            return end, None
        if DECODER_ERROR.fullmatch(content):
            return end, place
        if content.startswith(KEY + b"{"):
            transactional_id, value = json_content(content, head.key_bytes, head.value_bytes)
        else:
            transactional_id, value, end = self._text_content(head)
        if (value is None) != (head.value_bytes == NO_BYTES):
            raise _of(transactional_id, BadValueError("the value's size and text differ"))
        return end, place.with_value(transactional_id, value) if head.is_valid else place

    def _text_content(self, head: RecordHead) -> tuple[str, TransactionLogValue | None, int]:
        """Id, value and end of a record of the text form: the key's size says how long the id is, whatever is in it."""
        window, size = self._window, head.key_bytes - KEY_HEAD_BYTES
        window.need(head.end + TEXT_KEY_BYTES + ID_MAX_BYTES)
        key = TEXT_KEY.match(window.peek(head.end, head.end + TEXT_KEY_BYTES))
        if not key or not 0 <= size <= ID_MAX_BYTES:
            raise BadValueError("not the key of a transaction state record")
        start = head.end + key.end()
        end = window.line_end(start + size)
        if not end:
            raise self._unended()
        payload = TEXT_PAYLOAD.fullmatch(window.peek(start + size, end))
        if not payload:
            raise BadValueError("the id does not fill the record's key, or no value follows it")
        try:
            transactional_id = window.peek(start, start + size).decode()
        except UnicodeDecodeError:
            raise BadValueError("the id is not UTF-8 text") from None
        try:
            return transactional_id, self._text_value(payload, head.value_bytes, end), end
        except BadValueError as problem:
            raise _of(transactional_id, problem) from None

    def _text_value(self, payload: re.Match[bytes], value_bytes: int, end: int) -> TransactionLogValue | None:
        if not payload["state"]:
            return None
        # Scala's sets are printed as such, Java's as lists.
        value = text_value(payload, payload["scala"] if payload["listed"] is None else payload["listed"])
        spare_bytes = self._sizes.spare_bytes(value["topic_partitions"], value_bytes, lambda: self._behind(end))
        if spare_bytes is None:
            raise BadValueError(MISFIT)
        if spare_bytes == 0:
            return value
        is_newer, names = map(bool, left_open(spare_bytes))
        return value | {"may_list_more": is_newer or None, "may_name_more": names} if is_newer or names else value

    def _id_of_cut(self, head: RecordHead) -> str | None:
        """Whose record it is that the text ends in; None where its key is not whole."""
        text = self._window.peek(head.end, self._window.buffered_bytes)
        key, size = TEXT_KEY.match(text), head.key_bytes - KEY_HEAD_BYTES
        try:
            if not key:
                return json_key(text.decode(errors="ignore"), head.key_bytes)[0]
            name, after = text[key.end() : key.end() + size], text[key.end() + size :]
            return name.decode() if size >= 0 and after.startswith(PAYLOAD) else None
        except (BadValueError, UnicodeDecodeError):
            return None

    def _behind(self, end: int) -> bytes:
        self._window.need(end + NEXT_VERSION_BYTES)
        return self._window.peek(end, end + NEXT_VERSION_BYTES)

    def _unended(self) -> Exception:
        return _CutError() if self._window.is_last else BadValueError(LINE_TOO_LONG)

    def _place(self, head: RecordHead | None, *, is_in_batch: bool = True) -> ReadStateRecord:
        if head is None:
            offset, is_after_gap = None, None
        elif self._last_offset is None:
            offset, is_after_gap = head.offset, True if self._has_lost else None
        else:
            offset, is_after_gap = head.offset, head.offset != self._last_offset + 1
        recorded_ms = head.timestamp_ms if head and head.timestamp_ms >= 0 else None
        batch = self._batch.place if self._batch and is_in_batch else _NO_BATCH
        return ReadStateRecord(self._window.offset, self._partition, offset, recorded_ms, is_after_gap, *batch)


def _of(transactional_id: str, problem: BadValueError) -> BadValueError:
    """What is wrong with a record whose key was read."""
    problem.transactional_id = transactional_id
    return problem


def _batch_of(line: Mapping[str, int]) -> _Batch:
    place = line["base_offset"], line["last_offset"], known(line["leader_epoch"])
    end = line["position"] + line["size"]
    return _Batch(line["last_offset"], end, bool(line["is_control"]), bool(line["is_valid"]), place)
