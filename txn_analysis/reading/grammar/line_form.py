"""The form of lines that a tool prints, declared once: as regular expressions, and as tables for the compiled reader.

A line is a row of fields; a field is what always stands before a value, and the value. Of each value there are three
texts: the exact one that is read, the `bounded` one that no line of the tool exceeds, and the `loose` one of its kind.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from txn_analysis.columns.arrays import ABSENT, Array

NUMBER, WORD, OPTIONAL_LONG, LIST, TEXT, JSON_NUMBER, PLACE, SIZED, QUOTED, UNTIL = range(10)
"""The kinds of values; the compiled reader reads all but TEXT, and expressions none behind it."""
WORD_BYTES = 8


class Tables(NamedTuple):
    """Some forms for the compiled reader.

    Attributes:
        first_fields: of each form, and behind the last one, its first row of `fields`.
        fields: a row for each field, its columns as FIELD_COLUMNS.
        choices: a row for each word of each field: its first row of `texts`, the one after its last, and its bytes.
        texts: machine words of all texts, each with a mask of the bytes that count.
    """

    first_fields: Array
    fields: Array
    choices: Array
    texts: Array


FIELD_COLUMNS = (
    "kind",
    "low",
    "high",
    "digits",
    "bytes_before",
    "first_text",
    "stop_text",
    "first_choice",
    "stop_choice",
    "is_tagged",
    "column",
    "size_column",
)

Version = tuple[int, int]
FIRST: Version = (0, 11)
NEWEST: Version = (99, 0)

_LONG_DIGITS = 19
REST_OF_LINE = rb"[^\n]*"
_DIGITS = {16: 5, 32: 10, 64: _LONG_DIGITS}


@dataclass(frozen=True)
class Value:
    """What a value can be, and how it is read: as an int, of a word as its place in `words`.

    `pattern` is its whole text, with one group; `bounded` and `loose` are without. `low`, `high` and `digits` bound a
    number, which has a sign only where `low` is negative. An OPTIONAL_LONG is the first of its words alone, or a number
    between the second one and `]`. A TEXT is not read by the compiled reader.

    Only the compiled reader reads these: a JSON_NUMBER, which no zero leads; a PLACE, the first byte of what follows;
    and the byte behind a text that is SIZED, by the number `size_of` less `low`, QUOTED, up to the closing quote if all
    of it is plain ASCII without escapes, or reaches UNTIL the text before the next field.
    """

    kind: int
    pattern: bytes
    bounded: bytes
    loose: bytes
    low: int = 0
    high: int = 2**63 - 1
    digits: int = _LONG_DIGITS
    words: tuple[str, ...] = ()
    size_of: str = ""

    def read(self, text: bytes | None) -> int:
        """The value of a text that the pattern's group matched."""
        if self.kind == WORD:
            return self.words.index((text or b"").decode())
        return ABSENT if text is None or self.kind in {LIST, PLACE} else int(text)


def number(bits: int, *, digits: int = _LONG_DIGITS) -> Value:
    """A number with a sign, of so many bits."""
    bounded = rb"-?\d{1,%d}" % min(digits, _DIGITS[bits])
    pattern = rb"(-?\d{1,%d})" % digits
    return Value(NUMBER, pattern, bounded, rb"-?\d+", -(2 ** (bits - 1)), 2 ** (bits - 1) - 1, digits)


def unsigned(bits: int) -> Value:
    """A number of so many bits that is never negative; the exact pattern takes a sign, which its reader refuses."""
    return replace(number(bits), bounded=rb"\d{1,%d}" % _DIGITS[bits], loose=rb"\d+")


def natural(high: int, *, digits: int = _LONG_DIGITS, loose: bytes = rb"\d+") -> Value:
    """A number without a sign, up to `high`."""
    bounded = rb"\d{1,%d}" % digits
    return Value(NUMBER, b"(" + bounded + b")", bounded, loose, 0, high, digits)


def word(*words: str, loose: bytes = rb"\w+") -> Value:
    """One of some words; none of them begins with another one."""
    either = b"|".join(re.escape(w.encode()) for w in words)
    return Value(WORD, b"(" + either + b")", b"(?:" + either + b")" if len(words) > 1 else either, loose, words=words)


def text(bounded: bytes, loose: bytes = REST_OF_LINE) -> Value:
    """A text of any other kind."""
    return Value(TEXT, b"(" + bounded + b")", bounded, loose)


