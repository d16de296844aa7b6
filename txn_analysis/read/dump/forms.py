"""The line grammars of kafka-dump-log: what a batch line and an end-marker line look like, by tool version.

A line is a sequence of `name: value` tokens with single spaces. Each grammar is declared once; the whole-line regular
expression and the column layout of the vectorised reader both come from it.
"""

from __future__ import annotations

import re

from txn_analysis.kafka.batch_format import CODECS, END_MARKERS, MARKER_VALUE_BYTES, TIMESTAMP_TYPES
from txn_analysis.read.dump.line_form import KEY_LIST, OPTIONAL, Field, LineForm, Value, natural, number, word

BATCH_LINE_START = b"baseOffset: "
RECORD_LINE_START = b"| offset: "
LEGACY_BATCH_LINE_START = b"offset: "

_CODEC = word(*CODECS, *(name.upper() for name in CODECS))
_BOOLEAN = word("false", "true")
_TIMESTAMP_TYPE = (Field(b" ", "timestamp_type", word(*TIMESTAMP_TYPES)),)
LINE_STARTS = LineForm(
    (Field(b"", "kind", word(*(s.decode() for s in (BATCH_LINE_START, RECORD_LINE_START, LEGACY_BATCH_LINE_START)))),)
)
"""How the lines begin that are looked at: those of a batch, of a record, and of a batch of message format 0 or 1."""


def _fields(**values: Value) -> tuple[Field, ...]:
    return tuple(Field(f" {label}: ".encode(), _NAMES[label], value) for label, value in values.items())


_NAMES = {
    "lastOffset": "last_offset",
    "count": "record_count",
    "baseSequence": "base_sequence",
    "lastSequence": "last_sequence",
    "producerId": "producer_id",
    "producerEpoch": "producer_epoch",
    "partitionLeaderEpoch": "leader_epoch",
    "isTransactional": "is_transactional",
    "isControl": "is_control",
    "deleteHorizonMs": "delete_horizon",
    "position": "position",
    "size": "size",
    "magic": "magic",
    "compresscodec": "codec",
    "crc": "crc",
    "isvalid": "is_valid",
}
_INT16, _INT32, _INT64 = number(16), number(32), number(64)
_OFFSETS = (Field(BATCH_LINE_START, "base_offset", _INT64), *_fields(lastOffset=_INT64))
_PRODUCER = _fields(
    count=_INT32,
    baseSequence=_INT32,
    lastSequence=_INT32,
    producerId=_INT64,
    producerEpoch=_INT16,
    partitionLeaderEpoch=_INT32,
    isTransactional=_BOOLEAN,
    isControl=_BOOLEAN,
)
_HORIZON = _fields(deleteHorizonMs=OPTIONAL)
_PLACE = (*_fields(position=_INT64), *_TIMESTAMP_TYPE, Field(b": ", "max_timestamp", _INT64))
_SIZE = _fields(size=_INT32, magic=word("2"), compresscodec=_CODEC, crc=natural(2**32 - 1, digits=10))
_VALID = _fields(isvalid=_BOOLEAN)

BATCH_FORMS = {
    "3.2+": LineForm((*_OFFSETS, *_PRODUCER, *_HORIZON, *_PLACE, *_SIZE, *_VALID)),
    "2.2-3.1": LineForm((*_OFFSETS, *_PRODUCER, *_PLACE, *_SIZE, *_VALID)),
    "2.1": LineForm((*_OFFSETS, *_PRODUCER, *_PLACE, *_VALID, *_SIZE)),
}
"""The batch lines of message format 2, by the span of tool versions that print them; the timestamp's label is its type.
"""


_RECORD_START = (
    Field(RECORD_LINE_START, "offset", natural(2**63 - 1)),
    *_TIMESTAMP_TYPE,
    Field(b": ", "timestamp", _INT64),
)


def _bare_record(key_size: str, value_size: str) -> LineForm:
    short = number(64, digits=10)
    return LineForm(
        (
            *_RECORD_START,
            Field(f" {key_size}: ".encode(), "key_bytes", short),
            Field(f" {value_size}: ".encode(), "value_bytes", short),
            Field(b" sequence: ", "sequence", short),
            Field(b" headerKeys: ", "header_keys", KEY_LIST),
        )
    )


