"""Producer snapshots of brokers that forgot something, and of logs that were compacted since: no disagreement."""

from typing import Any

import pytest

from tests.tools.forms.model import Batch
from tests.tools.log_evidence import (
    LinkedPartition,
    batches_of,
    linked,
    section_row,
    sections_and_text,
    snapshot_evidence,
)
from tests.unit.log.test_copies import DEEP, OTHER_PRODUCER, data, gaps, log, marker, open_starts
from tests.unit.log.test_exact_start import files

Row = dict[str, Any]
NONE: Row = {"current_txn_start_offset": None}


def link(
    *files: tuple[int, tuple[Batch, ...]],
    whole: tuple[Batch, ...],
    snapshot: int,
    says: Row | None = None,
    log_start: int | None = None,
) -> LinkedPartition:
    """Files by the offsets in their names; a snapshot of what the `whole` log held at an offset, but for what it `says`
    of producer 7; what the broker's checkpoint says of the log start.
    """
    section, known = snapshot_evidence(log(*whole, base_offset=0), snapshot)
    rows, scanned = [section], []
    for base_offset, batches in files:
        sections, text = sections_and_text(log(*batches, base_offset=base_offset), DEEP)
        rows += [section_row(s, input_id=f"file {base_offset}") for s in sections]
        scanned += batches_of(sections, text, range_bytes=10_000, input_id=f"file {base_offset}")
    if log_start is not None:
        rows.append(section | {"kind": "log_start", "file_base_offset": log_start, "input_id": "checkpoint"})
    return linked(rows, scanned, [row | (says or {}) if row["producer_id"] == 7 else row for row in known])


def coordinator_epochs(found: LinkedPartition) -> dict[int, int | None]:
    return {row.producer_id: row.coordinator_epoch for row in found.health.producers}


def kinds(found: LinkedPartition) -> set[str]:
    return {problem.kind for problem in found.health.problems}


RETURNED = (data(0), marker(1), data(2), data(3))
FORGOTTEN: Row = {"coordinator_epoch": None}


def test_a_producer_that_was_idle_for_long_comes_back_without_its_coordinator_epoch() -> None:
    """`producer.id.expiration.ms`: the broker forgot it, and the marker is still in the log."""
    found = link((0, RETURNED[:3]), (3, RETURNED[3:]), whole=RETURNED, snapshot=3, says=FORGOTTEN)
    assert (open_starts(found), gaps(found), coordinator_epochs(found)) == ([2], [], {7: 5})


def test_another_coordinator_epoch_is_a_disagreement() -> None:
    says = {"coordinator_epoch": 4}
    found = link((0, RETURNED[:3]), (3, RETURNED[3:]), whole=RETURNED, snapshot=3, says=says)
    assert gaps(found) == ["snapshot 3, producer 7: coordinator epoch is 4 there and 5 in the log"]


ABORTED = (data(0), data(1), data(2), marker(3), data(4, producer=OTHER_PRODUCER))


def test_compaction_took_the_first_batches_of_a_transaction_that_a_snapshot_saw_open() -> None:
    """The cleaner keeps the last batch of the producer's, for its sequence."""
    found = link((0, ABORTED[2:3]), (3, ABORTED[3:]), whole=ABORTED, snapshot=3)
    assert (open_starts(found), gaps(found)) == ([4], [])
    assert [t.txn_start_offset for t in found.transactions if t.outcome != "open"] == [0]


def test_an_earlier_start_without_a_hole_that_explains_it_is_a_disagreement() -> None:
    says = {"current_txn_start_offset": 1}
    found = link((0, RETURNED[:3]), (3, RETURNED[3:]), whole=RETURNED, snapshot=3, says=says)
    assert gaps(found) == ["snapshot 3, producer 7: open start is 1 there and 2 in the log"]


DELETED = (data(0), data(1), data(2), data(3, producer=OTHER_PRODUCER), data(4))


@pytest.mark.parametrize(("log_start", "is_explained"), [(0, False), (1, True), (2, True)])
def test_a_broker_that_loads_its_state_anew_begins_at_the_log_start(log_start: int, is_explained: bool) -> None:
    """What it finds there is the transaction's start to it."""
    says = {"current_txn_start_offset": 1}
    found = link((0, DELETED[:3]), (3, DELETED[3:]), whole=DELETED, snapshot=3, says=says, log_start=log_start)
    assert open_starts(found) == [1 if is_explained else 0, 3]
    assert bool(gaps(found)) is not is_explained


@pytest.mark.parametrize(("log_start", "is_explained"), [(2, False), (3, True)])
def test_and_knows_no_transaction_that_lies_below(log_start: int, is_explained: bool) -> None:
    gone = (*DELETED[:3], *DELETED[3:4])
    found = link((0, gone[:3]), (3, gone[3:]), whole=gone, snapshot=3, says=NONE, log_start=log_start)
    assert open_starts(found) == ([3] if is_explained else [0, 3])
    assert ("snapshot_disagrees" in kinds(found)) is not is_explained