OPTIONAL = Value(
    OPTIONAL_LONG,
    rb"OptionalLong(?:\.empty|\[(\d{1,19})\])",
    rb"OptionalLong(?:\.empty|\[\d{1,19}\])",
    rb"OptionalLong(?:\.empty|\[\d+\])",
    ABSENT,
    words=("OptionalLong.empty", "OptionalLong["),
)
"""A Java `OptionalLong`, as it prints itself."""
SCALA_OPTION = Value(
    OPTIONAL_LONG, rb"(?:None|Some\((\d{1,19})\))", rb"(?:None|Some\(\d{1,19}\))", rb"(?:None|Some\(\d+\))", ABSENT
)
"""An `Option` of Scala, which the compiled reader does not read."""
KEY_LIST = Value(LIST, rb"(\[[^\]\n]*\])", rb"\[[^\]\n]*\]", rb"\[[^\]\n]*\]")
"""A list in brackets that is closed once, at the end of the line; what is in it is not read."""


def json_number(low: int, high: int) -> Value:
    """A whole number in JSON."""
    return Value(JSON_NUMBER, b"", b"", b"", low, high)


def sized(size_of: str, *, less_bytes: int, most_bytes: int) -> Value:
    """A text whose size, with some bytes more, an earlier field says."""
    return Value(SIZED, b"", b"", b"", less_bytes, most_bytes, size_of=size_of)


STARTS_HERE = Value(PLACE, b"()", b"", b"")
ENDS_AT_QUOTE, ENDS_AT_NEXT = (Value(kind, b"", b"", b"") for kind in (QUOTED, UNTIL))


@dataclass(frozen=True)
class Field:
    """What stands before a value, and the value.

    Attributes:
        before: the text before it, as the newest tools spell it.
        name: of the value.
        value: what it can be.
        since: the first version of the tool that prints the field.
        until: the last one.
        earlier: how tools up to a version spelled the text before it.
        is_tagged: it is left out where it has its default, and is ABSENT then; only for the compiled reader.
    """

    before: bytes
    name: str
    value: Value
    since: Version = FIRST
    until: Version = NEWEST
    earlier: tuple[bytes, Version] | None = None
    is_tagged: bool = False

    def of(self, first: Version, last: Version) -> Field:
        """The field as tools from one version to another print it; without bounds where all of them do."""
        before, earlier = self.before, self.earlier
        if earlier and (last <= earlier[1] or first > earlier[1]):
            before, earlier = earlier[0] if last <= earlier[1] else before, None
        since = FIRST if self.since <= first else self.since
        until = NEWEST if self.until >= last else self.until
        return replace(self, before=before, earlier=earlier, since=since, until=until)

    @property
    def is_optional(self) -> bool:
        """Some of the tools leave it out."""
        return self.since > FIRST or self.until < NEWEST

    @property
    def label(self) -> bytes:
        """The text before it as a regular expression, in whatever way it is spelled."""
        if self.earlier is None:
            return _escaped(self.before)
        return spelled_either_way(self.before, self.earlier[0])


def spelled_either_way(one: bytes, other: bytes) -> bytes:
    """Two spellings of one text, as a regular expression."""
    if len(one) != len(other):
        return b"(?:" + _escaped(one) + b"|" + _escaped(other) + b")"
    pairs = zip(one, other, strict=True)
    return b"".join(_escaped(bytes([a])) if a == b else b"[%c%c]" % (b, a) for a, b in pairs)


def _escaped(text: bytes) -> bytes:
    return re.escape(text).replace(b"\\ ", b" ")


def any_text(most_bytes: int) -> bytes:
    """As little as possible of a line, as an expression."""
    return rb"[^\n]{0,%d}?" % most_bytes


def either(*ways: bytes) -> bytes:
    """One of some expressions that all begin with a space."""
    return b" (?:" + b"|".join(way.removeprefix(b" ") for way in ways) + b")"


