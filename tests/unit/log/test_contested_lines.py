"""A line that a client's text could have made neither opens nor ends a transaction, and says nothing else."""

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tools.forms.dump_writer import Tool
from tests.tools.forms.history import histories
from tests.tools.forms.model import Batch, History
from tests.tools.log_evidence import LinkedPartition, batches_of, linked, section_row, sections_and_text
from tests.unit.log.test_against_broker import SPLITS
from tests.unit.log.test_copies import DEEP, OTHER_PRODUCER, SHALLOW, data, gaps, log, marker
from txn_analysis.log.segments import UNCUT
from txn_analysis.log.summarize import summarize_parts
from txn_analysis.tables import Transaction
from txn_analysis.tables.batches import Batches

Row = dict[str, Any]
DOUBTS = ("is_contested", "may_be_header_keys")


def scanned(
    history: History, tool: Tool, name: str, contested: Collection[int], doubt: str, range_bytes: int = 10_000
) -> tuple[list[Row], list[Batches]]:
    """Sections and batches of one dump, whose lines at some offsets are contested."""
    sections, text = sections_and_text(history, tool)
    found = []
    for part in batches_of(sections, text, range_bytes=range_bytes, input_id=name):
        flags = {**dict.fromkeys(DOUBTS, np.zeros(len(part), bool))}
        flags[doubt] = np.isin(part.columns["base_offset"], list(contested))
        found.append(replace(part, columns={**part.columns, **flags}))
    return [section_row(s, input_id=name) for s in sections], found


def reconstructed(*dumps: tuple[list[Row], list[Batches]]) -> LinkedPartition:
    return linked([row for rows, _ in dumps for row in rows], [part for _, found in dumps for part in found])


def of_log(*batches: Batch, contested: Collection[int], doubt: str = DOUBTS[0]) -> LinkedPartition:
    return reconstructed(scanned(log(*batches), DEEP, "deep", contested, doubt))


def opened(found: LinkedPartition) -> list[Transaction]:
    return sorted((t for t in found.transactions if t.outcome == "open"), key=lambda t: t.txn_start_offset)


def open_starts(found: LinkedPartition) -> dict[int, int]:
    return {t.producer_id: t.txn_start_offset for t in found.transactions if t.outcome == "open"}


CLAIMED = "file 00000000000000000000.log: two lines claim the position of offset {}"


@pytest.mark.parametrize("doubt", DOUBTS)
def test_a_contested_marker_ends_nothing_and_what_was_open_stays_listed(doubt: str) -> None:
    found = of_log(data(0), marker(1), contested={1}, doubt=doubt)
    assert open_starts(found) == {7: 0}
    assert gaps(found) == [problem.reason for problem in found.health.problems]
    assert len(gaps(found)) == 1


@pytest.mark.parametrize("doubt", DOUBTS)
def test_contested_data_opens_nothing(doubt: str) -> None:
    found = of_log(data(0), data(1, producer=OTHER_PRODUCER), contested={1}, doubt=doubt)
    assert open_starts(found) == {7: 0}
    assert [p.producer_id for p in found.health.producers] == [7]


def test_lines_around_a_contested_one_still_count() -> None:
    found = of_log(data(0), data(1, producer=9), marker(2), data(3), contested={1})
    assert (open_starts(found), found.health.end_offset) == ({7: 3}, 4)
    assert gaps(found) == [CLAIMED.format(1)]


def test_no_time_and_no_epoch_is_taken_from_a_contested_line() -> None:
    forged = replace(marker(1), max_timestamp_ms=10**14, coordinator_epoch=99, leader_epoch=77, producer_epoch=55)
    found = of_log(data(0), forged, data(2), marker(3, producer=OTHER_PRODUCER), contested={1})
    (row,) = (t for t in found.transactions if t.outcome == "open")
    known = ("coordinator_epoch", "producer_epoch", "last_marker_offset", "last_marker_ms", "first_appended_before_ms")
    assert [getattr(row, name) for name in known] == [None, 0, None, None, 1_003]
    assert (found.health.last_moment_ms, found.health.leader_epoch) == (1_003, 0)


def test_a_client_cannot_move_the_moment_of_the_capture() -> None:
    """Else everything would be late."""
    forged = replace(marker(1), max_timestamp_ms=10**14)
    _, (part,) = scanned(log(data(0), forged, marker(2)), DEEP, "deep", {1}, DOUBTS[0])
    assert max(ms or 0 for ms in summarize_parts([part], [UNCUT]).pieces["max_moment_ms"].to_pylist()) == 1_002


BATCHES = (data(0), marker(1), data(2), data(3))


@pytest.mark.parametrize("doubt", DOUBTS)
def test_a_shallow_dump_beside_that_shows_the_same_lines_settles_it(doubt: str) -> None:
    deep = scanned(log(*BATCHES), DEEP, "deep", {1}, doubt)
    found = reconstructed(deep, scanned(log(*BATCHES), SHALLOW, "shallow", (), doubt))
    assert (open_starts(found), found.health.problems) == ({7: 2}, ())
    (row,) = (t for t in found.transactions if t.outcome == "open")
    assert row.coordinator_epoch == 5, "the deep dump is the one that prints it"


@pytest.mark.parametrize("doubt", DOUBTS)
def test_a_shallow_dump_beside_that_shows_another_line_is_believed(doubt: str) -> None:
    """The deep dump has a forged COMMIT where the segment has more data of the same producer."""
    true = (data(0), data(1), data(2))
    forged = replace(marker(1), size_bytes=true[1].size_bytes)
    deep = scanned(log(true[0], forged, true[2]), DEEP, "deep", {1}, doubt)
    found = reconstructed(deep, scanned(log(*true), SHALLOW, "shallow", (), doubt))
    assert (open_starts(found), found.health.problems) == ({7: 0}, ())
    (row,) = (t for t in found.transactions if t.outcome == "open")
    assert (row.record_count, row.other_copy_commit_offset) == (3, None)


def test_lines_of_a_newer_leader_stay_in_doubt_beside_a_copy_that_may_have_been_truncated() -> None:
    deep = scanned(log(data(0), marker(1, leader_epoch=3)), DEEP, "deep", {1}, DOUBTS[0])
    found = reconstructed(deep, scanned(log(data(0), data(1)), SHALLOW, "shallow", (), DOUBTS[0]))
    assert open_starts(found) == {7: 0}
    assert CLAIMED.format(1) in gaps(found)


@given(histories(), SPLITS, st.data())
def test_a_contested_line_is_the_same_however_the_text_is_split(
    history: History, range_bytes: int, draw: st.DataObject
) -> None:
    """As if its batch were one that no producer wrote."""
    offsets = [b.base_offset for b in history.batches]
    contested = draw.draw(st.sets(st.sampled_from(offsets)) if offsets else st.just(set()), label="contested")
    found = reconstructed(scanned(history, DEEP, "deep", contested, DOUBTS[0], range_bytes))
    whole = reconstructed(scanned(history, DEEP, "deep", contested, DOUBTS[0], 1 << 30))
    assert (opened(found), found.health) == (opened(whole), whole.health)
    assert contested.isdisjoint(t.txn_start_offset for t in found.transactions)
