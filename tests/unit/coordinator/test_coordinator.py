"""What the coordinator knows: last record wins, tombstones stay known, several ids for one producer id."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.tools.cases import cases
from tests.tools.coordinator_rows import marker_rows, of_producers_ids, read_histories, table_row
from tests.tools.judged_cases import KNOWN, OPEN, asked
from txn_analysis.coordinator.history import EndMarker
from txn_analysis.coordinator.partition_count import positive_hashes
from txn_analysis.coordinator.steps import states_by_producer
from txn_analysis.coordinator.view import CoordinatorView, Views, best_of, views_of
from txn_analysis.kafka.names import state_partition
from txn_analysis.kafka.transactions import TopicPartition


def views_of_all(*rows: dict[str, Any], opened: Iterable[int], markers: pa.Table | None = None) -> Views:
    """What is known of open transactions of some producers on orders-0, none of which was ever marked there."""
    states, views = states_by_producer(of_producers_ids(*rows), markers or marker_rows({}), 0), Views()
    for producer_id in states.keys() & {*opened}:
        views |= states[producer_id].views([asked(OPEN._replace(producer_id=producer_id, last_marker_ms=None))], 0)
    return views


def test_the_last_record_in_offset_order_is_the_current_state() -> None:
    ids = read_histories(
        table_row(5, "billing", "CompleteCommit"),
        table_row(3, "billing", "Ongoing"),
        table_row(1, "ledger", "Empty", producer_id=8),
        table_row(9, "ledger", None, producer_id=None),
    )
    last = [own[-1] for own in ids.values()]
    assert {(r.transactional_id, r.state, r.producer_id, r.is_tombstone) for r in last} == {
        ("billing", "CompleteCommit", 7, False),
        ("ledger", None, None, True),
    }


def test_what_is_known_of_each_producer_id() -> None:
    views = views_of_all(
        table_row(1, "ended", "CompleteCommit", producer_id=7),
        table_row(2, "live", "Ongoing", producer_id=7),
        table_row(3, "rotated", "Empty", producer_id=8),
        table_row(4, "rotated", "Empty", producer_id=80),
        table_row(5, "expired", "Empty", producer_id=9),
        table_row(6, "expired", None, producer_id=None),
        opened=[7, 8, 9, 10],
    )
    assert {
        (producer_id, v.transactional_id, v.state, v.is_listed, v.runs_under_producer_id)
        for (_, producer_id), v in views.items()
    } == {
        (7, "live", "Ongoing", True, True),  # of two ids, the one that lists the partition
        (8, "rotated", "Empty", False, False),
        (9, "expired", "Tombstone", False, False),
    }


def test_decisions_are_held_against_the_markers_of_their_producer() -> None:
    """Two ids committed orders-0; of one of them the log has the marker."""
    listed = {"topic_partitions": [("orders", 0)]}
    views = views_of_all(
        table_row(1, "whole", "PrepareCommit", producer_id=7, **listed),
        table_row(2, "whole", "CompleteCommit", producer_id=7),
        table_row(3, "bereft", "PrepareCommit", producer_id=8, **listed),
        table_row(4, "bereft", "CompleteCommit", producer_id=8),
        opened=[7, 8],
        markers=marker_rows({7: {TopicPartition("orders", 0): [EndMarker(50, "COMMIT", 1_001, 0, 0)]}}),
    )
    assert {v.transactional_id: v.without_marker.has_commit_of_any_age for v in views.values()} == {
        "whole": False,
        "bereft": True,
    }


def known(transactional_id: str, **changes: Any) -> CoordinatorView:
    """An id that had the producer id once, and last changed at 10."""
    past = {"is_listed": False, "runs_under_producer_id": False, "changed_ms": 10}
    return KNOWN._replace(transactional_id=transactional_id, **past | changes)


@cases(
    "others",
    {
        "listing-before-changed-last": [known("b", changed_ms=99)],
        "listing-before-running": [known("b", runs_under_producer_id=True, changed_ms=99)],
        "both-list-it-changed-last": [known("z", is_listed=True, changed_ms=9)],
        "an-unknown-change-is-the-oldest": [known("z", is_listed=True, changed_ms=None)],
        "the-last-id-by-code-point": [known("Z", is_listed=True)],
    },
)
def test_the_id_that_counts_is_the_same_in_any_order(others: list[CoordinatorView]) -> None:
    listing = known("a", is_listed=True)
    assert best_of([listing, *others]) == best_of([*others, listing]) == listing


def test_the_id_that_changed_last_counts_before_one_that_still_runs_under_the_producer_id() -> None:
    running = known("a", runs_under_producer_id=True)
    assert best_of([known("b", changed_ms=99), running]).transactional_id == "b"


def test_the_history_of_an_id_is_told_in_order_and_once_for_every_transaction_asked_about() -> None:
    rows = [table_row(9, "billing", "Ongoing"), table_row(3, "billing", "CompleteCommit")]
    opened = [asked(OPEN), asked(OPEN._replace(partition=1))]
    views = views_of(read_histories(*rows * 2).values(), opened, {}, max_clock_skew_ms=0)
    told = [(where.partition, v.state, v.is_listed) for (where, _), v in sorted(views.items())]
    assert told == [(0, "Ongoing", True), (1, "Ongoing", False)]


def test_copies_of_a_record_that_differ_are_both_kept_in_an_order_of_their_own() -> None:
    one, other = table_row(3, "billing", "Ongoing"), table_row(3, "billing", "CompleteAbort")
    told = read_histories(one, other, one)["billing"]
    assert told == read_histories(other, one)["billing"]
    assert {r.state for r in told} == {"CompleteAbort", "Ongoing"}
    assert len(told) == 2


@pytest.mark.parametrize(
    ("hashed", "partition"), [(0, 0), (5, 1), (-5, 1), (2**31 - 1, 3), (-(2**31), 0), (-(2**31) + 1, 3)]
)
def test_the_partition_of_a_hash_in_a_column(hashed: int, partition: int) -> None:
    assert positive_hashes(np.array([hashed], np.int32)) % 4 == partition == state_partition(hashed, 4)
