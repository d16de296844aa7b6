"""What a record line begins with, in whatever form tools 2.2 and newer print it, as regular expressions."""

from __future__ import annotations

import re

from txn_analysis.kafka.batch_format import CONTROL_KEY_BYTES
from txn_analysis.read.dump.forms import END_MARKER, OTHER_CONTROL, RECORD, RECORD_2_8
from txn_analysis.read.dump.line_form import either

_SIZES = ("key_bytes", "value_bytes")
_TIME = RECORD.part("timestamp_type", "timestamp").bounded()
_BATCH = RECORD_2_8.part("base_offset", "position")


def _until_sequence(sizes: bytes, sizes_2_8: bytes, batch: bytes) -> bytes:
    """The offset and what follows it up to the sequence, with the sizes and the batch as they are wanted."""
    before_sizes = RECORD_2_8.part("is_valid").bounded() + RECORD_2_8.part("crc").loose()
    return RECORD.part("offset").bounded("offset") + either(_TIME + sizes, before_sizes + sizes_2_8 + _TIME + batch)


_KEY_SIZE, _MARKER_SIZE = b"%d" % CONTROL_KEY_BYTES, rb"\d{1,10}"
MARKER_LINE = (
    rb"\A"
    + _until_sequence(
        RECORD.part(*_SIZES).bounded("value_bytes", key_bytes=_KEY_SIZE, value_bytes=_MARKER_SIZE),
        RECORD_2_8.part(*_SIZES).bounded("value_bytes", suffix="28", key_bytes=_KEY_SIZE, value_bytes=_MARKER_SIZE),
        _BATCH.loose(base_sequence=b"-1", last_sequence=b"-1"),
    )
    + RECORD.part("sequence", "header_keys").bounded(sequence=b"-1", header_keys=rb"\[\]")
    + either(
        END_MARKER.bounded("marker", "coordinator_epoch", coordinator_epoch=rb"-1|\d{1,10}"),
        OTHER_CONTROL.bounded("control_type"),
    )
    + rb"\n?\z"
)
"""The whole record line of a control batch. In the syntax of RE2, for Arrow, where a `z` behind `\\` ends the text."""

RECORD_PREFIX = re.compile(
    _until_sequence(
        RECORD.part(*_SIZES).bounded(*_SIZES), RECORD_2_8.part(*_SIZES).bounded(*_SIZES, suffix="28"), _BATCH.loose()
    )
    + RECORD.part("sequence", "header_keys").bounded(header_keys=rb"\[")
)
"""Any record line up to its header keys."""
RECORD_HEAD = rb"\A(?P<head>" + RECORD_PREFIX.pattern + rb"[^\]]*\])"
"""Any record line up to the first `]`, in the syntax of RE2; `head` is all of it."""
