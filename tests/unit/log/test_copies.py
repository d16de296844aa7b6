"""Several copies of one partition: of several brokers, and of captures behind the one that is judged."""

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from tests.tools.forms.dump_writer import Tool
from tests.tools.forms.model import Batch, History, Segment
from tests.tools.log_evidence import (
    LinkedPartition,
    batches_of,
    linked,
    section_row,
    sections_and_text,
    snapshot_evidence,
)

DEEP, SHALLOW = Tool(deep=True), Tool()
PRODUCER, OTHER_PRODUCER = 7, 8
TODAY, YESTERDAY = 0, 1


def data(offset: int, *, leader_epoch: int = 0, crc: int = 0, count: int = 1, producer: int = PRODUCER) -> Batch:
    return Batch(
        offset, offset + count - 1, count, producer, 0, offset, is_transactional=True, max_timestamp_ms=1_000 + offset,
        leader_epoch=leader_epoch, crc=crc or offset, size_bytes=70,
    )  # fmt: skip


def marker(offset: int, *, leader_epoch: int = 0, producer: int = PRODUCER) -> Batch:
    ended = Batch(offset, offset, 1, producer, 0, None, is_transactional=True, is_control=True, marker="ABORT")
    return replace(ended, coordinator_epoch=5, max_timestamp_ms=1_000 + offset, leader_epoch=leader_epoch, crc=offset)


def log(*batches: Batch, base_offset: int | None = None) -> History:
    first = batches[0].base_offset if base_offset is None else base_offset
    return History("orders", 0, (Segment(first, batches),))


def link(
    *copies: tuple[History, Tool, int], snapshots: tuple[tuple[dict[str, Any], list[dict[str, Any]]], ...] = ()
) -> LinkedPartition:
    """Copies, named `copy 0` and so on, with the tool that dumped them and the rank of their capture."""
    rows: list[dict[str, Any]] = [section for section, _ in snapshots]
    scanned: list[pa.RecordBatch] = []
    for index, (history, tool, rank) in enumerate(copies):
        sections, text = sections_and_text(history, tool)
        rows += [section_row(s, rank=rank, input_id=f"copy {index}") for s in sections]
        scanned += batches_of(sections, text, range_bytes=10_000, input_id=f"copy {index}")
    return linked(rows, scanned, [row for _, found in snapshots for row in found])


def open_starts(found: LinkedPartition) -> list[int]:
    return [t.txn_start_offset for t in found.transactions if t.outcome == "open"]


def gaps(found: LinkedPartition) -> list[str]:
    return [reason for t in found.transactions if t.outcome == "open" for reason in t.evidence_gaps or ()]


def test_of_copies_that_agree_the_longer_one_counts() -> None:
    found = link((log(data(0)), DEEP, TODAY), (log(data(0), marker(1), data(2)), DEEP, TODAY))
    assert (open_starts(found), gaps(found), found.health.problems) == ([2], [], ())
    assert found.health.witnesses == ("copies agree up to offset 0",)


def test_of_copies_that_agree_the_one_with_markers_says_the_coordinator_epoch() -> None:
    batches = (data(0), marker(1), data(2))
    found = link((log(*batches), SHALLOW, TODAY), (log(*batches), DEEP, TODAY))
    assert found.health.producers[0].coordinator_epoch == 5


def test_the_higher_leader_epoch_is_the_log_and_the_other_tail_was_truncated() -> None:
    truncated = log(data(0), data(1, crc=99), data(2), data(3))
    found = link((truncated, DEEP, TODAY), (log(data(0), marker(1, leader_epoch=1)), DEEP, TODAY))
    assert (open_starts(found), found.health.end_offset, found.health.problems) == ([], 2, ())
    assert "from offset 1 on, copy 0 was truncated" in found.health.remarks[0]


def test_the_same_leader_epoch_with_different_content_names_the_first_differing_offset() -> None:
    found = link((log(data(0), data(1), data(2)), DEEP, TODAY), (log(data(0), data(1, crc=99)), DEEP, TODAY))
    assert open_starts(found) == [0]
    assert gaps(found) == ["copies differ from offset 1 on: copy 0 and copy 1"]


