"""However the text is split, and whatever a client wrote into it, the rows are the brokers' batches."""

import shutil
from pathlib import Path

from tests.tools.captures import VARIANTS, AuditOf, rows_of, run_audit
from tests.tools.repository import CASES
from tests.tools.sessions import no_session, opened
from tests.tools.table_rows import listed
from txn_analysis.pipeline import steps as pipeline
from txn_analysis.settings import Settings
from txn_analysis.tables import INPUTS, LOG_BATCHES

FORGED_PRODUCER = 666  # exists only in keys and values that imitate dump lines


def test_lines_forged_in_payloads_are_payload(warehouse: str) -> None:
    folder = str(CASES / "forged-payload")
    ingested = pipeline.ingest(no_session, [folder], Settings(warehouse=warehouse, cluster="forged"))
    ids = [row["input_id"] for row in listed(opened(warehouse), INPUTS, "input_id", cluster=["forged"])]
    named = ("input_id", "producer_id", "is_contested")
    rows = listed(opened(warehouse), LOG_BATCHES, *named, input_id=ids)
    assert ingested.rejected_bytes == 0
    assert sorted(sum(row["input_id"] == i for row in rows) for i in ids) == [127, 127]
    assert not any(row["producer_id"] == FORGED_PRODUCER or row["is_contested"] for row in rows)


def test_small_ranges_give_the_same_findings(empty_warehouse: Path, tmp_path: Path, audit_of: AuditOf) -> None:
    variant = next(v for v in VARIANTS if v.capture == "kafka-4.2/capture-1" and "segments" in v.parts)
    fresh = str(shutil.copytree(empty_warehouse, tmp_path / "warehouse"))
    split = run_audit(no_session, fresh, variant.paths, cluster=variant.name, range_bytes=20_000)
    assert rows_of(split) == rows_of(audit_of(variant))
