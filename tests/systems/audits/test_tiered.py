"""A real cluster with tiered storage (`data/cases/kafka-4.3-tiered`): files that begin above the log start."""

import json

import pytest

from tests.tools.captures import TRUE_WORDS, AuditOf, RunOf, Variant, run_audit
from tests.tools.repository import CASES
from tests.tools.sessions import no_session
from txn_analysis.questions.offset import explain_offset
from txn_analysis.report.model import AuditReport

CAPTURE = "kafka-4.3-tiered/capture-1"
TIERED = Variant(CAPTURE, ("log-dirs",), TRUE_WORDS)
OFFSETS = json.loads((CASES / CAPTURE / "oracle/offsets.json").read_text())
(HANG,) = json.loads((CASES / CAPTURE / "../scenario.json").read_text())


@pytest.fixture(scope="module")
def report(audit_of: AuditOf) -> AuditReport:
    return audit_of(TIERED)


def test_what_begins_above_the_log_start_is_no_contradiction(report: AuditReport) -> None:
    assert {item.topic_partition: item.problems for item in report.partitions if item.problems} == {}
    ends = {topic: report.partitions_by_place[topic, 0].end_offset for topic in ("clicks", "views")}
    assert ends == OFFSETS["latest"]
    assert report.partitions_by_place["clicks", 0].last_stable_offset == HANG["txn_start_offset"]


def test_the_local_disk_keeps_all_of_it(warehouse: str, report: AuditReport) -> None:
    topics = str(CASES / CAPTURE / "topics.txt")
    found = run_audit(no_session, warehouse, TIERED.paths, cluster="tiered", topic_config=topics, **dict(TRUE_WORDS))
    impact = found.findings[0].impact
    assert impact is not None
    since_ms = impact.hidden_since_ms or 0
    assert (impact.is_tiering_stopped, impact.beyond_local_retention_at_ms) == (True, since_ms + 1000)
    assert impact.hidden_lost_at_ms is None
    assert report.findings[0].impact is not None
    assert report.findings[0].impact.is_tiering_stopped is None  # no file of a broker states it


def test_the_hang_is_found_and_the_brokers_agree(report: AuditReport) -> None:
    (finding,) = report.findings
    place = (finding.topic, finding.partition, finding.producer_id, finding.txn_start_offset)
    assert place == tuple(HANG[name] for name in ("topic", "partition", "producer_id", "txn_start_offset"))
    assert (finding.verdict.value, finding.is_txn_start_exact) == ("hanging", True)
    header, row = (CASES / CAPTURE / "oracle/find-hanging.txt").read_text().splitlines()
    brokers = dict(zip(header.split(), row.split(), strict=True))
    assert (brokers["Topic"], brokers["ProducerId"], brokers["StartOffset"]) == tuple(
        map(str, (*place[:1], *place[2:]))
    )


def test_an_offset_in_remote_storage_is_not_called_deleted(run_of: RunOf) -> None:
    answer = explain_offset(run_of(TIERED), "clicks", 0, 3)
    begins = OFFSETS["earliest-local"]["clicks"]
    assert not answer.is_told
    assert f"the log starts at 0 by its checkpoint, and the files begin at {begins}." in answer.missing[0]
