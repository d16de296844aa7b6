"""The compiled reader of records of `__transaction_state`: of those that look as nearly all that Kafka's tools print.

It never guesses: where a byte differs from the usual text (an escape, other white space, an id beyond ASCII), the
record is left to the reader of its form, which is the reference. Whether numbers, sizes and lists can be is for the
caller.
"""

from __future__ import annotations

import string
from typing import TYPE_CHECKING, Any

import numpy as np

from txn_analysis.columns.compiled import NO_PLACE, compiled
from txn_analysis.kafka.names import ID_MAX_BYTES, TIMESTAMP_TYPES
from txn_analysis.reading.grammar.forms import KEY, PAYLOAD, RECORD
from txn_analysis.reading.grammar.state_forms import (
    DUMPED_JSON,
    EXPORTED_JSON,
    KEY_HEAD_BYTES,
    TEXT_VALUE,
    TOMBSTONE,
)
from txn_analysis.reading.state.records import (
    HEAD_COLUMNS,
    IS_TEXT,
    IS_TOMBSTONE,
    PLACE_COLUMNS,
    UNREAD,
    ReadRecords,
)
from txn_analysis.reading.state.values import (
    JSON_NUMBERS,
    JSON_PARTITIONS,
    JSON_TAGGED,
    PRINTED_STATES,
    STATES,
)

if TYPE_CHECKING:
    from txn_analysis.columns.arrays import Array

_PYTHON_US = 80  # for each record
_USUAL_OBJECT_BYTES, _SMALLEST_OBJECT_BYTES = 300, 60
_NO_HASH = -1
_MINUS, _ZERO, _NINE, _COMMA, _SPACE, _TAB, _NEWLINE, _RETURN = b"-09, \t\n\r"
_QUOTE, _BACKSLASH, _TILDE, _OPEN, _CLOSE, _OPEN_OBJECT, _CLOSE_OBJECT, _CLOSE_SET = b'"\\~[]{})'
_MOST_DIGITS = 18
_MOST_SEQUENCE = 10**10 - 1
_UINT32_MASK = 2**32 - 1

_OFFSET, _RECORDED_MS, _KEY_BYTES, _VALUE_BYTES = range(len(HEAD_COLUMNS))
_ID_START, _ID_STOP, _LIST_START, _LIST_STOP = range(len(PLACE_COLUMNS))
_PARTITIONS = len(JSON_NUMBERS)  # the member of a value that is no number
_PRODUCER_ID, _, _, _EPOCH, _, _TIMEOUT_MS, _STATUS, _UPDATED_MS, _, _ = range(len(JSON_NUMBERS))
_UNTAGGED = sum(1 << k for k, name in enumerate((*JSON_NUMBERS, JSON_PARTITIONS)) if name not in JSON_TAGGED)

_texts: list[bytes] = []


def _text(*texts: bytes) -> int:
    """Adds some texts to those that are looked for; the number of the first one."""
    _texts.extend(texts)
    return len(_texts) - len(texts)


_OF_KEY, _OF_VALUE = RECORD.part("key_bytes").fields[0], RECORD.part("value_bytes").fields[0]
_LABELS = [field.before for field in TEXT_VALUE.fields]
_AT_RECORD = _text(RECORD.fields[0].before)
_AT_TIME = _text(*(f" {word}: ".encode() for word in TIMESTAMP_TYPES))
_AT_KEY_BYTES = _text(_OF_KEY.before, _OF_KEY.earlier[0] if _OF_KEY.earlier else _OF_KEY.before)
_AT_VALUE_BYTES = _text(_OF_VALUE.before, _OF_VALUE.earlier[0] if _OF_VALUE.earlier else _OF_VALUE.before)
_AT_SEQUENCE = _text(b" sequence: ")
_AT_KEY = _text(b" headerKeys: []" + KEY)
_AT_ID = _text(b"transaction_metadata::transactionalId=", b"transactionalId=")
_AT_DELETE = _text(PAYLOAD + TOMBSTONE)
_AT_VALUE = _text(PAYLOAD + _LABELS[0])
_AT_EPOCH, _AT_STATE, _AT_LIST, _AT_UPDATED_MS, _AT_TIMEOUT_MS = map(_text, _LABELS[1:])
_AT_ITEMS = _text(b"[", b"HashSet(", b"Set(")
_STATE = _text(*(state.encode() for state in STATES))
_QUOTED_STATE = _text(*(f'"{state}"'.encode() for state in PRINTED_STATES))
_NULL = _text(b"null")
_NAME = _text(*(f'"{name}":'.encode() for name in (*JSON_NUMBERS, JSON_PARTITIONS)))

