"""Findings that are held as columns are those that were given, in whichever order they are asked for."""

import random
import tracemalloc
from collections.abc import Iterator

import pytest

from tests.tools import report_rows as rows
from txn_analysis.columns.records import batch_of
from txn_analysis.tables import FINDINGS, Finding
from txn_analysis.tables.finding_rows import FindingRows
from txn_analysis.verdict import Verdict

MANY = 1_300


def many(count: int = MANY) -> Iterator[Finding]:
    """Findings of several kinds, each with sentences of its own."""
    kinds = rows.finding, rows.live_finding, rows.inconclusive
    for number in range(count):
        where = {"topic": f"orders-{number % 7}", "partition": number % 11, "producer_id": number}
        found = kinds[number % len(kinds)](finding_id=f"f{number}", txn_start_offset=9 * number, **where)
        yield found._replace(evidence=(f"the fact of {number}", "a fact"), missing_evidence=(f"what {number} lacks",))


@pytest.fixture(scope="module")
def given() -> list[Finding]:
    found = list(many())
    random.Random(1).shuffle(found)
    return found


def test_records_come_back_as_they_were_given(given: list[Finding]) -> None:
    assert list(FindingRows.of(given)) == given


def test_any_of_them_is_found_by_its_place(given: list[Finding]) -> None:
    found = FindingRows.of(given)
    assert [found[place] for place in (0, 511, 512, -1)] == [given[place] for place in (0, 511, 512, -1)]
    assert found[700:710] == given[700:710]


def test_the_worst_come_first_then_topic_partition_and_start(given: list[Finding]) -> None:
    expected = sorted(given, key=lambda f: (-f.verdict.severity, f.topic, f.partition, f.txn_start_offset))
    assert list(FindingRows.of(given).worst_first()) == expected


def test_of_one_verdict_those_that_hide_most_come_first(given: list[Finding]) -> None:
    hidden = [finding.txn_start_offset % 100 for finding in given]
    ordered = FindingRows.of(given).worst_first(hidden)
    keys = [(-finding.verdict.severity, -(finding.txn_start_offset % 100)) for finding in ordered]
    assert keys == sorted(keys)


def test_those_of_a_verdict_keep_their_order(given: list[Finding]) -> None:
    hanging = [finding for finding in given if finding.verdict is Verdict.HANGING]
    assert FindingRows.of(given).of_verdict(Verdict.HANGING) == hanging


def test_a_report_shows_neither_rules_nor_what_would_change_the_verdict() -> None:
    asked = rows.finding()._replace(would_change=("a later copy",))
    assert list(FindingRows.of([asked])) == [asked._replace(rules_asked=(), would_change=())]


def test_nothing_is_nothing() -> None:
    none = FindingRows.of([])
    assert (len(none), none.worst, len(none.worst_first()), none.topic_partitions) == (0, None, 0, [])


def test_ten_times_the_findings_take_no_object_of_python_each() -> None:
    batches = [batch_of(Finding, list(many()), FINDINGS.arrow_schema)] * 10
    tracemalloc.start()
    try:
        held = FindingRows.together([*map(FindingRows.of_batch, batches)])
        size_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(held) == 10 * MANY
    assert size_bytes / len(held) < 400  # a record takes some 6,000
