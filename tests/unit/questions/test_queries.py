from typing import Any, ClassVar

import pyarrow as pa
import pytest

from tests.tools import report_rows as rows
from tests.tools.cases import cases
from tests.tools.coordinator_rows import record
from txn_analysis.errors import ConfigError, WarehouseError
from txn_analysis.kafka.transactions import StateRecord
from txn_analysis.questions.answers import (
    asked_about,
    describe,
    find_hanging,
    list_transactions,
)
from txn_analysis.questions.filters import Filters, check_seen
from txn_analysis.report.formats import Answer
from txn_analysis.runs.ask import cells
from txn_analysis.tables import Finding
from txn_analysis.verdict import Verdict

AS_OF_MS = rows.AS_OF_MS


def state(transactional_id: str, **columns: Any) -> StateRecord:
    """The last record of an id whose transaction began a minute before the copy."""
    known = record("Ongoing", AS_OF_MS - 60_000, epoch=1, start_ms=AS_OF_MS - 60_000, transactional_id=transactional_id)
    of_run: dict[str, Any] = {"state_partition": 3, "topic_partitions": (("orders", 10), ("orders", 9))}
    return known._replace(**of_run | columns)


@pytest.fixture(scope="module")
def findings() -> list[Finding]:
    return [
        rows.live_finding(coordinator_epoch=4, coordinator_epoch_basis="marker", idle_ms=119_999),
        rows.finding(last_timestamp_ms=None, idle_ms=None),
        rows.inconclusive(),
    ]


@pytest.fixture(scope="module")
def states() -> list[StateRecord]:
    return [
        state("busy"),
        state("a\nb", state="CompleteCommit", producer_id=8, topic_partitions=(), state_partition=0),
        state("gone", is_tombstone=True, state=None),
        state("going", state="Dead"),
        state(
            "pending",
            state="PrepareCommit",
            start_ms=None,
            topic_partitions=(("payments", 0),),
            state_partition=None,
        ),
    ]


def ids(answer: Answer) -> list[Any]:
    return [row[0] for row in answer.rows]


@pytest.mark.parametrize(
    ("filters", "topics"),
    [
        (Filters(("orders",)), ["orders"]),
        (Filters(("orders",), (0,)), []),
        (Filters(("payments",), (0,)), ["payments"]),
        (Filters(producer_ids=(3, 4)), ["payments"]),
        (Filters(duration_ms=119_998), ["payments"]),
        (Filters(duration_ms=119_999), []),
        (Filters(transactional_id_patterns=("inventory-.*",)), ["payments"]),
        (Filters(transactional_id_patterns=("inventory",)), []),
        (Filters(transactional_id_patterns=("billing.*", "inventory-.*")), ["payments"]),
        (Filters(("orders", "payments")), ["orders", "payments"]),
        (Filters(("orders", "payments"), (0, 2)), ["orders", "payments"]),
        (Filters(states=("Ongoing",)), ["payments"]),
        (Filters(state_partitions=(0,)), ["payments"]),
    ],
)
def test_filters_of_find_hanging(findings: list[Finding], filters: Filters, topics: list[str]) -> None:
    assert ids(find_hanging(findings, filters)) == topics


INCONCLUSIVE = ("orders", 0)


@cases(
    "filters places",
    {
        "all": (Filters(), [("orders", 0), ("orders", 2), ("payments", 0)]),
        "a-topic": (Filters(("payments",)), [("payments", 0)]),
        "a-pattern": (Filters(transactional_id_patterns=("billing.*",)), [INCONCLUSIVE]),
        "what-is-not-known-of-it-may-be-asked-for": (Filters(states=("Empty",)), [INCONCLUSIVE]),
        "also-where-its-id-lies": (Filters(state_partitions=(9,)), [INCONCLUSIVE]),
    },
)
def test_in_doubt_is_what_may_be_asked_for(
    findings: list[Finding], filters: Filters, places: list[tuple[str, int]]
) -> None:
    asked = asked_about(findings, filters, has_state=True)
    assert sorted((row.topic, row.partition) for row in asked) == places


def test_without_a_state_any_open_transaction_may_be_asked_for(findings: list[Finding]) -> None:
    """Its id is not known, and may match."""
    of_nobody = Filters(("orders",), (2,), transactional_id_patterns=("payroll",))
    assert asked_about(findings, of_nobody, has_state=True) == []
    (row,) = asked_about(findings, of_nobody, has_state=False)
    assert row.verdict is Verdict.HANGING


class OneRun:
    """A run that saw two partitions of orders, producer 7, and a partition of the state."""

    run: ClassVar = rows.run(state_coverage='{"partitions": [{"partition": 3, "is_seen": true}]}')

    def places(self, *, of_coordinator: bool) -> set[tuple[str, int]]:
        return {("orders", 0), ("orders", 1)} | ({("payments", 4)} if of_coordinator else set())


