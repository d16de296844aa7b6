"""Who groups, transactional ids and producer ids are, on the real captures."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.tools.captures import SEGMENTS, TablesOf, Variant
from tests.tools.cases import cases
from txn_analysis.errors import ConfigError
from txn_analysis.kafka.transactions import ending_of
from txn_analysis.questions.answers import describe_producers
from txn_analysis.questions.filters import Filters
from txn_analysis.questions.owners import Blocks, Kind, OwnerAnswer, who_is
from txn_analysis.questions.owners_text import owner_text
from txn_analysis.runs.run_tables import RunTables

Tables = TablesOf

LIVE = Variant("kafka-4.2/capture-1", SEGMENTS)
ROTATED = Variant("kafka-4.2-rotation/capture-1", ("log-dirs",))
NAMED = Variant("kafka-4.2-edge/capture-2", ("log-dirs", "segments/n1.accounts-0.txt"), (("verify", True),))
ENDED = Variant("kafka-4.2-tv2/capture-1", SEGMENTS)
UNNAMED = Variant("kafka-4.2-edge/capture-1", SEGMENTS)  # dumps without --offsets-decoder
ONE_PARTITION = Variant("kafka-4.2/capture-1", ("segments", "transaction-state/n2.__transaction_state-1.txt"))


def flat(answer: OwnerAnswer) -> str:
    """The text on one line."""
    return " ".join(owner_text(answer).split())


@pytest.mark.parametrize("variant", [NAMED, UNNAMED, LIVE], ids=["groups-were-read", "no-names-read", "not-given"])
def test_a_group_that_no_record_names_may_be_in_a_partition_that_was_not_read(
    tables_of: Tables, variant: Variant
) -> None:
    answer = who_is(tables_of(variant), Kind.GROUP, "payroll")
    assert (answer.is_told, answer.blocks, bool(answer.missing)) == (False, Blocks.UNKNOWN, True)


@cases("variant name", {"4.2": (LIVE, "timeout-demo"), "tv2": (ENDED, "slow-batch-7")})
def test_brokers_aborted_at_the_timeout_or_when_they_next_looked(
    tables_of: Tables, variant: Variant, name: str
) -> None:
    changes = who_is(tables_of(variant), Kind.TRANSACTIONAL_ID, name).changes
    began, decided = (next(c for c in changes if c.state == state) for state in ("Ongoing", "PrepareAbort"))
    ending = ending_of(began.at_ms, began.timeout_ms)
    assert (ending.times_out_ms or 0) < (decided.at_ms or 0) <= (ending.aborted_by_ms or 0)


def test_a_producer_id_is_that_of_its_transactional_id(tables_of: Tables) -> None:
    of_id = who_is(tables_of(LIVE), Kind.TRANSACTIONAL_ID, "billing-worker-17")
    answer = who_is(tables_of(LIVE), Kind.PRODUCER_ID, 1002)
    assert answer.transactional_ids == ("billing-worker-17",)
    assert (answer.changes, answer.opened, answer.written) == (of_id.changes, of_id.opened, of_id.written)


def test_a_producer_that_no_id_ever_had_is_said_to_have_none(tables_of: Tables) -> None:
    answer = who_is(tables_of(LIVE), Kind.PRODUCER_ID, 987_654_321)
    assert (answer.transactional_ids, answer.held_in, answer.is_told) == ((), None, True)
    assert "its id expired, or it never had one" in flat(answer)


def test_an_id_that_rotated_is_shown_under_each_of_its_producer_ids(tables_of: Tables) -> None:
    tables = tables_of(ROTATED)
    answer = who_is(tables, Kind.TRANSACTIONAL_ID, "nightly-ledger")
    assert len(answer.producer_ids) > 1
    for producer_id in answer.producer_ids:
        of_producer = who_is(tables, Kind.PRODUCER_ID, producer_id)
        assert (of_producer.transactional_ids, of_producer.changes) == (("nightly-ledger",), answer.changes)


@cases(
    "ask words",
    {
        "id": (
            lambda t: who_is(t, Kind.TRANSACTIONAL_ID, "nobody"),
            "--transactional-id nobody: this run saw no such id",
        ),
        "producer": (lambda t: who_is(t, Kind.PRODUCER_ID, 77), "--producer-id 77: this run saw no such"),
    },
)
def test_what_was_never_seen_is_refused_where_all_was_given(
    tables_of: Tables, ask: Callable[[RunTables], Any], words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        ask(tables_of(LIVE))


def test_what_a_missing_partition_of_the_state_may_hold_could_not_be_told(tables_of: Tables) -> None:
    tables = tables_of(ONE_PARTITION)
    answer = who_is(tables, Kind.PRODUCER_ID, 987_654_321)
    assert (answer.is_told, answer.transactional_ids) == (False, ())
    assert answer.missing[0].startswith("not given, or not whole: __transaction_state-0")
    assert who_is(tables, Kind.TRANSACTIONAL_ID, "billing-worker-17").is_told


def test_all_producers_are_those_of_each_partition(tables_of: Tables) -> None:
    tables = tables_of(LIVE)
    every = describe_producers(tables, Filters(), is_all=True)
    for topic, partition in sorted(tables.places()):
        of_one = describe_producers(tables, Filters((topic,), (partition,)), is_all=False)
        assert [row[2:] for row in every.rows if row[:2] == (topic, partition)] == [*of_one.rows]
    some = describe_producers(tables, Filters(("orders",), producer_ids=(1002,)), is_all=True)
    assert [row[:3] for row in some.rows] == [("orders", 0, 1002)]
