"""Whose a transactional id is, by its shape, and when its owner must be asked before an abort."""

from __future__ import annotations

import pytest

from txn_analysis.judge.applications import Application, application_of, why_to_hold

UUID = "8a4f3c1e-0b9d-4f7a-9c53-2f1f0c6d7e11"


@pytest.mark.parametrize(
    ("transactional_id", "application", "framework"),
    [
        (f"payments-app-{UUID}-3", "payments-app", "Kafka Streams"),
        ("payments-app-0_12", "payments-app", "Kafka Streams"),
        ("orders-sink-4-1700", "orders-sink", "Flink"),
        ("connect-cluster-prod", "connect-cluster-prod", "Kafka Connect"),
        ("connect-prod-jdbc-source-0", "connect-prod-jdbc-source", "Kafka Connect"),
        ("tx-billing.orders.7", "tx-billing", "Spring"),
        ("billing-tx-12", "billing-tx-", "Spring"),
        ("billing-worker-17", "billing-worker", None),
        ("ledger-writer", "ledger-writer", None),
        ("evil\n<b>-1-2", "evil\n<b>", "Flink"),
    ],
)
def test_shapes(transactional_id: str, application: str, framework: str | None) -> None:
    assert application_of(transactional_id) == Application(application, framework)


@pytest.mark.parametrize(
    ("transactional_id", "timeout_ms", "is_held"),
    [
        ("orders-sink-4-1700", 60_000, True),
        ("billing-worker-17", 2**31 - 1, True),
        ("billing-worker-17", 2**31 - 2, False),
        (None, None, False),
    ],
)
def test_what_its_owner_may_still_commit_is_held(
    transactional_id: str | None, timeout_ms: int | None, is_held: bool
) -> None:
    assert (why_to_hold(transactional_id, timeout_ms) is not None) is is_held


def test_a_long_id_is_read_in_no_time() -> None:
    assert application_of("-1" * 16_000 + "x").framework is None