def test_batches_that_begin_at_different_offsets_contradict_each_other() -> None:
    wide = replace(data(1), last_offset=2, record_count=2)
    found = link((log(data(0), wide), DEEP, TODAY), (log(data(0), data(1), data(2)), DEEP, TODAY))
    assert gaps(found) == ["copies differ from offset 1 on: copy 0 and copy 1"]


def test_a_segment_that_is_gone_today_is_known_from_the_capture_before() -> None:
    found = link(
        (log(data(5), data(6)), DEEP, TODAY), (log(data(0), marker(1), data(2), data(3), data(4)), DEEP, YESTERDAY)
    )
    assert (open_starts(found), gaps(found)) == ([2], [])


def test_the_tail_of_an_earlier_capture_is_doubtful_where_a_new_leader_goes_on() -> None:
    today = log(data(2, leader_epoch=1), data(3, leader_epoch=1))
    found = link((today, DEEP, TODAY), (log(data(0), data(1)), DEEP, YESTERDAY))
    assert gaps(found) == ["an earlier capture's tail before offset 2 may have been truncated by leader epoch 1"]


def test_an_overlap_confirms_what_lies_below_it_in_an_earlier_capture() -> None:
    today = log(data(2), data(3, leader_epoch=1))
    found = link((today, DEEP, TODAY), (log(data(0), data(1)), DEEP, YESTERDAY), (log(data(2)), DEEP, YESTERDAY))
    assert (open_starts(found), gaps(found)) == ([0], [])


def test_a_gap_between_the_captures_breaks_what_began_before_it() -> None:
    found = link((log(data(5), data(6)), DEEP, TODAY), (log(data(0), marker(1), data(2)), DEEP, YESTERDAY))
    assert open_starts(found) == [2]
    assert gaps(found) == ["offsets 3 to 4 are in no file"]


def test_a_file_that_is_missing_between_todays_is_known_from_the_capture_before() -> None:
    found = link(
        (log(data(0), data(1)), DEEP, TODAY),
        (log(marker(2), data(3)), DEEP, YESTERDAY),
        (log(data(4)), DEEP, TODAY),
    )
    assert (open_starts(found), found.health.problems) == ([3], ())


def test_a_partition_that_is_not_in_this_capture_stays_listed() -> None:
    found = link((log(data(0)), DEEP, YESTERDAY))
    assert gaps(found) == ["the partition is not in this capture"]


def test_a_longer_copy_of_the_active_segment_adds_what_is_new() -> None:
    found = link((log(data(0), data(1), marker(2)), DEEP, TODAY), (log(data(0), data(1)), DEEP, YESTERDAY))
    assert (open_starts(found), found.health.problems) == ([], ())


def test_content_that_differs_from_an_earlier_capture_breaks_the_evidence() -> None:
    found = link((log(data(0), data(1)), DEEP, TODAY), (log(data(0, crc=99)), DEEP, YESTERDAY))
    assert gaps(found) == ["copies differ from offset 0 on: copy 0 and copy 1"]


def test_an_earlier_capture_that_reaches_farther_says_that_this_one_was_cut() -> None:
    found = link((log(data(0), data(1)), DEEP, TODAY), (log(data(0), data(1), marker(2)), DEEP, YESTERDAY))
    assert gaps(found) == ["an earlier capture reaches up to offset 2, this one ends before"]


def test_a_tail_that_the_next_leader_truncated_does_not_count_as_missing() -> None:
    today = log(data(0), marker(1, leader_epoch=1), data(2, leader_epoch=1))
    found = link((today, DEEP, TODAY), (log(data(0), data(1), data(2), data(3)), DEEP, YESTERDAY))
    assert (open_starts(found), found.health.problems) == ([2], ())


def test_a_copy_of_a_broker_that_was_not_the_leader_is_not_the_log() -> None:
    found = link((log(data(0), data(1)), DEEP, TODAY), (log(data(0), data(1, leader_epoch=3)), DEEP, YESTERDAY))
    assert gaps(found) == ["this capture's copy is not the log from offset 1 on"]


