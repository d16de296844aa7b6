"""The lines that kafka-dump-log prints, each described once: its fields, their values, and which versions print them.

Whatever reads or recognises a line is made of these: the exact grammar, the tables of the compiled reader, and the
looser expressions that find where a line begins, or that step over one. Formats: kafka-formats.md, 1 and 2.
"""

from __future__ import annotations

import re
from dataclasses import replace

from txn_analysis.kafka.names import (
    CODECS,
    CONTROL_KEY_BYTES,
    END_MARKERS,
    ID_MAX_BYTES,
    MARKER_VALUE_BYTES,
    TIMESTAMP_TYPES,
)
from txn_analysis.reading.grammar.line_form import (
    FIRST,
    KEY_LIST,
    NEWEST,
    OPTIONAL,
    REST_OF_LINE,
    SCALA_OPTION,
    STARTS_HERE,
    Field,
    LineForm,
    LineForms,
    Value,
    Version,
    natural,
    number,
    text,
    unsigned,
    word,
)

_INT16, _INT32, _INT64 = number(16), number(32), number(64)
_OFFSET, _NATURAL_64, _NATURAL_32 = unsigned(64), natural(2**63 - 1), natural(2**31 - 1, digits=10)
_UINT32 = natural(2**32 - 1, digits=10)
_BOOLEAN = word("false", "true")
_CODEC = word(*CODECS, *(name.upper() for name in CODECS))
_MAGIC_2 = word("2", loose=b"2")


def _field(label: str, name: str, value: Value, since: Version = FIRST, until: Version = NEWEST) -> Field:
    return Field(f" {label}: ".encode(), name, value, since, until)


def _time(name: str) -> tuple[Field, Field]:
    """A time, whose label is its type."""
    return Field(b" ", "timestamp_type", word(*TIMESTAMP_TYPES)), Field(b": ", name, _INT64)


KEY, PAYLOAD = b" key: ", b" payload: "
"""What stands before the texts of a record's key and value."""

BATCH = LineForm(
    (
        Field(b"baseOffset: ", "base_offset", _OFFSET),
        _field("lastOffset", "last_offset", _OFFSET),
        _field("count", "record_count", unsigned(32), since=(2, 0)),
        _field("baseSequence", "base_sequence", _INT32),
        _field("lastSequence", "last_sequence", _INT32),
        _field("producerId", "producer_id", _INT64),
        _field("producerEpoch", "producer_epoch", _INT16),
        _field("partitionLeaderEpoch", "leader_epoch", _INT32),
        _field("isTransactional", "is_transactional", _BOOLEAN),
        _field("isControl", "is_control", _BOOLEAN, since=(2, 1)),
        _field("deleteHorizonMs", "delete_horizon", OPTIONAL, since=(3, 2)),
        _field("position", "position", _OFFSET),
        *_time("max_timestamp"),
        _field("isvalid", "is_valid", _BOOLEAN, until=(2, 1)),
        _field("size", "size", unsigned(32)),
        _field("magic", "magic", _MAGIC_2),
        _field("compresscodec", "codec", _CODEC),
        _field("crc", "crc", _UINT32),
        _field("isvalid", "is_valid", _BOOLEAN, since=(2, 2)),
    )
)
"""The line of a batch of message format 2. Before 2.1 it does not say which batches are end markers."""
GRAMMARS: dict[str, Version] = {"3.2+": (3, 2), "2.2-3.1": (2, 2), "2.1": (2, 1)}
"""The spans of tool versions that print batch lines in one form, newest first, by the first of them."""
BATCH_FORMS = {grammar: BATCH.at(version) for grammar, version in GRAMMARS.items()}

LEGACY_BATCH = LineForm(
    (
        Field(b"offset: ", "last_offset", _NATURAL_64),
        _field("position", "position", _NATURAL_64),
        *_time("max_timestamp"),
        _field("isvalid", "is_valid", _BOOLEAN, until=(2, 1)),
        _field("size", "size", _NATURAL_32),
        _field("magic", "magic", word("0", "1")),
        _field("compresscodec", "codec", _CODEC),
        _field("crc", "crc", _UINT32),
        _field("isvalid", "is_valid", _BOOLEAN, since=(2, 2)),
    )
)
"""The line of a batch of message format 0 or 1, which holds no producer: it only keeps the position chain together."""
LEGACY_FORMS = LineForms(tuple(LEGACY_BATCH.at(version) for version in ((2, 2), (2, 1))))
ANY_BATCH = LineForms((*BATCH_FORMS.values(), *LEGACY_FORMS.forms))
"""A batch line of any of these tools, of any message format."""

