"""A real hang whose transactional id looks like Flink's: planned like any other, with a remark on its owner."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.captures import CASES, PARAMETERS, SEGMENTS, run_audit
from txn_analysis.kafka.names import java_hash, state_partition
from txn_analysis.report.model import AuditReport
from txn_analysis.report.text_report import text_report
from txn_analysis.runs.run_tables import run_tables
from txn_analysis.storage.opening import open_warehouse

CAPTURE = CASES / "kafka-4.2/capture-1"
# As long as the true one, in the same partition of the state: nothing else in the dumps changes.
TRUE_ID, FLINKS_ID, CLUSTER = "billing-worker-17", "billing-wrk-10-13", "flink"
REMARK = "its transactional id is shaped like Flink's: "


@pytest.fixture(scope="module")
def report(no_spark: Any, warehouse: str, tmp_path_factory: pytest.TempPathFactory) -> AuditReport:
    folder: Path = tmp_path_factory.mktemp("flink")
    for part in SEGMENTS:
        shutil.copytree(CAPTURE / part, folder / part)
    for file in (folder / "transaction-state").iterdir():
        file.write_bytes(file.read_bytes().replace(TRUE_ID.encode(), FLINKS_ID.encode()))
    return run_audit(no_spark, warehouse, [str(folder / part) for part in SEGMENTS], cluster=CLUSTER)


def test_the_other_name_belongs_where_the_true_one_does() -> None:
    count = PARAMETERS["transaction_state_partitions"]
    assert len({state_partition(java_hash(name), count) for name in (TRUE_ID, FLINKS_ID)}) == 1


def test_it_is_planned_with_a_remark(no_spark: Any, warehouse: str, report: AuditReport) -> None:
    plan = run_tables(open_warehouse(no_spark, warehouse), CLUSTER).abort_plan()
    assert [r.topic_partition for r in plan] == ["ledger.events-1", "orders-0", "orders-2", "payments-0"]
    remarked = {r.transactional_id: r.evidence[-1] for r in plan if any(REMARK in fact for fact in r.evidence)}
    assert list(remarked) == [FLINKS_ID]
    assert remarked[FLINKS_ID].startswith(REMARK)
    assert f"   caution  {REMARK}" in text_report(report)
