"""Console exports of `__transaction_state`: the formatter's text (0.11 to 3.9) and its JSON (3.9 to 4.4).

Neither prints partition, offset or time of a record; what is left is the order of arrival.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa

from txn_analysis.kafka.names import ID_MAX_BYTES
from txn_analysis.reading.grammar.field_reader import read_lines
from txn_analysis.reading.grammar.forms import (
    CONSOLE_AFTER_ID,
    CONSOLE_SEPARATOR,
    CONSOLE_TAIL,
    CONSOLE_TOMBSTONE,
    CONSOLE_UNKNOWN_KEY,
)
from txn_analysis.reading.grammar.noise import MARKS_OF_RECORDS, ExportNoise, export_noise
from txn_analysis.reading.state.records import UNREAD
from txn_analysis.reading.state.text_records import EXPORTED, RECORD_US, columns_of, object_places
from txn_analysis.reading.state.text_values import text_value
from txn_analysis.reading.state.values import (
    JSON_DECODER,
    BadValueError,
    ReadStateRecord,
    TransactionLogValue,
    fields_of,
    json_id,
    json_value,
)
from txn_analysis.reading.text.section import Section
from txn_analysis.reading.text.text import Text
from txn_analysis.reading.text.window import CUT_SHORT, MAX_RECORD_BYTES, Reject, Window, merged

_NOISE_BYTES = 1 << 16
_JSON_SPACE = " \t\r\n"
# Kafka expires no id that is in one of these states.
_UNEXPIRABLE = frozenset({"Ongoing", "PrepareCommit", "PrepareAbort"})
_UNKNOWN = "unknown"
_FEW, _ALL = 16, 1 << 62
_NOT_A_RECORD = "not a record of a console export"


def read_console_text(text: Text, section: Section) -> Iterator[ReadStateRecord | Reject]:
    """The records of an export of `TransactionLogMessageFormatter` (0.11-3.9), in order of arrival.

    Ids are printed raw, twice in a record. A record is believed where its two ids agree and exactly one reading does;
    where several do, or none, the text is rejected and an undecodable record stands for it. A tombstone prints its id
    once: its line says that some id is gone which ends so. Behind a line that is no record it is an undecodable record,
    as it may be the rest of an id that begins there; and where its id was in a transaction just before, as Kafka
    expires no such id. Where the consumer counted another number of records, there is one more undecodable record.
    """
    return merged(_ConsoleTextReader(text, section).items())


def read_console_json(text: Text, section: Section) -> Iterator[ReadStateRecord | Reject | pa.RecordBatch]:
    """The records of an export of the JSON formatter (3.9 to 4.4), in order of arrival; as they come, or many as rows.

    The objects stand one after another, with white space between them or none. An object that is JSON but no state
    record is rejected alone; where the text is no JSON, the rest of it is. For each there is an undecodable record.
    """
    window = Window(text.read, section.text_start_bytes, section.text_end_bytes)
    return merged(_json_items(window, section.grammar))


@dataclass(frozen=True)
class _Reading:
    """One way to read a record at the place that is next: its id, its value, and its length in bytes."""

    id: bytes
    value: re.Match[bytes]
    length: int


class _ConsoleTextReader:
    def __init__(self, text: Text, section: Section) -> None:
        self._window = Window(text.read, section.text_start_bytes, section.text_end_bytes)
        self._unexpirable: set[bytes] = set()  # digests of the ids that are in a transaction
        self._count = 0  # of records since the last line that counts them
        self._is_behind_noise = section.text_start_bytes > 0  # what was read last is no record
        self._clear_until = 0  # from the place that is next to this byte of the input no separator begins

    def items(self) -> Iterator[ReadStateRecord | Reject]:
        window = self._window
        while window.remaining > 0:
            place = ReadStateRecord(window.offset)
            # Both ids and what surrounds them; a value may be longer, its line is read to its end where it is needed.
            window.need(2 * ID_MAX_BYTES + 256)
            if empty := self._empty_lines():
                self._is_behind_noise = True
                window.advance(empty)
                continue
            line = window.peek(0, window.line_end() or window.buffered_bytes)
            readings = [] if self._is_clear() else self._readings(line)
            is_simple_line = CONSOLE_TOMBSTONE.fullmatch(line) or CONSOLE_UNKNOWN_KEY.fullmatch(line)
            if len(readings) == 1 and not is_simple_line:
                yield from self._record(place, readings[0])
                self._is_behind_noise = False
                self._count += 1
            elif readings:
                yield place
                self._count += 1
                yield window.reject(max(r.length for r in readings), "an id that imitates the records around it")
            else:
                yield from self._simple_line(place, line)

    def _is_clear(self) -> bool:
        """Whether no id that begins here can end in a separator, as none is near enough; asked once a window."""
        window, here = self._window, self._window.offset
        searched_until = here + window.buffered_bytes - len(CONSOLE_SEPARATOR) + 1
        last = min(here + ID_MAX_BYTES + 1, searched_until)
        if self._clear_until < last:
            separator = window.find(CONSOLE_SEPARATOR, max(self._clear_until - here, 0), window.buffered_bytes)
            self._clear_until = here + separator if separator >= 0 else searched_until
        return self._clear_until >= last

    def _empty_lines(self) -> int:
        """How many empty lines stand here of which none can begin an id."""
        window = self._window
        if not window.starts_with(b"\n", 0) or not self._is_clear():
            return 0
        newlines = window.peek(0, max(1, self._clear_until - window.offset - ID_MAX_BYTES))
        return len(newlines) - len(newlines.lstrip(b"\n"))

    def _readings(self, line: bytes) -> list[_Reading]:
        """Every way to read a record here.

        An id that ends in its first line is found by the separators in that line. A longer one begins with that whole
        line, so the line must stand once more after the separator.
        """
        readings = []
        for needle, start, end in (
            (CONSOLE_SEPARATOR, 1, len(line)),
            (CONSOLE_SEPARATOR + line, len(line), ID_MAX_BYTES + len(CONSOLE_SEPARATOR) + len(line)),
        ):
            at = self._window.find(needle, start, end)
            while 0 <= at <= ID_MAX_BYTES:
                reading = self._reading(at)
                if reading:
                    readings.append(reading)
                at = self._window.find(needle, at + 1, end)
        return readings

    def _reading(self, id_length: int) -> _Reading | None:
        window, second = self._window, id_length + len(CONSOLE_SEPARATOR)
        name = window.peek(0, id_length)
        tail_start = second + id_length
        if not window.starts_with(name, second) or not window.starts_with(CONSOLE_AFTER_ID, tail_start):
            return None
        end = window.line_end(tail_start) or window.buffered_bytes
        tail = CONSOLE_TAIL.fullmatch(window.peek(tail_start, end))
        return _Reading(name, tail, end) if tail else None

    def _record(self, place: ReadStateRecord, reading: _Reading) -> Iterator[ReadStateRecord | Reject]:
        transactional_id = None
        try:
            transactional_id = reading.id.decode()
            value = text_value(reading.value, reading.value["partitions"], reading.value["start_ms"])
        except ValueError as problem:  # BadValueError, or no UTF-8
            reason = str(problem) if isinstance(problem, BadValueError) else "the id is not UTF-8 text"
            yield place.with_key(transactional_id)
            yield self._window.reject(reading.length, reason)
            return
        if value["state"] in _UNEXPIRABLE:
            self._unexpirable.add(_digest(reading.id))
        else:
            self._unexpirable.discard(_digest(reading.id))
        self._window.advance(reading.length)
        yield place.with_value(transactional_id, value)

    def _simple_line(self, place: ReadStateRecord, line: bytes) -> Iterator[ReadStateRecord | Reject]:
        tombstone = CONSOLE_TOMBSTONE.fullmatch(line)
        is_behind_noise, self._is_behind_noise = self._is_behind_noise, False
        self._count += 1
        if CONSOLE_UNKNOWN_KEY.fullmatch(line):
            self._window.advance(len(line))
            yield place
        elif tombstone:
            why_not = self._why_not_gone(tombstone["id"], is_behind_noise=is_behind_noise)
            if why_not is None:
                self._window.advance(len(line))
                yield place.with_value(tombstone["id"].decode(), None)
            else:
                yield place
                yield self._window.reject_line(why_not)
        else:
            self._is_behind_noise = True
            yield from self._other_line(place, line)

    def _other_line(self, place: ReadStateRecord, line: bytes) -> Iterator[ReadStateRecord | Reject]:
        """A line that is no record; where it counts another number of records than were read, one is missing."""
        noise = None if MARKS_OF_RECORDS.search(line) else _noise(self._window)
        if noise is None:
            yield place
            yield self._window.reject_line(_NOT_A_RECORD)
            return
        self._count -= 1
        if noise.record_count is not None:
            if noise.record_count != self._count:
                yield place
            self._count = 0
        self._window.advance(noise.length)

    def _why_not_gone(self, name: bytes, *, is_behind_noise: bool) -> str | None:
        """Why a tombstone's line does not say that an id is gone; None where it does."""
        if is_behind_noise:
            return "removes an id that may be the rest of a longer one"
        if _digest(name) in self._unexpirable:
            return "removes an id that is in a transaction"
        return None if _is_text(name) else _NOT_A_RECORD