_TO_ID, _TO_VERSION, _TO_MEMBERS, _TO_END, _TO_TOMBSTONE = range(5)
_DUMPED = _text(*DUMPED_JSON)
_EXPORTED = {grammar: _text(*texts) for grammar, texts in EXPORTED_JSON.items()}
_OF_LIST = np.isin(np.arange(256), list((string.ascii_letters + string.digits + '[]{}",:._-').encode()))
_TEXTS = np.frombuffer(b"".join(_texts), np.uint8)
_BOUNDS = np.append(0, np.cumsum([len(text) for text in _texts]))


def read_record_lines(data: bytes, starts: Array, ends: Array) -> ReadRecords | None:
    """The records of some record lines of a decoded dump; None where so few are read sooner without compiled code.

    Args:
        data: the text.
        starts: the first byte of each line.
        ends: the byte after its last one, the newline not counted.
    """
    _read_lines.count(len(starts) * _PYTHON_US)
    if not _read_lines.is_worth_loading:
        return None
    found = ReadRecords.room(len(starts))
    found.start[:] = starts
    own = found.kind, found.id_hash, found.heads, found.places, found.numbers
    _read_lines(np.frombuffer(data, np.uint8), starts, ends, _TEXTS, _BOUNDS, *own)
    return found


def read_objects(data: bytes, grammar: str) -> tuple[ReadRecords, int] | None:
    """The objects at the beginning of a console export's text as JSON, up to the first unusual one.

    Args:
        data: the text, where an object begins or white space before one.
        grammar: of the export; formatters call the version of a key by other names.

    Returns:
        The records, and where the first byte is that was not read. None where so few objects are read sooner without
        compiled code.
    """
    _read_objects.count(len(data) / _USUAL_OBJECT_BYTES * _PYTHON_US)
    if not _read_objects.is_worth_loading:
        return None
    found = ReadRecords.room(len(data) // _SMALLEST_OBJECT_BYTES)
    own = found.kind, found.start, found.id_hash, found.places, found.numbers
    count, at = _read_objects(np.frombuffer(data, np.uint8), _EXPORTED[grammar], _TEXTS, _BOUNDS, *own)
    return found.part(0, count), at


@compiled
def _after(raw: Array, at: int, stop: int, texts: Array, bounds: Array, text: int) -> Any:
    """Where one of the texts ends that stands at a place; NO_PLACE where it does not, or there is no place."""
    first, size = bounds[text], bounds[text + 1] - bounds[text]
    if at < 0 or at + size > stop:
        return NO_PLACE
    for k in range(size):
        if raw[at + k] != texts[first + k]:
            return NO_PLACE
    return at + size


@compiled
def _which(raw: Array, at: int, stop: int, texts: Array, bounds: Array, text: int, count: int) -> tuple[int, Any]:
    """Which of some neighbouring texts stands at a place, and where it ends; NO_PLACE where none does."""
    for k in range(count):
        end = _after(raw, at, stop, texts, bounds, text + k)
        if end != NO_PLACE:
            return k, end
    return 0, NO_PLACE


@compiled
def _number(raw: Array, at: int, stop: int) -> tuple[int, int]:
    """A number as JSON and Java write it, and where it ends; NO_PLACE where none stands there, or at no place."""
    if at < 0 or at >= stop:
        return 0, NO_PLACE
    is_negative = raw[at] == _MINUS
    first = at + 1 if is_negative else at
    value, at = 0, first
    while at < stop and raw[at] >= _ZERO and raw[at] <= _NINE:
        value = value * 10 + (int(raw[at]) - _ZERO)
        at += 1
    digits = at - first
    if digits == 0 or digits > _MOST_DIGITS or (raw[first] == _ZERO and (digits > 1 or is_negative)):
        return 0, NO_PLACE
    return (-value if is_negative else value), at


@compiled
def _hash(raw: Array, start: int, stop: int) -> int:
    """Java's hash of an id, without its sign; _NO_HASH where it is not plain ASCII."""
    value = 0
    for at in range(start, stop):
        byte = int(raw[at])
        if byte < _SPACE or byte > _TILDE:
            return _NO_HASH
        value = (31 * value + byte) & _UINT32_MASK
    return value


@compiled
def _list_stop(raw: Array, at: int, stop: int, texts: Array, bounds: Array) -> Any:
    """Where the JSON of a list of partitions ends, as far as its brackets say; it may be null."""
    end = _after(raw, at, stop, texts, bounds, _NULL)
    if end != NO_PLACE:
        return end
    depth = 0
    while at < stop:
        byte = int(raw[at])
        at += 1
        if byte == _OPEN:
            depth += 1
        elif byte == _CLOSE:
            depth -= 1
        elif not _OF_LIST[byte]:
            return NO_PLACE
        if depth <= 0:
            return at if byte == _CLOSE else NO_PLACE
    return NO_PLACE


@compiled
def _members(
    raw: Array, at: int, stop: int, texts: Array, bounds: Array, places: Array, numbers: Array, row: int, version: int
) -> int:
    """Fills a row by the members of a value's JSON; where they end, behind the bracket."""
    seen, usual, count = 0, 0, _PARTITIONS + 1
    while True:
        member, start = NO_PLACE, NO_PLACE
        for k in range(count):  # in the order of Kafka's schema, some are left out
            candidate = usual + k if usual + k < count else usual + k - count
            start = _after(raw, at, stop, texts, bounds, _NAME + candidate)
            if start != NO_PLACE:
                member = candidate
                break
        if member == NO_PLACE or seen >> member & 1:
            return NO_PLACE
        seen |= 1 << member
        if member == _PARTITIONS:
            at = _list_stop(raw, start, stop, texts, bounds)
            places[_LIST_START, row], places[_LIST_STOP, row] = start, at
        elif member == _STATUS and start < stop and raw[start] == _QUOTE:
            status, at = _which(raw, start, stop, texts, bounds, _QUOTED_STATE, len(PRINTED_STATES))
            numbers[_STATUS, row] = status % len(STATES)
        else:
            numbers[member, row], at = _number(raw, start, stop)
        if at == NO_PLACE or at >= stop:
            return NO_PLACE
        if raw[at] == _CLOSE_OBJECT:
            is_whole = seen == _UNTAGGED or (version == 1 and seen & _UNTAGGED == _UNTAGGED)
            return at + 1 if is_whole else NO_PLACE
        if raw[at] != _COMMA:
            return NO_PLACE
        at += 1
        usual = member + 1 if member + 1 < count else 0


@compiled
def _read_json(
    raw: Array,
    at: int,
    stop: int,
    form: int,
    texts: Array,
    bounds: Array,
    row: int,
    kind: Array,
    id_hash: Array,
    places: Array,
    numbers: Array,
) -> Any:
    """Fills a row by key and value as JSON; where they end. Its kind stays UNREAD where they are unusual."""
    start = _after(raw, at, stop, texts, bounds, form + _TO_ID)
    if start == NO_PLACE:
        return NO_PLACE
    end = start
    while end < stop and raw[end] != _QUOTE and raw[end] != _BACKSLASH:
        end += 1
    id_hash[row] = _hash(raw, start, end)
    if id_hash[row] == _NO_HASH or end - start > ID_MAX_BYTES:
        return NO_PLACE
    places[_ID_START, row], places[_ID_STOP, row] = start, end
    after = _after(raw, end, stop, texts, bounds, form + _TO_TOMBSTONE)
    if after != NO_PLACE:
        kind[row] = IS_TOMBSTONE
        return after
    at = _after(raw, end, stop, texts, bounds, form + _TO_VERSION)
    version, at = _number(raw, at, stop)
    at = _after(raw, at, stop, texts, bounds, form + _TO_MEMBERS)
    if at == NO_PLACE or version not in (0, 1):
        return NO_PLACE
    at = _members(raw, at, stop, texts, bounds, places, numbers, row, version)
    at = _after(raw, at, stop, texts, bounds, form + _TO_END)
    if at != NO_PLACE:
        kind[row] = version
    return at


@compiled
def _read_text(
    raw: Array,
    at: int,
    stop: int,
    key_bytes: int,
    texts: Array,
    bounds: Array,
    row: int,
    kind: Array,
    id_hash: Array,
    places: Array,
    numbers: Array,
) -> Any:
    """The same for the text form, whose id is as long as the key's size says."""
    _, start = _which(raw, at, stop, texts, bounds, _AT_ID, 2)
    size = key_bytes - KEY_HEAD_BYTES
    if start == NO_PLACE or size < 0 or size > ID_MAX_BYTES or start + size > stop:
        return NO_PLACE
    end = start + size
    id_hash[row] = _hash(raw, start, end)
    if id_hash[row] == _NO_HASH:
        return NO_PLACE
    places[_ID_START, row], places[_ID_STOP, row] = start, end
    after = _after(raw, end, stop, texts, bounds, _AT_DELETE)
    if after != NO_PLACE:
        kind[row] = IS_TOMBSTONE
        return after
    at = _after(raw, end, stop, texts, bounds, _AT_VALUE)
    numbers[_PRODUCER_ID, row], at = _number(raw, at, stop)
    at = _after(raw, at, stop, texts, bounds, _AT_EPOCH)
    numbers[_EPOCH, row], at = _number(raw, at, stop)
    at = _after(raw, at, stop, texts, bounds, _AT_STATE)
    numbers[_STATUS, row], at = _which(raw, at, stop, texts, bounds, _STATE, len(STATES))
    at = _after(raw, at, stop, texts, bounds, _AT_LIST)
    _, at = _which(raw, at, stop, texts, bounds, _AT_ITEMS, 3)
    if at == NO_PLACE:
        return NO_PLACE
    closing = _CLOSE if raw[at - 1] == _OPEN else _CLOSE_SET
    places[_LIST_START, row] = at
    while at < stop and raw[at] != closing:
        at += 1
    places[_LIST_STOP, row] = at
    at = _after(raw, at + 1, stop, texts, bounds, _AT_UPDATED_MS)
    numbers[_UPDATED_MS, row], at = _number(raw, at, stop)
    at = _after(raw, at, stop, texts, bounds, _AT_TIMEOUT_MS)
    numbers[_TIMEOUT_MS, row], at = _number(raw, at, stop)
    if at != NO_PLACE:
        kind[row] = IS_TEXT
    return at


@compiled
def _read_lines(
    raw: Array,
    starts: Array,
    ends: Array,
    texts: Array,
    bounds: Array,
    kind: Array,
    id_hash: Array,
    head: Array,
    places: Array,
    numbers: Array,
) -> None:
    """Fills rows by record lines."""
    for row in range(len(starts)):
        stop = ends[row]
        at = _after(raw, starts[row], stop, texts, bounds, _AT_RECORD)
        head[_OFFSET, row], at = _number(raw, at, stop)
        _, at = _which(raw, at, stop, texts, bounds, _AT_TIME, len(TIMESTAMP_TYPES))
        head[_RECORDED_MS, row], at = _number(raw, at, stop)
        _, at = _which(raw, at, stop, texts, bounds, _AT_KEY_BYTES, 2)
        head[_KEY_BYTES, row], at = _number(raw, at, stop)
        _, at = _which(raw, at, stop, texts, bounds, _AT_VALUE_BYTES, 2)
        head[_VALUE_BYTES, row], at = _number(raw, at, stop)
        at = _after(raw, at, stop, texts, bounds, _AT_SEQUENCE)
        sequence, at = _number(raw, at, stop)
        at = _after(raw, at, stop, texts, bounds, _AT_KEY)
        if at == NO_PLACE or at >= stop or sequence > _MOST_SEQUENCE or sequence < -_MOST_SEQUENCE:
            continue
        if raw[at] == _OPEN_OBJECT:
            at = _read_json(raw, at, stop, _DUMPED, texts, bounds, row, kind, id_hash, places, numbers)
        else:
            key_bytes = head[_KEY_BYTES, row]
            at = _read_text(raw, at, stop, key_bytes, texts, bounds, row, kind, id_hash, places, numbers)
        if at != stop:
            kind[row] = UNREAD


@compiled
def _read_objects(
    raw: Array,
    form: int,
    texts: Array,
    bounds: Array,
    kind: Array,
    start: Array,
    id_hash: Array,
    places: Array,
    numbers: Array,
) -> tuple[int, int]:
    """Fills rows by objects from the first byte on; how many, and where the first byte is that was not read."""
    at, stop = 0, len(raw)
    for row in range(len(kind)):
        begin = at
        while begin < stop and (
            raw[begin] == _SPACE or raw[begin] == _NEWLINE or raw[begin] == _RETURN or raw[begin] == _TAB
        ):
            begin += 1
        end = _read_json(raw, begin, stop, form, texts, bounds, row, kind, id_hash, places, numbers)
        if end == NO_PLACE:
            kind[row] = UNREAD
            return row, at
        start[row], at = begin, end
    return len(kind), at
