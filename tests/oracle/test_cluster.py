"""The simulated cluster behaves as Kafka does, and knows the truth about what is open."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.oracle.broker import replay
from tests.oracle.capture_reader import LogReader
from tests.oracle.cluster import LAST_PRODUCER_EPOCH, Cluster
from tests.oracle.copies import Truth
from tests.oracle.dump_writer import Tool
from tests.oracle.model import state_partition
from tests.oracle.recipes import LONG_AGO_MS, ORDERS, PAYMENTS, RECIPES, Client, new_cluster
from tests.oracle.stories import clusters, copies, play, random_actions

QUICK = settings(max_examples=60, deadline=None, derandomize=True, database=None)
# Which states Kafka lets precede each one (`TransactionState.validPreviousStates`).
LEGAL_BEFORE: dict[str, set[str | None]] = {
    "Empty": {None, "Empty", "CompleteCommit", "CompleteAbort"},
    "Ongoing": {"Ongoing", "Empty", "CompleteCommit", "CompleteAbort"},
    "PrepareCommit": {"Ongoing"},
    "PrepareAbort": {"Ongoing"},
    "CompleteCommit": {"PrepareCommit"},
    "CompleteAbort": {"PrepareAbort"},
}


@pytest.mark.parametrize("name", RECIPES)
def test_recipes_leave_open_what_they_say(name: str) -> None:
    cluster = new_cluster()
    key, truth = RECIPES[name](cluster)
    assert cluster.copy().open_transactions[key] is truth


@pytest.mark.parametrize("transaction_version", [0, 2])
@pytest.mark.parametrize("outcome", ["Commit", "Abort"])
def test_a_transaction_that_ended_after_the_copy_must_not_be_aborted(transaction_version: int, outcome: str) -> None:
    cluster = new_cluster(transaction_version=transaction_version)
    client = Client(cluster, "billing").init()
    start = client.transact(ORDERS)
    before = cluster.moment
    client.end(outcome)
    cut = cluster.copy({ORDERS: before})
    assert cut.open_transactions == {(*ORDERS, client.producer_id, start): Truth.ENDED_BY_COORDINATOR}
    assert cluster.copy().open_transactions == {}


def test_an_administrators_marker_after_the_copy_makes_another_one_harmless() -> None:
    cluster = new_cluster()
    key, _ = RECIPES["unknown_producer"](cluster)
    before = cluster.moment
    assert cluster.administrator_aborts(ORDERS, key[2])
    (truth,) = cluster.copy({ORDERS: before}).open_transactions.values()
    assert truth is Truth.ENDED_BY_ADMINISTRATOR
    assert not truth.is_abort_wrong


def test_a_pending_marker_is_written_when_the_partition_is_back() -> None:
    cluster = new_cluster()
    RECIPES["pending_commit"](cluster)
    assert [record.value and record.value.state for record in cluster.copy().state_records()][-1] == "PrepareCommit"
    cluster.unreachable.clear()
    cluster.write_markers()
    assert [record.value and record.value.state for record in cluster.copy().state_records()][-1] == "CompleteCommit"
    assert cluster.copy().open_transactions == {}


def test_the_coordinator_aborts_what_times_out_with_the_next_epoch() -> None:
    cluster = new_cluster()
    client = Client(cluster, "billing").init(timeout_ms=3000)
    client.transact(ORDERS)
    cluster.sleep(10_000)
    entry = cluster.logs[ORDERS].state.producers[client.producer_id]
    assert (entry.producer_epoch, entry.txn, entry.last_sequence) == (client.epoch + 1, None, None)
    assert client.write(ORDERS) == cluster.logs[ORDERS].state.end_offset, "a fenced client is refused"


def test_a_new_instance_aborts_the_transaction_of_the_old_one() -> None:
    cluster = new_cluster()
    old = Client(cluster, "billing").init()
    old.transact(ORDERS)
    new = Client(cluster, "billing").init()
    assert (new.producer_id, new.epoch) == (old.producer_id, old.epoch + 2)
    assert cluster.copy().open_transactions == {}


def test_a_stopped_coordinator_aborts_nothing() -> None:
    cluster = new_cluster()
    client = Client(cluster, "billing").init(timeout_ms=3000)
    start = client.transact(ORDERS, clock_ms=LONG_AGO_MS)
    cluster.stopped_coordinators.add(state_partition("billing", len(cluster.states)))
    cluster.sleep(10_000_000)
    assert cluster.copy().open_transactions == {(*ORDERS, client.producer_id, start): Truth.LIVE}


@pytest.mark.parametrize("transaction_version", [0, 2])
def test_used_up_epochs_give_a_new_producer_id(transaction_version: int) -> None:
    cluster = new_cluster(transaction_version=transaction_version)
    cluster.init_producer("billing", first_epoch=LAST_PRODUCER_EPOCH)
    client = Client(cluster, "billing")
    client.learn()
    first = client.producer_id
    client.transact(PAYMENTS)
    client.end("Commit")
    client.init()
    assert client.producer_id != first
    assert cluster.copy().open_transactions == {}


def test_the_state_of_an_id_lies_in_the_partition_of_its_hash() -> None:
    cluster = play(random_actions(seed=7, count=200), new_cluster())
    for history in cluster.copy().states:
        for batch in history.batches:
            (record,) = batch.records or ()
            assert record.state
            assert state_partition(record.state.transactional_id, len(cluster.states)) == history.partition


@QUICK
@given(clusters(max_skew_ms=500))
def test_coordinators_go_only_from_state_to_legal_state(cluster: Cluster) -> None:
    before: dict[str, str | None] = {}
    for record in cluster.copy().state_records():
        name = record.transactional_id
        if record.value is None:
            assert before.pop(name) in {"Empty", "CompleteCommit", "CompleteAbort"}
            continue
        assert before.get(name) in LEGAL_BEFORE[record.value.state]
        before[name] = record.value.state


@QUICK
@given(clusters(), st.data())
def test_dumps_say_what_the_copy_holds(cluster: Cluster, data: st.DataObject) -> None:
    copy = data.draw(copies(cluster))
    files = copy.files(Tool(deep=True), snapshots=False)
    for history in (*copy.logs, *copy.states):
        text = files[f"{history.topic}-{history.partition}.txt"]
        read = LogReader(text, decoded=history in copy.states).history()
        assert replay(read.batches).open_starts() == replay(history.batches).open_starts()
        assert len(read.batches) == len(history.batches)


@QUICK
@given(clusters(), st.data())
def test_only_the_present_copy_has_no_ended_transactions(cluster: Cluster, data: st.DataObject) -> None:
    copy = data.draw(copies(cluster))
    ended = {Truth.ENDED_BY_COORDINATOR, Truth.ENDED_BY_ADMINISTRATOR}
    assert not ended & set(cluster.copy().open_transactions.values())
    present = set(cluster.copy().open_transactions)
    assert all(key in present for key, truth in copy.open_transactions.items() if truth not in ended)


def test_random_stories_depend_on_their_seed_only_and_know_every_truth() -> None:
    tool = Tool(deep=True)
    found: set[Truth] = set()
    for seed in range(40):
        cluster = play(random_actions(seed, 60), new_cluster())
        again = play(random_actions(seed, 60), new_cluster())
        cut = cluster.copy_in_order(logs_at=cluster.moment // 2, state_at=cluster.moment)
        assert again.copy_in_order(logs_at=cluster.moment // 2, state_at=cluster.moment).files(tool) == cut.files(tool)
        found |= set(cut.open_transactions.values()) | set(cluster.copy().open_transactions.values())
    assert found == set(Truth)
