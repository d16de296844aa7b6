"""A topic that was deleted and made again under its name is another partition: its past is no part of the log."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tools.forms.model import History, Segment
from tests.tools.log_evidence import LinkedPartition, batches_of, link_history, linked, section_row, sections_and_text
from tests.unit.log.test_against_broker import SPLITS
from tests.unit.log.test_copies import DEEP, OTHER_PRODUCER, TODAY, YESTERDAY, data, gaps, link, log, marker
from tests.unit.log.test_open_rows import open_rows

Row = dict[str, Any]


def topic_id(word: str, rank: int) -> Row:
    place = {"topic": "orders", "partition": 0, "section_index": 0, "file_base_offset": 0, "grammar": "binary"}
    return place | {"input_id": f"id {word}", "kind": "topic_id", "stated": word, "capture_rank": rank}


def nights(today: History, yesterday: History, *stated: Row) -> LinkedPartition:
    rows, scanned = list(stated), []
    for rank, history in ((TODAY, today), (YESTERDAY, yesterday)):
        sections, text = sections_and_text(history, DEEP)
        rows += [section_row(s, rank=rank, input_id=f"night {rank}") for s in sections]
        scanned += batches_of(sections, text, range_bytes=10_000, input_id=f"night {rank}")
    return linked(rows, scanned)


PAST = log(data(0), replace(marker(1), marker="COMMIT"), data(2, producer=OTHER_PRODUCER))


def test_an_earlier_capture_of_another_topic_id_does_not_count() -> None:
    again = log(data(0, crc=50))
    found = nights(again, PAST, topic_id("new", TODAY), topic_id("old", YESTERDAY))
    rows = open_rows(found)
    assert (set(rows), gaps(found), found.health.problems) == ({7}, [], ())
    assert (rows[7].other_copy_commit_offset, found.health.truncated_marker_offset) == (None, None)
    assert found.health.remarks == (
        "earlier captures hold another topic of this name, which was deleted: they do not count",
    )


def test_of_one_topic_id_an_earlier_capture_counts() -> None:
    found = nights(log(data(0, crc=50)), PAST, topic_id("same", TODAY), topic_id("same", YESTERDAY))
    assert gaps(found) != []


def test_leader_epochs_that_begin_anew_at_offset_0_are_another_topic() -> None:
    """Also where `partition.metadata` does not say so (before 2.8)."""
    past = log(*[replace(b, leader_epoch=4) for b in PAST.batches])
    found = nights(log(data(0, crc=50)), past)
    assert (set(open_rows(found)), gaps(found)) == ({7}, [])
    assert open_rows(found)[7].other_copy_commit_offset is None


def test_a_higher_epoch_at_offset_0_is_a_new_leader_who_truncated_all() -> None:
    found = nights(log(data(0, crc=50, leader_epoch=4)), PAST)
    assert open_rows(found)[7].other_copy_commit_offset == 1
    assert found.health.truncated_marker_offset == 1


@given(st.lists(st.integers(0, 4), min_size=1, max_size=12), st.sets(st.integers(1, 11)), SPLITS)
def test_a_leader_epoch_that_falls_breaks_all_of_the_partition(
    epochs: list[int], rolls: set[int], range_bytes: int
) -> None:
    """However the log is cut into files, and their text into ranges."""
    batches = [data(offset, leader_epoch=epoch, producer=offset) for offset, epoch in enumerate(epochs)]
    bounds = sorted({0, *(r for r in rolls if r < len(batches)), len(batches)})
    segments = tuple(Segment(a, tuple(batches[a:b])) for a, b in pairwise(bounds))
    found = link_history(History("orders", 0, segments), DEEP, range_bytes=range_bytes)
    fall = next((n for n, epoch in enumerate(epochs) if epoch < max(epochs[: n + 1])), None)
    glued = f"the leader epoch falls at offset {fall}: a topic that was made again is glued to its past"
    assert len(open_rows(found)) == len(epochs)
    assert all(row.evidence_gaps == (() if fall is None else (glued,)) for row in open_rows(found).values())


def test_an_earlier_capture_whose_epochs_are_higher_is_glued_to_todays_log() -> None:
    found = link((log(data(5, leader_epoch=1)), DEEP, TODAY), (log(data(4, leader_epoch=3)), DEEP, YESTERDAY))
    assert [problem.kind for problem in found.health.problems] == ["leader_epochs_fall"]


@pytest.mark.parametrize("producer", [7, OTHER_PRODUCER])
def test_a_batch_without_records_behind_the_start_breaks_the_evidence(producer: int) -> None:
    """Compaction passes nothing that is open: the broker held the transaction for ended, whoever wrote that batch."""
    found = link((log(data(0), replace(data(1, producer=producer), record_count=0), data(2)), DEEP, TODAY))
    assert open_rows(found)[7].txn_start_offset == 0
    assert open_rows(found)[7].evidence_gaps == (
        "file 00000000000000000000.log: the batch that ends at offset 1 has no record left",
    )


def test_a_first_batch_without_records_opens_and_breaks_the_evidence() -> None:
    found = link((log(replace(data(0), record_count=0), data(1)), DEEP, TODAY))
    assert open_rows(found)[7].txn_start_offset == 0
    assert len(gaps(found)) == 1


def test_a_batch_without_records_below_the_start_is_compactions() -> None:
    found = link((log(replace(data(0), record_count=0), marker(1), data(2)), DEEP, TODAY))
    assert open_rows(found)[7].evidence_gaps == ()
