"""How a repair is sent: from when until when, by which command, and how far consumers can read afterwards."""

import subprocess

import pytest

from tests.tools import report_rows as rows
from txn_analysis.plan.abort_plan import abort_plan
from txn_analysis.report.figures import Reader
from txn_analysis.report.finding_text import scene_of, then_sentence, window_of
from txn_analysis.report.model import AuditReport
from txn_analysis.report.text_report import text_report
from txn_analysis.settings import Settings

DAY_MS = 24 * rows.HOUR_MS
EVIL = "evil\n'$(rm -rf ~)' -x"


def text_of(found: AuditReport, now_ms: int | None = None) -> str:
    return " ".join(text_report(found, reader=Reader(now_ms=now_ms)).split())


def after(found: AuditReport) -> str | None:
    return then_sentence(scene_of(found, found.hanging[0]), found.hanging[0])


@pytest.mark.parametrize("before_ms", [None, rows.AS_OF_MS - 60_000, rows.AS_OF_MS - 9 * DAY_MS])
def test_the_report_says_the_times_of_the_plan(before_ms: int | None) -> None:
    row = rows.finding(appended_before_ms=before_ms)
    found = rows.report(row)
    (record,) = abort_plan([row], Settings(), rows.AS_OF_MS)
    assert window_of(found.run, found.findings[0].appended_before_ms) == (record.not_before_ms, record.not_after_ms)


def test_nothing_is_promised_where_it_is_not_known_what_blocks() -> None:
    assert after(rows.report(rows.finding(blocks_partition=False))) is None


def test_the_run_of_the_plan_names_each_producer_that_must_be_ended_once_and_quoted() -> None:
    returning = [rows.live_finding(), rows.live_finding(partition=1), rows.live_finding(transactional_id=EVIL)]
    steps = rows.every_step(rows.report(rows.finding(), *returning))
    (command,) = [step.command for step in steps if "sh plan.sh" in str(step.command)]
    assert command is not None
    assert command.isprintable()
    words = command.removeprefix("BROKERS=host:9092 sh plan.sh ")
    shown = subprocess.run(["/bin/sh", "-c", f"printf '%s\\0' {words}"], check=True, capture_output=True, text=True)
    assert shown.stdout.split("\0")[:-1] == ["--ended", "inventory-sync", "--ended", EVIL]


def test_before_a_line_is_typed_that_asks_the_brokers_it_is_said_where_they_are() -> None:
    text = text_of(rows.report(rows.live_finding())).partition("-- Do now --")[2]
    assert (
        text.index("export BROKERS=host:9092") < text.index("sh plan.sh") < text.index(" fence kafka-transactions.sh")
    )


def test_a_plan_without_a_producer_to_end_is_run_as_it_stands() -> None:
    steps = rows.every_step(rows.report(rows.finding()))
    assert "export" not in "".join(map(str, steps))
    assert [step.command for step in steps][1] == "BROKERS=host:9092 sh plan.sh"
    assert "--ended" not in "".join(step.text for step in steps)


def test_of_very_many_producers_the_command_names_some_and_says_how_many_more_there_are() -> None:
    many = [rows.live_finding(partition=number, transactional_id=f"id-{number:02}") for number in range(23)]
    (step,) = [step for step in rows.every_step(rows.report(*many)) if "sh plan.sh" in str(step.command)]
    assert str(step.command).count("--ended ") == 20
    assert "The script names the other 3 ids." in step.text


def test_of_old_files_no_plan_is_printed() -> None:
    found = rows.report(rows.finding(), rows.live_finding())
    text = text_of(found, rows.AS_OF_MS + 40 * DAY_MS)
    assert "abort-plan" not in text
    assert "sh plan.sh" not in text
    assert "Copied at 2026-11-21T03:00:00.000Z, 40 d 0 h ago: a plan from these files has expired." in text
    assert "do Copy the files and audit again: a plan from these files has expired." in text
    assert "txn-analysis explain orders-2@" in text
