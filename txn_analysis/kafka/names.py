"""Kafka's names and bounds: topics, the record format, and what its files hold; and its tools in printed commands.

What is beyond a bound is refused before anything starts. Kafka's own types are the bounds: partitions and the brokers'
timeouts are INT, offsets and producer ids INT64; beside them there are two of ours. Kinds and grammars of sections are
named as in the table `inputs`. By the kind of a problem it is told what it spoils.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from txn_analysis.columns.arrays import Array

    Flags = TypeVar("Flags", bool, Array)


STATE_TOPIC, GROUP_TOPIC, SHARE_STATE_TOPIC = "__transaction_state", "__consumer_offsets", "__share_group_state"
COMPACT, DELETE = "compact", "delete"
INTERNAL_TOPICS = {STATE_TOPIC: COMPACT, GROUP_TOPIC: COMPACT, SHARE_STATE_TOPIC: DELETE}
"""Kafka's internal topics (`Topic.INTERNAL_TOPICS`), each with the cleanup policy with which brokers make it.

Brokers alone write them, so that every timestamp in their batches is a broker's. Those of `__share_group_state`
(KIP-932) may become part of transactions (KIP-1289).
"""
BROKER_WRITTEN_TOPICS = frozenset({STATE_TOPIC, GROUP_TOPIC})
"""Of the internal topics those whose records are decoded here: their dumps hold no text of a client."""

_BROKERS = '--bootstrap-server "$BROKERS"'
TRANSACTIONS = f"kafka-transactions.sh {_BROKERS}"
TOPIC_CONFIGS = f"kafka-configs.sh {_BROKERS} --describe --all --entity-type topics"
STATE_TOPIC_DESCRIPTION = f"kafka-topics.sh {_BROKERS} --describe --topic __transaction_state"

_INT_MIN = -(2**31)
_UNSIGNED = 2**32


@dataclass(frozen=True)
class TopicConfig:
    """One topic's settings that decide what is deleted; None where they are not stated, or unlimited (-1).

    `is_tiered`: its segments are copied to remote storage (KIP-405). The local retention is that of such topics alone.
    """

    cleanup_policies: frozenset[str] | None = None
    retention_ms: int | None = None
    retention_bytes: int | None = None
    is_tiered: bool | None = None
    local_retention_ms: int | None = None
    local_retention_bytes: int | None = None


@lru_cache(maxsize=4096)  # a transaction writes four records of the same id
def java_hash(text: str) -> int:
    """Java's `String.hashCode`: 31 * h + c over UTF-16 code units, as a signed int32."""
    units = memoryview(text.encode("utf-16-be", "surrogatepass"))
    value = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) % _UNSIGNED
    return value - _UNSIGNED if value >= -_INT_MIN else value


def state_partition(hashed: int, partition_count: int) -> int:
    """The partition of `__transaction_state` for a Java hash, by Kafka's `Utils.abs`, where abs(MIN_VALUE) is 0."""
    return positive_hash(hashed) % partition_count


def positive_hash(hashed: int) -> int:
    """Kafka's `Utils.abs`."""
    return 0 if hashed == _INT_MIN else abs(hashed)


LOG, STATE, SNAPSHOT, TXNINDEX = "log", "state", "snapshot", "txnindex"
CONSOLE_TEXT, CONSOLE_JSON = "console_text", "console_json"  # exports of the console consumer
CONSOLE_KINDS = frozenset({CONSOLE_TEXT, CONSOLE_JSON})
LOG_KINDS = frozenset({LOG, STATE})  # sections of batches
STATE_KINDS = frozenset({STATE, *CONSOLE_KINDS})  # sections of records of the coordinator
# What a small file of a log directory states, as sections of kinds of their own.
HIGH_WATERMARK, LOG_START, LEADER_EPOCH = "high_watermark", "log_start", "leader_epoch"
DESCRIBED = "described_producers"  # an answer to DescribeProducers, beside segments that were fetched
MANIFEST_FILE, MANIFEST_FORMAT, MANIFEST_VERSION = "txn-capture.json", "txn-capture", 1
DESCRIBED_FILE, DESCRIBED_FORMAT = "described-producers.json", "txn-capture described producers"
COORDINATORS_FILE, COORDINATORS_FORMAT = "coordinator-answers.json", "txn-capture coordinator answers"
CLUSTER_ID, NODE_ID, TOPIC_ID = "cluster_id", "node_id", "topic_id"
CLEAN_SHUTDOWN = "clean_shutdown"  # stated beside a high watermark that no broker has moved since
STATED_OF_PARTITION = frozenset({HIGH_WATERMARK, LOG_START, LEADER_EPOCH, TOPIC_ID, DESCRIBED})
# Grammars of a broker's own files: as they are, and with the checksum of every batch looked at (--verify).
BINARY, BINARY_VERIFIED = "binary", "binary-verified"
NO_LINES = "empty"  # that of the dump of a file without a line
BINARY_GRAMMARS = frozenset({BINARY, BINARY_VERIFIED})

ID_MAX_BYTES = 2**15 - 1  # of a transactional id, as of any string of Kafka
INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1
OFFSET_MAX = INT64_MAX - 1  # the offset after it must be a number too

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
    return topic in INTERNAL_TOPICS