def _noise(window: Window) -> ExportNoise | None:
    """The noise that stands where no record does."""
    window.need(_NOISE_BYTES)
    is_end = window.is_last and window.buffered_bytes <= _NOISE_BYTES
    return export_noise(window.peek(0, _NOISE_BYTES), is_end=is_end)


def _digest(name: bytes) -> bytes:
    return blake2b(name, digest_size=16).digest()


def _is_text(name: bytes) -> bool:
    try:
        name.decode()
    except UnicodeDecodeError:
        return False
    return True


def _json_items(window: Window, grammar: str) -> Iterator[ReadStateRecord | Reject | pa.RecordBatch]:
    most, is_read_out, count = _FEW, True, 0
    while window.remaining > 0:
        if is_read_out:
            window.grow()
        rows = _usual_objects(window, grammar)
        if rows is None:
            most = _ALL
        elif rows.num_rows:
            yield rows
            count += rows.num_rows
        is_read_out, more = yield from _objects_held(window, most)
        count += more
        most = _FEW if rows is not None and rows.num_rows > most else 2 * most  # many at once are not tried in vain
        if is_read_out and window.remaining > 0 and (window.is_last or window.buffered_bytes >= MAX_RECORD_BYTES):
            count = yield from _no_json(window, count)


def _usual_objects(window: Window, grammar: str) -> pa.RecordBatch | None:
    """The next objects that are held, up to the first unusual one; None where so few are read sooner one by one."""
    data = window.peek(0, window.buffered_bytes)
    starts, ends = object_places(data, grammar)
    read = read_lines(data, starts, ends, EXPORTED[grammar].lines, plain_us=RECORD_US)
    if read is None:
        return None
    columns = columns_of(data, starts, *read, EXPORTED[grammar].kinds)
    stops = np.append(starts, len(data))
    is_next = not data[: stops[0]].strip(_JSON_SPACE.encode())
    count = int(np.append(columns.read.kind, UNREAD).argmin()) if is_next else 0
    rows = columns.rows(0, count, {"ordinal": starts[:count] + window.offset})
    window.advance(int(stops[count]) if count else 0)
    return rows


