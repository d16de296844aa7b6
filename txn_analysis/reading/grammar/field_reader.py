"""The compiled reader of lines: where they begin, and the fields of lines that are all alike.

It never guesses: a line that does not fit its form exactly is left to the form's regular expression, which is the
reference. Eight bytes are looked at at a time; the bytes of a text are the little end of a machine word.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from txn_analysis.columns.arrays import ABSENT
from txn_analysis.columns.compiled import NO_PLACE, compiled
from txn_analysis.reading.grammar.line_form import FIELD_COLUMNS, NUMBER, OPTIONAL_LONG, WORD, WORD_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from txn_analysis.columns.arrays import Array
    from txn_analysis.reading.grammar.line_form import LineForm

_KIND, _LOW, _HIGH, _DIGITS, _BYTES_BEFORE, _FIRST_TEXT, _STOP_TEXT, _FIRST_CHOICE, _STOP_CHOICE = range(
    len(FIELD_COLUMNS)
)
_IS_ABLE = sys.byteorder == "little"
_U = np.uint64
_USUAL_LINE_BYTES = 240
_COPIED_BYTES = 1 << 20
_EXPRESSION_US = 15  # for each line
_EXPRESSION_BYTES_PER_US = 20
_NEWLINE, _MINUS, _OPEN, _CLOSE = b"\n-[]"
_ZERO, _NINE, _TEN = _U(48), _U(9), _U(10)
_MAX_INT64 = _U(2**63 - 1)
_LOOK_AHEAD_BYTES = 128  # more than the longest text of a form, and two machine words
_NEWLINES, _ONES, _HIGHS = _U(0x0A0A0A0A0A0A0A0A), _U(0x0101010101010101), _U(0x8080808080808080)


def read_alike(
    data: bytes, starts: Array, ends: Array, forms: Iterable[LineForm]
) -> tuple[dict[str, Array], Array] | None:
    """`read_fields` with the first one of some forms that the first line has; None also where it has none of them."""
    form = _form_of(data[starts[0] : ends[0]] if len(starts) else b"", forms)
    return None if form is None else read_fields(data, starts, ends, form)


def _form_of(line: bytes, forms: Iterable[LineForm]) -> LineForm | None:
    return next((form for form in forms if form.pattern.fullmatch(line)), None)


def read_fields(data: bytes, starts: Array, ends: Array, form: LineForm) -> tuple[dict[str, Array], Array] | None:
    """The fields of some lines; None where so few are read sooner by their expression (`is_worth_loading`), and on the
    few machines whose words begin with their big end.

    Args:
        data: the text.
        starts: the first byte of each line.
        ends: the byte after its last one, the newline not counted.
        form: of the lines.

    Returns:
        The values by name, and which lines have the form; values of the others mean nothing. A line at the very end of
        the text may be called another one's.
    """
    _read_lines.count(len(starts) * _EXPRESSION_US)
    if not _IS_ABLE or not _read_lines.is_worth_loading:
        return None
    values = np.empty((len(form.fields), len(starts)), np.int64)
    fits = np.empty(len(starts), np.bool_)
    raw, words = _views(data)
    _read_lines(raw, words, starts, ends, *form.tables, values, fits)
    return dict(zip(form.names, values, strict=True)), fits


def read_run(data: bytes, forms: Iterable[LineForm]) -> tuple[dict[str, Array], Array] | None:
    """The lines that a text begins with, as long as all have the same one of some forms: found and read in one look.

    None as with `read_alike`.

    Returns:
        The values by name, and the byte after each line, the newline not counted.
    """
    _read_run.count(len(data) / _EXPRESSION_BYTES_PER_US)
    form = _form_of(data[: data.find(b"\n")], forms)
    if form is None or not _IS_ABLE or not _read_run.is_worth_loading:
        return None
    if len(data) <= _COPIED_BYTES:  # the last lines by their expression would take longer than the copy
        data += bytes(WORD_BYTES + _LOOK_AHEAD_BYTES)
    last_newline = data.rfind(b"\n", 0, max(0, len(data) - WORD_BYTES - _LOOK_AHEAD_BYTES))
    room = len(data) // _USUAL_LINE_BYTES + 1
    values, ends = np.empty((len(form.fields), room), np.int64), np.empty(room, np.int64)
    count = _read_run(*_views(data), last_newline, *form.tables, values, ends)
    return dict(zip(form.names, values[:, :count], strict=True)), ends[:count]


def index_lines(data: bytes, at: int, form: LineForm) -> tuple[list[tuple[Array, Array, Array]], int] | None:
    """The lines that begin with one of the words of a form that is nothing but these; None as with `read_fields`.

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
    found: list[tuple[Array, Array, Array]] = []
    room, is_full = left_bytes // _USUAL_LINE_BYTES + 1, True
    while is_full:
        part = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int8)
        count, at = _index_lines(raw, words, at, *form.tables, *part)
        found.append((part[0][:count], part[1][:count], part[2][:count]))
        is_full = count == room
    return found, at


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
def _word(words: Array, at: int, fields: Array, choices: Array, texts: Array, field: int) -> tuple[int, int]:
    """Which of a field's words stands at a place, and where it ends; NO_PLACE where none does."""
    first = fields[field, _FIRST_CHOICE]
    for k in range(first, fields[field, _STOP_CHOICE]):
        if _stands_at(words, at, texts, choices[k, 0], choices[k, 1]):
            return k - first, at + choices[k, 2]
    return 0, NO_PLACE


