"""Topics: those that brokers write themselves, where a transactional id lies in one, and what is configured of others.

And Kafka's own tools as printed commands call them, with the brokers' addresses in one variable of the shell.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

STATE_TOPIC, GROUP_TOPIC = "__transaction_state", "__consumer_offsets"
BROKER_WRITTEN_TOPICS = frozenset({STATE_TOPIC, GROUP_TOPIC})
"""Every timestamp in their batches is a broker's, and the tool decodes their records."""

_BROKERS = '--bootstrap-server "$BROKERS"'
TRANSACTIONS = f"kafka-transactions.sh {_BROKERS}"
TOPIC_CONFIGS = f"kafka-configs.sh {_BROKERS} --describe --all --entity-type topics"
STATE_TOPIC_DESCRIPTION = f"kafka-topics.sh {_BROKERS} --describe --topic __transaction_state"

_INT_MIN = -(2**31)
_UNSIGNED = 2**32


@dataclass(frozen=True)
class TopicConfig:
    """One topic's settings that decide what is deleted; None where they are not stated, or unlimited (-1)."""

    cleanup_policies: frozenset[str] | None = None
    retention_ms: int | None = None
    retention_bytes: int | None = None


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
