"""What will happen on the real captures, to whom and when: each moment is that of the evidence itself."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.acceptance.captures import CASES, SEGMENTS, Variant
from txn_analysis.questions.at_risk import at_risk
from txn_analysis.questions.filters import Filters
from txn_analysis.runs.run_tables import RunTables

Rows = list[dict[str, Any]]

LIVE = Variant("kafka-4.2/capture-1", SEGMENTS)
TIERED = Variant(
    "kafka-4.3-tiered/capture-1",
    ("log-dirs",),
    (
        *(("state_copied_last", True), ("no_records_lost", True)),
        ("topic_config", str(CASES / "kafka-4.3-tiered/capture-1/topics.txt")),
    ),
)
MIN_MS = 60_000


@pytest.fixture(scope="module")
def risks_of(tables_of: Callable[[Variant], RunTables]) -> Callable[..., tuple[Rows, int]]:
    """The rows of `at-risk` about a capture, and how many more there are."""

    def answer(variant: Variant, within_ms: int, limit: int = 100, **places: Any) -> tuple[Rows, int]:
        found, left_out_count = at_risk(tables_of(variant), Filters(**places), within_ms, limit)
        return json.loads(found.json()), left_out_count

    return answer


def told(rows: Rows, *risks: str) -> list[tuple[Any, ...]]:
    return [(row["When"], row["Risk"], row["Whom"], row["StartOffset"]) for row in rows if row["Risk"] in risks]


def test_what_happens_later_is_not_told(risks_of: Callable[..., tuple[Rows, int]]) -> None:
    """The copy is of 02:59:50.737; the first timeout of all passes at 03:12:13.597."""
    first_ms = (12 * 60 + 22) * 1000 + 860
    assert not told(risks_of(LIVE, first_ms - 1)[0], "timed_out")
    assert told(risks_of(LIVE, first_ms)[0], "timed_out") == [
        ("2026-11-21T03:12:13.597Z", "timed_out", "orders-1", 140)
    ]


def test_the_disk_of_a_tiered_topic_has_its_moment(risks_of: Callable[..., tuple[Rows, int]]) -> None:
    rows, _ = risks_of(TIERED, 7 * 24 * 60 * MIN_MS, topics=("clicks",))
    assert told(rows, "partition_stuck", "local_retention_exceeded") == [
        ("now", "partition_stuck", "clicks-0", 15),
        ("2026-11-25T08:13:46.286Z", "local_retention_exceeded", "clicks-0", 15),
    ]


def test_rows_are_bounded_and_the_rest_is_counted(risks_of: Callable[..., tuple[Rows, int]]) -> None:
    rows, _ = risks_of(LIVE, 60 * MIN_MS)
    some, left_out_count = risks_of(LIVE, 60 * MIN_MS, limit=4)
    assert (some, left_out_count) == (rows[:4], len(rows) - 4)
