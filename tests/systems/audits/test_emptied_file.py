"""A state whose first file the cleaner emptied and kept: no file of its folder is missing, if somebody says so."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.tools.captures import rows_of, run_audit
from tests.tools.manifests import Entry, manifest_of
from tests.tools.repository import CASES
from tests.tools.sessions import no_session
from txn_analysis.kafka.names import STATE_TOPIC
from txn_analysis.report.model import AuditReport
from txn_analysis.report.text_report import text_report

CASE = CASES / "kafka-4.3-emptied-file/capture-1"
WORDS = {"transaction_max_timeout_ms": 20_000, "state_copied_last": True, "no_records_lost": True}
EMPTIED = f"{STATE_TOPIC}-0/00000000000000000000.log"
HANGING = {("partition_not_in_transaction", "hanging")}
UNKNOWN = {("state_incomplete", "inconclusive")}


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return shutil.copytree(CASE / "log-dirs/node1", tmp_path / "copy")


def audited(folder: Path, **words: Any) -> AuditReport:
    return run_audit(no_session, str(folder.parent / "warehouse"), [str(folder)], **WORDS | words)


def answers(report: AuditReport) -> set[tuple[str, str]]:
    return {(finding.rule, finding.verdict.value) for finding in report.findings}


def whole(entry: Entry) -> Entry:
    return entry | {"is_folder_whole": entry["topic"] is not None}


def test_by_a_manifest_of_whole_folders_what_hangs_is_found(copy: Path) -> None:
    manifest_of(copy, changed=whole)
    report = audited(copy)
    expected = json.loads((CASE / "expected.json").read_text())["open_transactions"]
    names = ("topic", "partition", "producer_id", "txn_start_offset", "verdict", "rule")
    found = [tuple(row[name] for name in names) for row in rows_of(report)]
    assert found == [tuple(row[name] for name in names) for row in expected]
    assert all(part["is_complete"] for part in report.coverage.transaction_state["partitions"])


def test_without_the_word_that_nothing_was_lost_a_file_may_have_been_deleted(copy: Path) -> None:
    manifest_of(copy, changed=whole)
    assert answers(audited(copy, no_records_lost=False)) == UNKNOWN


def test_a_manifest_of_1_0_says_nothing_of_its_folder(copy: Path) -> None:
    manifest_of(copy)
    assert answers(audited(copy)) == UNKNOWN


@pytest.mark.parametrize("said", [None, False])
def test_a_cleaner_that_swapped_meanwhile_leaves_the_folder_open(copy: Path, said: bool | None) -> None:
    manifest_of(copy, changed=lambda e: whole(e) | ({"is_folder_whole": said} if e["path"] == EMPTIED else {}))
    assert answers(audited(copy)) == UNKNOWN


def test_of_a_leader_that_nobody_confirmed_no_folder_is_whole(copy: Path) -> None:
    manifest_of(copy, changed=lambda entry: whole(entry) | {"is_leader_confirmed": False})
    assert answers(audited(copy)) == UNKNOWN


def test_a_folder_without_its_first_file_was_deleted_from(copy: Path) -> None:
    """As with `cleanup.policy=compact,delete`: the cleaner alone never takes that name away."""
    (copy / EMPTIED).unlink()
    manifest_of(copy, changed=whole)
    assert answers(audited(copy)) == UNKNOWN


def test_two_partitions_whose_first_files_were_emptied(copy: Path) -> None:
    """Both files have the same content, which is none."""
    (copy / EMPTIED.replace("-0/", "-3/")).write_bytes(b"")
    manifest_of(copy, changed=whole)
    assert answers(audited(copy)) == HANGING


def test_the_word_that_is_asked_for_says_when_it_is_true(copy: Path) -> None:
    words = " ".join(text_report(audited(copy)).split())
    assert "compaction leaves such holes" in words
    assert "`--transaction-state-complete`" in words
    assert answers(audited(copy, transaction_state_complete=True)) == HANGING
