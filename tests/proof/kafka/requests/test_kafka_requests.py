"""Real brokers and the audit of their files agree; and where the audit had a fault, they would not."""

import pytest
from _pytest.mark import ParameterSet

from tests.proof.kafka.log.faults import FAULTS, Fault
from tests.proof.kafka.requests.librdkafka import IS_INSTALLED
from tests.proof.kafka.requests.report import LIBRDKAFKA_EVERY, Broker, brokers_of, report_of
from tests.tools.kafka_jars import VERSIONS

pytestmark = pytest.mark.e2e
BRIEF = (VERSIONS[0], VERSIONS[-1])


def of_each(version: str, value: object) -> ParameterSet:
    """What `--brief` leaves out is marked."""
    return pytest.param(value, marks=[] if version in BRIEF else [pytest.mark.lengthy], id=str(value))


BROKERS = [of_each(version, broker) for version in VERSIONS for broker in brokers_of(version)]


@pytest.mark.parametrize("broker", BROKERS)
def test_random_requests(broker: Broker) -> None:
    report = report_of(broker, requests=500, seed=1)
    assert report.differences == []
    assert report.opened > 20


@pytest.mark.skipif(not IS_INSTALLED, reason="confluent-kafka is not installed: pip install -e '.[kafka]'")
@pytest.mark.parametrize("version", [of_each(version, version) for version in VERSIONS])
def test_random_transactions_of_librdkafka(version: str) -> None:
    report = report_of(brokers_of(version)[-1], requests=1, seed=1, only=LIBRDKAFKA_EVERY - 1)
    assert report.differences == []
    assert report.answers["commit_transaction by librdkafka"] > 3


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_of_the_audit_is_found(monkeypatch: pytest.MonkeyPatch, fault: Fault) -> None:
    fault.put_in(monkeypatch)
    assert len(report_of(brokers_of(VERSIONS[-1])[-1], requests=300, seed=1).differences) > 5
