"""A report of one topic: what is there and what it needs, and that the rest of the run was left out."""

import json

from tests.tools import report_rows as rows
from txn_analysis.judge.outcome import Outcome
from txn_analysis.report.build import build_report
from txn_analysis.report.headline import headline
from txn_analysis.report.html.page import html_report
from txn_analysis.report.model import AuditReport
from txn_analysis.report.text_report import text_report

WARNING = json.dumps([{"kind": "timeout_outlier", "subject": "billing", "text": "x", "count": 1}])


def report(*topics: str) -> AuditReport:
    """Something hangs on `payments`; `orders` has one without an answer, `refunds` nothing open."""
    findings = [rows.inconclusive(), rows.live_finding(topic="payments", blocks_partition=True)]
    health = [rows.health(topic=topic, partition=0) for topic in ("orders", "payments", "refunds")]
    run = rows.run(verdict_counts={"hanging": 1, "inconclusive": 1}, warnings=WARNING)
    return build_report(run, [rows.input_file()], [*health, rows.health(topic="__transaction_state")], findings, topics)


def test_the_answer_is_that_of_the_topic() -> None:
    assert headline(report("payments")).text == "HANGING: 1 transaction on 1 partition: payments-0"
    assert report("orders").outcome_at() is report("orders").outcome.answer is Outcome.COULD_NOT_TELL
    assert report("refunds").outcome_at() is report("refunds").outcome.answer is Outcome.CLEAN
    assert report("orders", "payments") == report().model_copy(update={"warnings": (), "topics": ("orders", "payments"),
        "partitions": report("orders", "payments").partitions})  # fmt: skip


def test_the_coordinators_topic_is_no_run_without_logs() -> None:
    assert report("__transaction_state").outcome_at() is Outcome.CLEAN


def test_what_was_left_out_is_said() -> None:
    text = text_report(report("payments"))
    assert "This report shows only payments." in text
    assert "left out          the run's other topics, and its early warnings" in text
    assert "4 partitions;" in text
    assert "billing" not in text
    assert "orders" not in text
    assert "This report shows only payments." in html_report(report("payments"))
    assert "shows only" not in text_report(report())


def test_the_plan_is_that_of_the_topic() -> None:
    assert "abort-plan --run run-1 --topic payments --format commands" in text_report(report("payments"))


def test_what_is_blocked_elsewhere_is_not_counted() -> None:
    assert report("orders").impact is not None
    assert "Blocked" not in text_report(report("refunds"))
