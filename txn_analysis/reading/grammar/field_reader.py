"""The compiled reader of lines: where they begin, and the fields of lines that are all alike.

It never guesses: a line that does not fit its form exactly is left to the form's regular expression, which is the
reference. Eight bytes are looked at at a time; the bytes of a text are the little end of a machine word.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from txn_analysis.columns.arrays import ABSENT, Array
from txn_analysis.columns.compiled import NO_PLACE, compiled
from txn_analysis.reading.grammar.line_form import (
    FIELD_COLUMNS,
    JSON_NUMBER,
    LIST,
    NUMBER,
    OPTIONAL_LONG,
    PLACE,
    QUOTED,
    SIZED,
    UNTIL,
    WORD,
    WORD_BYTES,
    LineForm,
    LineForms,
    Tables,
)

_KIND, _LOW, _HIGH, _DIGITS, _BYTES_BEFORE, _FIRST_TEXT, _STOP_TEXT, *_OTHER_COLUMNS = range(len(FIELD_COLUMNS))
_FIRST_CHOICE, _STOP_CHOICE, _IS_TAGGED, _COLUMN, _SIZE_COLUMN = _OTHER_COLUMNS
_IS_ABLE = sys.byteorder == "little"
_U = np.uint64
_USUAL_LINE_BYTES = 240
_COPIED_BYTES = 1 << 20
_EXPRESSION_US = 15  # for each line
_EXPRESSION_BYTES_PER_US = 20
_NEWLINE, _MINUS, _OPEN, _CLOSE, _LEADING, _SPACE, _QUOTE, _BACKSLASH, _TILDE = b'\n-[]0 "\\~'
_ZERO, _NINE, _TEN = _U(48), _U(9), _U(10)
_MAX_INT64 = _U(2**63 - 1)
_LOOK_AHEAD_BYTES = 128  # more than the longest text of a form, and two machine words
NO_FORM = -1
_NEWLINES, _ONES, _HIGHS = _U(0x0A0A0A0A0A0A0A0A), _U(0x0101010101010101), _U(0x8080808080808080)


def read_lines(
    data: bytes, starts: Array, ends: Array, forms: LineForms, *, plain_us: int = _EXPRESSION_US
) -> tuple[dict[str, Array], Array] | None:
    """The fields of some lines; None where so few are read sooner by their expression (`is_worth_loading`), and on the
    few machines whose words begin with their big end.

    Args:
        data: the text.
        starts: the first byte of each line.
        ends: the byte after its last one, the newline not counted.
        forms: of the lines.
        plain_us: how long the reader that takes one at a time needs for each.

    Returns:
        The values by name, ABSENT where the line's form has no such field, and the form of each line; NO_FORM, and
        values that mean nothing, where it has none. A line at the very end of the text may be called such.
    """
    _read_lines.count(len(starts) * plain_us)
    if not _IS_ABLE or not _read_lines.is_worth_loading:
        return None
    values = np.full((len(forms.names), len(starts)), ABSENT)
    form_of = np.full(len(starts), NO_FORM)
    _read_lines(*_views(data), starts, ends, forms.tables, values, form_of)
    return dict(zip(forms.names, values, strict=True)), form_of


def read_every_line(data: bytes, starts: Array, ends: Array, forms: LineForms) -> tuple[dict[str, Array], Array]:
    """The fields of all lines that have one of the forms: as of `read_lines`, and one by one those that it leaves.

    Returns:
        The values by name, ABSENT where a line has no such field; and which of the lines were read.
    """
    nothing = {name: np.full(len(starts), ABSENT) for name in forms.names}, np.full(len(starts), NO_FORM)
    read, form = read_lines(data, starts, ends, forms) or nothing
    is_read: Array = form != NO_FORM
    for row in np.flatnonzero(~is_read).tolist():
        if (one := forms.read(data[starts[row] : ends[row]])) is not None:
            is_read[row] = True
            for name, values in read.items():
                values[row] = one.get(name, ABSENT)
    return read, is_read


def read_run(data: bytes, forms: LineForms) -> tuple[dict[str, Array], Array] | None:
    """The lines that a text begins with, as long as all have the same one of some forms: found and read in one look.

    None as with `read_lines`, and where the first line has none of the forms.

    Returns:
        The values by name, and the byte after each line, the newline not counted.
    """
    _read_run.count(len(data) / _EXPRESSION_BYTES_PER_US)
    first_line = data[: data.find(b"\n")]
    form = next((form for form in forms.forms if form.pattern.fullmatch(first_line)), None)
    if form is None or not _IS_ABLE or not _read_run.is_worth_loading:
        return None
    if len(data) <= _COPIED_BYTES:  # the last lines by their expression would take longer than the copy
        data += bytes(WORD_BYTES + _LOOK_AHEAD_BYTES)
    last_newline = data.rfind(b"\n", 0, max(0, len(data) - WORD_BYTES - _LOOK_AHEAD_BYTES))
    room = len(data) // _USUAL_LINE_BYTES + 1
    values, ends = np.empty((len(form.fields), room), np.int64), np.empty(room, np.int64)
    count = _read_run(*_views(data), last_newline, form.alone.tables, values, ends)
    return dict(zip(form.names, values[:, :count], strict=True)), ends[:count]


def index_lines(data: bytes, at: int, form: LineForm) -> tuple[list[tuple[Array, Array, Array]], int] | None:
    """The lines that begin with one of the words of a form that is nothing but these; None as with `read_lines`.

    Args:
        data: the text.
        at: where to begin, which is where a line does.
        form: one field without anything before it.

    Returns:
        In order: their first bytes, the bytes after their last ones, and which of the words it is. Then where the first
        line begins that was not looked at, as the text ends too soon behind it.
    """
    left_bytes = len(data) - at
    _index_lines.count(left_bytes / _EXPRESSION_BYTES_PER_US)
    if not _IS_ABLE or not _index_lines.is_worth_loading:
        return None
    raw, words = _views(data)
    parts: list[tuple[Array, Array, Array]] = []
    room, is_full = left_bytes // _USUAL_LINE_BYTES + 1, True
    while is_full:
        part = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int8)
        count, at = _index_lines(raw, words, at, form.alone.tables, *part)
        parts.append((part[0][:count], part[1][:count], part[2][:count]))
        is_full = count == room
    return parts, at


def _views(data: bytes) -> tuple[Array, Array]:
    raw = np.frombuffer(data, np.uint8)
    # At each byte the word that begins there.
    count = max(len(data) - WORD_BYTES + 1, 0)
    return raw, np.ndarray((count,), _U, data, 0, (1,))


@compiled
def _stands_at(words: Array, at: int, texts: Array, first: int, stop: int) -> Any:
    """Whether a text of the form's, by its machine words, stands at a place."""
    different = _U(0)
    for k in range(first, stop):
        different |= (words[at] ^ texts[k, 0]) & texts[k, 1]
        at += WORD_BYTES
    return different == _U(0)


