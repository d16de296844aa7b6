"""Names and bounds of the record format, as Kafka and its tools spell them."""

from __future__ import annotations

LAST_TIME_MS = 253_402_300_799_999
"""9999-12-31T23:59:59.999Z. A later time is another unit or damage: it counts as none, and no sum with it overflows."""
TIMES = ("CreateTime", "LogAppendTime")
TIMESTAMP_TYPES = (*TIMES, "NoTimestampType")
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
END_MARKERS = ("COMMIT", "ABORT")
CONTROL_KEY_BYTES = 4  # of any control record: a version and its type
MARKER_VALUE_BYTES = 6  # of an end marker: a version and the coordinator epoch
