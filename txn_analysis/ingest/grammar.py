"""The line grammars of kafka-dump-log: what a batch line and an end-marker line look like, by tool version.

A line is a sequence of `name: value` tokens with single spaces. Each grammar is declared once; the whole-line regular
expression and the column layout of the vectorised reader both come from it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

BATCH_LINE_START = b"baseOffset: "
RECORD_LINE_START = b"| offset: "
LEGACY_BATCH_LINE_START = b"offset: "
ABSENT = -1
"""Kafka's own word for "none" and "not known", wherever a number cannot be negative; NULL in the tables."""
LAST_TIME_MS = 253_402_300_799_999
"""9999-12-31T23:59:59.999Z. A later time is another unit or damage: it counts as none, and no sum with it overflows."""
TIMESTAMP_TYPES = ("CreateTime", "LogAppendTime", "NoTimestampType")

INTEGER = rb"(-?\d{1,19})"
INT64 = pa.int64()
BOOLEAN = rb"(true|false)"
CODEC = rb"(none|gzip|snappy|lz4|zstd|NONE|GZIP|SNAPPY|LZ4|ZSTD)"
OPTIONAL_LONG = rb"OptionalLong(?:\.empty|\[(\d{1,19})\])"


@dataclass(frozen=True)
class Token:
    """One `label: value` pair; `field` names the value, `pattern` is its whole text."""

    label: str
    field: str
    pattern: bytes = INTEGER
    arrow_type: pa.DataType = INT64


@dataclass(frozen=True)
class BatchGrammar:
    """The batch line of a span of tool versions; the timestamp's label tells its type."""

    name: str
    tokens: tuple[Token, ...]

    @cached_property
    def pattern(self) -> re.Pattern[bytes]:
        """The whole line, without its newline; groups in token order, the timestamp type before its value."""
        parts = []
        for token in self.tokens:
            label = rb"(CreateTime|LogAppendTime|NoTimestampType)" if token.field == "max_timestamp" else None
            parts.append((label or re.escape(token.label.encode())) + b": " + token.pattern)
        return re.compile(b" ".join(parts))


_OFFSETS = (Token("baseOffset", "base_offset"), Token("lastOffset", "last_offset"))
_COUNT = (Token("count", "record_count", arrow_type=pa.int32()),)
_PRODUCER = (
    Token("baseSequence", "base_sequence", arrow_type=pa.int32()),
    Token("lastSequence", "last_sequence", arrow_type=pa.int32()),
    Token("producerId", "producer_id"),
    Token("producerEpoch", "producer_epoch", arrow_type=pa.int16()),
    Token("partitionLeaderEpoch", "leader_epoch", arrow_type=pa.int32()),
)
_FLAGS = (
    Token("isTransactional", "is_transactional", BOOLEAN, pa.bool_()),
    Token("isControl", "is_control", BOOLEAN, pa.bool_()),
)
_HORIZON = (Token("deleteHorizonMs", "delete_horizon", OPTIONAL_LONG, pa.dictionary(pa.int32(), pa.string())),)
_PLACE = (Token("position", "position"), Token("CreateTime", "max_timestamp"))
_SIZE = (
    Token("size", "size", arrow_type=pa.int32()),
    Token("magic", "magic", rb"(2)", pa.int8()),
    Token("compresscodec", "codec", CODEC, pa.dictionary(pa.int32(), pa.string())),
    Token("crc", "crc", rb"(\d{1,10})"),
)
_VALID = (Token("isvalid", "is_valid", BOOLEAN, pa.bool_()),)

BATCH_GRAMMARS = (
    BatchGrammar("3.2+", (*_OFFSETS, *_COUNT, *_PRODUCER, *_FLAGS, *_HORIZON, *_PLACE, *_SIZE, *_VALID)),
    BatchGrammar("2.2-3.1", (*_OFFSETS, *_COUNT, *_PRODUCER, *_FLAGS, *_PLACE, *_SIZE, *_VALID)),
    BatchGrammar("2.1", (*_OFFSETS, *_COUNT, *_PRODUCER, *_FLAGS, *_PLACE, *_VALID, *_SIZE)),
)

# Message formats 0 and 1 hold no producer; their batches only keep the position chain together.
LEGACY_BATCH = re.compile(
    rb"offset: (?P<last_offset>\d{1,19}) position: (?P<position>\d{1,19}) "
    rb"(?P<timestamp_type>CreateTime|LogAppendTime|NoTimestampType): (?P<max_timestamp>-?\d{1,19}) "
    rb"(?:isvalid: (?P<valid_early>true|false) )?size: (?P<size>\d{1,10}) magic: [01] compresscodec: "
    + CODEC
    + rb" crc: (?P<crc>\d{1,10})(?: isvalid: (?P<valid_late>true|false))?"
)

_MARKER_END = (
    rb" sequence: -1 headerKeys: \[\] (?:endTxnMarker: (?P<marker>COMMIT|ABORT) "
    rb"coordinatorEpoch: (?P<coordinator_epoch>-1|\d{1,10})|controlType: (?P<control_type>[A-Z_]{1,64})\(\d+\).*)"
)
_TIMESTAMP = rb"(?:CreateTime|LogAppendTime|NoTimestampType): -?\d{1,19}"

# The record line of a control batch: 2.2 to 2.7 and 3.0 on (which spell the sizes differently), and 2.8.
# In the syntax of RE2, for Arrow: `\z` ends the text. An end marker's value is a version and the coordinator epoch.
MARKER_VALUE_BYTES = 6
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