@pytest.mark.parametrize(
    ("filters", "words"),
    [
        (Filters(("order",)), "--topic order: this run saw no such topic; did you mean orders?"),
        (Filters(("orders", "nosuch")), "--topic nosuch: this run saw no such topic; it saw orders"),
        (Filters(("a\nb",)), r"--topic a\nb: this run saw no such topic"),
        (Filters(("orders",), (0, 7)), "--partition 7: this run saw no such partition; of orders it saw 0 to 1"),
        (Filters(state_partitions=(3, 8)), "--coordinator __transaction_state-8: this run saw no such partition"),
    ],
)
def test_what_the_run_has_never_seen_is_refused(filters: Filters, words: str) -> None:
    with pytest.raises(ConfigError) as refused:
        check_seen(OneRun(), filters)  # type: ignore[arg-type]  # as much of a run as is asked
    assert words in str(refused.value)


@pytest.mark.parametrize("filters", [Filters(), Filters(("orders",), (0, 1)), Filters(state_partitions=(3,))])
def test_what_the_run_has_seen_is_not_refused(filters: Filters) -> None:
    check_seen(OneRun(), filters)  # type: ignore[arg-type]  # as much of a run as is asked


def test_what_only_the_coordinator_lists_is_seen_there() -> None:
    check_seen(OneRun(), Filters(("payments",)), of_coordinator=True)  # type: ignore[arg-type]  # see above


def test_list_leaves_out_what_the_coordinator_removed(states: list[StateRecord]) -> None:
    answer = list_transactions(states, AS_OF_MS, Filters())
    assert [c.name for c in answer.columns] == ["TransactionalId", "Coordinator", "ProducerId", "TransactionState"]
    assert answer.rows == (
        ("a\nb", "__transaction_state-0", 8, "CompleteCommit"),
        ("busy", "__transaction_state-3", 7, "Ongoing"),
        ("pending", None, 7, "PrepareCommit"),
    )


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (Filters(states=("Ongoing", "PrepareCommit")), ["busy", "pending"]),
        (Filters(producer_ids=(8,)), ["a\nb"]),
        (Filters(state_partitions=(3,)), ["busy"]),
        (Filters(("orders",)), ["busy"]),
        (Filters(("orders", "payments")), ["busy", "pending"]),
        (Filters(state_partitions=(3, 0)), ["a\nb", "busy"]),
        (Filters(("orders",), (9,)), ["busy"]),
        (Filters(("orders",), (8,)), []),
        (Filters(duration_ms=59_999), ["busy"]),
        (Filters(duration_ms=60_000), []),
        (
            Filters(transactional_id_patterns=("a.b",)),
            [],
        ),  # a dot does not match a newline, as in Kafka's own expressions
        (Filters(transactional_id_patterns=("(?s)a.b",)), ["a\nb"]),
        (Filters(transactional_id_patterns=("bus",)), []),
    ],
)
def test_filters_of_list(states: list[StateRecord], filters: Filters, expected: list[str]) -> None:
    assert ids(list_transactions(states, AS_OF_MS, filters)) == expected


def test_durations_need_a_moment_of_the_copy(states: list[StateRecord]) -> None:
    assert ids(list_transactions(states, None, Filters(duration_ms=0))) == []


def test_describe_several(states: list[StateRecord]) -> None:
    assert [row[1] for row in describe(states, AS_OF_MS, "pending", "busy").rows] == ["pending", "busy"]


@pytest.mark.parametrize(("transactional_id", "why"), [("gone", "was removed"), ("never", "is in no record")])
def test_describe_unknown(states: list[StateRecord], transactional_id: str, why: str) -> None:
    with pytest.raises(WarehouseError, match=f"transactional id {transactional_id} {why}"):
        describe(states, AS_OF_MS, transactional_id)


def test_filters_refuse_what_could_only_mislead() -> None:
    with pytest.raises(ConfigError, match="--topic"):
        Filters(partitions=(1,))
    with pytest.raises(ConfigError, match="regular expression"):
        Filters(transactional_id_patterns=("(",))


def test_a_time_that_no_calendar_reaches_is_printed_as_a_number() -> None:
    times = pa.array([0, None, 253_402_300_800_000, -99_999_999_999_999], pa.timestamp("ms"))
    assert cells(pa.table({"time": times, "utc": times.cast(pa.timestamp("ms", "UTC"))})) == (
        ("1970-01-01T00:00:00.000Z",) * 2,
        (None, None),
        ("253402300800000 ms since 1970",) * 2,
        ("-99999999999999 ms since 1970",) * 2,
    )