BARE_RECORD_FORMS = (_bare_record("keySize", "valueSize"), _bare_record("keysize", "valuesize"))
"""Record lines of dumps without payloads: of tools 3.0 on, and 2.2 to 2.7."""


def _end_marker(key_size: str, value_size: str) -> LineForm:
    sizes = f" {key_size}: 4 {value_size}: {MARKER_VALUE_BYTES} sequence: -1 headerKeys: [] endTxnMarker: "
    epoch = natural(2**31 - 1, digits=10)
    return LineForm(
        (
            *_RECORD_START,
            Field(sizes.encode(), "marker", word(*END_MARKERS)),
            Field(b" coordinatorEpoch: ", "coordinator_epoch", epoch),
        )
    )


MARKER_FORMS = (_end_marker("keySize", "valueSize"), _end_marker("keysize", "valuesize"))
"""The record lines of end markers, of the same tools; MARKER_LINE is the reference, and reads all others."""

# Message formats 0 and 1 hold no producer; their batches only keep the position chain together.
LEGACY_BATCH = re.compile(
    rb"offset: (?P<last_offset>\d{1,19}) position: (?P<position>\d{1,19}) "
    rb"(?P<timestamp_type>CreateTime|LogAppendTime|NoTimestampType): (?P<max_timestamp>-?\d{1,19}) "
    rb"(?:isvalid: (?P<valid_early>true|false) )?size: (?P<size>\d{1,10}) magic: [01] compresscodec: "
    b"(?P<codec>" + _CODEC.pattern + rb") crc: (?P<crc>\d{1,10})(?: isvalid: (?P<valid_late>true|false))?"
)

_MARKER_END = (
    rb" sequence: -1 headerKeys: \[\] (?:endTxnMarker: (?P<marker>COMMIT|ABORT) "
    rb"coordinatorEpoch: (?P<coordinator_epoch>-1|\d{1,10})|controlType: (?P<control_type>[A-Z_]{1,64})\(\d+\).*)"
)
_TIMESTAMP = rb"(?:CreateTime|LogAppendTime|NoTimestampType): -?\d{1,19}"

# The record line of a control batch: 2.2 to 2.7 and 3.0 on (which spell the sizes differently), and 2.8.
# In the syntax of RE2, for Arrow: `\z` ends the text.
MARKER_LINE = (
    rb"\A\| offset: (?P<offset>\d{1,19}) (?:" + _TIMESTAMP + rb" key[sS]ize: 4 value[sS]ize: (?P<value>\d{1,10})|"
    rb"isValid: (?:true|false) crc: (?:null|\d+) keySize: 4 valueSize: (?P<value28>\d{1,10}) "
    + _TIMESTAMP
    + rb" baseOffset: \d+ lastOffset: \d+ baseSequence: -1 lastSequence: -1 producerEpoch: -?\d+ "
    rb"partitionLeaderEpoch: -?\d+ batchSize: \d+ magic: 2 compressType: [A-Za-z0-9]+ position: \d+)"
    + _MARKER_END
    + rb"\n?\z"
)

RECORD_PREFIX = re.compile(
    rb"\| offset: (?P<offset>\d{1,19}) (?:"
    + _TIMESTAMP
    + rb" key[sS]ize: (?P<key>-?\d{1,10}) value[sS]ize: (?P<value>-?\d{1,10})"
    + rb"|isValid: (?:true|false) crc: (?:null|\d+) keySize: (?P<key28>-?\d{1,10}) valueSize: (?P<value28>-?\d{1,10}) "
    + _TIMESTAMP
    + rb" baseOffset: \d+ lastOffset: \d+ baseSequence: -?\d+ lastSequence: -?\d+ producerEpoch: -?\d+ "
    rb"partitionLeaderEpoch: -?\d+ batchSize: \d+ magic: 2 compressType: [A-Za-z0-9]+ position: \d+)"
    rb" sequence: -?\d{1,10} headerKeys: \["
)
# The same up to the first `]`, in the syntax of RE2; `head` is all of it.
RECORD_HEAD = rb"\A(?P<head>" + RECORD_PREFIX.pattern + rb"[^\]]*\])"
