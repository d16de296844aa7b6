"""Kafka's own hash of a transactional id: which partition of `__transaction_state` holds it."""

from __future__ import annotations

from functools import lru_cache

_INT_MIN = -(2**31)
_UNSIGNED = 2**32


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
