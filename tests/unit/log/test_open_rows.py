"""What open rows say beside start and end: the bounds of the first append, the producer's end markers, other copies."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from tests.tools.forms.history import histories
from tests.tools.forms.model import Batch, History, Segment
from tests.tools.log_evidence import LinkedPartition, link_history
from tests.unit.log.test_against_broker import DEEP, SPLITS
from tests.unit.log.test_copies import DEEP as DEEP_TOOL
from tests.unit.log.test_copies import OTHER_PRODUCER, SHALLOW, TODAY, YESTERDAY, data, link, log, marker
from txn_analysis.tables import ProducersBareMarker, Transaction

Row = dict[str, Any]


def open_rows(found: LinkedPartition) -> dict[int, Transaction]:
    return {t.producer_id: t for t in found.transactions if t.outcome == "open"}


def commit(offset: int, *, leader_epoch: int = 0, producer: int = 7) -> Batch:
    return replace(marker(offset, leader_epoch=leader_epoch, producer=producer), marker="COMMIT")


def is_moment(batch: Batch) -> bool:
    has_time = batch.max_timestamp_ms is not None and batch.max_timestamp_ms >= 0
    return has_time and (batch.is_control or batch.timestamp_type == "LogAppendTime")


def moments_around(history: History, start_offset: int) -> tuple[int | None, int | None]:
    """The nearest times of a broker's clock at or before the batch at an offset, and at or behind it."""
    known = [(b.base_offset, b.max_timestamp_ms) for b in history.batches if is_moment(b)]
    before = [ms for offset, ms in known if offset <= start_offset]
    behind = [ms for offset, ms in known if offset >= start_offset]
    return before[-1] if before else None, behind[0] if behind else None


def bare_markers(history: History, producer_id: int) -> list[tuple[int, str | None]]:
    """The producer's end markers that follow no transactional data since its end marker before."""
    found, has_data = [], False
    for batch in (b for b in history.batches if b.producer_id == producer_id):
        if batch.is_end_marker:
            found += [] if has_data else [(batch.base_offset, batch.marker)]
            has_data = False
        has_data |= batch.is_transactional and not batch.is_control
    return found


def bare_of(linked: LinkedPartition, producer_id: int) -> list[ProducersBareMarker]:
    """The bare markers of one producer, as the health of its partition has them."""
    return [m for m in linked.health.bare_markers if m.producer_id == producer_id]


@given(histories(), SPLITS)
def test_open_rows_say_what_lies_before_them_however_the_text_is_split(history: History, range_bytes: int) -> None:
    linked = link_history(history, DEEP[0], range_bytes=range_bytes)
    for producer_id, row in open_rows(linked).items():
        bounds = row.first_appended_after_ms, row.first_appended_before_ms
        assert bounds == moments_around(history, row.txn_start_offset)
        assert [(m.offset, m.marker) for m in bare_of(linked, producer_id)] == bare_markers(history, producer_id)
        ends = [b.base_offset for b in history.batches if b.is_end_marker and b.producer_id == producer_id]
        assert row.last_marker_offset == max(ends, default=None)


@given(histories(), SPLITS)
def test_an_open_transaction_hides_all_data_from_its_start_on_however_the_text_is_split(
    history: History, range_bytes: int
) -> None:
    linked = link_history(history, DEEP[0], range_bytes=range_bytes)
    health = linked.health
    start = min((one.txn_start_offset for one in open_rows(linked).values()), default=None)
    hidden = [b for b in history.batches if start is not None and b.base_offset >= start]
    records = sum(b.record_count for b in hidden if not b.is_control)
    assert (health.hidden_record_count, health.hidden_bytes) == (records, sum(b.size_bytes for b in hidden))


def test_one_jump_of_a_brokers_clock_moves_no_other_bound() -> None:
    jumped = replace(marker(0, producer=9), max_timestamp_ms=9_999_999)
    row = open_rows(link((log(jumped, marker(1, producer=9), data(2), marker(3, producer=9)), DEEP_TOOL, TODAY)))[7]
    assert (row.first_appended_after_ms, row.first_appended_before_ms) == (1_001, 1_003)


def test_the_largest_epoch_of_a_new_producers_transaction_is_its_first() -> None:
    assert open_rows(link((log(data(0), data(1)), DEEP_TOOL, TODAY)))[7].max_producer_epoch == 0


@pytest.mark.parametrize(("epochs", "has_fallen"), [((4, 6, 5), True), ((4, 5, 6), False)])
def test_where_the_coordinator_epoch_has_fallen_each_producers_own_markers_say_so(
    epochs: tuple[int, ...], *, has_fallen: bool
) -> None:
    batches: list[Batch] = []
    for producer in (6, 7, 8):
        for epoch in epochs:
            n = len(batches)
            ended = replace(commit(n + 1, producer=producer), coordinator_epoch=epoch)
            batches += [data(n, producer=producer), ended]
    left_open = [data(len(batches) + n, producer=producer) for n, producer in enumerate((6, 7, 8))]
    rows = open_rows(link((log(*batches, *left_open), DEEP_TOOL, TODAY)))
    assert {n: row.has_coordinator_epoch_fallen for n, row in rows.items()} == dict.fromkeys((6, 7, 8), has_fallen)


