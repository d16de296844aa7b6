from typing import Any

import pytest

from tests.tools import report_rows as rows
from txn_analysis.questions.loaded_report import (
    LOG_SLICES,
    MARKER_SLICES,
    MOST_PARTITIONS,
    Shown,
    series,
    worst_places,
)
from txn_analysis.report.build import build_report
from txn_analysis.runs.ask import ask, row_values

AS_OF_MS = 1_000_000
NO_RUN: Any = None  # every table that is asked is given
MANY = 20_000
SHOWN = {
    ("orders", 0): Shown(0, 10), ("silent", 0): Shown(0, 3), ("busy", 0): Shown(0, MANY), ("pieces", 0): Shown(40, 60),
}  # fmt: skip
Points = dict[str, list[dict[str, Any]]]

APPENDS = ("topic", "partition", "base_offset", "last_offset", "max_timestamp_ms", "is_control")
TRANSACTIONS = ("topic", "partition", "txn_start_offset", "end_offset", "end_timestamp_ms", "outcome")
FEW = [
    *(("orders", 0, n, n, 1000 * (n + 1), True) for n in range(11)),
    *(("silent", 0, n, n, ms, False) for n, ms in enumerate([500, AS_OF_MS + 1, 700])),
    ("elsewhere", 0, 0, 0, 1, True),
    ("pieces", 0, 0, 59, 700, True),
]
LOGS = {
    "log_batches": f"""
        SELECT *, NULL AS timestamp_type FROM ({row_values(APPENDS, FEW)}) few
        UNION ALL SELECT 'busy', 0, value, value AS last, value AS ms, value % 2 = 1, NULL
        FROM generate_series(0, {MANY - 1})
    """,
    # Every second record of the busy log ends a transaction of one record.
    "ended_transactions": f"""
        {row_values(TRANSACTIONS, [("orders", 0, 2, 5, 6000, "COMMIT")])}
        UNION ALL SELECT 'busy', 0, value * 2, value * 2 + 1, value + 1,
            CASE WHEN value % 20 = 0 THEN 'ABORT' ELSE 'COMMIT' END FROM generate_series(0, {MANY // 2 - 1})
    """,
    "transactions": row_values(TRANSACTIONS, [("orders", 0, 7, 0, 0, "open")]),
}


def drawn(view: str, order: str) -> Points:
    """The rows of a view, by topic."""
    found: Points = {}
    for row in ask(NO_RUN, f"SELECT * FROM {view} ORDER BY {order}", {**series(SHOWN, AS_OF_MS), **LOGS}).to_pylist():
        found.setdefault(row["topic"], []).append(row)
    return found


@pytest.fixture(scope="module")
def points() -> Points:
    return drawn("log_points", "end_offset")


def test_last_stable_offset_stays_at_the_oldest_transaction_that_is_open_then(points: Points) -> None:
    assert [(p["end_offset"], p["last_stable_offset"]) for p in points["orders"]] == [
        (1, 1), (2, 2), (3, 2), (4, 2), (5, 2), (6, 6), (7, 7), (8, 7), (9, 7), (10, 7),
    ]  # fmt: skip


def test_points_have_the_time_of_a_brokers_clock(points: Points) -> None:
    assert [p["moment_ms"] for p in points["orders"]] == [1000 * n for n in range(1, 11)]


def test_timestamp_after_the_copy_says_nothing(points: Points) -> None:
    assert [(p["moment_ms"], p["timestamp_ms"]) for p in points["silent"]] == [(None, 500), (None, None), (None, 700)]


def test_partitions_that_are_not_shown_give_no_point(points: Points) -> None:
    assert set(points) == {"orders", "silent", "busy", "pieces"}


def test_piece_that_begins_before_what_is_shown_counts(points: Points) -> None:
    assert [(p["end_offset"], p["moment_ms"]) for p in points["pieces"]] == [(60, 700)]


