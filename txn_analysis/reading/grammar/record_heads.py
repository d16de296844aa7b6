"""What the line of a record says before its header keys, of every tool; one line at a time.

Many lines at once are read by the compiled reader. Formats: kafka-formats.md, 1.4.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from txn_analysis.reading.grammar.forms import OLD_RECORD, RECORD, RECORD_2_8

_NUMBERS = ("offset", "timestamp", "key_bytes", "value_bytes")
_NEW, _OF_2_8, _OLD = (
    re.compile(form.bounded(*_NUMBERS, "is_valid", header_keys=rb"\[")) for form in (RECORD, RECORD_2_8, OLD_RECORD)
)


class RecordHead(NamedTuple):
    """The numbers of a record's line, -1 for null and for no time; `end` is behind the bracket of its header keys."""

    offset: int
    timestamp_ms: int
    key_bytes: int
    value_bytes: int
    is_valid: bool
    end: int


def read_head(data: bytes, at: int, stop: int) -> RecordHead | None:
    """The head of the record line that begins at a byte, of tools 2.2 on; None where none does that ends by `stop`."""
    if printed := _NEW.match(data, at, stop):  # as nearly all are, so that nothing is looked up by name
        offset, timestamp_ms, key_bytes, value_bytes = map(int, printed.groups())
        return RecordHead(offset, timestamp_ms, key_bytes, value_bytes, True, printed.end())
    return _head(_OF_2_8.match(data, at, stop))


def read_old_head(data: bytes, at: int, stop: int) -> RecordHead | None:
    """The same of tools up to 2.1, whose records stand alone, without batch lines."""
    return _head(_OLD.match(data, at, stop))


def _head(printed: re.Match[bytes] | None) -> RecordHead | None:
    if printed is None:
        return None
    offset, timestamp_ms, key_bytes, value_bytes = map(int, printed.group(*_NUMBERS))
    return RecordHead(offset, timestamp_ms, key_bytes, value_bytes, printed["is_valid"] == b"true", printed.end())
