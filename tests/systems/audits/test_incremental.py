"""What is fed bit by bit gives what feeding it at once gives, for the cost of what is new."""

import random
from dataclasses import replace
from pathlib import Path

from tests.tools.captures import PARAMETERS, VARIANTS, AuditOf, WarehouseOf, run_audit
from tests.tools.forms.dump_writer import Tool, log_files
from tests.tools.forms.model import Batch, History, Segment
from tests.tools.sessions import no_session, opened
from tests.tools.table_rows import listed
from txn_analysis.pipeline import steps as pipeline
from txn_analysis.report.model import AuditReport
from txn_analysis.settings import Settings
from txn_analysis.tables import INPUTS, PartitionHealth

VARIANT = next(v for v in VARIANTS if v.capture == "kafka-4.2/capture-3")
SEED = 4

Logs = dict[str, tuple[Batch, ...]]


def test_a_capture_that_arrives_in_several_calls_equals_the_whole(warehouse: str, audit_of: AuditOf) -> None:
    files = sorted(str(file) for path in VARIANT.paths for file in Path(path).rglob("*") if file.is_file())
    random.Random(SEED).shuffle(files)
    third = len(files) // 3
    parts = (files[:third], files[third : 2 * third], files[2 * third :])
    settings = PARAMETERS | {"warehouse": warehouse, "cluster": "bit by bit", "capture": "tonight"}
    for part in parts[:2]:
        pipeline.ingest(no_session, part, Settings.model_validate(settings))
    report = run_audit(no_session, warehouse, parts[2], cluster="bit by bit", capture="tonight")
    whole = audit_of(VARIANT)
    assert [f._replace(run_id="", finding_id="") for f in report.findings] == [
        f._replace(run_id="", finding_id="") for f in whole.findings
    ], f"files shuffled with seed {SEED}"
    assert report.partitions == whole.partitions


def test_content_that_is_known_is_not_read_again(warehouse_of: WarehouseOf, tmp_path: Path, audit_of: AuditOf) -> None:
    audit_of(VARIANT)
    known = sorted(file for path in VARIANT.paths for file in Path(path).rglob("*") if file.is_file())
    (tmp_path / "another-name.txt").write_bytes(known[0].read_bytes())
    settings = Settings.model_validate(PARAMETERS | {"warehouse": warehouse_of(VARIANT), "cluster": "known"})
    ingested = pipeline.ingest(no_session, [str(tmp_path)], settings)
    assert (ingested.input_count, ingested.new_input_count) == (1, 0)


def data(offset: int, count: int = 1, *, producer: int = 7, crc: int = 1) -> Batch:
    return Batch(
        offset, offset + count - 1, count, producer, 0, offset, is_transactional=True, max_timestamp_ms=1_000 + offset,
        crc=crc, size_bytes=100 * count,
    )  # fmt: skip


def marker(offset: int, *, producer: int = 7, time_ms: int = 0) -> Batch:
    ended = Batch(offset, offset, 1, producer, 0, None, is_transactional=True, is_control=True, marker="COMMIT")
    return replace(ended, coordinator_epoch=5, max_timestamp_ms=time_ms or 1_000 + offset)


def test_todays_files_are_compared_with_yesterdays(warehouse: str, tmp_path: Path) -> None:
    """One partition was rewritten by compaction since, one got a longer active segment, one contradicts itself."""
    batches = (data(0, 3), marker(3), data(4, producer=8))
    yesterday: Logs = {
        "rewritten": batches,
        "longer": batches,
        "contradicting": (data(0), data(1), data(2)),
    }
    today = {
        "rewritten": (data(0, 3), replace(marker(3), delete_horizon_ms=9_000, crc=2), data(4, producer=8)),
        "longer": (*batches, marker(5, producer=8, time_ms=9_000)),
        "contradicting": (data(0), data(1, crc=99), data(2)),
    }
    report = audited_nights(warehouse, tmp_path, (yesterday, today))
    found = {p.topic: p for p in report.partitions}
    assert problems(found["rewritten"]) == []
    assert (problems(found["longer"]), found["longer"].open_transaction_count) == ([], 0)
    assert found["longer"].witnesses == ("copies agree up to offset 4",)
    (reason,) = problems(found["contradicting"])
    assert reason.startswith("copies differ from offset 1 on: ")
    inputs = listed(opened(warehouse), INPUTS, "capture", "path", cluster=[tmp_path.name])
    paths = {row["capture"]: row["path"] for row in inputs if "contradicting" in row["path"]}
    assert reason.endswith(f"{paths['today']} and {paths['yesterday']}")


def audited_nights(warehouse: str, folder: Path, nights: tuple[Logs, Logs], **settings: str) -> AuditReport:
    """The report of today, with yesterday's files read before."""
    for night, logs in zip(("yesterday", "today"), nights, strict=True):
        (folder / night).mkdir()
        histories = [History(topic, 0, (Segment(0, found),)) for topic, found in logs.items()]
        for name, text in log_files(histories, Tool(deep=True)).items():
            (folder / night / name).write_bytes(text)
    common = {"warehouse": warehouse, "cluster": folder.name} | settings
    pipeline.ingest(
        no_session, [str(folder / "yesterday")], Settings.model_validate(PARAMETERS | common | {"capture": "yesterday"})
    )
    return run_audit(no_session, warehouse, [str(folder / "today")], cluster=folder.name, capture="today", **settings)


def problems(partition: PartitionHealth) -> list[str]:
    return [problem.reason for problem in partition.problems]