def test_long_log_gives_no_more_points_than_slices(points: Points) -> None:
    assert len(points["busy"]) == LOG_SLICES
    assert points["busy"][-1]["end_offset"] == MANY
    assert all(p["last_stable_offset"] == p["end_offset"] - p["end_offset"] % 2 for p in points["busy"])


def test_markers_close_together_are_counted() -> None:
    found = drawn("markers", "`offset`")
    assert [(r["outcome"], r["offset"], r["time_ms"]) for r in found["orders"]] == [("COMMIT", 5, 6000)]
    busy = found["busy"]
    assert len(busy) == 2 * MARKER_SLICES
    assert sum(row["marker_count"] for row in busy) == MANY // 2


@pytest.mark.parametrize("topic", ["order-markers", "held", "log_points", "runs's shown.ends"])
def test_topic_may_be_called_as_a_view_is(topic: str) -> None:
    batches = row_values(APPENDS, [(topic, 0, 4, 4, 1000, True)])
    logs = {**LOGS, "log_batches": f"SELECT *, NULL AS timestamp_type FROM ({batches}) one"}
    given = {**series({(topic, 0): Shown(0, 10)}, AS_OF_MS), **logs}
    assert ask(NO_RUN, "SELECT topic, end_offset FROM log_points", given).to_pylist() == [
        {"topic": topic, "end_offset": 5}
    ]
    assert ask(NO_RUN, "SELECT * FROM markers", given).num_rows == 0


def test_worst_partition_is_shown_first_with_as_much_before_its_last_stable_offset_as_after() -> None:
    findings = [
        rows.inconclusive(),
        rows.finding(topic="small", partition=0),
        rows.finding(topic="large", partition=0),
        rows.finding(topic="fine", partition=0, verdict="in_progress"),
    ]
    health = [
        rows.health(partition=0),
        rows.health(topic="small", partition=0, hidden_record_count=3),
        rows.health(topic="large", partition=0, hidden_record_count=30),
        rows.health(topic="fine", partition=0),
    ]
    places = worst_places(build_report(rows.run(), [], health, findings))
    assert list(places) == [("large", 0), ("small", 0), ("orders", 0)]
    assert places["large", 0] == (140, 170)


def test_no_more_partitions_are_shown_than_a_page_can_hold() -> None:
    findings = [rows.finding(partition=number) for number in range(MOST_PARTITIONS + 5)]
    health = [rows.health(partition=number) for number in range(MOST_PARTITIONS + 5)]
    assert len(worst_places(build_report(rows.run(), [], health, findings))) == MOST_PARTITIONS


@pytest.mark.parametrize("unknown", ["first_offset", "end_offset", "last_stable_offset"])
def test_partition_of_which_too_little_is_known_is_not_shown(unknown: str) -> None:
    report = build_report(rows.run(), [], [rows.health(**{unknown: None})], [rows.finding()])
    assert worst_places(report) == {}


def test_a_picture_has_one_clock_which_never_goes_back() -> None:
    appends = [
        *(("two-leaders", 0, n, n, ms, True) for n, ms in enumerate([1000, 900, 1100])),
        *(("mixed", 0, n, n, 500 + n, n == 1) for n in range(3)),
        *(("silent", 0, n, n, ms, False) for n, ms in enumerate([500, AS_OF_MS + 1, 700])),
    ]
    batches = row_values(APPENDS, appends)
    logs = {**LOGS, "log_batches": f"SELECT *, NULL AS timestamp_type FROM ({batches}) few"}
    places = {(topic, 0): Shown(0, 3) for topic in ("two-leaders", "mixed", "silent")}
    query = "SELECT topic, is_broker_time, time_ms FROM timed_points ORDER BY topic, end_offset"
    found = ask(NO_RUN, query, {**series(places, AS_OF_MS), **logs})
    assert [*zip(*found.to_pydict().values(), strict=True)] == [
        ("mixed", True, 501), ("silent", False, 500), ("silent", False, 700),
        ("two-leaders", True, 1000), ("two-leaders", True, 1100),
    ]  # fmt: skip
