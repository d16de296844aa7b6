"""A broker goes on while its folders are read: files grow, roll, are deleted and replaced, and none is refused."""

from pathlib import Path
from typing import Any

import pytest

from tests.log_dir.busy_broker import BATCHES_PER_SEGMENT, NEVER_ENDED, BusyBroker
from txn_analysis.pipeline.steps import audit
from txn_analysis.reading.inputs.find_files import find_files
from txn_analysis.reading.inputs.planned_input import check_inputs
from txn_analysis.reading.inputs.planning import plan_inputs
from txn_analysis.settings import Settings

TIMES = 20


@pytest.mark.parametrize(
    "kept_segments", [2, 40], ids=["files-are-deleted-while-they-are-read", "files-stay-for-a-while"]
)
def test_a_directory_that_changes_is_read_twenty_times(no_spark: Any, tmp_path: Path, kept_segments: int) -> None:
    seen = set()
    with BusyBroker(tmp_path, pause_s=0.002, kept_segments=kept_segments) as broker:
        for _ in range(TIMES):
            broker.next_round()
            planned = plan_inputs(no_spark, find_files([str(tmp_path)])).inputs
            check_inputs(planned, skip_unrecognised=False)
            seen.add(frozenset(plan.input_id for plan in planned))
    assert broker.problem is None
    assert len(seen) == TIMES  # it did change


def test_an_audit_of_a_directory_that_changes_finds_what_is_open(no_spark: Any, tmp_path: Path) -> None:
    kafka_logs = tmp_path / "kafka-logs"
    with BusyBroker(kafka_logs, pause_s=0.05, kept_segments=1000) as broker:
        report = audit(no_spark, [str(kafka_logs)], Settings(warehouse=str(tmp_path / "warehouse")))
    assert broker.problem is None
    opened = {(f.topic_partition, f.producer_id, f.txn_start_offset) for f in report.findings}
    assert {(f"orders-{number}", NEVER_ENDED, BATCHES_PER_SEGMENT) for number in range(3)} <= opened
