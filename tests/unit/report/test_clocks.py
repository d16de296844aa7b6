"""Durations by the client's clock and by the brokers': each is named where the two contradict each other."""

import json

import pytest

from tests.tools import report_rows as rows
from tests.tools.cases import cases
from txn_analysis.report.build import build_report
from txn_analysis.report.figures import (
    clock_line,
    clock_sentence,
    idle_by_brokers,
    is_contradicted,
    is_decided_by_clock,
    judged_idle_ms,
)
from txn_analysis.report.finding_text import facts, scene_of
from txn_analysis.report.html.page import html_report
from txn_analysis.report.model import AuditReport
from txn_analysis.report.text_report import text_report
from txn_analysis.tables import Finding

S_MS = 1000
BACKDATED = {"appended_after_ms": rows.AS_OF_MS - 58 * S_MS, "appended_before_ms": rows.AS_OF_MS - 56 * S_MS}
WRITTEN_MS = rows.AS_OF_MS - 3 * rows.HOUR_MS
LATE_MS = rows.AS_OF_MS - 1_200_001  # idle for transaction.max.timeout.ms + 300000, and a millisecond


def report(*findings: Finding, skew_ms: int = 0) -> AuditReport:
    parameters = json.dumps({"transaction_max_timeout_ms": 900_000, "max_clock_skew_ms": skew_ms})
    return build_report(rows.run(parameters=parameters), [], [rows.health()], findings)


def said(found: AuditReport) -> str:
    """What `explain` and the page say of the first finding."""
    return " ".join(
        f"{label} {text}" for label, text, *_ in facts(scene_of(found, found.findings[0]), found.findings[0])
    )


@cases(
    "after_ms before_ms skew_ms expected",
    {
        "between": (WRITTEN_MS - 1, WRITTEN_MS + 1, 0, False),
        "exactly": (WRITTEN_MS, WRITTEN_MS, 0, False),
        "dated-back": (WRITTEN_MS + 1, WRITTEN_MS + 9, 0, True),
        "within-the-skew": (WRITTEN_MS + 1, WRITTEN_MS + 9, 1, False),
        "dated-ahead": (None, WRITTEN_MS - 1, 0, True),
        "no-broker-speaks": (None, None, 0, False),
    },
)
def test_when_the_brokers_clocks_contradict(
    after_ms: int | None, before_ms: int | None, skew_ms: int, *, expected: bool
) -> None:
    found = report(rows.finding(appended_after_ms=after_ms, appended_before_ms=before_ms), skew_ms=skew_ms)
    assert is_contradicted(found.run, found.findings[0]) is expected


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        (BACKDATED, "56 s to 58 s"),
        (BACKDATED | {"appended_after_ms": None}, "at least 56 s"),
        (BACKDATED | {"appended_before_ms": None}, "at most 58 s"),
        ({"appended_after_ms": None, "appended_before_ms": None}, "unknown"),
    ],
)
def test_how_long_by_the_brokers(bounds: rows.Row, words: str) -> None:
    found = report(rows.finding(**bounds))
    assert idle_by_brokers(found.run, found.findings[0]) == words


def test_both_clocks_are_named_on_the_page_wherever_a_duration_stands() -> None:
    page = " ".join(html_report(report(rows.finding(**BACKDATED), rows.inconclusive(**BACKDATED))).split())
    both = "idle 3 h 0 min by its client&#x27;s clock; by the brokers&#x27; clocks after"
    assert f'{both} <span class="moment">2026-11-21T02:59:02' in page
    assert page.count('3 h 0 min<br> <span class="quiet">client\'s clock') == 2
    assert "2 of 2 late by one clock alone" in page


@cases(
    "last_ms after_ms before_ms expected",
    {
        "late-by-one-alone": (WRITTEN_MS, rows.AS_OF_MS - 58 * S_MS, rows.AS_OF_MS - 56 * S_MS, True),
        "late-by-both": (WRITTEN_MS, WRITTEN_MS + S_MS, LATE_MS, False),
        "at-the-bound-not-late-by-the-brokers": (WRITTEN_MS, WRITTEN_MS + S_MS, LATE_MS + 1, True),
        "the-brokers-may-not-call-it-late": (WRITTEN_MS, WRITTEN_MS + S_MS, None, True),
        "late-by-the-brokers-alone": (rows.AS_OF_MS - S_MS, None, WRITTEN_MS, True),
        "late-by-neither": (rows.AS_OF_MS - S_MS, LATE_MS + 1, LATE_MS + 9, False),
    },
)
def test_when_it_depends_on_the_clock(
    last_ms: int, after_ms: int | None, before_ms: int | None, *, expected: bool
) -> None:
    bounds = {"appended_after_ms": after_ms, "appended_before_ms": before_ms}
    found = report(rows.finding(last_timestamp_ms=last_ms, **bounds))
    assert is_contradicted(found.run, found.findings[0])
    assert is_decided_by_clock(found.run, found.findings[0]) is expected


def test_what_the_broker_stamped_itself_has_one_time() -> None:
    told = said(report(rows.finding(appended_after_ms=WRITTEN_MS, appended_before_ms=WRITTEN_MS)))
    assert "since last write 2026-11-21T00:00:00.000Z by the broker's clock, idle 3 h 0 min blocks" in told


def test_a_bound_that_no_broker_gives_is_left_out() -> None:
    told = said(report(rows.finding(appended_after_ms=None, appended_before_ms=WRITTEN_MS + 1)))
    assert "; by the brokers' clocks before 2026-11-21T00:00:00.001Z" in told
    assert "after unknown" not in told


def test_one_clock_is_not_named() -> None:
    found = report(rows.finding())
    assert clock_sentence(found) is clock_line(found.run, found.findings[0]) is None
    assert "client's" not in text_report(found)


def test_what_was_dated_ahead_is_idle_by_the_brokers() -> None:
    ahead = {"last_timestamp_ms": rows.AS_OF_MS + rows.HOUR_MS, "idle_ms": -rows.HOUR_MS, "late_by_ms": 60 * S_MS}
    found = report(rows.finding(**ahead, lateness_basis="broker_clock", verdict="suspect"))
    assert judged_idle_ms(found.run, found.findings[0]) == 21 * 60 * S_MS
    assert "21 min 0 s" in text_report(found)


def test_where_nothing_asks_for_anything_no_clock_is_talked_about() -> None:
    healthy = rows.finding(verdict="coordinated", rule="in_coordinator", **BACKDATED)
    assert clock_sentence(report(healthy)) is None
    assert clock_sentence(report(healthy, rows.finding(**BACKDATED))) is not None
