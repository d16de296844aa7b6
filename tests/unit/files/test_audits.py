"""Whole audits of files in a bucket, into a bucket: the same rows, or one clear line."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.tools.manifests import manifest_of
from tests.tools.records import record_of
from tests.tools.repository import CASES
from tests.tools.s3_server import Bucket, Fault
from tests.tools.sessions import no_session, opened
from tests.tools.table_rows import listed, row_of
from tests.unit.plan.test_accepted import UNTIL_MS, decided
from txn_analysis.errors import InputError, WarehouseError
from txn_analysis.pipeline import steps as pipeline
from txn_analysis.questions.pruning import prune
from txn_analysis.report.model import AuditReport
from txn_analysis.runs import decisions
from txn_analysis.settings import Settings
from txn_analysis.tables import ALL_TABLES, INPUTS, RUNS
from txn_analysis.tables.inputs import RunRecord
from txn_analysis.verdict import Verdict
from txn_analysis.warehouse.commits import commit_run
from txn_analysis.warehouse.delta_tables import Warehouse

CAPTURE = CASES / "kafka-4.2/capture-1"
LOG_DIR = CAPTURE / "log-dirs"
REPLACED = "copies/n1/orders-0/00000000000000000000.log"


def audited(place: str, warehouse: str, **more: int) -> AuditReport:
    settings = {"warehouse": warehouse, "transaction_state_partitions": 4, "max_clock_skew_ms": 0, **more}
    return pipeline.audit(no_session, [place], Settings.model_validate(settings))


def rows_of(warehouse: str, place: str) -> dict[str, list[str]]:
    stored = opened(warehouse)
    found = {table.name: [row | {"table_versions": None} for row in listed(stored, table)] for table in ALL_TABLES}
    return {name: sorted(repr(row).replace(place, "") for row in rows) for name, rows in found.items()}


@pytest.mark.cluster  # two audits of each, there and here
@pytest.mark.parametrize("kinds", [["log-dirs"], ["segments", "transaction-state"]])
def test_from_a_bucket_into_a_bucket_the_tables_are_those_of_a_disk(
    bucket: Bucket, tmp_path: Path, kinds: list[str]
) -> None:
    here = tmp_path / "copies"
    for kind in kinds:
        shutil.copytree(CASES / "kafka-4.2-edge/capture-2" / kind, here / kind)
    bucket.put_folder(here, "copies")
    audited(str(here), str(tmp_path / "w"), range_bytes=20_000)
    audited("s3://kept/copies", "s3a://kept/audits/w", range_bytes=20_000)
    there = rows_of("s3a://kept/audits/w", "s3://kept/copies")
    assert there == rows_of(str(tmp_path / "w"), str(here))
    assert there["findings"]


@pytest.mark.cluster  # two audits, there and here
def test_a_manifest_in_a_bucket_proves_what_it_proves_on_a_disk(bucket: Bucket, tmp_path: Path) -> None:
    copy = shutil.copytree(CASES / "kafka-4.2-edge/capture-1/log-dirs", tmp_path / "copy")
    manifest_of(copy)
    bucket.put_folder(copy, "copies")
    audited("s3://kept/copies", "s3a://kept/audits/w")
    audited(str(copy), str(tmp_path / "w"))
    assert rows_of("s3a://kept/audits/w", "s3://kept/copies") == rows_of(str(tmp_path / "w"), str(copy))


def test_a_file_that_a_manifest_in_a_bucket_names_is_missed_there(bucket: Bucket, tmp_path: Path) -> None:
    copy = shutil.copytree(CASES / "kafka-4.2-edge/capture-1/log-dirs", tmp_path / "copy")
    manifest_of(copy)
    (copy / "trades-eu-0/00000000000000000000.log").unlink()
    bucket.put_folder(copy, "copies")
    with pytest.raises(
        InputError, match=r"trades-eu-0/00000000000000000000\.log: txn-capture\.json names it, and it is not there"
    ):
        audited("s3://kept/copies", "s3a://kept/audits/w")


@pytest.mark.cluster  # three audits, there and here
def test_what_is_old_goes_out_of_a_bucket_as_off_a_disk(bucket: Bucket, tmp_path: Path) -> None:
    day_ms, now_ms = 86_400_000, 1_900_000_000_000
    places = {"s3://kept/w", str(tmp_path / "w")}
    for warehouse in places:
        for day in (0, 1, 2, 100):
            said = {"capture": f"day-{day:03}", "as_of_ms": 1_795_230_000_000 + day * day_ms}
            settings = {"warehouse": warehouse, "transaction_state_partitions": 4, "max_clock_skew_ms": 0} | said
            pipeline.audit(no_session, [str(LOG_DIR)], Settings.model_validate(settings))
    before = {name for name in bucket.objects if name.endswith(".parquet")}
    answers = [prune(opened(warehouse), 10 * day_ms, now_ms, 0) for warehouse in sorted(places)]
    gone = [(one.clusters[0].runs, one.clusters[0].input_count, one.freed_file_count) for one in answers]
    assert gone[0] == gone[1]
    assert before - {*bucket.objects}
    assert rows_of("s3://kept/w", "") == rows_of(str(tmp_path / "w"), "")


def test_no_secret_is_in_any_object(bucket: Bucket) -> None:
    bucket.put_folder(LOG_DIR / "n1", "copies")
    audited("s3://kept/copies", "s3://kept/w")
    secrets = [os.environ[name].encode() for name in ("AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID")]
    assert not any(secret in kept.data for kept in bucket.objects.values() for secret in secrets)


def test_a_segment_that_is_replaced_between_survey_and_scan_is_read_in_neither_version(
    bucket: Bucket, tmp_path: Path
) -> None:
    bucket.put_folder(LOG_DIR, "copies")
    whole = audited("s3://kept/copies", str(tmp_path / "whole"))
    looks: list[str] = []

    def replaced(kind: str, key: str) -> Fault | None:
        looks.extend([key] if (kind, key) == ("GET", REPLACED) else [])
        if len(looks) == 3:  # once for its head, once for its plan
            bucket.put(REPLACED, b"\0" * 100)
        return None

    bucket.fault = replaced
    report = audited("s3://kept/copies", str(tmp_path / "w"))
    hanging = {(f.topic, f.partition) for f in whole.findings if f.verdict is Verdict.HANGING}
    assert hanging - {(f.topic, f.partition) for f in report.findings if f.verdict is Verdict.HANGING} == {
        ("orders", 0)
    }
    inputs = {row["path"]: row for row in listed(opened(tmp_path / "w"), INPUTS)}
    assert inputs[f"s3://kept/{REPLACED}"]["parsed_bytes"] == 0


def test_a_store_that_refuses_the_warehouse_is_no_damage(bucket: Bucket) -> None:
    bucket.put_folder(LOG_DIR / "n1", "copies")
    bucket.fault = lambda kind, _: Fault(status=403) if kind == "PUT" else None
    with pytest.raises(WarehouseError, match=r"^s3://kept/w/\w+: the store refuses access"):
        audited("s3://kept/copies", "s3://kept/w")


@pytest.mark.cluster  # three audits of each
@pytest.mark.parametrize("table", ["log_batches", "findings"])
def test_cut_before_a_commit_it_is_done_by_the_same_call_again(bucket: Bucket, tmp_path: Path, table: str) -> None:
    """The data files are there, which no commit names."""
    bucket.put_folder(LOG_DIR / "n1", "copies")
    bucket.fault = lambda kind, key: Fault(status=403) if (kind, key) == ("PUT", commit) else None
    commit = f"w/{table}/_delta_log/{1:020}.json"
    with pytest.raises(WarehouseError):
        audited("s3://kept/copies", "s3://kept/w")
    assert any(name.startswith(f"w/{table}/") and name.endswith(".parquet") for name in bucket.objects)
    bucket.fault = lambda *_: None
    audited("s3://kept/copies", "s3://kept/w")
    audited("s3://kept/copies", str(tmp_path / "w"))
    assert rows_of("s3://kept/w", "") == rows_of(str(tmp_path / "w"), "")


def test_of_two_that_commit_at_once_the_second_looks_again(bucket: Bucket) -> None:
    """The other audit comes in between, each time that this one is about to number its run."""
    one, other = (opened("s3://kept/w") for _ in range(2))
    one.create()
    _with_run_between(bucket, other, lambda: _numbered(one, "one"))
    found = {row["run_id"]: row["run_number"] for row in listed(one, RUNS)}
    assert found == {"other": 1, "one": 2}


def _with_run_between(bucket: Bucket, other: Warehouse, write: Callable[[], None]) -> None:
    def come_in(key: str) -> None:
        if key.startswith("w/runs/_delta_log/") and key.endswith("1.json"):
            bucket.before_put = lambda _: None
            _numbered(other, "other")

    bucket.before_put = come_in
    write()


def _numbered(warehouse: Warehouse, run_id: str) -> None:
    commit_run(warehouse, record_of(RunRecord, dict.fromkeys(RUNS.names) | row_of(RUNS, run_id=run_id)))


def test_decisions_are_kept_in_a_bucket_as_on_a_disk(bucket: Bucket) -> None:
    settings = Settings(warehouse="s3://kept/audits/w/")
    assert decisions.read_decisions(settings) == []
    first = decided().decision
    other, later = first._replace(producer_id=7), first._replace(until_ms=UNTIL_MS + 1)
    for one in (first, other, later):
        decisions.keep(settings, [one])
    assert [(one.producer_id, one.until_ms) for one in decisions.read_decisions(settings)] == [
        (7, UNTIL_MS),
        (first.producer_id, UNTIL_MS + 1),
    ]
    assert "audits/w/accepted.toml" in bucket.objects


@pytest.mark.parametrize("has_file", [False, True])
def test_of_two_decisions_at_once_a_bucket_keeps_both(bucket: Bucket, has_file: bool) -> None:
    settings, first = Settings(warehouse="s3://kept/audits/w/"), decided().decision
    mine, theirs = first._replace(producer_id=7), first._replace(producer_id=8)
    if has_file:
        decisions.keep(settings, [first])

    def between(_: str) -> None:
        bucket.before_put = lambda _: None
        decisions.keep(settings, [theirs])

    bucket.before_put = between
    decisions.keep(settings, [mine])
    kept = [one.producer_id for one in decisions.read_decisions(settings)]
    assert kept == [first.producer_id] * has_file + [8, 7]


def test_a_bucket_without_tags_keeps_decisions(bucket: Bucket) -> None:
    bucket.has_tags = False
    settings, first = Settings(warehouse="s3://kept/audits/w/"), decided().decision
    for producer_id in (7, 8):
        decisions.keep(settings, [first._replace(producer_id=producer_id)])
    assert [one.producer_id for one in decisions.read_decisions(settings)] == [7, 8]