_SIZE = number(64, digits=10)
_SIZES = (
    Field(b" keySize: ", "key_bytes", _SIZE, earlier=(b" keysize: ", (2, 7))),
    Field(b" valueSize: ", "value_bytes", _SIZE, earlier=(b" valuesize: ", (2, 7))),
)
_SEQUENCE = _field("sequence", "sequence", _SIZE)
_HEADER_KEYS = _field("headerKeys", "header_keys", KEY_LIST)
_RECORD_OFFSET = Field(b"| offset: ", "offset", _NATURAL_64)

RECORD = LineForm((_RECORD_OFFSET, *_time("timestamp"), *_SIZES, _SEQUENCE, _HEADER_KEYS))
"""What the line of a record begins with, under its batch's line: tools 2.2 to 2.7, and 3.0 on."""
RECORD_2_8 = LineForm(
    (
        _RECORD_OFFSET,
        _field("isValid", "is_valid", _BOOLEAN),
        _field("crc", "crc", text(rb"(?:null|\d{1,10})", rb"(?:null|\d+)")),
        *_SIZES,
        *_time("timestamp"),
        _field("baseOffset", "base_offset", _OFFSET),
        _field("lastOffset", "last_offset", _OFFSET),
        _field("baseSequence", "base_sequence", _INT32),
        _field("lastSequence", "last_sequence", _INT32),
        _field("producerEpoch", "producer_epoch", _INT16),
        _field("partitionLeaderEpoch", "leader_epoch", _INT32),
        _field("batchSize", "size", unsigned(32)),
        _field("magic", "magic", _MAGIC_2),
        _field("compressType", "codec", text(rb"[A-Za-z0-9]+", rb"[A-Za-z0-9]+")),
        _field("position", "position", _OFFSET),
        _SEQUENCE,
        _HEADER_KEYS,
    )
).at((2, 8))
"""The record line of tool 2.8."""
LEGACY_RECORD = re.compile(
    (RECORD.part("offset").bounded() + b"(?:" + RECORD_2_8.part("is_valid", "crc").bounded() + b")?")
    + (b"(?:" + RECORD.part("timestamp_type", "timestamp").bounded() + b")?")
    + RECORD.part("key_bytes", "value_bytes").bounded("key_bytes", "value_bytes")
    + (b"(?:" + RECORD_2_8.part("timestamp_type", "position").bounded(magic=b"[01]") + b")?")
    + rb"(?: isValid: \w+ crc: \d+\}| crc: (?:null|\d+) isvalid: \w+)?"
)
"""The record line of message format 0 or 1 under its batch's line, up to its key: of tools 2.2 on."""
OLD_RECORD = LineForm(
    (
        Field(b"offset: ", "offset", _NATURAL_64),
        _field("position", "position", _OFFSET),
        *_time("timestamp"),
        _field("isvalid", "is_valid", _BOOLEAN),
        *_SIZES,
        _field("magic", "magic", _MAGIC_2),
        _field("compresscodec", "codec", text(rb"[A-Za-z0-9]+", rb"\w+")),
        _field("producerId", "producer_id", _INT64),
        _field("producerEpoch", "producer_epoch", _INT16, since=(1, 0)),
        _SEQUENCE,
        _field("isTransactional", "is_transactional", _BOOLEAN),
        _HEADER_KEYS,
    )
).of(FIRST, (2, 1))
"""The record line of tools up to 2.1, which print it instead of the batch's line."""
OLD_RECORD_CRC = LineForm((_field("crc", "crc", _UINT32),))
"""What a record line of tools up to 2.1 has behind its codec in message formats 0 and 1."""

