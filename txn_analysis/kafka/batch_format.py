"""Names and bounds of the record format, as Kafka and its tools spell them, and whose clock wrote a timestamp.

What is beyond a bound is refused before anything starts. Kafka's own types are the bounds: partitions and the brokers'
timeouts are INT, offsets and producer ids INT64. Beside them there are two of ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from txn_analysis.kafka.topics import BROKER_WRITTEN_TOPICS

if TYPE_CHECKING:
    from txn_analysis.columns.arrays import Array

    Flags = TypeVar("Flags", bool, Array)

INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1

MAX_STATE_PARTITIONS = 1_000_000
"""Of `__transaction_state`: a row of memory each, where a cluster has 50 and no controller could lead so many."""

LAST_TIME_MS = 253_402_300_799_999
"""9999-12-31T23:59:59.999Z, the last moment that ISO 8601 spells with four digits.

A later time is another unit or damage: it counts as none, and no sum of it and a duration overflows INT64.
"""

LOG_APPEND_TIME = "LogAppendTime"
TIMES = ("CreateTime", LOG_APPEND_TIME)
TIMESTAMP_TYPES = (*TIMES, "NoTimestampType")
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
END_MARKERS = ("COMMIT", "ABORT")
CONTROL_KEY_BYTES = 4  # of any control record: a version and its type
MARKER_VALUE_BYTES = 6  # of an end marker: a version and the coordinator epoch


def is_brokers_time(*, is_control: Flags, is_append_time: Flags, is_brokers_topic: bool | Flags) -> Flags:
    """Which timestamps are moments of a broker's clock; of one batch, or of whole columns of them.

    A broker writes every control batch and every batch of the topics that are its own, and under LogAppendTime it
    replaces the client's time by its own (`UnifiedLog.append`). Only such a time is a moment of the brokers' clocks: it
    orders the log beside the coordinator's records, and says how far a copy reaches.

    Args:
        is_control: the batch is a control batch.
        is_append_time: its timestamp type is LogAppendTime.
        is_brokers_topic: its topic is one that brokers write themselves; see `is_brokers_topic`.
    """
    return is_control | is_append_time | is_brokers_topic


def is_brokers_topic(topic: str) -> bool:
    """Every batch of the topic was written by a broker, whatever its timestamp type says."""
    return topic in BROKER_WRITTEN_TOPICS
