"""Kafka Connect's ids are known by the state: the leader's id names the group of its tasks."""

import pathlib
from typing import Any

import pytest

from tests.proof.remedies.lab import Lab
from tests.tools import report_rows as rows
from tests.tools.sessions import opened
from txn_analysis.questions.owners import Kind, who_is
from txn_analysis.questions.owners_text import owner_text
from txn_analysis.report.build import build_report
from txn_analysis.report.figures import by_damage
from txn_analysis.report.text_report import text_report
from txn_analysis.runs.run_tables import run_tables

IDS = (
    "etl-orders-0",
    "connect-cluster-files-0",
    "connect-cluster-etl",
    "connect-cluster-connect-cluster",
    "pay-sink-0-6",
    "wordcount-8a4f3c1e-0b9d-4f7a-9c53-2f1f0c6d7e11-3",
    "rdkafka-writer",
    "orders.service",
)
DONE = (
    "TransactionMetadata(transactionalId={name}, producerId={number}, producerEpoch=0, txnTimeoutMs=60000, "
    "state=Empty, pendingState=None, topicPartitions=Set(), txnStartTimestamp=-1, txnLastUpdateTimestamp=1795229917039)"
)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory, empty_warehouse: pathlib.Path) -> Lab:
    lab = Lab(tmp_path_factory.mktemp("connect"), empty_warehouse)
    lab.copy("kafka-4.2/capture-1", "segments")
    lines = (f"{name}::{DONE.format(name=name, number=50 + number)}\n" for number, name in enumerate(IDS))
    lab.write("console/state.txt", "".join(lines))
    lab.audit()
    return lab


@pytest.mark.parametrize(
    ("transactional_id", "words"),
    [
        ("etl-orders-0", "looks like Kafka Connect: etl-orders, group etl, connector orders, task 0"),
        (
            "connect-cluster-files-0",
            "looks like Kafka Connect: connect-cluster-files, group connect-cluster, connector files, task 0",
        ),
        ("connect-cluster-etl", "looks like Kafka Connect: connect-cluster-etl, leader of group etl"),
        ("pay-sink-0-6", "looks like Flink: pay-sink, subtask 0, number 6"),
        (IDS[5], "looks like Kafka Streams: wordcount, process 8a4f3c1e-0b9d-4f7a-9c53-2f1f0c6d7e11, thread 3"),
        ("orders.service", "orders.service, by the id alone: no framework that is known names ids like this"),
        ("rdkafka-writer", "rdkafka-writer, by the id alone: no framework that is known names ids like this"),
    ],
)
def test_who_tells_whose_an_id_is(lab: Lab, transactional_id: str, words: str) -> None:
    warehouse = opened(lab.root / f"warehouse-{lab.audits}")
    tables = run_tables(warehouse, "default")
    assert words in " ".join(owner_text(who_is(tables, Kind.TRANSACTIONAL_ID, transactional_id)).split())


def told(*findings: Any) -> Any:
    state = '{"expected": 4, "seen": 4, "connect_groups": ["etl"]}'
    healths = [rows.health(topic=one.topic, partition=one.partition) for one in findings]
    return build_report(
        rows.run(verdict_counts={"hanging": len(findings)}, state_coverage=state), [], healths, findings
    )


def test_what_stops_every_worker_comes_first_and_names_the_connector_to_stop() -> None:
    data = rows.live_finding(finding_id="a", topic="orders", blocks_partition=True, transactional_id="shop")
    offsets = rows.live_finding(
        finding_id="b", topic="etl-offsets", blocks_partition=True, transactional_id="etl-orders-0"
    )
    report = told(data, offsets)
    assert [one.topic for one in by_damage(report, report.findings)] == ["etl-offsets", "orders"]
    text = " ".join(text_report(report).split())
    assert "the start of every worker of Connect group etl" in text
    assert "Stop the connector orders of group etl; the workers and its other connectors may go on." in text


LISTED = (
    "{name}::TransactionMetadata(transactionalId={name}, producerId={producer}, producerEpoch=0, txnTimeoutMs=60000, "
    "state=Ongoing, pendingState=None, topicPartitions=Set({places}), txnStartTimestamp=1795229917039, "
    "txnLastUpdateTimestamp=1795229917039)\n"
)
# The logs of the capture have these producers.
TASKS = (
    ("connect-cluster-etl", 7, ""),
    ("etl-orders-0", 3, "orders-0, etl-positions-4"),
    ("etl-pay-0", 4, "payments-0, etl-positions-1"),
    ("etl-ledger-1-0", 1002, "ledger.events-0, etl-positions-0"),
    ("etl-other-1-0", 1003, "ledger.events-0"),
)


def test_a_task_whose_connector_ends_in_a_number_is_known_by_its_groups_topic_of_offsets(
    tmp_path: pathlib.Path, empty_warehouse: pathlib.Path
) -> None:
    lab = Lab(tmp_path, empty_warehouse)
    lab.copy("kafka-4.2/capture-1", "segments")
    lines = (LISTED.format(name=name, producer=producer, places=places) for name, producer, places in TASKS)
    lab.write("console/state.txt", "".join(lines))
    lab.audit()
    tables = run_tables(opened(lab.root / f"warehouse-{lab.audits}"), "default")
    assert tables.connect_groups.offsets == {("etl", "etl-positions")}
    said = {
        name: " ".join(owner_text(who_is(tables, Kind.TRANSACTIONAL_ID, name)).split())
        for name in ("etl-ledger-1-0", "etl-other-1-0")
    }
    assert "looks like Kafka Connect: etl-ledger-1, group etl, connector ledger-1, task 0" in said["etl-ledger-1-0"]
    assert "looks like Flink: etl-other, subtask 1, number 0" in said["etl-other-1-0"]
