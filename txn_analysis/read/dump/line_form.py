"""The form of lines that are all alike, declared once: as a regular expression, and as tables for the compiled reader.

A line is a row of fields; a field is what always stands before a value, and the value.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from txn_analysis.columns.arrays import ABSENT, Array

NUMBER, WORD, OPTIONAL_LONG, LIST = range(4)
WORD_BYTES = 8

_LONG_DIGITS = 19


@dataclass(frozen=True)
class Value:
    """What a value can be, and how it is read: as an int, of a word as its place in `words`.

    `pattern` is its whole text, with one group; `low`, `high` and `digits` bound a number, which has a sign only where
    `low` is negative. An OPTIONAL_LONG is the first of its words alone, or a number between the second one and `]`.
    """

    kind: int
    pattern: bytes
    low: int = 0
    high: int = 2**63 - 1
    digits: int = _LONG_DIGITS
    words: tuple[str, ...] = ()

    def read(self, text: bytes | None) -> int:
        """The value of a text that the pattern's group matched."""
        if self.kind == WORD:
            return self.words.index((text or b"").decode())
        return ABSENT if text is None or self.kind == LIST else int(text)


def number(bits: int, *, digits: int = _LONG_DIGITS) -> Value:
    """A number with a sign, of so many bits."""
    return Value(NUMBER, rb"(-?\d{1,%d})" % digits, -(2 ** (bits - 1)), 2 ** (bits - 1) - 1, digits)


def natural(high: int, *, digits: int = _LONG_DIGITS) -> Value:
    """A number without a sign, up to `high`."""
    return Value(NUMBER, rb"(\d{1,%d})" % digits, 0, high, digits)


def word(*words: str) -> Value:
    """One of some words; none of them begins with another one."""
    return Value(WORD, b"(" + b"|".join(re.escape(w.encode()) for w in words) + b")", words=words)


OPTIONAL = Value(
    OPTIONAL_LONG, rb"OptionalLong(?:\.empty|\[(\d{1,19})\])", ABSENT, words=("OptionalLong.empty", "OptionalLong[")
)
"""A Java `OptionalLong`, as it prints itself."""
KEY_LIST = Value(LIST, rb"(\[[^\]\n]*\])")
"""A list in brackets that is closed once, at the end of the line; what is in it is not read."""


@dataclass(frozen=True)
class Field:
    """What stands before a value, and the value."""

    before: bytes
    name: str
    value: Value


class Tables(NamedTuple):
    """A form for the compiled reader.

    Attributes:
        fields: a row for each field, its columns as FIELD_COLUMNS.
        choices: a row for each word of each field: its first row of `texts`, the one after its last, and its bytes.
        texts: machine words of all texts, each with a mask of the bytes that count.
    """

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
)


@dataclass(frozen=True)
class LineForm:
    """The fields of a line, in their order."""

    fields: tuple[Field, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the fields."""
        return tuple(field.name for field in self.fields)

    @cached_property
    def pattern(self) -> re.Pattern[bytes]:
        """The whole line, without its newline; one group for each field."""
        return re.compile(b"".join(re.escape(field.before) + field.value.pattern for field in self.fields))

    def read(self, line: bytes) -> dict[str, int] | None:
        """The values of one line by their names; None where it has another form, or a number is out of bounds."""
        found = self.pattern.fullmatch(line)
        if found is None:
            return None
        read = {f.name: f.value.read(text) for f, text in zip(self.fields, found.groups(), strict=True)}
        return read if all(f.value.low <= read[f.name] <= f.value.high for f in self.fields if _is_bound(f)) else None

    @cached_property
    def tables(self) -> Tables:
        """The form as the compiled reader takes it."""
        fields: list[tuple[int, ...]] = []
        choices: list[tuple[int, ...]] = []
        texts = _Texts()
        for field in self.fields:
            value, first = field.value, len(choices)
            choices += [(*texts.add(w.encode()), len(w)) for w in value.words]
            before = (len(field.before), *texts.add(field.before))
            fields.append((value.kind, value.low, value.high, value.digits, *before, first, len(choices)))
        return Tables(
            np.array(fields, np.int64),
            np.array(choices, np.int64).reshape(-1, 3),
            np.array(texts.masked_words, np.uint64),
        )


def _is_bound(field: Field) -> bool:
    return field.value.kind in {NUMBER, OPTIONAL_LONG}


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
