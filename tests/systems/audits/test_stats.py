"""The real captures counted: what transactions did, by whom, why they were aborted, and how long they took."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.tools.captures import SEGMENTS, TablesOf, Variant
from txn_analysis.questions.filters import Filters
from txn_analysis.questions.stats import stats_of
from txn_analysis.questions.stats_answer import By, Group, StatsAnswer, stats_text
from txn_analysis.runs.ask import ask

Counted = Callable[..., StatsAnswer]

LIVE = Variant("kafka-4.2/capture-1", SEGMENTS)
OLD = Variant("kafka-2.8/capture-1", SEGMENTS)
WITHOUT_STATE = Variant("kafka-4.2/capture-1", ("segments",))

KLOGS = {
    # By partition: commits, aborts, then of the transactions how many, their least, longest and added up milliseconds.
    # Made by klog ea03b73 (`SegmentDumpReader`, `TransactionalInfoCollector`) of these dumps, in the form of Kafka 3.2.
    OLD: {
        ("ledger.events", 0): (49, 12, 61, 5, 10818249, 10819112),
        ("ledger.events", 1): (40, 9, 49, 3, 118, 1043),
        ("orders", 0): (50, 9, 59, 3, 10817736, 10818809),
        ("orders", 2): (46, 7, 53, 5, 118, 1097),
        ("payments", 0): (54, 8, 62, 4, 10818771, 10819967),
        ("payments", 1): (44, 5, 49, 5, 38, 766),
    },
    LIVE: {
        ("ledger.events", 0): (49, 12, 61, 5, 10818538, 10819611),
        ("ledger.events", 1): (40, 9, 49, 7, 73, 1071),
        ("orders", 0): (50, 9, 59, 7, 10818023, 10819262),
        ("orders", 2): (47, 7, 54, 6, 7201018, 7202232),
        ("payments", 0): (54, 8, 62, 6, 10819067, 10820447),
        ("payments", 1): (44, 5, 49, 5, 61, 1027),
    },
}


@pytest.fixture(scope="module")
def counted(tables_of: TablesOf) -> Counted:
    """What `stats` answers about a capture."""

    def answer(variant: Variant, by: By = By.APPLICATION, limit: int = 100, **asked: Any) -> StatsAnswer:
        return stats_of(tables_of(variant), Filters(**asked), by, limit)

    return answer


def durations(one: Group) -> tuple[int | None, ...]:
    return one.timed_count, one.min_duration_ms, one.max_duration_ms, one.duration_sum_ms


@pytest.mark.parametrize(
    ("variant", "topic", "partition", "expected"),
    [(variant, *place, figures) for variant, of_it in KLOGS.items() for place, figures in of_it.items()],
    ids=str,
)
def test_the_figures_of_one_partition_are_klogs(
    counted: Counted, variant: Variant, topic: str, partition: int, expected: tuple[int, ...]
) -> None:
    total = counted(variant, topics=(topic,), partitions=(partition,)).total
    assert (total.committed_count, total.aborted_count, *durations(total)) == expected


def test_a_marker_with_a_raised_epoch_ends_its_transaction_where_klog_sees_an_empty_one(counted: Counted) -> None:
    """Of orders-1 klog says: 45 commits, 6 aborts, one of them empty; 50 transactions in 1,044 ms."""
    total = counted(LIVE, topics=("orders",), partitions=(1,)).total
    assert (total.committed_count, total.aborted_count, total.empty_count) == (45, 6, 0)
    assert (total.timed_count, total.duration_sum_ms - (total.max_duration_ms or 0)) == (51, 1044)


def test_however_transactions_are_put_together_they_are_the_same(counted: Counted) -> None:
    answers = [counted(LIVE, by) for by in By]
    assert len({answer.total for answer in answers}) == 1
    for answer in answers:
        for name in ("committed_count", "aborted_count", "open_count", "record_count"):
            assert sum(getattr(group, name) for group in answer.groups) == getattr(answer.total, name), name


def test_a_window_has_what_ended_in_it_and_two_have_all(counted: Counted) -> None:
    middle_ms = 1795229940000
    every, before, after = counted(LIVE), counted(LIVE, until_ms=middle_ms), counted(LIVE, since_ms=middle_ms)
    assert before.total.committed_count
    assert after.total.committed_count
    for name in ("committed_count", "aborted_count", "record_count", "decided_count", "duration_sum_ms"):
        assert getattr(before.total, name) + getattr(after.total, name) == getattr(every.total, name), name
    assert all(one.to_ms <= middle_ms for one in before.over_time[:-1])
    assert sum(one.ended_count for one in every.over_time) == every.total.ended_count


def test_of_an_id_that_nobody_has_nothing_is_counted(counted: Counted) -> None:
    for variant in KLOGS:
        answer = counted(variant, transactional_id_patterns=("nobody",))
        assert (answer.total.ended_count, answer.total.decided_count, answer.groups, answer.longest) == (0, 0, (), ())


def test_without_the_state_nothing_has_a_name_or_a_cause(counted: Counted) -> None:
    answer = counted(WITHOUT_STATE)
    assert [one.name for one in answer.groups] == [None]
    assert (answer.total.committed_count, answer.total.unexplained_abort_count) == (329, 56)
    assert "no partition of __transaction_state was read" in answer.cannot_say[0]


def test_a_row_says_of_how_many_its_durations_are_and_what_the_clients_clock_says_of_all() -> None:
    """Of one that held stale data no coordinator knows how long it took: it must not be missing in silence."""
    whole = GROUP._replace(coordinator_timed_count=72)
    no_coordinator = GROUP._replace(coordinator_timed_count=0, timed_count=70)
    assert "of 6 of 72 transactions; the longest by the client's clock: 2 h 0 min *" in table_of(GROUP)
    assert "of 70 of 72 transactions\n" in table_of(no_coordinator)
    assert "of 72 transactions" not in table_of(whole)


def table_of(one: Group) -> str:
    """The rows of an answer with one group."""
    answer = StatsAnswer(
        run_id="run-1",
        by=By.ID,
        since_ms=None,
        until_ms=None,
        total=one,
        groups=(one,),
        left_out_count=0,
        longest=(),
        longest_by_coordinator=(),
        over_time=(),
        cannot_say=(),
    )
    return stats_text(answer).partition("\n\n")[2].partition("\n\n")[0] + "\n"


NOTHING: dict[str, Any] = {name: None if name.startswith(("min_", "mean_", "max_")) else 0 for name in Group._fields}
GROUP = Group(**NOTHING)._replace(
    name="shop",
    framework=None,
    committed_count=72,
    coordinator_timed_count=6,
    mean_coordinator_duration_ms=5,
    max_coordinator_duration_ms=9,
    timed_count=72,
    mean_duration_ms=3_600_000,
    max_duration_ms=7_200_000,
)
"""One that wrote 72 transactions, of which the coordinator's records are left of six."""


def test_durations_by_the_clients_clock_are_marked(counted: Counted) -> None:
    answer = counted(WITHOUT_STATE)
    assert answer.total.coordinator_timed_count == 0
    assert not answer.longest_by_coordinator
    assert "3 h 0 min *" in stats_text(answer)


@pytest.mark.parametrize("variant", [LIVE, OLD])
def test_a_row_says_when_the_first_batch_of_its_transaction_was_written(tables_of: TablesOf, variant: Variant) -> None:
    begun = """
        SELECT e.first_timestamp_ms, min(b.max_timestamp_ms) AS begun_ms
        FROM ended_transactions e LEFT JOIN log_batches b ON e.topic = b.topic AND e.`partition` = b.`partition`
             AND e.producer_id = b.producer_id AND e.txn_start_offset = b.base_offset
        GROUP BY e.topic, e.`partition`, e.producer_id, e.txn_start_offset, e.first_timestamp_ms
    """
    rows = ask(tables_of(variant).finished, begun).to_pylist()
    assert len(rows) > 300
    assert [row for row in rows if row["first_timestamp_ms"] != row["begun_ms"]] == []
