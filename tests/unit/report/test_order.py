"""What people read first is what does most damage; tables and JSON keep their order."""

from tests.tools import report_rows as rows
from txn_analysis.report.build import build_report
from txn_analysis.report.figures import Reader, by_damage
from txn_analysis.report.headline import headline
from txn_analysis.report.html.page import html_report
from txn_analysis.report.model import AuditReport
from txn_analysis.report.text_report import text_report

HIDDEN = {"audit": 3, "ledger": 7, "orders": 7, "payments": 900, "unseen": None}


def report() -> AuditReport:
    """One hanging transaction a topic, and one in progress that hides more than all of them."""
    findings = [rows.finding(topic=topic, finding_id=topic) for topic in sorted(HIDDEN)]
    findings.append(rows.finding(topic="live", verdict="in_progress"))
    health = [rows.health(topic=topic, hidden_record_count=hidden) for topic, hidden in HIDDEN.items()]
    counts = {"hanging": 5, "in_progress": 1}
    live = rows.health(topic="live", hidden_record_count=10_000)
    return build_report(rows.run(verdict_counts=counts), [], [*health, live], findings)


def test_headline_and_first_finding_are_what_hides_most() -> None:
    found = report()
    assert headline(found).text == (
        "HANGING: 5 transactions on 5 partitions: payments-2, ledger-2, orders-2, audit-2, unseen-2"
    )
    text = text_report(found)
    assert "\n1. payments-2@155: " in text
    assert "\n2. ledger-2@155: " in text
    assert (
        "explain payments-" in text_report(found, reader=Reader(now_ms=rows.AS_OF_MS * 2)).partition("-- Do now --")[2]
    )


def test_a_verdict_counts_before_the_damage_and_what_waits_behind_another_hides_nothing() -> None:
    behind = rows.finding(topic="payments", txn_start_offset=500, blocks_partition=False)
    found = report()
    again = build_report(
        rows.run(), [], [rows.health(topic="payments", hidden_record_count=900), rows.health(topic="a")],
        [behind, rows.finding(topic="a"), rows.finding(topic="payments"), rows.finding(verdict="suspect", topic="b")],
    )  # fmt: skip
    assert [f.topic for f in by_damage(found, found.findings)][-1] == "live"
    assert [(f.topic, f.txn_start_offset) for f in by_damage(again, again.findings)] == [
        ("payments", 155),
        ("a", 155),
        ("payments", 500),
        ("b", 155),
    ]


def test_the_page_has_the_order_of_the_text() -> None:
    page = html_report(report())
    places = [page.index(f'data-sort="{topic}-2"') for topic in ("payments", "ledger", "orders", "audit", "unseen")]
    assert places == sorted(places)
