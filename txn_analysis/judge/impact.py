"""What an open transaction costs its partition: since when records are hidden, what grows, and what will be lost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from txn_analysis.kafka.topics import TopicConfig
    from txn_analysis.kafka.transactions import OpenTransaction, PartitionView

DAY_MS = 86_400_000
_SHORTEST_MEASURED_MS = 600_000
# The brokers create these two themselves, with this policy.
_COMPACTED_BY_KAFKA = ("__consumer_offsets", "__transaction_state")


@dataclass(frozen=True, slots=True)
class Impact:
    """The column `impact` of `findings`; None where the files do not say. Moments are epoch milliseconds."""

    hidden_since_ms: int | None
    hidden_share: float | None
    is_compacted: bool | None
    is_compaction_stopped: bool | None
    log_growth_bytes_per_day: int | None
    log_growth_measured_ms: int | None
    days_until_full: float | None
    hidden_lost_at_ms: int | None
    pending_groups: tuple[str, ...] | None = None
    waiting_groups: tuple[str, ...] | None = None

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Impact:
        """The column of a row, with all its fields or some."""
        said: dict[str, Any] = {name: row.get(name) for name in cls.__slots__}
        groups = {name: None if said[name] is None else tuple(said[name]) for name in _GROUPS}
        return cls(**said | groups)


_GROUPS = ("pending_groups", "waiting_groups")


def impact_of(
    opened: OpenTransaction,
    partition: PartitionView,
    config: TopicConfig | None,
    free_bytes: int | None,
    as_of_ms: int | None,
) -> Impact:
    """What the transaction that holds a partition's last stable offset costs it.

    The groups of a partition of `__consumer_offsets` are put in by who knows them; see `judge.blocked_groups`.

    Args:
        opened: the transaction.
        partition: the health of its partition.
        config: what is known of its topic's configuration.
        free_bytes: space that is left for this log to grow into.
        as_of_ms: when the files were copied.
    """
    since = (opened.first_appended_before_ms, opened.appended_before_ms)
    since_ms = next((ms for ms in since if ms is not None), None)
    measured_ms = _measured_ms(partition.first_moment_ms, as_of_ms)
    growth = None if measured_ms is None else partition.log_bytes * DAY_MS // measured_ms
    is_compacted = _is_compacted(opened.topic, config)
    hidden, whole = partition.hidden_bytes, partition.log_bytes
    return Impact(
        hidden_since_ms=since_ms,
        hidden_share=None if hidden is None or not whole else hidden / whole,
        is_compacted=is_compacted,
        # Log.firstUncleanableDirtyOffset: the cleaner never passes the first unstable offset.
        is_compaction_stopped=is_compacted,
        log_growth_bytes_per_day=growth,
        log_growth_measured_ms=measured_ms,
        days_until_full=None if free_bytes is None or not growth else free_bytes / growth,
        hidden_lost_at_ms=_lost_at_ms(config, since_ms, hidden, growth, as_of_ms),
    )


def _measured_ms(first_ms: int | None, as_of_ms: int | None) -> int | None:
    """From the first broker's time in the log to the copy; None where it is too short to say anything of a day."""
    passed_ms = None if first_ms is None or as_of_ms is None else as_of_ms - first_ms
    return passed_ms if passed_ms is not None and passed_ms >= _SHORTEST_MEASURED_MS else None


def _is_compacted(topic: str, config: TopicConfig | None) -> bool | None:
    if config is not None and config.cleanup_policies is not None:
        return "compact" in config.cleanup_policies
    return True if topic in _COMPACTED_BY_KAFKA else None


def _lost_at_ms(
    config: TopicConfig | None, since_ms: int | None, hidden_bytes: int | None, growth: int | None, as_of_ms: int | None
) -> int | None:
    """The first moment at which retention may pass the last stable offset; it stops at the high watermark alone."""
    if config is None or config.cleanup_policies is None or "delete" not in config.cleanup_policies:
        return None
    moments = []
    if config.retention_ms is not None and since_ms is not None:
        moments.append(since_ms + config.retention_ms)
    if config.retention_bytes is not None and hidden_bytes is not None and growth and as_of_ms is not None:
        left_bytes = max(config.retention_bytes - hidden_bytes, 0)
        moments.append(as_of_ms + left_bytes * DAY_MS // growth)
    return min(moments, default=None)
