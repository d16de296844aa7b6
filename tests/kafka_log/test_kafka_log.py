"""Kafka's own log code and the audit agree; and where the audit had a fault, they would not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.kafka_log.program import VERSIONS
from tests.kafka_log.report import random_stories, report_of
from tests.kafka_log.scenarios import SCENARIOS
from txn_analysis.reconstruct.producer_state import ProducerState

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.e2e
RANDOM = random_stories(40, seed=1)


@pytest.mark.parametrize("version", VERSIONS)
def test_scenarios_of_kafkas_own_tests(version: str) -> None:
    report = report_of(version, SCENARIOS)
    assert (report.differences, report.refused) == ([], {})


@pytest.mark.parametrize("version", VERSIONS)
def test_random_logs(version: str) -> None:
    report = report_of(version, RANDOM)
    assert report.differences == []
    assert report.opened > 20


def without_markers(state: ProducerState, *_: Any) -> None:
    """A fault: an end marker ends nothing."""


def with_first_epoch(apply: Callable[..., None]) -> Callable[..., None]:
    """A fault: the epoch of a producer is that of its first batch, not of its last."""

    def applied(state: ProducerState, piece: dict[str, Any]) -> None:
        wrong = [producer | {"producer_epoch": producer["first_batch_epoch"]} for producer in piece["producers"]]
        apply(state, piece | {"producers": wrong})

    return applied


@pytest.mark.parametrize(
    ("name", "fault"),
    [("_end", without_markers), ("apply", with_first_epoch(ProducerState.apply))],
    ids=["a-marker-is-ignored", "an-epoch-of-the-wrong-batch"],
)
def test_a_fault_of_the_audit_is_found(monkeypatch: pytest.MonkeyPatch, name: str, fault: Callable[..., None]) -> None:
    monkeypatch.setattr(ProducerState, name, fault)
    assert len(report_of(VERSIONS[0], RANDOM).differences) > 5