END_MARKER = LineForm(
    (
        _field("endTxnMarker", "marker", word(*END_MARKERS)),
        _field("coordinatorEpoch", "coordinator_epoch", natural(2**31 - 1, digits=10, loose=rb"-?\d+")),
    )
)
"""What stands behind the record line of an end marker."""
OTHER_CONTROL = LineForm(
    (
        _field("controlType", "control_type", text(rb"[A-Z_]{1,64}", rb"\w+")),
        Field(b"(", "number", text(rb"\d+", rb"\d+")),
        Field(b")", "content", text(rb".*")),
    )
)
"""What stands behind the record line of any other control record."""
CONTROL_NAMES = {
    b"LeaderChange": "LEADER_CHANGE",
    b"SnapshotHeader": "SNAPSHOT_HEADER",
    b"SnapshotFooter": "SNAPSHOT_FOOTER",
    b"KRaftVersion": "KRAFT_VERSION",
    b"KRaftVoters": "KRAFT_VOTERS",
}
"""What newer tools call those that they print the content of, in JSON: 3.3 and 3.8 on, and of a leader 4.1 on."""
NAMED_CONTROL = LineForm(
    (
        Field(b" ", "control_name", text(*[b"(?:" + b"|".join(CONTROL_NAMES) + b")"] * 2)),
        Field(b"", "content", text(rb":? \{[^\n]*", rb":? \{[^\n]*")),
    )
)
"""What stands behind the record lines of these."""

_MARKER = {
    "key_bytes": str(CONTROL_KEY_BYTES),
    "value_bytes": str(MARKER_VALUE_BYTES),
    "sequence": "-1",
    "header_keys": "[]",
}
_SPELLINGS: tuple[Version, Version] = (3, 0), (2, 2)
BARE_RECORD_FORMS = LineForms(tuple(RECORD.at(version) for version in _SPELLINGS))
"""Whole record lines of dumps without payloads: of tools 3.0 on, and 2.2 to 2.7."""
MARKER_FORMS = LineForms(
    tuple(LineForm(form.fields + END_MARKER.fields).saying(**_MARKER) for form in BARE_RECORD_FORMS.forms)
)
"""The record lines of end markers, of the same tools; `MARKER_LINE` is the reference, and reads all others."""

LINE_STARTS = LineForm(
    (Field(b"", "kind", word(*(form.fields[0].before.decode() for form in (BATCH, RECORD, LEGACY_BATCH)))),)
)
"""How the lines begin that are looked at: those of a batch, of a record, and of a batch of message format 0 or 1."""
BATCH_LINE_START, RECORD_LINE_START, LEGACY_BATCH_LINE_START = (
    start.encode() for start in LINE_STARTS.fields[0].value.words
)

PRODUCER = LineForm(
    (
        Field(b"producerId: ", "producer_id", natural(2**63 - 1, loose=rb"-?\d+")),
        _field("producerEpoch", "producer_epoch", natural(2**15 - 1, digits=5, loose=rb"-?\d+")),
        _field("coordinatorEpoch", "coordinator_epoch", _INT32),
        _field("currentTxnFirstOffset", "txn_start_offset", OPTIONAL),
    )
)
"""What the line of a producer snapshot begins with, of tools 3.5 on."""
_SCALA_PRODUCER = LineForm((*PRODUCER.fields[:-1], replace(PRODUCER.fields[-1], value=SCALA_OPTION)))
_SINCE_3_1 = (_field("lastTimestamp", "last_timestamp", _INT64),)
_CACHED_BATCH = (
    _field("firstSequence", "first_sequence", _INT32),
    _field("lastSequence", "last_sequence", _INT32),
    _field("lastOffset", "last_offset", _INT64),
    _field("offsetDelta", "offset_delta", _INT32),
    _field("timestamp", "timestamp", _INT64),
)
# Of a producer without a cached data batch the line ends with the space before it, which 4.3 leaves out.
_NO_BATCH = (Field(b" ", "stop", STARTS_HERE),)
_ENDS_SINCE_3_1 = [(*_SINCE_3_1, *end) for end in (_CACHED_BATCH, _NO_BATCH, ())]
_PRODUCERS = (
    (PRODUCER, _ENDS_SINCE_3_1),
    (_SCALA_PRODUCER, _ENDS_SINCE_3_1),
    (_SCALA_PRODUCER, (_CACHED_BATCH, _NO_BATCH)),
)
PRODUCER_FORMS = LineForms(tuple(LineForm((*begin.fields, *end)) for begin, ends in _PRODUCERS for end in ends))
"""Whole lines of producer snapshots: of tools 3.5 on, 3.1 to 3.4, and 1.1 to 3.0."""
ABORTED_TRANSACTION = LineForm(
    (
        Field(b"version: ", "version", word("0", loose=rb"\d+")),
        _field("producerId", "producer_id", _NATURAL_64),
        _field("firstOffset", "first_offset", _NATURAL_64),
        _field("lastOffset", "last_offset", _NATURAL_64),
        _field("lastStableOffset", "last_stable_offset", _NATURAL_64),
    )
)
"""The line of a transaction index."""
INDEX_ENTRY = LineForm((Field(b"offset: ", "offset", _NATURAL_64), _field("position", "position", _NATURAL_64)))
TIME_INDEX_ENTRY = LineForm((Field(b"timestamp: ", "timestamp", _INT64), _field("offset", "offset", _INT64)))

