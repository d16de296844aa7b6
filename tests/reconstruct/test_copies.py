"""Several copies of one partition, and captures behind the one that is judged."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tests.oracle.dump_writer import Tool
from tests.oracle.model import Batch, History, Segment
from tests.reconstruct.evidence import pieces_of, section_row, sections_and_text
from txn_analysis.reconstruct.link import link_partition

if TYPE_CHECKING:
    from txn_analysis.reconstruct.link import LinkedPartition

DEEP, SHALLOW = Tool(deep=True), Tool()
PRODUCER = 7


def data(offset: int, *, leader_epoch: int = 0, crc: int = 0) -> Batch:
    return Batch(
        offset, offset, 1, PRODUCER, 0, offset, is_transactional=True, max_timestamp_ms=1_000 + offset,
        leader_epoch=leader_epoch, crc=crc or offset, size_bytes=70,
    )  # fmt: skip


def marker(offset: int, *, leader_epoch: int = 0) -> Batch:
    ended = Batch(offset, offset, 1, PRODUCER, 0, None, is_transactional=True, is_control=True, marker="ABORT")
    return replace(ended, coordinator_epoch=5, max_timestamp_ms=1_000 + offset, leader_epoch=leader_epoch, crc=offset)


def log(*batches: Batch, base_offset: int | None = None) -> History:
    first = batches[0].base_offset if base_offset is None else base_offset
    return History("orders", 0, (Segment(first, batches),))


def link(*copies: tuple[History, Tool, int]) -> LinkedPartition:
    """Copies with the tool that dumped them and the rank of their capture, cut where any of them ends."""
    bounds = {b for history, _, _ in copies for b in (history.segments[0].base_offset, history.end_offset)}
    rows: list[dict[str, Any]] = []
    pieces: list[dict[str, Any]] = []
    for index, (history, tool, rank) in enumerate(copies):
        sections, text = sections_and_text(history, tool)
        rows += [section_row(s, rank=rank, input_id=f"copy {index}") for s in sections]
        pieces += pieces_of(sections, text, range_bytes=10_000, cuts=sorted(bounds), input_id=f"copy {index}")
    return link_partition(rows, pieces, [], None)


def open_starts(linked: LinkedPartition) -> list[int]:
    return [t["txn_start_offset"] for t in linked.transactions if t["outcome"] == "open"]


def gaps(linked: LinkedPartition) -> list[str]:
    return [reason for t in linked.transactions if t["outcome"] == "open" for reason in t["evidence_gaps"]]


def test_of_copies_that_agree_the_longer_one_counts() -> None:
    linked = link((log(data(0)), DEEP, 0), (log(data(0), marker(1), data(2)), DEEP, 0))
    assert (open_starts(linked), gaps(linked), linked.health["problems"]) == ([2], [], [])


def test_of_copies_that_agree_the_one_with_markers_says_the_coordinator_epoch() -> None:
    batches = (data(0), marker(1), data(2))
    linked = link((log(*batches), SHALLOW, 0), (log(*batches), DEEP, 0))
    assert linked.health["producers"][0]["coordinator_epoch"] == 5


def test_the_higher_leader_epoch_is_the_log_and_the_other_tail_was_truncated() -> None:
    truncated = log(data(0), data(1, crc=99), data(2), data(3))
    linked = link((truncated, DEEP, 0), (log(data(0), marker(1, leader_epoch=1)), DEEP, 0))
    assert (open_starts(linked), linked.health["end_offset"]) == ([], 2)


def test_the_same_leader_epoch_with_different_content_cannot_be_resolved() -> None:
    linked = link((log(data(0), data(1)), DEEP, 0), (log(data(0), data(1, crc=99)), DEEP, 0))
    assert open_starts(linked) == [0]
    assert any("copies differ" in reason for reason in gaps(linked))


def test_a_segment_that_is_gone_today_is_known_from_the_capture_before() -> None:
    linked = link((log(data(5), data(6)), DEEP, 0), (log(data(0), marker(1), data(2), data(3), data(4)), DEEP, 1))
    assert (open_starts(linked), gaps(linked)) == ([2], [])


def test_a_gap_between_the_captures_breaks_what_began_before_it() -> None:
    linked = link((log(data(5), data(6)), DEEP, 0), (log(data(0), marker(1), data(2)), DEEP, 1))
    assert open_starts(linked) == [2]
    assert gaps(linked) == ["offsets 3 to 4 are in no file"]


def test_a_partition_that_is_not_in_this_capture_stays_listed() -> None:
    linked = link((log(data(0)), DEEP, 1))
    assert gaps(linked) == ["the partition is not in this capture"]
