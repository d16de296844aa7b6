"""Records of `__transaction_state` in the texts that Kafka's tools print, many at once, each form declared.

What has none of these forms to the byte (an escape, other white space, an id beyond ASCII, another order of fields) is
left to the readers of one record at a time, which are the reference. Whether numbers, sizes and lists can be is for the
caller.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from txn_analysis.columns.arrays import ABSENT, Array
from txn_analysis.columns.compiled import compiled
from txn_analysis.kafka.names import ID_MAX_BYTES
from txn_analysis.reading.grammar.forms import KEY, KEY_HEAD_BYTES, PAYLOAD, RECORD, TEXT_VALUE, TOMBSTONE
from txn_analysis.reading.grammar.line_form import (
    ENDS_AT_NEXT,
    ENDS_AT_QUOTE,
    STARTS_HERE,
    Field,
    LineForm,
    LineForms,
    Version,
    json_number,
    natural,
    number,
    sized,
    word,
)
from txn_analysis.reading.state.records import (
    IS_TEXT,
    IS_TOMBSTONE,
    PLACE_COLUMNS,
    UNREAD,
    ListReader,
    PartitionList,
    ReadRecords,
    StateColumns,
)
from txn_analysis.reading.state.segment import NOT_ASCII, ascii_hash
from txn_analysis.reading.state.text_values import text_partitions, topics_of
from txn_analysis.reading.state.values import (
    JSON_DECODER,
    JSON_NUMBERS,
    JSON_PARTITIONS,
    PRINTED_STATES,
    STATES,
    STATUS,
    TAGGED_FIELDS,
    BadValueError,
    flexible_bytes,
    json_partitions,
    json_topics,
    number_bounds,
    plain_bytes,
)

RECORD_US = 80
"""How long the readers of one record at a time need for it."""
_JSON_STATE = word(*map(str, range(len(STATES))), *(f'"{state}"' for state in PRINTED_STATES))
_SPACES = np.frombuffer(b" \t\r\n", np.uint8)


_Form = tuple[int, LineForm]


class Forms:
    """Forms of a record; each prints one of `kinds`, as of `ReadRecords.kind`."""

    def __init__(self, *forms: _Form) -> None:
        self.kinds = [kind for kind, _ in forms]
        self.lines = LineForms(tuple(form for _, form in forms))


def _members(version: int) -> Iterable[Field]:
    """The members of a value in JSON, in the order of Kafka's schema; only version 1 has tagged ones."""
    before = b""
    for name in JSON_NUMBERS:
        is_tagged = name in TAGGED_FIELDS
        if is_tagged and version == 0:
            continue
        value = _JSON_STATE if name == STATUS else json_number(*number_bounds(name))
        yield Field(before + f'"{name}":'.encode(), name, value, is_tagged=is_tagged)
        before = b","
        if name == STATUS:
            yield Field(f',"{JSON_PARTITIONS}":'.encode(), "list_start", STARTS_HERE)
            yield Field(b"", "list_stop", ENDS_AT_NEXT)


def _json(head: tuple[Field, ...], key: bytes, tombstone: bytes, value: bytes, end: bytes) -> list[_Form]:
    """The forms of a record as JSON.

    Args:
        head: the fields before it.
        key: the text from there to the id.
        tombstone: the text behind the id, where there is no value.
        value: the text from behind the id to the members, the version of the value in it.
        end: the text behind the members.
    """
    with_id = (*head, Field(key, "id_start", STARTS_HERE), Field(b"", "id_stop", ENDS_AT_QUOTE))
    forms = [(IS_TOMBSTONE, LineForm((*with_id, Field(tombstone, "stop", STARTS_HERE))))]
    for version in (0, 1):
        first, *members = _members(version)
        first = replace(first, before=value % version + first.before)
        forms.append((version, LineForm((*with_id, first, *members, Field(end, "stop", STARTS_HERE)))))
    return forms


def _text(head: tuple[Field, ...], opening: bytes, closing: bytes) -> list[_Form]:
    """The forms of a record in the text form, whose id is as long as the key's size says."""
    prefix = Field(KEY, "prefix", word("transaction_metadata::transactionalId=", "transactionalId="))
    size = sized("key_bytes", less_bytes=KEY_HEAD_BYTES, most_bytes=ID_MAX_BYTES)
    with_id = (*head, prefix, Field(b"", "id_start", STARTS_HERE), Field(b"", "id_stop", size))
    producer_id, epoch, state, listed, updated_ms, timeout_ms = (field.before for field in TEXT_VALUE.fields)
    value = (
        Field(PAYLOAD + producer_id, "producerId", number(64)),
        Field(epoch, "producerEpoch", number(16)),
        Field(state, STATUS, word(*STATES)),
        Field(listed + opening, "list_start", STARTS_HERE),
        Field(b"", "list_stop", ENDS_AT_NEXT),
        Field(closing + updated_ms, "transactionLastUpdateTimestampMs", number(64)),
        Field(timeout_ms, "transactionTimeoutMs", natural(2**31 - 1, digits=10)),
    )
    tombstone = Field(PAYLOAD + TOMBSTONE, "stop", STARTS_HERE)
    return [(IS_TEXT, LineForm(with_id + value)), (IS_TOMBSTONE, LineForm((*with_id, tombstone)))]