DUMPING = LineForm((Field(b"Dumping ", "path", text(rb"[^\n]{1,4096}")),))
"""The first line of a section."""
DUMPING_START = DUMPING.fields[0].before
STARTING_OFFSET = LineForm(
    (Field(b"Log starting offset: ", "base_offset", _NATURAL_64, earlier=(b"Starting offset: ", (3, 2))),)
)
"""The second line of a section that is a `.log` file: the offset in the file's name."""
METADATA_SNAPSHOT = rb"Snapshot end offset: [^\n]*|KRaft bootstrap snapshot"
"""The second line of a section that is a snapshot of KRaft metadata."""
INVALID_BYTES = LineForm(
    (
        Field(b"Found ", "torn_bytes", natural(10**18 - 1, digits=18)),
        Field(b" invalid bytes at the end of ", "file_name", text(rb"[^\n]{1,255}")),
    )
)
"""The last line of a file that ends inside a batch."""
DEPRECATED = LineForm(
    (
        Field(b"kafka.serializer.", "decoder", text(rb"\w{1,64}", rb"\w+")),
        Field(b" is deprecated.", "remedy", text(rb" Please use [^\n]{1,255}")),
    )
)
"""The first line of tools 3.8 and 3.9 that are given a decoder."""


# Tools of an earlier grammar end with an exception at a value of version 1.
FLEXIBLE_GRAMMARS = frozenset(grammar for grammar, version in GRAMMARS.items() if version >= (3, 2))
OLD_DEEP = "2.1-deep"
"""The grammar of a dump of the state by a tool before 2.2, whose record lines stand alone."""

_STARTS = (RECORD_LINE_START, BATCH_LINE_START, LEGACY_BATCH_LINE_START)
# The newline before a line that a reader must look at; all other lines are alike to it.
LINE_START = re.compile(rb"\n(?=" + b"|".join(map(re.escape, _STARTS)) + b")")
_CONTROL_LABELS = *(form.fields[0].before.strip(b" :") for form in (END_MARKER, OTHER_CONTROL)), *CONTROL_NAMES
CONTROL_SUFFIX = re.compile(b" (?:" + b"|".join(_CONTROL_LABELS) + rb"):? ?[^\n]*\n|\n")

KEY_HEAD_BYTES = 4  # of the key in the log: record type and string length, int16 each, before the id
TOMBSTONE = b"<DELETE>"
TEXT_KEY_BYTES = 64  # at least the longest head of a key in the text form
TEXT_KEY = re.compile(KEY + rb"(?:transaction_metadata::)?transactionalId=")

