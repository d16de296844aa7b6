from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pytest

from tests.tools import report_rows as rows
from txn_analysis.questions.loaded_report import MOST_PARTITIONS, worst_places
from txn_analysis.questions.log_slices import LOG_SLICES, MARKER_SLICES, EndPoint, Shown, log_points, marker_points
from txn_analysis.report.build import build_report

APPENDS = {
    "topic": pa.string(), "partition": pa.int32(), "base_offset": pa.int64(), "last_offset": pa.int64(),
    "moment_ms": pa.int64(), "timestamp_ms": pa.int64(),
}  # fmt: skip
TRANSACTIONS = {
    "topic": pa.string(), "partition": pa.int32(), "txn_start_offset": pa.int64(), "end_offset": pa.int64(),
    "end_timestamp_ms": pa.int64(), "outcome": pa.string(),
}  # fmt: skip
AS_OF_MS = 1_000_000
MANY = 20_000
SHOWN = {
    ("orders", 0): Shown(0, 10), ("silent", 0): Shown(0, 3), ("busy", 0): Shown(0, MANY), ("pieces", 0): Shown(40, 60),
}  # fmt: skip
AT_ONCE = 777
Points = dict[str, list["EndPoint"]]


def batches(columns: dict[str, pa.DataType], found: Iterable[tuple[Any, ...]]) -> Iterator[pa.RecordBatch]:
    """Rows as a table is read: some at a time, of several partitions."""
    names = list(columns)
    whole = pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in found], pa.schema(columns))
    yield from whole.to_batches(AT_ONCE)


def transactions() -> Iterator[pa.RecordBatch]:
    few = [("orders", 0, 2, 5, 6000, "COMMIT"), ("orders", 0, 7, None, None, "open")]
    # Every second record of the busy log ends a transaction of one record.
    numbered = [("busy", 0, n * 2, n * 2 + 1, n + 1, "COMMIT" if n % 20 else "ABORT") for n in range(MANY // 2)]
    return batches(TRANSACTIONS, [*few, *numbered])


@pytest.fixture(scope="module")
def points() -> Points:
    few: list[tuple[str, int, int, int, int | None, int]] = [("orders", 0, n, n, 1000 * (n + 1), 1) for n in range(10)]
    few += [("silent", 0, 0, 0, None, 500), ("silent", 0, 1, 1, None, AS_OF_MS + 1), ("silent", 0, 2, 2, None, 700)]
    few += [("orders", 0, 10, 10, 99_000, 1), ("elsewhere", 0, 0, 0, 1, 1), ("pieces", 0, 0, 59, 700, 700)]
    busy = [("busy", 0, n, n, n if n % 2 else None, 1) for n in range(MANY)]
    found = log_points(batches(APPENDS, [*few, *busy]), transactions(), SHOWN, AS_OF_MS)
    return {topic: of_place for (topic, _), of_place in found.items()}


def test_last_stable_offset_stays_at_the_oldest_transaction_that_is_open_then(points: Points) -> None:
    assert [(p.end_offset, p.last_stable_offset) for p in points["orders"]] == [
        (1, 1), (2, 2), (3, 2), (4, 2), (5, 2), (6, 6), (7, 7), (8, 7), (9, 7), (10, 7),
    ]  # fmt: skip


def test_points_have_the_time_of_a_brokers_clock(points: Points) -> None:
    assert [p.moment_ms for p in points["orders"]] == [1000 * n for n in range(1, 11)]


def test_timestamp_after_the_copy_says_nothing(points: Points) -> None:
    assert [(p.moment_ms, p.timestamp_ms) for p in points["silent"]] == [(None, 500), (None, None), (None, 700)]


def test_partitions_that_are_not_shown_give_no_point(points: Points) -> None:
    assert set(points) == {"orders", "silent", "busy", "pieces"}


def test_piece_that_begins_before_what_is_shown_counts(points: Points) -> None:
    assert [(p.end_offset, p.moment_ms) for p in points["pieces"]] == [(60, 700)]


def test_long_log_gives_no_more_points_than_slices(points: Points) -> None:
    assert len(points["busy"]) == LOG_SLICES
    assert points["busy"][-1].end_offset == MANY
    assert all(p.last_stable_offset == p.end_offset - p.end_offset % 2 for p in points["busy"])


def test_markers_close_together_are_counted() -> None:
    found = marker_points(transactions(), SHOWN)
    assert [(r.outcome, r.offset, r.time_ms) for r in found["orders", 0]] == [("COMMIT", 5, 6000)]
    busy = found["busy", 0]
    assert len(busy) == 2 * MARKER_SLICES
    assert sum(row.count for row in busy) == MANY // 2


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
