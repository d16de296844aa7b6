"""A manifest beside a copied log directory: what it settles, and what does not fit it."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.tools.manifests import BEGAN_MS, NAME, manifest_of
from tests.tools.repository import CASES
from tests.tools.sessions import no_session
from txn_analysis.errors import InputError
from txn_analysis.pipeline import steps
from txn_analysis.report.model import AuditReport
from txn_analysis.settings import Settings
from txn_analysis.verdict import Verdict

# By the clocks of the case, whose state is not as late as the data that hangs.
COPIED = CASES / "kafka-4.2-edge/capture-1/log-dirs"
QUIET_STATE = ("accounts", 1, 0)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return shutil.copytree(COPIED, tmp_path / "copy")


def audited(folder: Path, *more: Path, **said: Any) -> AuditReport:
    settings = Settings.model_validate({"warehouse": str(folder.parent / "warehouse")} | said)
    return steps.audit(no_session, [str(path) for path in (folder, *more)], settings)


def rules(report: AuditReport) -> dict[tuple[str, int, int], str]:
    return {(f.topic, f.partition, f.txn_start_offset): f.rule for f in report.findings}


def copied(report: AuditReport) -> dict[str, Any]:
    found: dict[str, Any] = report.coverage.transaction_state["copied"]
    return found


def test_without_one_the_state_is_not_known_to_be_late_enough(copy: Path) -> None:
    assert rules(audited(copy))[QUIET_STATE] == "state_older_than_log"


def test_it_takes_the_place_of_the_word(copy: Path) -> None:
    manifest_of(copy)
    report = audited(copy)
    assert rules(report)[QUIET_STATE] == "partition_not_in_transaction"
    assert copied(report)["is_state_last"]
    (hanging,) = report.hanging
    assert any("copied after every log" in line for line in hanging.evidence)


def test_of_one_partition_alone_it_does_not(copy: Path) -> None:
    manifest_of(copy)
    topic, partition, _ = QUIET_STATE
    report = audited(copy, topic=[topic], partition=[partition])
    assert rules(report)[QUIET_STATE] == "state_older_than_log"
    assert not copied(report)["is_state_last"]


def test_all_bytes_of_it_are_accounted_for_and_a_later_command_judges_the_same(copy: Path) -> None:
    size = manifest_of(copy).stat().st_size
    report = audited(copy)
    (of_manifest,) = [item for item in report.inputs if item.path.endswith(NAME)]
    assert (of_manifest.parsed_bytes, of_manifest.rejected_bytes) == (size, 0)
    settings = Settings.model_validate({"warehouse": str(copy.parent / "warehouse")})
    steps.reconstruct(no_session, settings)
    again = steps.judge(no_session, settings)
    assert again.run_id == report.run.run_id


def test_another_manifest_beside_the_same_files_is_another_run(copy: Path) -> None:
    manifest_of(copy)
    first = audited(copy)
    manifest_of(copy, is_complete=False)
    second = audited(copy)
    assert first.run.run_id != second.run.run_id
    assert not copied(second)["is_state_last"]
    assert rules(second)[QUIET_STATE] == "state_older_than_log"


def test_a_copy_that_was_cut_short_is_remarked(copy: Path) -> None:
    manifest_of(copy, is_complete=False)
    assert any("cut short" in reason for reason in copied(audited(copy))["doubts"])


def test_another_order_disproves_the_word(copy: Path) -> None:
    manifest_of(copy, order=lambda path: int(not path.parent.name.startswith("__transaction_state-")))
    report = audited(copy, state_copied_last=True)
    assert "state_copied_last" in report.coverage.disproved
    assert rules(report)[QUIET_STATE] == "state_older_than_log"


def cut(folder: Path) -> str:
    path = folder / "trades-eu-0/00000000000000000000.log"
    path.write_bytes(path.read_bytes()[:-1])
    return "bytes, and txn-capture.json says"


def removed(folder: Path) -> str:
    (folder / "trades-eu-1/00000000000000000000.log").unlink()
    return "names it, and it is not there"


def added(folder: Path) -> str:
    shutil.copy(folder / "accounts-1/00000000000000000000.log", folder / "accounts-1/00000000000000000999.log")
    return "txn-capture.json does not name it"


def flipped(folder: Path) -> str:
    path = folder / "__transaction_state-0/00000000000000000000.log"
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    return "its SHA-256 is not the one"


def led_astray(folder: Path) -> str:
    path = folder / NAME
    path.write_text(path.read_text().replace("accounts-1/0", "../accounts-1/0"))
    return "leads out of the folder"


def halved(folder: Path) -> str:
    path = folder / NAME
    path.write_text(path.read_text()[:-40])
    return "not a whole manifest"


def of_tomorrow(folder: Path) -> str:
    path = folder / NAME
    path.write_text(path.read_text().replace('"version": 1', '"version": 2'))
    return "a manifest of version 2, made by a newer copy kit. Use a newer txn-analysis"


@pytest.mark.parametrize("changed", [cut, removed, added, flipped, led_astray, halved, of_tomorrow])
def test_what_does_not_fit_is_refused_by_name(copy: Path, changed: Callable[[Path], str]) -> None:
    manifest_of(copy)
    said = changed(copy)
    with pytest.raises(InputError) as refused:
        audited(copy)
    assert any(said in line and line.startswith(str(copy)) for line in refused.value.problems)


def test_one_that_does_not_fit_says_nothing_where_that_is_skipped(copy: Path) -> None:
    manifest_of(copy)
    added(copy)
    (copy / "accounts-1/00000000000000000999.log").write_bytes(b"")
    report = audited(copy, skip_unrecognised=True)
    assert "copied" not in report.coverage.transaction_state
    assert any(NAME in item.path for item in report.coverage.skipped_inputs)


def test_segments_of_logs_are_summed_with_verify_alone(copy: Path) -> None:
    path = copy / "trades-eu-1/00000000000000000000.log"
    manifest_of(copy, changed=lambda e: e | {"sha256": "0" * 64} if e["path"] == str(path.relative_to(copy)) else e)
    assert copied(audited(copy))["is_state_last"]
    with pytest.raises(InputError, match="SHA-256"):
        audited(copy, verify=True)


def test_an_unknown_field_is_no_fault_and_a_missing_one_proves_nothing(copy: Path) -> None:
    manifest_of(copy, changed=lambda entry: entry | {"of_tomorrow": 1})
    assert copied(audited(copy))["is_state_last"]
    manifest_of(copy, changed=lambda entry: {k: v for k, v in entry.items() if k != "began_monotonic_ms"})
    assert not copied(audited(copy))["is_state_last"]


def test_what_is_given_without_its_neighbours_is_not_whole(copy: Path) -> None:
    path = manifest_of(copy)
    parts = [copy / name for name in ("accounts-1", "__transaction_state-0", "__transaction_state-1")]
    report = audited(path, *parts, transaction_state_partitions=4)
    assert not copied(report)["is_state_last"]


def test_numbers_that_no_clock_shows_are_refused(copy: Path) -> None:
    path = manifest_of(copy)
    said = json.loads(path.read_text())
    said["files"][0]["began_ms"] = 2**63
    path.write_text(json.dumps(said))
    with pytest.raises(InputError, match="not a manifest that this version knows"):
        audited(copy)
    assert BEGAN_MS < 2**63


def test_what_hangs_is_what_the_word_finds(copy: Path) -> None:
    by_word = audited(copy, state_copied_last=True)
    manifest_of(copy)
    by_manifest = audited(copy)
    assert [f.finding_id for f in by_manifest.hanging] == [f.finding_id for f in by_word.hanging]
    assert all(f.verdict is Verdict.HANGING for f in by_manifest.hanging)
