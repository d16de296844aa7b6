"""Small hand-made rows of the tables; a test names only the columns that it is about."""

import json
from typing import Any

from tests.tools.records import record_of
from txn_analysis.report.build import build_report
from txn_analysis.report.figures import ANYBODY, Reader
from txn_analysis.report.model import AuditReport
from txn_analysis.report.steps import steps_of
from txn_analysis.report.terminal import Paragraph
from txn_analysis.tables import Finding, PartitionHealth
from txn_analysis.tables.inputs import ReadInput, RunRecord

AS_OF_MS = 1_795_230_000_000  # 2026-11-21T03:00:00Z
HOUR_MS = 3_600_000
PARAMETERS = {"transaction_max_timeout_ms": 900_000, "transaction_state_partitions": 4}

Row = dict[str, Any]


def finding(**columns: Any) -> Finding:
    """A hanging transaction of an unknown producer that wrote for the last time three hours ago."""
    known = {
        "run_id": "run-1",
        "finding_id": "f0",
        "verdict": "hanging",
        "rule": "unknown_producer",
        "topic": "orders",
        "partition": 2,
        "producer_id": 987_654_321,
        "producer_epoch": 3,
        "coordinator_epoch_basis": "none_seen",
        "txn_start_offset": 155,
        "is_txn_start_exact": True,
        "last_offset": 156,
        "record_count": 2,
        "size_bytes": 312,
        "last_timestamp_ms": AS_OF_MS - 3 * HOUR_MS,
        "idle_ms": 3 * HOUR_MS,
        "lateness_basis": "last_timestamp",
        "late_by_ms": 3 * HOUR_MS - 1_200_000,
        "appended_after_ms": AS_OF_MS - 3 * HOUR_MS - 1000,
        "appended_before_ms": AS_OF_MS - 3 * HOUR_MS + 1000,
        "is_producer_live": False,
        "producer_may_return": False,
        "blocks_partition": True,
        "evidence": ["no transactional id has, or had, producer id 987654321", "4 of 4 partitions seen"],
        "missing_evidence": [],
        "rules_asked": [],
        "would_change": [],
    }
    return record_of(Finding, known | columns)


def live_finding(**columns: Any) -> Finding:
    """A hanging transaction whose producer is busy with another one."""
    known = {
        "finding_id": "f1",
        "rule": "partition_not_in_transaction",
        "topic": "payments",
        "partition": 0,
        "producer_id": 3,
        "producer_epoch": 0,
        "txn_start_offset": 187,
        "last_offset": 188,
        "transactional_id": "inventory-sync",
        "state_partition": 0,
        "coordinator_state": "Ongoing",
        "is_producer_live": True,
        "producer_may_return": True,
        "blocks_partition": False,
        "evidence": ["its current transaction does not contain payments-0"],
    }
    return finding(**known | columns)


def inconclusive(**columns: Any) -> Finding:
    """A transaction without an answer."""
    known = {
        "finding_id": "f2",
        "verdict": "inconclusive",
        "rule": "state_incomplete",
        "topic": "orders",
        "partition": 0,
        "producer_id": 1002,
        "producer_epoch": 0,
        "txn_start_offset": 161,
        "transactional_id": "billing-worker-17",
        "evidence": ["coordinator: CompleteAbort under producer id 1002, epoch 0"],
        "missing_evidence": ["__transaction_state-3: not in the capture"],
    }
    return finding(**known | columns)


def health(**columns: Any) -> PartitionHealth:
    """A partition that is whole."""
    known: Row = {
        "topic": "orders",
        "partition": 2,
        "is_in_capture": True,
        "first_offset": 0,
        "end_offset": 170,
        "last_stable_offset": 155,
        "open_transaction_count": 1,
        "hidden_record_count": 12,
        "hidden_bytes": 4096,
        "problems": [],
    }
    return record_of(PartitionHealth, known | columns)


def input_file(**columns: Any) -> ReadInput:
    """A dump that was understood to its last byte."""
    known: Row = {
        "cluster": "default",
        "capture": "tonight",
        "ingest_id": "i",
        "sections": [],
        "input_id": "6446297582af04a2bb1337f7e0fbaded",
        "path": "segments/orders-2.txt",
        "kind": "log",
        "grammar": "3.2+",
        "size_bytes": 48_000,
        "text_bytes": 48_000,
        "parsed_bytes": 48_000,
        "rejected_bytes": 0,
    }
    return record_of(ReadInput, known | columns)


def run(**columns: Any) -> RunRecord:
    """A run over one capture with all four partitions of the state."""
    known: Row = {
        "run_id": "run-1",
        "run_number": 1,
        "input_count": 1,
        "table_versions": {},
        "outcome": "could_not_tell",
        "cluster": "default",
        "capture": "tonight",
        "earlier_captures": [],
        "as_of_ms": AS_OF_MS,
        "as_of_basis": "newest_broker_timestamp",
        "parameters": json.dumps(PARAMETERS),
        "verdict_counts": {},
        "state_coverage": json.dumps({"expected": 4, "seen": 4, "missing": [], "problems": []}),
        "warnings": "[]",
    }
    return record_of(RunRecord, known | columns)


def every_step(told: AuditReport, reader: Reader = ANYBODY) -> list[Paragraph]:
    """What the report says to do, now and later."""
    steps = steps_of(told, reader)
    return [*steps.now, *steps.later]


def report(*findings: Finding) -> AuditReport:
    """What is told of them."""
    return build_report(run(), [], [health()], findings)