_EPOCH, _TIME = number(16), number(64)
_STATE = text(rb"\w+", rb"\w+")
_TIMEOUT = text(rb"\d{1,10}", rb"-?\d+")
_LISTED, _SCALA_SET = rb"\[(?P<listed>[^\]\n]*)\]", rb"(?:Hash)?Set\((?P<scala>[^)\n]*)\)"
TEXT_VALUE = LineForm(
    (
        Field(b"producerId:", "producer_id", number(64)),
        Field(b",producerEpoch:", "producer_epoch", _EPOCH),
        Field(b",state=", "state", _STATE),
        Field(b",partitions=", "partitions", text(b"(?:" + _LISTED + b"|" + _SCALA_SET + b")", rb"[\w.,() \[\]-]*")),
        Field(b",txnLastUpdateTimestamp=", "last_update_ms", _TIME),
        Field(b",txnTimeoutMs=", "timeout_ms", _TIMEOUT),
    )
)
"""A value in the text form, tools up to 4.0."""
_VALUES = ("producer_id", "producer_epoch", "state", "last_update_ms", "timeout_ms")
TEXT_PAYLOAD = re.compile(PAYLOAD + b"(?:" + TOMBSTONE + b"|" + TEXT_VALUE.bounded(*_VALUES) + rb")\n")
ANY_TEXT_PAYLOAD = re.compile(PAYLOAD + b"(?:" + TOMBSTONE + b"|" + TEXT_VALUE.loose() + rb")\n")

_UNKNOWN_TYPE, _AT_OFFSET, _UNKNOWN_VERSION = b"Unknown record type", b"Error at offset", b"unknown::version="
# What the decoder prints for a record that it cannot read: 4.1 on, and 3.5 to 4.0.
DECODER_ERROR = re.compile(
    KEY
    + (b"(?:" + _UNKNOWN_TYPE + rb" -?\d+ at offset \d+, skipping\.|" + _AT_OFFSET + rb" \d+, skipping\.[^\n]*")
    + (b"|" + _UNKNOWN_VERSION + rb"-?\d+)(?:" + PAYLOAD + TOMBSTONE + rb")?\n")
)
ANY_DECODER_ERROR = re.compile(
    KEY + b"(?:(?:" + _UNKNOWN_TYPE + b"|" + _AT_OFFSET + rb") [^\n]*|" + _UNKNOWN_VERSION + rb"-?\d{1,5})\n"
)
JSON_KEY = re.compile(KEY + rb'\{"type":"\d{1,5}","data":\{' + REST_OF_LINE + rb"\n")
JSON_PAYLOAD = re.compile(rb"\}\}" + PAYLOAD + b"(?:" + TOMBSTONE + rb'\n|\{"version":"\d{1,5}","data":\{)')
CONSOLE_SEPARATOR = b"::TransactionMetadata(transactionalId="
CONSOLE_VALUE = LineForm(
    (
        Field(b", producerId=", "producer_id", number(64)),
        Field(b", producerEpoch=", "producer_epoch", _EPOCH),
        Field(b", txnTimeoutMs=", "timeout_ms", _TIMEOUT),
        Field(b", state=", "state", _STATE),
        Field(b", pendingState=", "pending_state", text(rb"(?:None|Some\(\w+\))")),
        Field(b", topicPartitions=", "partitions", text(rb"(?:Hash)?Set\((?P<partitions>[^)\n]*)\)")),
        Field(b", txnStartTimestamp=", "start_ms", _TIME),
        Field(b", txnLastUpdateTimestamp=", "last_update_ms", _TIME),
    )
)
"""A value in a console export as text, 0.11 to 3.9, behind the second time that it prints the id."""
CONSOLE_AFTER_ID = CONSOLE_VALUE.fields[0].before
CONSOLE_TAIL = re.compile(CONSOLE_VALUE.bounded(*_VALUES, "start_ms") + rb"\)\n?")
_ID = rb"[^\n]{1,%d}" % ID_MAX_BYTES
CONSOLE_TOMBSTONE = re.compile(b"(?P<id>" + _ID + rb")::NULL\n")
CONSOLE_UNKNOWN_KEY = re.compile(_UNKNOWN_VERSION + rb"-?\d+\n")
_REPEATED_ID = rb"(?s)(.{1,%d}?)" % ID_MAX_BYTES + re.escape(CONSOLE_SEPARATOR) + rb"\1" + CONSOLE_AFTER_ID
CONSOLE_TEXT_START = re.compile(_REPEATED_ID + b"|" + _ID + rb"::NULL\n")
"""How such an export begins."""
CONSOLE_JSON_START = re.compile(rb'\s*\{"key":(?:null|\{"(version|type)":\d+,"data":)')
"""How a console export as JSON begins, 3.9 to 4.4; `version` is 3.9's word."""
