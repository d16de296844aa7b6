"""Whose clock wrote the timestamp of a batch: a broker's, or its client's.

A broker writes every control batch and every batch of the topics that are its own, and under LogAppendTime it replaces
the client's time by its own (`UnifiedLog.append`). Only such a time is a moment of the brokers' clocks: it orders the
log beside the coordinator's records, and says how far a copy reaches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from txn_analysis.kafka.topics import BROKER_WRITTEN_TOPICS

if TYPE_CHECKING:
    from txn_analysis.columns.arrays import Array

    Flags = TypeVar("Flags", bool, Array)

LOG_APPEND_TIME = "LogAppendTime"


def is_brokers_time(*, is_control: Flags, is_append_time: Flags, is_brokers_topic: bool | Flags) -> Flags:
    """Which timestamps are moments of a broker's clock; of one batch, or of whole columns of them.

    Args:
        is_control: the batch is a control batch.
        is_append_time: its timestamp type is LogAppendTime.
        is_brokers_topic: its topic is one that brokers write themselves; see `is_brokers_topic`.
    """
    return is_control | is_append_time | is_brokers_topic


def is_brokers_topic(topic: str) -> bool:
    """Every batch of the topic was written by a broker, whatever its timestamp type says."""
    return topic in BROKER_WRITTEN_TOPICS