@compiled
def _number(raw: Array, at: int, digits: int) -> tuple[Any, int]:
    """A number, and where it ends; NO_PLACE where none stands there."""
    is_negative = raw[at] == _MINUS
    first = at + 1 if is_negative else at
    at = first
    value = _U(0)
    digit = _U(raw[at]) - _ZERO
    while digit <= _NINE:
        value = value * _TEN + digit
        at += 1
        digit = _U(raw[at]) - _ZERO
    if at == first or at - first > digits or value > _MAX_INT64:
        return 0, NO_PLACE
    return (-np.int64(value) if is_negative else np.int64(value)), at


@compiled
def _word(words: Array, at: int, tables: Tables, field: int) -> tuple[int, int]:
    """Which of a field's words stands at a place, and where it ends; NO_PLACE where none does."""
    first = tables.fields[field, _FIRST_CHOICE]
    for k in range(first, tables.fields[field, _STOP_CHOICE]):
        if _stands_at(words, at, tables.texts, tables.choices[k, 0], tables.choices[k, 1]):
            return k - first, at + tables.choices[k, 2]
    return 0, NO_PLACE


@compiled
def _number_within(raw: Array, at: int, tables: Tables, field: int) -> tuple[int, int]:
    """A field's number, and where it ends; NO_PLACE where it is out of bounds."""
    if raw[at] == _MINUS and tables.fields[field, _LOW] >= 0:
        return 0, NO_PLACE
    value, end = _number(raw, at, tables.fields[field, _DIGITS])
    is_within = tables.fields[field, _LOW] <= value <= tables.fields[field, _HIGH]
    return value, end if is_within else NO_PLACE


@compiled
def _optional(raw: Array, words: Array, at: int, tables: Tables, field: int) -> tuple[int, int]:
    choice, at = _word(words, at, tables, field)
    if at == NO_PLACE or choice == 0:
        return ABSENT, at
    if raw[at] == _MINUS:
        return 0, NO_PLACE
    value, at = _number(raw, at, tables.fields[field, _DIGITS])
    return value, at + 1 if at != NO_PLACE and raw[at] == _CLOSE else NO_PLACE


@compiled
def _list_end(raw: Array, at: int) -> int:
    if raw[at] != _OPEN:
        return NO_PLACE
    while raw[at] != _CLOSE and raw[at] != _NEWLINE:
        at += 1
    return at + 1 if raw[at] == _CLOSE else NO_PLACE


@compiled
def _quoted_end(raw: Array, at: int, stop: int) -> int:
    while at < stop and raw[at] >= _SPACE and raw[at] <= _TILDE and raw[at] != _BACKSLASH:
        if raw[at] == _QUOTE:
            return at
        at += 1
    return NO_PLACE


@compiled
def _next_text(raw: Array, words: Array, at: int, stop: int, tables: Tables, field: int) -> int:
    """Where the text before the next field stands."""
    first, stop_text = tables.fields[field + 1, _FIRST_TEXT], tables.fields[field + 1, _STOP_TEXT]
    first_byte = tables.texts[first, 0] & _U(0xFF)
    while at < stop:
        if raw[at] == first_byte and _stands_at(words, at, tables.texts, first, stop_text):
            return at
        at += 1
    return NO_PLACE