FULL = (data(0), marker(1), data(2, count=3, producer=OTHER_PRODUCER), marker(5, producer=OTHER_PRODUCER))
ACTIVE = (data(6, producer=OTHER_PRODUCER), data(7))


def test_a_segment_that_compaction_rewrote_contradicts_nothing() -> None:
    rewritten = log(replace(FULL[2], record_count=1, crc=77), FULL[3], base_offset=0)
    found = link((rewritten, DEEP, TODAY), (log(*ACTIVE), DEEP, TODAY), (log(*FULL), DEEP, YESTERDAY))
    assert not any("differ" in p.reason for p in found.health.problems)
    assert "compaction removed records up to offset 4 that another copy still holds" in found.health.remarks


def test_what_an_earlier_capture_proved_is_still_known_after_compaction() -> None:
    rewritten = log(replace(FULL[2], record_count=1, crc=77), FULL[3], base_offset=0)
    alone = link((rewritten, DEEP, TODAY), (log(*ACTIVE), DEEP, TODAY))
    with_yesterday = link((rewritten, DEEP, TODAY), (log(*ACTIVE), DEEP, TODAY), (log(*FULL), DEEP, YESTERDAY))
    epochs = [
        (t.coordinator_epoch_basis, t.coordinator_epoch)
        for found in (alone, with_yesterday)
        for t in found.transactions
        if t.txn_start_offset == 7
    ]
    assert epochs == [("unknown", None), ("marker", 5)]


def test_a_marker_that_compaction_took_says_the_coordinator_epoch_of_a_producer_with_data_before_it() -> None:
    """Its data is kept for its sequence; without the marker nothing would say who coordinated it."""
    kept, ended = (data(1), data(2, producer=OTHER_PRODUCER)), (marker(3), data(4, producer=OTHER_PRODUCER))
    rewritten = log(replace(kept[0], crc=77), kept[1], ended[1], base_offset=1)
    found = link((rewritten, DEEP, TODAY), (log(*ACTIVE), DEEP, TODAY), (log(*kept, *ended), DEEP, YESTERDAY))
    assert {row.producer_id: row.coordinator_epoch for row in found.health.producers}[7] == 5


def test_of_two_brokers_copies_the_one_that_compaction_left_more_of_counts() -> None:
    thinned = log(FULL[0], FULL[1], base_offset=0)
    found = link((thinned, DEEP, TODAY), (log(*FULL), DEEP, TODAY), (log(*ACTIVE), DEEP, TODAY))
    assert (found.health.log_bytes, found.health.problems) == (sum(b.size_bytes for b in FULL + ACTIVE), ())


def test_offsets_that_compaction_emptied_are_not_taken_from_an_earlier_capture() -> None:
    full = (data(0, count=2), marker(2), data(3, count=3))
    found = link(
        (log(replace(full[0], record_count=1, crc=66), full[1]), DEEP, TODAY),
        (log(*ACTIVE), DEEP, TODAY),
        (log(*full), DEEP, YESTERDAY),
    )
    assert [p.reason for p in found.health.problems] == ["offsets 3 to 5 are in no file"]


def test_a_file_that_went_through_compaction_with_the_same_counts_contradicts() -> None:
    found = link((log(data(0, crc=5), data(1)), DEEP, TODAY), (log(data(0, crc=6), data(1)), DEEP, YESTERDAY))
    assert gaps(found) == ["copies differ from offset 0 on: copy 0 and copy 1"]


def test_a_batch_that_got_its_delete_horizon_is_rewritten_with_the_same_counts() -> None:
    rewritten = replace(FULL[1], delete_horizon_ms=9_999, crc=88)
    found = link((log(FULL[0], rewritten), DEEP, TODAY), (log(FULL[0], FULL[1]), DEEP, YESTERDAY))
    assert found.health.problems == ()


def test_a_snapshot_inside_a_file_is_a_second_witness() -> None:
    history = log(data(0), marker(1), data(2), data(3))
    found = link((history, DEEP, TODAY), snapshots=(snapshot_evidence(history, 3),))
    assert (open_starts(found), found.health.problems) == ([2], ())
    assert found.health.witnesses == ("snapshot 3 agrees with the batches below it",)