def _head(version: Version) -> tuple[Field, ...]:
    """The fields of a record line of a tool before the key; what stands before that is a field without a value."""
    return (*RECORD.at(version).part("offset", "sequence").fields, Field(b" headerKeys: []", "keys", STARTS_HERE))


_NEW, _OLD = _head((3, 0)), _head((2, 2))
DUMPED = Forms(
    *_json(
        _NEW,
        KEY + b'{"type":"0","data":{"transactionalId":"',
        b'"}}' + PAYLOAD + TOMBSTONE,
        b'"}}' + PAYLOAD + b'{"version":"%d","data":{',
        b"}}",
    ),
    *_text(_NEW, b"[", b"]"),
    *_text(_OLD, b"[", b"]"),
    *_text(_OLD, b"HashSet(", b")"),
    *_text(_OLD, b"Set(", b")"),
)
_BEFORE_ID = {
    grammar: b'{"key":{"%s":0,"data":{"transactionalId":"' % word_for_version
    for grammar, word_for_version in {"4.0+": b"type", "3.9": b"version"}.items()
}
EXPORTED = {
    grammar: Forms(*_json((), key, b'"}},"value":null}', b'"}},"value":{"version":%d,"data":{', b"}}}"))
    for grammar, key in _BEFORE_ID.items()
}


def object_places(data: bytes, grammar: str) -> tuple[Array, Array]:
    """Where the objects of a console export's text begin that begin as usual, and where what is before the next ends.

    Args:
        data: the text.
        grammar: of the export; formatters call the version of a key by other names.
    """
    # No string in JSON holds this text, as its quotes would be escaped.
    starts = np.fromiter(map(re.Match.start, re.finditer(re.escape(_BEFORE_ID[grammar]), data)), np.int64)
    ends = np.append(starts[1:], len(data))[: len(starts)]
    raw = np.frombuffer(data, np.uint8)
    while (is_space := np.isin(raw[ends - 1], _SPACES)).any():
        ends = ends - is_space
    return starts, ends


def columns_of(
    data: bytes, starts: Array, read: Mapping[str, Array], form: Array, kinds: Sequence[int]
) -> StateColumns:
    """The records of some texts; those that have none of the forms are UNREAD.

    Args:
        data: where the texts are.
        starts: the first byte of each.
        read: their fields, as of `read_lines`.
        form: the form of each.
        kinds: of the forms.
    """
    absent = np.full(len(starts), ABSENT)
    columns = dict.fromkeys((*PLACE_COLUMNS, *JSON_NUMBERS), absent) | dict(read) | {"start": starts}
    columns[STATUS] = columns[STATUS] % len(STATES)
    kind = np.array([*kinds, UNREAD])[form]
    kind[columns["id_stop"] - columns["id_start"] > ID_MAX_BYTES] = UNREAD
    id_hash, raw = np.full(len(starts), NOT_ASCII), np.frombuffer(data, np.uint8)
    _hash_ids(raw, columns["id_start"], columns["id_stop"], kind != UNREAD, id_hash)
    kind[id_hash == NOT_ASCII] = UNREAD
    return StateColumns.of(data, ReadRecords(kind, id_hash, columns), _LIST_READERS)


@compiled
def _hash_ids(raw: Array, starts: Array, stops: Array, is_read: Array, id_hash: Array) -> None:
    for row in range(len(starts)):
        if is_read[row]:
            id_hash[row] = ascii_hash(raw, starts[row], stops[row])


def _text_list(text: bytes) -> PartitionList | None:
    try:
        partitions = text_partitions(text)
    except BadValueError:
        return None
    topics = topics_of(partitions)
    return PartitionList(partitions, plain_bytes(topics), flexible_bytes(topics))


def _json_list(text: bytes) -> PartitionList | None:
    try:
        listed = JSON_DECODER.decode(text.decode())
        partitions = json_partitions(listed)
    except (ValueError, RecursionError):
        return None
    topics = json_topics(listed)
    return PartitionList(partitions, plain_bytes(topics), flexible_bytes(topics))


_LIST_READERS: Mapping[int, ListReader] = {0: _json_list, 1: _json_list, IS_TEXT: _text_list}