def test_the_last_sequence_is_the_snapshots_where_the_log_lost_it() -> None:
    """Of a log whose first files are gone, there may be no batch left that has it."""
    whole = (data(0), marker(1), marker(2))
    found = link((1, whole[1:2]), (2, whole[2:]), whole=whole, snapshot=2)
    assert [row.last_sequence for row in found.health.producers] == [0]


def test_what_a_snapshot_below_the_log_states_is_kept() -> None:
    whole = (data(0), marker(1), data(2), data(3, producer=OTHER_PRODUCER))
    found = link((3, whole[3:]), whole=whole, snapshot=3)
    assert [(row.producer_epoch, row.last_sequence, row.last_timestamp_ms) for row in found.health.producers] == [
        (0, 2, 1_002),
        (0, 3, 1_003),
    ]


def test_what_a_snapshot_alone_saw_open_was_appended_before_the_next_moment_behind_it() -> None:
    others = (data(0, producer=OTHER_PRODUCER), marker(2, producer=OTHER_PRODUCER), data(3, producer=OTHER_PRODUCER))
    whole = (others[0], data(1), *others[1:])
    found = link((0, others[:1]), (2, others[1:2]), (3, others[2:]), whole=whole, snapshot=4)
    before_ms = {t.producer_id: t.first_appended_before_ms for t in found.transactions if t.outcome == "open"}
    assert before_ms == {7: 1_002, OTHER_PRODUCER: None}


@pytest.mark.parametrize(
    ("first_name", "snapshot", "is_said"), [(3, 3, False), (3, 4, False), (3, 5, True), (0, 5, False)]
)
def test_what_may_be_open_below_the_first_file_is_said(first_name: int, snapshot: int, is_said: bool) -> None:
    """Producer 7 is: a snapshot tells it, at the first file or later; one beyond the end of the log does not."""
    whole = (data(0), marker(1), data(2), *(data(offset, producer=OTHER_PRODUCER) for offset in (3, 4)))
    found = link((first_name, whole[first_name:4]), whole=whole, snapshot=snapshot)
    assert any("what was open before its first file" in remark for remark in found.health.remarks) is is_said
    assert (2 in open_starts(found)) is not is_said


@pytest.mark.parametrize(("says", "starts"), [(None, []), ({"current_txn_start_offset": 0}, [0])])
def test_retention_emptied_a_log_of_which_an_earlier_night_saw_something_open(says: Row, starts: list[int]) -> None:
    """Only an empty file is left, and the snapshot beside it says what became of that."""
    whole = (data(0), data(1), marker(2), data(3, producer=OTHER_PRODUCER), marker(4, producer=OTHER_PRODUCER))
    found = link((0, whole[:2]), (5, ()), whole=whole, snapshot=5, says=says)
    assert (open_starts(found), gaps(found), found.health.end_offset) == (starts, [], 5)


TAKEN = (data(0), marker(1), data(2), data(3), marker(4))


@pytest.mark.parametrize("who", [7, OTHER_PRODUCER])
def test_compaction_took_all_of_a_transaction_that_a_snapshot_saw_open(who: int) -> None:
    """Its end marker was taken with its data, and the next snapshot knows that it has ended."""
    whole = (*TAKEN, data(5, producer=who), data(6, producer=who))
    both = tuple((log(*whole, base_offset=0), offset) for offset in (4, 6))
    found = files((0, whole[:2]), (4, whole[5:6]), (6, whole[6:]), snapshots=both)
    assert [(t.producer_id, t.txn_start_offset) for t in found.transactions if t.outcome == "open"] == [(who, 5)]
    assert kinds(found) == {"offsets_in_no_file"}


def test_data_that_is_left_without_an_end_marker_is_a_disagreement() -> None:
    """The cleaner keeps an end marker as long as data of its transaction is left."""
    others = data(7, producer=OTHER_PRODUCER)
    before, whole = log(*TAKEN[:4], base_offset=0), log(*TAKEN[:4], data(5), marker(6), others, base_offset=0)
    left = ((0, TAKEN[:2]), (4, (data(5), others)), (8, (data(8, producer=OTHER_PRODUCER),)))
    assert "snapshot_disagrees" in kinds(files(*left, snapshots=((before, 4), (whole, 8))))


def test_data_that_is_left_in_an_older_file_is_one_as_well() -> None:
    """KAFKA-8351: the cleaner took an end marker before its data."""
    whole = (*TAKEN, data(5, producer=OTHER_PRODUCER), data(6, producer=OTHER_PRODUCER))
    both = tuple((log(*whole, base_offset=0), offset) for offset in (4, 6))
    assert "snapshot_disagrees" in kinds(files((0, whole[:3]), (4, whole[5:6]), (6, whole[6:]), snapshots=both))


def test_what_ended_where_no_batch_is_missing_is_a_disagreement() -> None:
    before, whole = log(*TAKEN[:4], base_offset=0), log(*TAKEN, base_offset=0)
    left = ((0, TAKEN[:2]), (4, (data(4, producer=OTHER_PRODUCER),)), (5, (data(5, producer=OTHER_PRODUCER),)))
    assert "snapshot_disagrees" in kinds(files(*left, snapshots=((before, 4), (whole, 5))))
