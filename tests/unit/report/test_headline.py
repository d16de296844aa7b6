import pytest

from tests.tools import report_rows as rows
from txn_analysis.judge.outcome import Outcome
from txn_analysis.report.build import build_report
from txn_analysis.report.figures import Reader
from txn_analysis.report.headline import Kind, doubts, lead, what_settles
from txn_analysis.report.text_report import text_report
from txn_analysis.text import iso_utc


@pytest.mark.parametrize("is_live", [True, False])
def test_producer_that_may_write_again_is_ended_before_anything_is_aborted(is_live: bool) -> None:
    steps = [step.text for step in rows.every_step(rows.report(rows.live_finding(is_producer_live=is_live)))]
    assert steps.index("Stop and fence 1 producer (see `do`), after:") < steps.index(
        next(step for step in steps if step.startswith("Read it, run it"))
    )


@pytest.mark.parametrize(
    ("verdict", "rule"),
    [("suspect", "marker_overdue"), ("inconclusive", "state_older_than_log"), ("in_progress", "not_late")],
)
def test_no_abort_is_named_where_nothing_hangs(verdict: str, rule: str) -> None:
    assert not any(step.command for step in rows.every_step(rows.report(rows.finding(verdict=verdict, rule=rule))))


def test_without_an_answer_the_step_says_how_to_get_one() -> None:
    missing = ["__transaction_state up to a later moment, or --state-copied-last"]
    report = rows.report(rows.inconclusive(rule="state_older_than_log", missing_evidence=missing))
    assert rows.every_step(report) == []
    assert what_settles(report) == (
        "Nothing is known to hang, but `__transaction_state` is not proven to reach up to the data. What would settle "
        "it: copy the files again: the logs first and `__transaction_state` last, from the leaders; or "
        "`--state-copied-last`, if it was copied after all logs, from the leaders."
    )


def test_what_is_not_late_needs_an_answer_later() -> None:
    young = rows.inconclusive(late_by_ms=-1)
    report = build_report(rows.run(verdict_counts={"inconclusive": 1}), [], [], [young])
    assert [step.text for step in rows.every_step(report)] == [
        "Nothing yet. 1 transaction without an answer, and not late. Audit again later."
    ]


def test_nothing_open_needs_nothing() -> None:
    assert [step.text for step in rows.every_step(rows.report())] == [
        "Nothing. No transaction is open in what was read."
    ]


def test_where_nothing_hangs_any_more_it_is_said_how_that_is_verified() -> None:
    later = build_report(rows.run(earlier_captures=["capture-1"]), [], [], [])
    assert [step.command for step in rows.every_step(later, Reader(" --cluster east"))] == [
        "txn-analysis verify --cluster east",
    ]
    still = build_report(rows.run(earlier_captures=["capture-1"]), [], [], [rows.finding()])
    assert str([step.command for step in rows.every_step(still)]).count("verify") == 1
    too_late_ms = rows.AS_OF_MS + 40 * 24 * rows.HOUR_MS
    assert [step.command for step in rows.every_step(still, Reader(now_ms=too_late_ms))][-1] == "txn-analysis verify"


def test_what_is_too_young_to_be_judged_hides_behind_no_all_clear() -> None:
    meanwhile = rows.inconclusive(is_recent=True, rule="log_may_end_early")
    report = build_report(rows.run(verdict_counts={"inconclusive": 1}), [], [rows.health()], [meanwhile])
    assert report.outcome.answer is Outcome.CLEAN
    assert [doubt.text for doubt in doubts(report)] == [
        "1 open transaction began less than 20 min 0 s before the copy, by the brokers' clocks: too young to be judged."
    ]
    text = text_report(report)
    assert "Nothing hangs in what was read." in text
    later = iso_utc(rows.AS_OF_MS + 20 * 60_000)
    step = f"1 open transaction is too young to be judged. If consumers still wait, copy and audit again after {later}."
    assert f"1. Nothing yet. {step}" in " ".join(text.split())
    assert report.impact is not None
    assert report.impact.partitions_blocked == 0


