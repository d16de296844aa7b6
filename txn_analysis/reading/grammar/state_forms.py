"""What Kafka's tools print of a record of `__transaction_state`: each form once (kafka-formats.md, 1.4, 3 and 4).

Each expression is matched where a record begins or goes on, never searched for.
"""

from __future__ import annotations

import re

from txn_analysis.kafka.names import ID_MAX_BYTES
from txn_analysis.reading.grammar.forms import (
    BATCH_LINE_START,
    END_MARKER,
    GRAMMARS,
    KEY,
    LEGACY_BATCH_LINE_START,
    OTHER_CONTROL,
    PAYLOAD,
    RECORD_LINE_START,
)
from txn_analysis.reading.grammar.line_form import REST_OF_LINE, Field, LineForm, number, text

# Tools of an earlier grammar end with an exception at a value of version 1.
FLEXIBLE_GRAMMARS = frozenset(grammar for grammar, version in GRAMMARS.items() if version >= (3, 2))
OLD_DEEP = "2.1-deep"
"""The grammar of a dump of the state by a tool before 2.2, whose record lines stand alone."""

_STARTS = (RECORD_LINE_START, BATCH_LINE_START, LEGACY_BATCH_LINE_START)
# The newline before a line that a reader must look at; all other lines are alike to it.
LINE_START = re.compile(rb"\n(?=" + b"|".join(map(re.escape, _STARTS)) + b")")
_CONTROL_LABELS = (
    *(form.fields[0].before.strip(b" :") for form in (END_MARKER, OTHER_CONTROL)),
    *(b"LeaderChange", rb"Snapshot\w+", rb"KRaft\w+"),
)
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
