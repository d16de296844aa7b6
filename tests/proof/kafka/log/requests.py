"""Requests to one log of Kafka's, and the story that a list of them is."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

BEGAN_MS = 1_700_000_000_000
NO_PRODUCER = -1
SEGMENT_BYTES = "segment.bytes"
"""Of a topic; 4.0 and newer take small ones under another name, and are given that."""

Step = dict[str, Any]

_CONFIG = {
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "segment.index.bytes": "4096",
    "message.timestamp.before.max.ms": str(2**63 - 1),
    "message.timestamp.after.max.ms": str(2**63 - 1),
}


@dataclass(frozen=True)
class Story:
    """A list of requests, and the broker that takes them.

    Attributes:
        name: of its folder.
        steps: the requests, in order.
        config: of the topic, beside what all topics have here.
        max_timeout_ms: the broker's `transaction.max.timeout.ms`.
        expiration_ms: the broker's `producer.id.expiration.ms`.
        is_replicated: the high watermark follows the end of the log at once.
        is_closed: the broker is shut down at the end; otherwise its files are copied while it runs.
    """

    name: str
    steps: tuple[Step, ...]
    config: dict[str, str] = field(default_factory=dict)
    max_timeout_ms: int = 900_000
    expiration_ms: int = 86_400_000
    is_replicated: bool = True
    is_closed: bool = False

    def request(self) -> Step:
        """As the Java program reads it."""
        return {
            "name": self.name,
            "now": BEGAN_MS,
            "steps": self.steps,
            "config": _CONFIG | self.config,
            "maxTimeoutMs": self.max_timeout_ms,
            "expirationMs": self.expiration_ms,
            "replicated": self.is_replicated,
            "closed": self.is_closed,
        }

    def named(self, name: str) -> Story:
        """The same under another name."""
        return replace(self, name=name)


def data(
    producer: int = NO_PRODUCER,
    *keys: str | None,
    epoch: int = 0,
    transactional: bool = True,
    at_ms: int = BEGAN_MS,
    leader_epoch: int = 0,
    **more: Any,
) -> Step:
    """A batch of data, one record for each key; of no producer it is neither idempotent nor transactional."""
    is_plain = producer == NO_PRODUCER
    return {
        "do": "data",
        "producer": producer,
        "epoch": -1 if is_plain else epoch,
        "transactional": transactional and not is_plain,
        "keys": keys or ("key",),
        "time": at_ms,
        "leaderEpoch": leader_epoch,
        "leader": True,
    } | more


def marker(
    producer: int,
    *,
    commit: bool,
    epoch: int = 0,
    coordinator_epoch: int = 0,
    at_ms: int = BEGAN_MS,
    leader_epoch: int = 0,
    **more: Any,
) -> Step:
    """An end marker."""
    return {
        "do": "marker",
        "producer": producer,
        "epoch": epoch,
        "commit": commit,
        "coordinatorEpoch": coordinator_epoch,
        "time": at_ms,
        "leaderEpoch": leader_epoch,
        "leader": True,
    } | more


def empty(
    producer: int, *, control: bool, count: int = 1, epoch: int = 0, at_ms: int = BEGAN_MS, leader_epoch: int = 0
) -> Step:
    """A batch that a follower fetches after the leader's cleaner took its records."""
    return {
        "do": "empty",
        "producer": producer,
        "epoch": epoch,
        "control": control,
        "transactional": True,
        "count": count,
        "time": at_ms,
        "leaderEpoch": leader_epoch,
        "leader": False,
    }


def do(what: str, **words: Any) -> Step:
    """Any other request: roll, snapshot, delete, truncate, restart, clean, load, checkpoint, wait."""
    return {"do": what} | words
