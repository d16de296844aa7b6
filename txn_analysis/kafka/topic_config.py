"""What a topic's configuration says of its logs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TopicConfig:
    """One topic's settings that decide what is deleted; None where they are not stated, or unlimited (-1)."""

    cleanup_policies: frozenset[str] | None = None
    retention_ms: int | None = None
    retention_bytes: int | None = None
