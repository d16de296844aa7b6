"""Lines that are all alike, read at once: their words become columns, without a step of Python for each line.

What is read is not yet believed: the labels are columns too, and the caller holds them against its grammar. Whatever
does not fit is None here, and is read line by line with the grammar's regular expression, which is the reference.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyarrow import csv

from txn_analysis.ingest.grammar import TIMESTAMP_TYPES

if TYPE_CHECKING:
    from collections.abc import Mapping

_PARSE = csv.ParseOptions(delimiter=" ", quote_char=False, escape_char=False, ignore_empty_lines=False)


def read_columns(text: bytes, types: Mapping[str, pa.DataType], line_count: int) -> pa.Table | None:
    """Lines of words with single spaces between them, one row each; None where one has other words than the rest.

    Args:
        text: the lines, each with its newline.
        types: of the words of a line, by the names that the columns get.
        line_count: of the text.
    """
    if not text.endswith(b"\n") or _would_be_misread(text):
        return None
    names = csv.ReadOptions(column_names=list(types), use_threads=False)
    convert = csv.ConvertOptions(column_types=types, null_values=[], true_values=["true"], false_values=["false"])
    try:
        read = csv.read_csv(pa.py_buffer(text), names, _PARSE, convert).combine_chunks()
    except pa.ArrowInvalid:
        return None
    return read if read.num_rows == line_count else None


def _would_be_misread(text: bytes) -> bool:
    """The column reader would end a line at a carriage return, pass over a tab, and read 0x10 as a number."""
    if b"\r" in text or b"\t" in text:
        return True
    # One byte is looked for far faster than four, and seldom there.
    return any(letter in text and b": 0" + letter in text for letter in (b"x", b"X"))


def are_all(labels: pa.ChunkedArray, word: bytes) -> bool:
    """Whether a column of words of one width is nothing but `word`, which has that width."""
    words, width = labels.combine_chunks(), len(word)
    raw = np.frombuffer(words.buffers()[1], np.uint8, len(words) * width, words.offset * width)
    return bool((raw.reshape(-1, width) == np.frombuffer(word, np.uint8)).all())


def different(words: pa.ChunkedArray) -> list[str]:
    """The different words of a dictionary-encoded column."""
    found: list[str] = words.combine_chunks().dictionary.to_pylist()
    return found


def are_timestamp_types(labels: pa.ChunkedArray) -> bool:
    """Whether a dictionary-encoded column is nothing but the labels of timestamps."""
    return set(different(labels)) <= {word + ":" for word in TIMESTAMP_TYPES}