def test_batches_of_log_append_time_bound_themselves() -> None:
    stamped = replace(data(1), timestamp_type="LogAppendTime")
    row = open_rows(link((log(marker(0, producer=9), stamped, marker(2, producer=9)), DEEP_TOOL, TODAY)))[7]
    assert (row.first_appended_after_ms, row.first_appended_before_ms) == (1_001, 1_001)


def test_a_start_that_only_a_snapshot_knows_lies_before_the_first_moment() -> None:
    history = History(
        "orders", 0, (Segment(0, (data(0), marker(1, producer=9))), Segment(2, (data(2), commit(3, producer=9))))
    )
    found = link_history(history, DEEP[0], range_bytes=10_000, snapshots=[2], from_segment=1)
    row = open_rows(found)[7]
    assert (row.txn_start_offset, row.first_appended_after_ms, row.first_appended_before_ms) == (
        0,
        None,
        1_003,
    )


def test_a_marker_that_ends_what_an_earlier_file_began_is_not_bare() -> None:
    segments = (Segment(0, (data(0),)), Segment(1, (marker(1), commit(2), data(3))))
    (bare,) = bare_of(link_history(History("orders", 0, segments), DEEP[0], range_bytes=10_000), 7)
    assert bare == (7, 2, "COMMIT", 1_002, 0, 5)


def test_a_shallow_dump_does_not_say_what_a_bare_marker_is() -> None:
    linked = link((log(data(0), marker(1), commit(2), data(3)), SHALLOW, TODAY))
    assert [(m.offset, m.marker, m.coordinator_epoch) for m in bare_of(linked, 7)] == [(2, None, None)]


TRUNCATED = log(data(0), commit(1), data(2, producer=OTHER_PRODUCER))
NEW_LEADERS = log(data(0), data(1, leader_epoch=1, producer=OTHER_PRODUCER))


@pytest.mark.parametrize("rank", [TODAY, YESTERDAY])
def test_a_commit_marker_that_an_election_lost_is_known_from_the_copy_that_was_truncated(rank: int) -> None:
    """KAFKA-7408: the new leader never had the COMMIT marker, and the transaction is open in the log for ever."""
    found = link((NEW_LEADERS, DEEP_TOOL, TODAY), (TRUNCATED, DEEP_TOOL, rank))
    assert {p: row.other_copy_commit_offset for p, row in open_rows(found).items()} == {7: 1, OTHER_PRODUCER: None}
    assert found.health.truncated_marker_offset == 1


def test_an_abort_marker_that_was_truncated_loses_nothing_and_is_told() -> None:
    aborted = log(data(0), marker(1), data(2, producer=OTHER_PRODUCER))
    found = link((NEW_LEADERS, DEEP_TOOL, TODAY), (aborted, DEEP_TOOL, TODAY))
    assert open_rows(found)[7].other_copy_commit_offset is None
    assert found.health.truncated_marker_offset == 1


def test_a_truncated_marker_of_unprinted_kind_may_be_a_commit() -> None:
    aborted = log(data(0), marker(1), data(2, producer=OTHER_PRODUCER))
    found = link((NEW_LEADERS, DEEP_TOOL, TODAY), (aborted, SHALLOW, TODAY))
    assert open_rows(found)[7].other_copy_commit_offset == 1


def test_a_commit_marker_below_the_start_is_that_of_an_earlier_transaction() -> None:
    truncated = log(data(0), commit(1), data(2, producer=OTHER_PRODUCER), crc_of_3 := data(3, producer=OTHER_PRODUCER))
    new = log(data(0), commit(1), data(2), replace(crc_of_3, leader_epoch=1, crc=99))
    found = link((new, DEEP_TOOL, TODAY), (truncated, DEEP_TOOL, TODAY))
    assert all(row.other_copy_commit_offset is None for row in open_rows(found).values())


def test_copies_that_agree_hold_nothing_that_the_log_lacks() -> None:
    copy = log(data(0), commit(1), data(2))
    found = link((copy, DEEP_TOOL, TODAY), (log(data(0), commit(1)), SHALLOW, YESTERDAY))
    assert open_rows(found)[7].other_copy_commit_offset is None
    assert found.health.truncated_marker_offset is None


def test_a_marker_in_a_tail_that_a_newer_leader_truncated_since_is_told() -> None:
    today = log(data(0), data(1, leader_epoch=1))
    yesterday = log(data(0), data(1, crc=99), data(2, producer=OTHER_PRODUCER), commit(3))
    found = link((today, DEEP_TOOL, TODAY), (yesterday, DEEP_TOOL, YESTERDAY))
    assert found.health.truncated_marker_offset == 3
    assert open_rows(found)[7].other_copy_commit_offset == 3
