"""What an open transaction costs a partition of a tiered topic, and of the topics that brokers make themselves."""

from typing import Any

import pytest

from tests.tools import report_rows as rows
from tests.unit.judge.test_blocked_groups import opened
from txn_analysis.judge.finding import DAY_MS, impact_of
from txn_analysis.kafka.names import (
    DELETE,
    GROUP_TOPIC,
    INTERNAL_TOPICS,
    SHARE_STATE_TOPIC,
    STATE_TOPIC,
    TopicConfig,
    is_brokers_topic,
)
from txn_analysis.report.figures import consequences
from txn_analysis.tables import Impact

SINCE_MS = rows.AS_OF_MS - rows.HOUR_MS
DELETED = TopicConfig(frozenset({DELETE}), retention_ms=DAY_MS)
TIERED = TopicConfig(frozenset({DELETE}), retention_ms=DAY_MS, is_tiered=True, local_retention_ms=2 * rows.HOUR_MS)


def impact(config: TopicConfig | None, *, topic: str = "orders", **of_log: Any) -> Impact:
    txn = opened()._replace(topic=topic, first_appended_before_ms=SINCE_MS)
    known = {"log_bytes": 1000, "hidden_bytes": 600, "first_moment_ms": rows.AS_OF_MS - DAY_MS}
    return impact_of(txn, rows.health(**known | of_log), config, None, rows.AS_OF_MS)


def said(found: Impact) -> str:
    return "; ".join(consequences(found))


def test_retention_deletes_nothing_that_is_not_in_remote_storage_yet() -> None:
    assert impact(DELETED).hidden_lost_at_ms == SINCE_MS + DAY_MS
    assert impact(TIERED).hidden_lost_at_ms is None


def test_the_local_disk_of_a_tiered_topic_keeps_what_the_local_retention_would_give_up() -> None:
    found = impact(TIERED)
    assert (found.is_tiering_stopped, found.beyond_local_retention_at_ms) == (True, SINCE_MS + 2 * rows.HOUR_MS)
    assert "tiered storage copies nothing from there on, and what is not copied stays on the local disk" in said(found)
    assert "more than the local retention from 2026-11-21T04:00:00.000Z on" in said(found)


def test_a_local_retention_by_size_is_passed_when_the_log_has_grown_so_far() -> None:
    by_size = TopicConfig(frozenset({DELETE}), is_tiered=True, local_retention_bytes=1100)
    # 1000 bytes a day, and 500 left.
    assert impact(by_size).beyond_local_retention_at_ms == rows.AS_OF_MS + DAY_MS // 2


@pytest.mark.parametrize("config", [None, DELETED, TopicConfig(is_tiered=False)])
def test_of_other_topics_nothing_is_said_of_tiers(config: TopicConfig | None) -> None:
    found = impact(config)
    assert (bool(found.is_tiering_stopped), found.beyond_local_retention_at_ms) == (False, None)
    assert "tiered" not in said(found)


@pytest.mark.parametrize(
    ("topic", "is_compacted"),
    [(GROUP_TOPIC, True), (STATE_TOPIC, True), (SHARE_STATE_TOPIC, False), ("orders", None), ("__mine", None)],
)
def test_internal_topics_have_the_policy_that_brokers_give_them(topic: str, is_compacted: bool | None) -> None:
    assert impact(None, topic=topic).is_compacted is is_compacted
    assert is_brokers_topic(topic) == (topic in INTERNAL_TOPICS)
