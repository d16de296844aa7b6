"""The form of a line as tables of numbers, for the compiled reader."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from txn_analysis.columns.arrays import Array
    from txn_analysis.read.dump.line_form import Field

NUMBER, WORD, OPTIONAL_LONG, LIST, TEXT = range(5)
"""The kinds of values; the compiled reader reads all but TEXT."""
WORD_BYTES = 8


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


def tables_of(fields: Iterable[Field]) -> Tables:
    """The fields of a line, each spelled in one way, and always printed."""
    rows: list[tuple[int, ...]] = []
    choices: list[tuple[int, ...]] = []
    texts = _Texts()
    for field in fields:
        value, first = field.value, len(choices)
        choices += [(*texts.add(w.encode()), len(w)) for w in value.words]
        before = (len(field.before), *texts.add(field.before))
        rows.append((value.kind, value.low, value.high, value.digits, *before, first, len(choices)))
    return Tables(
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
