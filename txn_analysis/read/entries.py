"""What an entry of a producer snapshot says, and one of a transaction index; under the names of Kafka's classes."""

from __future__ import annotations

from typing import NamedTuple


class ProducerStateEntry(NamedTuple):
    """One producer in one snapshot file: a row of `producer_snapshots` without its input."""

    topic: str
    partition: int
    snapshot_offset: int
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int | None
    current_txn_start_offset: int | None
    last_timestamp_ms: int | None
    last_sequence: int | None
    last_offset: int | None


class AbortedTxn(NamedTuple):
    """One entry of one transaction index: a row of `aborted_transactions` without its input."""

    topic: str
    partition: int
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int
