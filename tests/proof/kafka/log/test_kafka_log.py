"""Kafka's own log code and the audit agree; and where the audit had a fault, they would not."""

import pytest

from tests.proof.kafka.log.faults import FAULTS, Fault
from tests.proof.kafka.log.program import VERSIONS
from tests.proof.kafka.log.report import random_stories, report_of
from tests.proof.kafka.log.scenarios import SCENARIOS

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


@pytest.mark.parametrize("version", [VERSIONS[0], VERSIONS[-1]])
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_of_the_audit_is_found(monkeypatch: pytest.MonkeyPatch, fault: Fault, version: str) -> None:
    fault.put_in(monkeypatch)
    assert len(report_of(version, RANDOM).differences) > 5