def test_a_snapshot_inside_a_file_that_disagrees_is_named() -> None:
    section, rows = snapshot_evidence(log(data(0), marker(1), data(2), data(3)), 3)
    rows[0]["current_txn_start_offset"] = 1
    found = link((log(data(0), marker(1), data(2), data(3)), DEEP, TODAY), snapshots=((section, rows),))
    assert gaps(found) == ["snapshot 3, producer 7: open start is 1 there and 2 in the log"]


@pytest.mark.parametrize(("tool", "epoch"), [(DEEP, 5), (SHALLOW, 6)], ids=["its-log-states-one", "it-states-none"])
def test_a_marker_that_compaction_took_says_the_coordinator_epoch_where_the_log_does_not(
    tool: Tool, epoch: int
) -> None:
    taken = (data(2), replace(marker(3), coordinator_epoch=6))
    before = log(data(0), marker(1), *taken, data(4))
    found = link((log(data(0), marker(1), data(4)), tool, TODAY), (before, DEEP, YESTERDAY))
    assert found.health.producers[0].coordinator_epoch == epoch


def test_a_snapshot_remembers_a_transaction_that_compaction_removed() -> None:
    history = log(data(0, producer=OTHER_PRODUCER), data(1), data(2, producer=OTHER_PRODUCER), marker(3), data(4))
    snapshot = snapshot_evidence(history, 2)
    compacted = log(history.batches[0], *history.batches[2:])
    found = link((compacted, DEEP, TODAY), snapshots=(snapshot,))
    assert not any("snapshot" in p.reason for p in found.health.problems)


def test_a_torn_tail_inside_the_log_breaks_what_began_before_it() -> None:
    sections, text = sections_and_text(log(data(0)), DEEP)
    torn = section_row(sections[0], input_id="torn") | {"torn_bytes": 33}
    later, later_text = sections_and_text(log(data(1)), DEEP)
    rows = [torn, section_row(later[0], input_id="later")]
    scanned = [
        *batches_of(sections, text, range_bytes=10_000, input_id="torn"),
        *batches_of(later, later_text, range_bytes=10_000, input_id="later"),
    ]
    assert gaps(linked(rows, scanned)) == ["file 00000000000000000000.log ends in 33 bytes that are no whole batch"]
    assert gaps(linked(rows[:1], scanned[:1])) == []


def test_a_deep_dump_with_missing_record_lines_says_so() -> None:
    sections, text = sections_and_text(log(data(0, count=3), marker(3)), DEEP)
    lines = text.split(b"\n")
    cut = b"\n".join(lines[:4] + lines[5:])
    section = replace(sections[0], text_end_bytes=len(cut))
    found = linked([section_row(section)], batches_of([section], cut, range_bytes=10_000))
    assert found.health.remarks == ("record lines are missing or not proven: 1 of its batches, from offset 0 on",)
    assert link((log(data(0, count=3), marker(3)), DEEP, TODAY)).health.remarks == ()


def test_a_snapshot_right_above_missing_files_stands_for_them() -> None:
    history = log(data(0), data(1), marker(2), data(3), data(4))
    snapshot = snapshot_evidence(history, 3)
    below, above = log(*history.batches[:1]), log(*history.batches[3:])
    found = link((below, DEEP, TODAY), (above, DEEP, TODAY), snapshots=(snapshot,))
    assert (open_starts(found), gaps(found)) == ([3], [])


def test_a_snapshot_above_a_gap_knows_what_began_in_it() -> None:
    history = log(data(0), data(1), data(2), data(3, producer=OTHER_PRODUCER), data(4, producer=OTHER_PRODUCER))
    snapshot = snapshot_evidence(history, 4)
    below, above = log(marker(0)), log(*history.batches[3:])
    found = link((below, DEEP, TODAY), (above, DEEP, TODAY), snapshots=(snapshot,))
    assert open_starts(found) == [0, 3]
    assert gaps(found)[0] == "offsets 1 to 2 are in no file"