def _objects_held(window: Window, most: int) -> Generator[ReadStateRecord | Reject, None, tuple[bool, int]]:
    """Reads so many objects at most that are whole; whether it stopped where one is not whole, or is no JSON, and how
    many it read.
    """
    text = _decoded(window.peek(0, window.buffered_bytes))
    at = 0
    for count in range(most):
        start = at
        while at < len(text) and text[at] in _JSON_SPACE:
            at += 1
        window.advance(at - start)
        if not text.startswith("{", at):
            return True, count
        try:
            record, end = JSON_DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):  # no JSON or not all of it yet, endless digits, nested without end
            return True, count
        length = end - at if text.isascii() else len(text[at:end].encode())
        place = ReadStateRecord(window.offset)
        try:
            read = _json_record(record, place)
        except BadValueError as problem:
            yield place.with_key(problem.transactional_id)
            yield window.reject(length, str(problem))
        else:
            window.advance(length)
            yield read
        at = end
    return False, most


def _decoded(text: bytes) -> str:
    """The text up to the first byte that is no UTF-8 (or not all of a character yet)."""
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        return text[: error.start].decode()


def _no_json(window: Window, count: int) -> Generator[ReadStateRecord | Reject, None, int]:
    """What stands where an object should begin, `count` of them behind the last line that counts them; how many now."""
    if noise := _noise(window):
        if noise.record_count not in {None, count}:
            yield ReadStateRecord(window.offset)
        window.advance(noise.length)
        return count if noise.record_count is None else 0
    is_cut = window.is_last and window.starts_with(b'{"key"', 0)
    yield ReadStateRecord(window.offset)
    yield window.reject_rest(CUT_SHORT if is_cut else "not JSON from here on")
    return count


def _json_record(record: Any, place: ReadStateRecord) -> ReadStateRecord:
    key, value = fields_of(record, "key", "value")
    if key is None:  # 3.9 prints it; a record without a key is of no id
        return place
    word = "version" if type(key) is dict and "version" in key else "type"
    record_type, key_data = fields_of(key, word, "data")
    if type(record_type) is not int:
        raise BadValueError("not the JSON of a transaction state record")
    if record_type != 0 or key_data == _UNKNOWN:
        return place
    transactional_id = json_id(key_data)
    if value is None:
        return place.with_value(transactional_id, None)
    if type(value) is dict and value.get("data") == _UNKNOWN:
        return place.with_key(transactional_id)
    try:
        return place.with_value(transactional_id, _json_value(value))
    except BadValueError as problem:
        problem.transactional_id = transactional_id
        raise


def _json_value(value: Any) -> TransactionLogValue:
    version, data = fields_of(value, "version", "data")
    if type(version) is not int or version not in {0, 1}:
        raise BadValueError("a value version that is not known")
    return json_value(data, is_flexible=version == 1)