@compiled
def _number_within(raw: Array, at: int, fields: Array, field: int) -> tuple[int, int]:
    """A field's number, and where it ends; NO_PLACE where it is out of bounds."""
    if raw[at] == _MINUS and fields[field, _LOW] >= 0:
        return 0, NO_PLACE
    value, end = _number(raw, at, fields[field, _DIGITS])
    is_within = fields[field, _LOW] <= value <= fields[field, _HIGH]
    return value, end if is_within else NO_PLACE


@compiled
def _optional(
    raw: Array, words: Array, at: int, fields: Array, choices: Array, texts: Array, field: int
) -> tuple[int, int]:
    choice, at = _word(words, at, fields, choices, texts, field)
    if at == NO_PLACE or choice == 0:
        return ABSENT, at
    if raw[at] == _MINUS:
        return 0, NO_PLACE
    value, at = _number(raw, at, fields[field, _DIGITS])
    return value, at + 1 if at != NO_PLACE and raw[at] == _CLOSE else NO_PLACE


@compiled
def _list_end(raw: Array, at: int) -> int:
    if raw[at] != _OPEN:
        return NO_PLACE
    while raw[at] != _CLOSE and raw[at] != _NEWLINE:
        at += 1
    return at + 1 if raw[at] == _CLOSE else NO_PLACE


@compiled
def _value(
    raw: Array, words: Array, at: int, fields: Array, choices: Array, texts: Array, field: int
) -> tuple[int, int]:
    """The value that stands at a place, and where it ends; NO_PLACE where it is none of the field's."""
    kind = fields[field, _KIND]
    if kind == NUMBER:
        return _number_within(raw, at, fields, field)
    if kind == WORD:
        return _word(words, at, fields, choices, texts, field)
    if kind == OPTIONAL_LONG:
        return _optional(raw, words, at, fields, choices, texts, field)
    return ABSENT, _list_end(raw, at)


@compiled
def _read_line(
    raw: Array, words: Array, at: int, fields: Array, choices: Array, texts: Array, values: Array, row: int
) -> int:
    """Fills `values` by one line, and gives where the last field ends; NO_PLACE where the line has another form."""
    for field in range(len(fields)):
        if not _stands_at(words, at, texts, fields[field, _FIRST_TEXT], fields[field, _STOP_TEXT]):
            return NO_PLACE
        values[field, row], at = _value(raw, words, at + fields[field, _BYTES_BEFORE], fields, choices, texts, field)
        if at == NO_PLACE:
            return NO_PLACE
    return at


@compiled
def _read_lines(
    raw: Array,
    words: Array,
    starts: Array,
    ends: Array,
    fields: Array,
    choices: Array,
    texts: Array,
    values: Array,
    fits: Array,
) -> None:
    last_end = len(words) - _LOOK_AHEAD_BYTES
    for k in range(len(starts)):
        is_inside = ends[k] <= last_end
        fits[k] = is_inside and _read_line(raw, words, starts[k], fields, choices, texts, values, k) == ends[k]


@compiled
def _read_run(
    raw: Array, words: Array, last_newline: int, fields: Array, choices: Array, texts: Array, values: Array, ends: Array
) -> int:
    """Fills `values` and `ends` by the lines that the text begins with, and gives how many of them have the form."""
    count = at = 0
    while count < len(ends) and at <= last_newline:
        end = _read_line(raw, words, at, fields, choices, texts, values, count)
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
    raw: Array,
    words: Array,
    at: int,
    fields: Array,
    choices: Array,
    texts: Array,
    starts: Array,
    ends: Array,
    kinds: Array,
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
            kind, found = _word(words, start, fields, choices, texts, 0)
            if found != NO_PLACE:
                if count == len(starts):
                    return count, start
                starts[count], ends[count], kinds[count] = start, place, kind
                count += 1
            start = place + 1
    return count, start