@compiled
def _sized_end(at: int, stop: int, tables: Tables, field: int, size: int) -> int:
    end = at + size - tables.fields[field, _LOW]
    is_within = end >= at and end - at <= tables.fields[field, _HIGH] and end <= stop
    return end if is_within else NO_PLACE


@compiled
def _value(
    raw: Array, words: Array, at: int, stop: int, tables: Tables, field: int, values: Array, row: int
) -> tuple[int, int]:
    """The value that stands at a place, and where it ends; NO_PLACE where it is none of the field's."""
    kind, value, end = tables.fields[field, _KIND], ABSENT, NO_PLACE
    if kind in (NUMBER, JSON_NUMBER):
        first = at + 1 if raw[at] == _MINUS else at
        value, end = _number_within(raw, at, tables, field)
        if kind == JSON_NUMBER and raw[first] == _LEADING and end != first + 1:
            end = NO_PLACE
    elif kind == WORD:
        value, end = _word(words, at, tables, field)
    elif kind == OPTIONAL_LONG:
        value, end = _optional(raw, words, at, tables, field)
    elif kind == LIST:
        end = _list_end(raw, at)
    elif kind == PLACE:
        value = end = at
    elif kind == QUOTED:
        value = end = _quoted_end(raw, at, stop)
    elif kind == UNTIL:
        value = end = _next_text(raw, words, at, stop, tables, field)
    elif kind == SIZED:
        value = end = _sized_end(at, stop, tables, field, values[tables.fields[field, _SIZE_COLUMN], row])
    return value, end


@compiled
def _read_line(raw: Array, words: Array, at: int, stop: int, form: int, tables: Tables, values: Array, row: int) -> int:
    """Fills `values` by one line, and gives where the last field ends; NO_PLACE where the line has another form."""
    for field in range(tables.first_fields[form], tables.first_fields[form + 1]):
        value = ABSENT
        if _stands_at(words, at, tables.texts, tables.fields[field, _FIRST_TEXT], tables.fields[field, _STOP_TEXT]):
            at += tables.fields[field, _BYTES_BEFORE]
            value, at = _value(raw, words, at, stop, tables, field, values, row)
        elif not tables.fields[field, _IS_TAGGED]:
            return NO_PLACE
        if at == NO_PLACE:
            return NO_PLACE
        values[tables.fields[field, _COLUMN], row] = value
    return at


@compiled
def _read_lines(
    raw: Array, words: Array, starts: Array, ends: Array, tables: Tables, values: Array, form_of: Array
) -> None:
    """Fills `values` and `form_of` by lines; the form of the line before is tried first."""
    last_end, count, usual = len(words) - _LOOK_AHEAD_BYTES, len(tables.first_fields) - 1, 0
    for row in range(len(starts)):
        if ends[row] > last_end:
            continue
        for k in range(count):
            form = usual + k if usual + k < count else usual + k - count
            end = _read_line(raw, words, starts[row], ends[row], form, tables, values, row)
            if end == ends[row]:
                form_of[row] = usual = form
                break
            values[:, row] = ABSENT


@compiled
def _read_run(raw: Array, words: Array, last_newline: int, tables: Tables, values: Array, ends: Array) -> int:
    """Fills `values` and `ends` by the lines that the text begins with, and gives how many of them have the form."""
    count = at = 0
    while count < len(ends) and at <= last_newline:
        end = _read_line(raw, words, at, len(words), 0, tables, values, count)
        if end == NO_PLACE or raw[end] != _NEWLINE:
            break
        ends[count] = end
        count += 1
        at = end + 1
    return count


@compiled
def _first_byte(marks: Any) -> Any:
    """The first of the marked bytes of a word."""
    lowest = marks & (~marks + _U(1))
    return np.int64(((((lowest >> _U(7)) - _U(1)) & _ONES) * _ONES) >> _U(56))


@compiled
def _index_lines(
    raw: Array, words: Array, at: int, tables: Tables, starts: Array, ends: Array, kinds: Array
) -> tuple[int, int]:
    """Fills the arrays by the lines from `at` on that begin with one of the form's words, as long as they have room.

    Returns how many these are, and where the first line begins that was not looked at.
    """
    count, start = 0, at
    for first in range(at, len(words) - _LOOK_AHEAD_BYTES, WORD_BYTES):
        # The highest bit of each byte that is a newline; a carry can mark a byte behind one that is none.
        different = words[first] ^ _NEWLINES
        marks = (different - _ONES) & ~different & _HIGHS
        while marks != _U(0):
            place = first + _first_byte(marks)
            marks &= marks - _U(1)
            if raw[place] != _NEWLINE:
                continue
            kind, word_end = _word(words, start, tables, 0)
            if word_end != NO_PLACE:
                if count == len(starts):
                    return count, start
                starts[count], ends[count], kinds[count] = start, place, kind
                count += 1
            start = place + 1
    return count, start
