import json

import pytest

from tests.tools import report_rows as rows
from txn_analysis.judge.outcome import Outcome
from txn_analysis.report.build import build_report
from txn_analysis.report.formats import json_report
from txn_analysis.tables import FINDINGS
from txn_analysis.verdict import Verdict


@pytest.mark.parametrize("worst", list(Verdict))
@pytest.mark.parametrize("fail_on", list(Verdict))
def test_there_are_findings_from_fail_on_upwards(worst: Verdict, fail_on: Verdict) -> None:
    report = build_report(rows.run(), [], [], [rows.finding(verdict=worst.value), rows.finding(verdict="in_progress")])
    assert (report.outcome_at(fail_on) is Outcome.FINDINGS) == (worst.severity >= fail_on.severity)


def test_a_run_without_open_transactions_is_clean() -> None:
    report = rows.report()
    assert report.outcome_at(Verdict.IN_PROGRESS) is report.outcome.answer is Outcome.CLEAN


def test_a_run_without_any_log_could_not_tell() -> None:
    report = build_report(rows.run(), [], [rows.health(topic="__transaction_state")], [])
    assert report.outcome_at() is report.outcome.answer is Outcome.COULD_NOT_TELL
    (remedy,) = report.outcome.settled_by
    assert (remedy.missing, remedy.transaction_count) == ("no log of a partition is in this capture", 0)


def test_the_outcome_counts_what_it_answers_and_beside_it_what_is_in_doubt() -> None:
    found = [rows.finding(), rows.live_finding(), rows.inconclusive()]
    outcome = rows.report(*found).outcome
    assert (outcome.answer, outcome.transaction_count, outcome.doubtful_count) == (Outcome.FINDINGS, 2, 1)
    assert (outcome.partitions, outcome.doubtful_partitions) == (("orders-2", "payments-0"), ("orders-0",))
    late = rows.finding(verdict="coordinated")
    clean = rows.report(late).outcome
    assert (clean.answer, clean.transaction_count, clean.doubtful_count) == (Outcome.CLEAN, 0, 0)
    dark = rows.report(rows.inconclusive(), late).outcome
    assert (dark.answer, dark.transaction_count, dark.doubtful_count) == (Outcome.COULD_NOT_TELL, 1, 1)


def test_json_in_parts_is_the_json_of_the_whole() -> None:
    health, findings = (
        [rows.health(topic=name) for name in "ab"],
        [rows.live_finding(), rows.finding(), rows.inconclusive()],
    )
    for report in (build_report(rows.run(), [], health, findings), build_report(rows.run(), [], [], [])):
        whole = json.dumps(report.model_dump(mode="json"), indent=2, ensure_ascii=True) + "\n"
        assert "".join(json_report(report)) == whole


def test_json_is_ascii_whatever_the_ids_hold() -> None:
    evil = "a\x1b[31m\u202e\n\x7fb"
    text = "".join(json_report(build_report(rows.run(), [], [], [rows.finding(transactional_id=evil)])))
    assert text.isascii()
    assert all(line.isprintable() for line in text.split("\n"))
    assert json.loads(text)["findings"][0]["transactional_id"] == evil


def test_coverage_names_what_was_not_read() -> None:
    inputs = [rows.input_file(), rows.input_file(path="bad", rejected_bytes=5, parsed_bytes=0, problem="no dump")]
    partitions = [rows.health(), rows.health(partition=7, is_in_capture=False)]
    coverage = build_report(rows.run(), inputs, partitions, []).coverage
    assert (coverage.rejected_bytes, coverage.partitions_seen, coverage.partitions_missing) == (5, 1, ("orders-7",))
    assert [(s.path, s.problem) for s in coverage.skipped_inputs] == [("bad", "no dump")]
    assert coverage.transaction_state["seen"] == 4


def test_findings_show_every_column_of_their_table() -> None:
    of_explain = {"rules_asked", "would_change"}  # printed by that verb alone
    summed = {"ending"}  # of other columns
    (found,) = json.loads("".join(json_report(build_report(rows.run(), [], [], [rows.finding()]))))["findings"]
    assert set(found) == {column.name for column in FINDINGS.columns} - {"run_id"} - of_explain | summed