def test_where_nothing_dates_the_copy_the_headline_asks_for_its_moment() -> None:
    moment = "or the moment of the copy (--as-of), if that was before 2026-11-21T03:20:00Z"
    young = rows.inconclusive(
        rule="log_may_end_early", missing_evidence=["a later copy", moment], appended_after_ms=rows.AS_OF_MS - 1_000
    )
    report = build_report(
        rows.run(), [], [rows.health()], [young, rows.inconclusive(rule="log_may_end_early", partition=3)]
    )
    assert report.outcome.answer is Outcome.COULD_NOT_TELL
    as_of = (
        "or `--as-of TIME` with the moment of the copy, for what began less than 20 min 0 s before it, by the brokers'"
    )
    assert as_of in what_settles(report)
    assert as_of in " ".join(text_report(report).split())


@pytest.mark.parametrize(("appended_before_ms", "is_asked"), [(None, True), (rows.AS_OF_MS - 1, False)])
def test_of_a_cluster_that_wrote_nothing_more_the_moment_of_the_copy_is_asked_for(
    appended_before_ms: int | None, is_asked: bool
) -> None:
    going = rows.finding(verdict="in_progress", rule="not_late", appended_before_ms=appended_before_ms)
    run = rows.run(as_of_basis="newest_broker_timestamp")
    said = [doubt.text for doubt in doubts(build_report(run, [], [rows.health()], [going]))]
    assert any("--as-of TIME" in text for text in said) is is_asked


def test_of_a_cluster_whose_clocks_went_on_elsewhere_nothing_is_claimed() -> None:
    """Another partition had an end marker after it, and nothing says whether anything was written here since."""
    before_ms = rows.AS_OF_MS - 10_000
    going = rows.finding(
        verdict="in_progress",
        rule="not_late",
        appended_before_ms=None,
        last_timestamp_ms=before_ms,
        appended_after_ms=before_ms,
    )
    run = rows.run(as_of_basis="newest_broker_timestamp")
    (said,) = [doubt.text for doubt in doubts(build_report(run, [], [rows.health()], [going])) if "as of" in doubt.text]
    when = iso_utc(rows.AS_OF_MS)
    assert said == (f"1 transaction in progress as of {when}. If copied later: --as-of TIME.")


@pytest.mark.parametrize(
    ("basis", "appended_before_ms", "is_said"),
    [
        ("given", rows.AS_OF_MS + 1, True),
        ("given", rows.AS_OF_MS, False),
        ("given", None, False),
        ("newest_broker_timestamp", rows.AS_OF_MS + 1, False),
    ],
)
def test_a_stated_moment_before_what_the_files_hold_is_said(
    basis: str, appended_before_ms: int | None, is_said: bool
) -> None:
    """Such as seconds in place of milliseconds, by which nothing is late."""
    going = rows.finding(verdict="in_progress", rule="not_late", appended_before_ms=appended_before_ms)
    report = build_report(rows.run(as_of_basis=basis), [], [rows.health()], [going])
    stated = f"--as-of {iso_utc(rows.AS_OF_MS)} is before what brokers wrote"
    assert any(doubt.text.startswith(stated) for doubt in doubts(report)) is is_said


@pytest.mark.parametrize(
    ("hanging_blocks", "is_other_there", "where"),
    [
        (True, False, "1 partition"),
        (True, True, "2 partitions (1 by hanging)"),
        (False, True, "1 partition (0 by hanging)"),
    ],
)
def test_what_is_blocked_says_how_much_of_that_by_what_hangs(
    hanging_blocks: bool, is_other_there: bool, where: str
) -> None:
    other = {"verdict": "coordinated", "rule": "in_coordinator", "partition": 3, "finding_id": "f1"}
    impact = {"hidden_since_ms": None, "hidden_share": None, "hidden_lost_at_ms": None}
    here = rows.finding(blocks_partition=hanging_blocks, impact=impact if hanging_blocks else None)
    findings = [here, rows.finding(**other, impact=impact)] if is_other_there else [here]
    health = [rows.health(), rows.health(partition=3)][: len(findings)]
    blocked = [one.text for one in lead(build_report(rows.run(), [], health, findings)) if one.kind is Kind.BLOCKED]
    assert [text.partition(", 12 ")[0].partition(", 24 ")[0] for text in blocked] == [f"Blocked: {where}"]
