"""What the operator gives their word for: what disproves it, and that a disproved word counts nowhere."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from tests.tools.judged_cases import (
    AFTER_MS,
    ALL_SEEN,
    FOUR,
    HEALTH,
    HOLDER,
    KNOWN,
    NOW_MS,
    OPEN,
    SKEW_MS,
    left,
    with_partition,
)
from txn_analysis.coordinator.coverage import StateEvidence, StatePartition
from txn_analysis.coordinator.fit import Fit, MarkerSums, UnexplainedMarker
from txn_analysis.coordinator.view import Views
from txn_analysis.judge.case import Moments
from txn_analysis.judge.judgement import Disproved, Judgement, judge_of, without
from txn_analysis.kafka.transactions import TopicPartition
from txn_analysis.settings import Settings
from txn_analysis.tables import Transaction

EVERY_WORD = Settings(
    transaction_state_partitions=4,
    max_clock_skew_ms=SKEW_MS,
    state_copied_last=True,
    no_records_lost=True,
    transaction_state_complete=True,
)
LATER = Fit(sums=MarkerSums(later=UnexplainedMarker(NOW_MS, "orders", 3, 50, 9)))


class Found(NamedTuple):
    """What was judged of all open transactions of a capture, and which words counted nowhere."""

    of_open: list[Judgement]
    disproved: Disproved

    @classmethod
    def of(cls, cases: list[Any], logs: Any, state: StateEvidence, settings: Settings) -> Found:
        judge = judge_of(lambda: [cases], logs, state, settings, Moments(NOW_MS, NOW_MS))
        return cls(judge.judged(cases), judge.disproved)


ELSEWHERE = OPEN._replace(partition=1, producer_id=8)


def judged(
    *opened: Transaction,
    views: Views | None = None,
    partitions: tuple[StatePartition, ...] = ALL_SEEN,
    fit: Fit | None = None,
    truncated_marker_offset: int | None = None,
    settings: Settings = EVERY_WORD,
) -> Found:
    """Open transactions of orders-0 and orders-1 with every word given."""
    fit = replace(fit or Fit(), of_one_cluster={o.topic_partition for o in opened})
    state = StateEvidence(list(partitions), FOUR, fit)
    health = [HEALTH._replace(partition=n, truncated_marker_offset=truncated_marker_offset) for n in range(2)]
    logs = {TopicPartition(h.topic, h.partition): h for h in health}
    known = {o.key: KNOWN for o in opened} | (views or {})
    return Found.of([(one, known[one.key]) for one in opened], logs, state, settings)


def rules(found: Found) -> list[str]:
    return [j.rule.name for j in found.of_open]


GONE = with_partition(HOLDER, gap_end_ms=NOW_MS)
ENDS_BEFORE = with_partition(HOLDER, last_moment_ms=1)
LOST = {OPEN.key: KNOWN._replace(**left("COMMIT", AFTER_MS))}


def test_a_word_that_nothing_disproves_counts() -> None:
    assert rules(judged(OPEN, partitions=GONE)) == ["partition_not_in_transaction"]
    assert rules(judged(OPEN, partitions=ENDS_BEFORE)) == ["partition_not_in_transaction"]
    needed = [judged(OPEN, partitions=own).of_open[0].case.is_state_behind_by_clocks for own in (ENDS_BEFORE, ALL_SEEN)]
    assert needed == [True, False]
    assert judged(OPEN).disproved == {}


def test_a_commit_later_than_the_state_disproves_that_it_was_copied_last() -> None:
    found = judged(OPEN, partitions=ENDS_BEFORE, fit=LATER)
    assert rules(found) == ["state_older_than_log"]
    assert "the COMMIT marker of producer 9 at orders-3, offset 50" in found.disproved["state_copied_last"]


def test_a_lost_commit_disproves_everywhere_that_nothing_was_lost() -> None:
    """The other transaction would hang if the word were true: its decision may be compacted away as well."""
    assert rules(judged(ELSEWHERE, partitions=GONE)) == ["partition_not_in_transaction"]
    found = judged(OPEN, ELSEWHERE, views=LOST, partitions=GONE)
    assert rules(found) == ["commit_marker_missing", "commit_may_be_missing"]
    assert found.disproved == {"no_records_lost": "orders-0 lost a COMMIT marker"}


def test_a_copy_that_was_truncated_below_an_end_marker_disproves_it_too() -> None:
    found = judged(OPEN, partitions=GONE, truncated_marker_offset=90)
    assert rules(found) == ["commit_may_be_missing"]
    assert found.disproved["no_records_lost"] == ("a copy of orders-0 was truncated below an end marker at offset 90")


def test_a_lost_commit_that_is_not_late_proves_nothing_yet() -> None:
    """Only the rule `commit_marker_missing` disproves: what is not late may still get its marker."""
    young = OPEN._replace(last_timestamp_ms=NOW_MS)
    found = judged(young, ELSEWHERE, views=LOST, partitions=GONE)
    assert (rules(found), found.disproved) == (["not_late", "partition_not_in_transaction"], {})


def test_one_word_that_is_disproved_takes_no_other_with_it() -> None:
    found = judged(OPEN, partitions=GONE, fit=LATER)
    assert (rules(found), set(found.disproved)) == (["partition_not_in_transaction"], {"state_copied_last"})


SILENT = Settings(transaction_state_partitions=4, max_clock_skew_ms=SKEW_MS)


def test_what_nobody_said_is_not_disproved() -> None:
    found = judged(OPEN, views=LOST, truncated_marker_offset=90, fit=LATER, settings=SILENT)
    assert found.disproved == {}


def test_a_word_that_would_settle_it_is_asked_for() -> None:
    (older,) = judged(OPEN, partitions=ENDS_BEFORE, settings=SILENT).of_open
    (missing,) = older.words.missing_in(older.case)
    assert missing.startswith("__transaction_state up to a later moment, or --state-copied-last, if ")
    (lost,) = judged(OPEN, partitions=GONE, settings=SILENT).of_open
    assert "from an earlier copy, or --no-records-lost, if " in lost.words.missing_in(lost.case)[0]


def test_a_word_that_the_files_disprove_is_never_asked_for() -> None:
    (older,) = judged(OPEN, partitions=ENDS_BEFORE, fit=LATER, settings=SILENT).of_open
    assert older.words.missing_in(older.case) == ("__transaction_state up to a later moment",)
    (lost,) = judged(OPEN, partitions=GONE, truncated_marker_offset=90, settings=SILENT).of_open
    assert lost.words.missing_in(lost.case)[0].endswith("from an earlier copy")


def test_nobody_is_asked_for_a_word_on_a_state_that_was_not_given() -> None:
    nothing = tuple(StatePartition(n, problems=["not in the capture"]) for n in range(4))
    unbounded = OPEN._replace(appended_before_ms=None, first_appended_before_ms=None)
    state = StateEvidence(list(nothing), FOUR)
    logs = {TopicPartition(HEALTH.topic, HEALTH.partition): HEALTH}
    (found,) = Found.of([(unbounded, None)], logs, state, SILENT).of_open
    assert found.rule.name == "state_older_than_log"
    assert found.words.missing_in(found.case) == (
        "__transaction_state, copied after the logs: no partition of it was read",
        "an end marker after the data in this partition",
    )


@pytest.mark.parametrize("name", ["state_copied_last", "no_records_lost"])
def test_settings_without_a_word_keep_all_others(name: str) -> None:
    found = without(EVERY_WORD, {name: "it is not true"})
    assert found == EVERY_WORD.model_copy(update={name: False})
