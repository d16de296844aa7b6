"""Findings that repeat, in groups: whom they are of, and which of them are shown."""

from tests.tools import report_rows as rows
from txn_analysis.report.alike import alike, repeated
from txn_analysis.report.build import build_report
from txn_analysis.report.text_report import text_report
from txn_analysis.tables import Finding
from txn_analysis.tables.finding_rows import FindingRows

CAUSE = {"name": "old_epoch_left_open", "confidence": "certain"}


def of(application: str, number: int, **columns: object) -> list[Finding]:
    return [
        rows.live_finding(application=application, partition=n, finding_id=f"{application}{n}", cause=CAUSE, **columns)
        for n in range(number)
    ]


def test_one_application_with_one_cause_is_one_group() -> None:
    other_cause = rows.live_finding(application="billing", cause={"name": "unexplained", "confidence": "unknown"})
    groups = alike([*of("billing", 3), *of("fraud", 2), other_cause], 500, 50)
    assert [(group.owner, len(group.findings)) for group in groups] == [
        ("application billing", 3), ("application fraud", 2), ("application billing", 1),
    ]  # fmt: skip


def test_without_an_application_the_producer_makes_the_group() -> None:
    groups = alike([rows.finding(partition=n) for n in range(4)] + [rows.finding(producer_id=7)], 500, 50)
    assert [(group.owner, len(group.findings)) for group in groups] == [
        ("producer id 987654321", 4), ("producer id 7", 1),
    ]  # fmt: skip


def test_one_application_does_not_hide_all_others() -> None:
    groups = alike([*of("billing", 900), *of("fraud", 60), *of("shop", 1)], 100, 50)
    assert [group.shown for group in groups] == [50, 49, 1]


def test_what_is_left_of_the_room_goes_to_the_worst() -> None:
    groups = alike([*of("billing", 900), *of("shop", 1)], 100, 50)
    assert [group.shown for group in groups] == [99, 1]


def test_a_group_says_how_many_more_there_are_and_what_they_hide() -> None:
    findings = of("billing", 3, blocks_partition=True)
    health = [rows.health(topic="payments", partition=n, hidden_record_count=n * 10 or None) for n in range(3)]
    report = build_report(rows.run(verdict_counts={"hanging": 3}), [], health, findings)
    (group,) = alike(report.findings, 2, 2)
    assert group.sentence(report) == (
        "2 more of application billing with the same verdict, rule and cause; together 3 transactions on 3 partitions, "
        "30 records hidden, and an unknown number on 1 partition; 1 of them not on this page"
    )


def test_what_stands_behind_an_older_transaction_hides_nothing_of_its_own() -> None:
    findings = [
        *of("billing", 2, blocks_partition=True),
        rows.live_finding(application="billing", cause=CAUSE, blocks_partition=False),
    ]
    health = [rows.health(topic="payments", partition=n, hidden_record_count=10) for n in range(2)]
    report = build_report(rows.run(verdict_counts={"hanging": 3}), [], health, findings)
    (group,) = alike(report.findings, 3, 3)
    assert group.summary(report).endswith("together 3 transactions on 2 partitions, 20 records hidden")


def test_what_one_id_has_open_on_many_partitions_is_one_row_of_a_short_report() -> None:
    of_one = [
        rows.finding(
            verdict="coordinated", rule="in_coordinator", transactional_id="app-1", partition=n, finding_id=f"app{n}"
        )
        for n in range(9)
    ]
    healths = [rows.health(partition=one.partition) for one in of_one]
    text = text_report(build_report(rows.run(verdict_counts={"coordinated": 9}), [], healths, of_one))
    told = " ".join(text.split())
    assert "alike: 8 more of transactional id app-1 with the same verdict, rule and cause" in told
    assert text.count("in_coordinator") == 1


def test_each_that_hangs_has_its_block() -> None:
    of_one = [rows.live_finding(transactional_id="app-1", partition=n, finding_id=f"app{n}") for n in range(5)]
    assert repeated(FindingRows.of(of_one), of_one_id=True) == []


def test_rows_of_one_id_follow_each_other() -> None:
    mixed = [
        rows.live_finding(application="a", transactional_id=f"a-{n % 2}", partition=n, finding_id=f"a{n}")
        for n in range(4)
    ]
    (group,) = alike(mixed, 500, 50)
    assert group.findings.column("transactional_id").to_pylist() == ["a-0", "a-0", "a-1", "a-1"]
