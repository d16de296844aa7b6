import json
from pathlib import Path

import pytest

from tests.tools import report_rows as rows
from tests.tools.program import program
from txn_analysis.plan.abort_plan import abort_plan
from txn_analysis.plan.plan_file import ndjson
from txn_analysis.plan.script import commands
from txn_analysis.settings import Settings
from txn_analysis.tables import AbortRecord

pytestmark = pytest.mark.usefixtures("library")

FINDINGS = [rows.finding(coordinator_epoch_basis="unknown"), rows.live_finding()]
HOUR_MS = 3_600_000
PLAN = list(abort_plan(FINDINGS, Settings(), rows.AS_OF_MS))


@pytest.fixture(autouse=True)
def in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command's clock: an hour after the copy."""
    monkeypatch.setattr("txn_analysis.cli.plan_verbs.now_ms", lambda: rows.AS_OF_MS + HOUR_MS)


@pytest.fixture
def too_late(in_time: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("txn_analysis.cli.plan_verbs.now_ms", lambda: rows.AS_OF_MS + 48 * HOUR_MS)


@pytest.fixture(autouse=True)
def plan(monkeypatch: pytest.MonkeyPatch) -> None:
    def records(settings: Settings, run_id: str | None, *_: object, **__: object) -> tuple[list[AbortRecord], int]:
        return [] if run_id == "clean" else PLAN, settings.transaction_max_timeout_ms

    monkeypatch.setattr("txn_analysis.cli.plan_verbs._records", records)


@pytest.mark.parametrize("api_version", [0, 1, 2])
def test_request_goes_to_stdout_and_what_is_left_out_to_stderr(api_version: int) -> None:
    words = ("--format", "write-txn-markers", "--ended", "inventory-sync", "--api-version", str(api_version))
    done = program("abort-plan", *words)
    (marker,) = json.loads(done.out)["markers"]
    assert (done.code, marker["producerId"], "transactionVersion" in marker) == (0, 3, api_version == 2)
    assert "left out: orders-2, producer id 987654321" in done.err


def test_request_leaves_out_a_producer_that_nobody_says_is_ended() -> None:
    done = program("abort-plan", "--format", "write-txn-markers")
    assert (done.code, json.loads(done.out)) == (0, {"markers": []})
    assert "\nleft out: payments-0, producer id 3: its producer may write there again" in done.err
    assert "then say --fenced inventory-sync" in done.err


def test_an_ended_producer_with_a_slip_is_refused() -> None:
    done = program("abort-plan", "--format", "write-txn-markers", "--ended", "inventory-sink")
    assert (done.code, done.out) == (2, "")
    assert "the plan does not ask for this; it needs inventory-sync ended" in done.err


@pytest.mark.parametrize("words", [(), ("--format", "commands"), ("--format", "ndjson")], ids=" ".join)
def test_the_script_is_told_of_ended_producers_when_it_runs(words: tuple[str]) -> None:
    done = program("abort-plan", *words, "--ended", "inventory-sync")
    assert (done.code, done.out) == (2, "")
    assert "sh plan.sh --ended ID" in done.err


def test_without_a_form_the_script_is_printed_that_checks_before_it_sends() -> None:
    assert program("abort-plan").out == commands(PLAN)


def test_each_file_has_the_form_that_its_suffix_says(tmp_path: Path) -> None:
    script, lines = tmp_path / "plan.sh", tmp_path / "plan.ndjson"
    done = program("abort-plan", "-o", str(script), "-o", str(lines))
    assert (done.code, done.out) == (0, "")
    assert (script.read_text(), lines.read_text()) == (commands(PLAN), ndjson(PLAN))


@pytest.mark.parametrize("name", ["plan.json", "plan", "PLAN.JSON"])
def test_the_script_is_not_written_to_a_file_of_data_unless_asked_for(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    done = program("abort-plan", "-o", str(file))
    assert (done.code, done.out, file.exists()) == (2, "", False)
    assert "--format commands, ndjson or write-txn-markers" in done.err
    assert program("abort-plan", "-o", str(file), "--format", "ndjson").code == 0
    assert file.read_text() == ndjson(PLAN)


@pytest.mark.parametrize("flag", ["--format", "--rendering"])
def test_other_renderings(flag: str) -> None:
    assert program("abort-plan", flag, "ndjson").out == ndjson(PLAN)
    assert program("abort-plan", flag, "commands").out == commands(PLAN)


def test_empty_plan_is_a_valid_request() -> None:
    done = program("abort-plan", "--run", "clean", "--format", "write-txn-markers")
    assert (done.code, json.loads(done.out)) == (0, {"markers": []})


def test_part_of_a_plan_is_noted() -> None:
    done = program("abort-plan", "--format", "ndjson", "--topic", "payments", "--partition", "0")
    (record,) = [json.loads(line) for line in done.out.splitlines()]
    assert (record["topic"], done.err.splitlines()[0]) == ("payments", "note: 1 of 2 records of the plan")
    assert program("abort-plan", "--format", "ndjson", "--transactional-id", "inventory-sync").out == done.out
    assert "orders" in program("abort-plan", "--format", "ndjson", "--max-records", "1").out


def test_a_second_topic_adds_to_the_first() -> None:
    done = program("abort-plan", "--format", "ndjson", "--topic", "payments", "--topic", "orders")
    assert [json.loads(line)["topic"] for line in done.out.splitlines()] == ["orders", "payments"]
    assert "records of the plan" not in done.err


def test_large_plan_needs_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TXN_ANALYSIS_PLAN_MAX_PARTITIONS", "1")
    done = program("abort-plan")
    assert (done.code, done.out) == (2, "")
    assert "--yes-many" in done.err
    assert program("abort-plan", "--yes-many").code == 0
    assert program("abort-plan", "--max-records", "1").code == 0


@pytest.fixture
def plan_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A plan of the command's today."""
    now_ms = rows.AS_OF_MS + HOUR_MS
    late = abort_plan([rows.finding(appended_before_ms=now_ms), rows.live_finding()], Settings(), now_ms)
    monkeypatch.setattr("txn_analysis.cli.plan_verbs._records", lambda *_: (list(late), 900_000))
    file = tmp_path / "plan.ndjson"
    file.write_text(ndjson(late))
    return file


def test_file_that_is_whole_and_in_time(plan_file: Path) -> None:
    done = program("abort-plan", "--check", str(plan_file))
    assert (done.code, done.err) == (0, "")
    assert "2 records, unchanged" in done.out
    assert "1 of them not before" in done.out
    assert program("abort-plan", "--check", str(plan_file), "--warehouse", "there").code == 0


FORMS = pytest.mark.parametrize("form", ["write-txn-markers", "ndjson", "commands"])


@FORMS
def test_plan_that_has_expired_is_printed_to_nobody_who_does_not_ask_for_it(too_late: None, form: str) -> None:
    done = program("abort-plan", "--format", form)
    assert (done.code, done.out) == (2, "")
    said = "2 records of the plan expired, the first at 2026-11-22T03:00:00.000Z: copy the files and audit again"
    assert done.err == f"error: {said}, or print the plan as it was with --expired\n"
    asked = program("abort-plan", "--format", form, "--expired")
    assert asked.code == 0
    assert asked.out
    assert f"note: {said}\n" in asked.err


def test_changed_or_expired_or_foreign_file_is_refused(plan_file: Path, tmp_path: Path) -> None:
    text = plan_file.read_text()
    plan_file.write_text(text.replace('"producer_epoch": 3', '"producer_epoch": 4'))
    assert "changed" in program("abort-plan", "--check", str(plan_file)).err
    plan_file.write_text(ndjson(PLAN))  # of another audit
    refused = program("abort-plan", "--check", str(plan_file), "--warehouse", "there")
    assert (refused.code, refused.out) == (2, "")
    assert "expired" in refused.err or "recommends no such abort" in refused.err
    assert "cannot be read" in program("abort-plan", "--check", str(tmp_path / "nothing")).err
    plan_file.write_bytes(b"\xff")
    assert "not ASCII" in program("abort-plan", "--check", str(plan_file)).err


@pytest.mark.parametrize(
    ("written", "answer"),
    [
        ('"schema_version": 3', "has schema_version 3, which this version does not read: audit again"),
        (
            '"schema_version": 2, "said_later": true',
            "is no record of a plan (said_later: Extra inputs are not permitted)",
        ),
    ],
    ids=["another version", "a field more"],
)
def test_file_of_another_version_is_refused_in_one_line(plan_file: Path, written: str, answer: str) -> None:
    plan_file.write_text(plan_file.read_text().replace('"schema_version": 2', written))
    done = program("abort-plan", "--check", str(plan_file))
    assert (done.code, done.out) == (2, "")
    assert answer in done.err
    assert done.err.count("\n") == 1


def test_schema_is_printed_without_a_warehouse() -> None:
    assert json.loads(program("abort-plan", "--schema").out)["required"][:2] == ["schema_version", "run_id"]


def test_one_transaction_is_planned_by_its_address() -> None:
    one, other = PLAN
    done = program("abort-plan", f"{one.topic}-{one.partition}@{one.txn_start_offset}", "--format", "ndjson")
    (record,) = map(json.loads, done.out.splitlines())
    assert (done.code, record["topic"], record["txn_start_offset"]) == (0, one.topic, one.txn_start_offset)
    assert record["plan_fingerprint"] != other.plan_fingerprint
    assert "note: 1 of 2 records of the plan" in done.err


def test_an_address_that_the_plan_does_not_abort_is_refused() -> None:
    done = program("abort-plan", "orders-0@7", "--format", "ndjson")
    assert (done.code, done.out) == (2, "")
    assert "orders-0@7: the plan has no abort of it" in done.err