@dataclass(frozen=True)
class LineForm:
    """The fields of a line, in their order."""

    fields: tuple[Field, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the fields."""
        return tuple(field.name for field in self.fields)

    def of(self, first: Version, last: Version = NEWEST) -> LineForm:
        """The line as tools from one version to another print it."""
        printed = (field for field in self.fields if field.since <= last and first <= field.until)
        return LineForm(tuple(field.of(first, last) for field in printed))

    def at(self, version: Version) -> LineForm:
        """The line as one version of the tool prints it."""
        return self.of(version, version)

    def part(self, first: str, last: str | None = None) -> LineForm:
        """The fields from one to another, or one alone."""
        start = self.names.index(first)
        return LineForm(self.fields[start : self.names.index(last or first, start) + 1])

    def saying(self, **words: str) -> LineForm:
        """The line where some values, none of them the last one, are always the same."""
        fields, before = [], b""
        for field in self.fields:
            before += field.before
            if field.name in words:
                before += words[field.name].encode()
            else:
                fields.append(replace(field, before=before))
                before = b""
        return LineForm(tuple(fields))

    def label(self, name: str) -> bytes:
        """What stands before a value, as a regular expression."""
        return self.part(name).fields[0].label

    def bounded(self, *named: str, **texts: bytes) -> bytes:
        """A regular expression for any such line, whose values are no longer than their kind can be.

        Args:
            named: the values that it gives, as groups of their names.
            texts: expressions of values that are not just anything.
        """
        return self._expression(lambda value: value.bounded, named, texts)

    def loose(self, *named: str, **texts: bytes) -> bytes:
        """As `bounded`, with values of any length; digits can be the start of a longer number."""
        return self._expression(lambda value: value.loose, named, texts)

    def _expression(
        self, text_of: Callable[[Value], bytes], named: tuple[str, ...], texts: Mapping[str, bytes]
    ) -> bytes:
        parts = []
        for field in self.fields:
            value = texts.get(field.name, text_of(field.value))
            if field.name in named:
                value = b"(?P<%s>%s)" % (field.name.encode(), value)
            parts.append(b"(?:%s)?" % (field.label + value) if field.is_optional else field.label + value)
        return b"".join(parts)

    @cached_property
    def pattern(self) -> re.Pattern[bytes]:
        """The whole line, without its newline; one group for each field."""
        return re.compile(b"".join(field.label + field.value.pattern for field in self.fields))

    def read(self, line: bytes) -> dict[str, int] | None:
        """The values of one line by their names; None where it has another form, or a number is out of bounds."""
        printed = self.pattern.fullmatch(line)
        if printed is None:
            return None
        read = {f.name: f.value.read(text) for f, text in zip(self.fields, printed.groups(), strict=True)}
        return read if self.holds(read) else None

    def holds(self, numbers: Mapping[str, int]) -> bool:
        """Whether those of some numbers that are fields of the line are within their bounds."""
        bound = (f for f in self.fields if f.name in numbers and f.value.kind in {NUMBER, OPTIONAL_LONG})
        return all(f.value.low <= numbers[f.name] <= f.value.high for f in bound)

    @cached_property
    def alone(self) -> LineForms:
        """It as the only form."""
        return LineForms((self,))


@dataclass(frozen=True)
class LineForms:
    """Forms of lines that stand among each other."""

    forms: tuple[LineForm, ...]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The fields that any of them has."""
        return tuple(dict.fromkeys(name for form in self.forms for name in form.names))

    def read(self, line: bytes) -> dict[str, int] | None:
        """The values of one line, by the first form that it has."""
        return next((read for form in self.forms if (read := form.read(line)) is not None), None)

    @cached_property
    def tables(self) -> Tables:
        """The forms as the compiled reader takes them, whose fields are spelled in one way, and always printed."""
        rows: list[tuple[int, ...]] = []
        choices: list[tuple[int, ...]] = []
        texts, first_fields, column = _Texts(), [0], self.names.index
        for form in self.forms:
            for field in form.fields:
                value, first = field.value, len(choices)
                choices += [(*texts.add(w.encode()), len(w)) for w in value.words]
                before = (len(field.before), *texts.add(field.before))
                columns = column(field.name), column(value.size_of) if value.size_of else ABSENT
                bounds = value.low, value.high, value.digits
                rows.append((value.kind, *bounds, *before, first, len(choices), field.is_tagged, *columns))
            first_fields.append(len(rows))
        return Tables(
            np.array(first_fields, np.int64),
            np.array(rows, np.int64),
            np.array(choices, np.int64).reshape(-1, 3),
            np.array(texts.masked_words, np.uint64),
        )


class _Texts:
    def __init__(self) -> None:
        self.masked_words: list[tuple[int, int]] = []

    def add(self, text: bytes) -> tuple[int, int]:
        """Where the machine words of a text begin, and end."""
        first = len(self.masked_words)
        for at in range(0, len(text), WORD_BYTES):
            part = text[at : at + WORD_BYTES]
            self.masked_words.append((int.from_bytes(part, "little"), 2 ** (8 * len(part)) - 1))
        return first, len(self.masked_words)
