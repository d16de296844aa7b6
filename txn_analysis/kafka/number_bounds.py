"""The largest numbers that Kafka, or a calendar, can mean: what is beyond them is refused before anything starts.

Kafka's own types are the bounds: partitions and the brokers' timeouts are INT, offsets and producer ids INT64. Beside
them there are two of ours, which keep every sum of a moment and a duration within INT64.
"""

from __future__ import annotations

INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1

LAST_MOMENT_MS = 253_402_300_799_999
"""9999-12-31T23:59:59.999Z, epoch ms: the last moment that ISO 8601 spells with four digits."""

MAX_STATE_PARTITIONS = 1_000_000
"""Of `__transaction_state`: a row of memory each, where a cluster has 50 and no controller could lead so many."""
