"""The plan's JSON document, read by Kafka's own reader and put on the wire by Kafka's own request class."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.systems.e2e.driver import Driver, KafkaError
from tests.tools import report_rows as rows
from txn_analysis.plan.abort_plan import abort_plan
from txn_analysis.plan.plan_file import write_txn_markers
from txn_analysis.settings import Settings

pytestmark = pytest.mark.e2e

PLAN = abort_plan(
    [
        rows.finding(),
        rows.finding(partition=7, finding_id="f8"),
        rows.finding(topic="__consumer_offsets", partition=49, producer_epoch=32_767, finding_id="f9"),
        rows.live_finding(producer_id=2**63 - 1, coordinator_epoch=2**31 - 1, coordinator_epoch_basis="marker"),
    ],
    Settings(),
    rows.AS_OF_MS,
)
# The client of 3.9 stands for the brokers of 2.8, too: it is the last one that speaks version 0.
READERS = [("3.9.1", 0), ("3.9.1", 1), ("4.2.0", 1), ("4.2.0", 2), ("4.4.0", 1), ("4.4.0", 2)]


def document(version: int) -> Any:
    text, left_out = write_txn_markers(PLAN, version, ended=["inventory-sync"])
    assert left_out == []
    return json.loads(text)


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str, Any, int], dict[str, Any]]]:
    """Reads a document with the classes of some version of Kafka; no broker is needed."""
    folder = tmp_path_factory.mktemp("readers")
    drivers = {kafka: Driver(kafka, None, folder / f"{kafka}.log") for kafka in dict(READERS)}

    def read(kafka: str, written: Any, version: int) -> dict[str, Any]:
        got: dict[str, Any] = drivers[kafka].call("read_markers", document=written, version=version)
        return got

    yield read
    for driver in drivers.values():
        driver.close()


@pytest.mark.parametrize(("kafka", "version"), READERS)
def test_kafka_reads_every_field_as_it_is_written(
    reader: Callable[[str, Any, int], dict[str, Any]], kafka: str, version: int
) -> None:
    got = reader(kafka, document(version), version)
    assert got["document"] == document(version)
    wire = bytes.fromhex(got["wire"])
    assert wire[:4] == bytes([0, 27, 0, version])  # WriteTxnMarkers is request 27
    assert (2**63 - 1).to_bytes(8, "big") in wire


@pytest.mark.parametrize("kafka", [kafka for kafka, version in READERS if version == 2])
def test_version_2_needs_the_transaction_version(reader: Callable[[str, Any, int], dict[str, Any]], kafka: str) -> None:
    with pytest.raises(KafkaError, match="transactionVersion"):
        reader(kafka, document(1), 2)
