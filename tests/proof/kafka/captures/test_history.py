"""Random histories are logs that a broker could have written, and survive being dumped and read."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.proof.kafka.captures.capture_reader import LogReader
from tests.tools.forms.broker import replay
from tests.tools.forms.dump_writer import Tool, log_files, log_text
from tests.tools.forms.history import histories
from tests.tools.forms.model import Batch, History

QUICK = settings(max_examples=60, deadline=None, derandomize=True, database=None)


def without_records(batch: Batch) -> Batch:
    """The batch as its own line prints it, and the end marker."""
    return replace(batch, records=None)


@QUICK
@given(histories())
def test_offsets_and_epochs_are_legal(history: History) -> None:
    for earlier, later in pairwise(history.batches):
        assert later.base_offset == earlier.last_offset + 1
    for batch in history.batches:
        assert 0 <= batch.record_count <= batch.last_offset - batch.base_offset + 1
        assert batch.producer_epoch is None or 0 <= batch.producer_epoch <= 32767
        assert batch.size_bytes >= 61
    for segment in history.segments[1:]:
        assert not segment.batches or segment.base_offset == segment.batches[0].base_offset


@QUICK
@given(histories(), st.sampled_from([(2, 2), (2, 8), (3, 1), (4, 2)]))
def test_a_dump_says_all_of_a_history(history: History, version: tuple[int, int]) -> None:
    read = LogReader(log_text(history, Tool(version, deep=True)).encode()).history()
    printed = list(history.batches)
    assert [without_records(batch) for batch in read.batches] == printed


@QUICK
@given(histories(), st.integers(0, 40))
def test_a_snapshot_stands_for_everything_below_it(history: History, cut: int) -> None:
    offsets = [*(batch.base_offset for batch in history.batches), history.end_offset]
    offset = offsets[min(cut, len(offsets) - 1)]
    snapshot = replay(history.batches, below=offset).snapshot()
    whole = replay(history.batches, from_offset=history.segments[0].base_offset)
    resumed = replay(history.batches, snapshot=snapshot, from_offset=offset)
    assert resumed.open_starts() == whole.open_starts()
    assert resumed.last_stable_offset == whole.last_stable_offset
    assert resumed.snapshot() == whole.snapshot()


@pytest.mark.parametrize("per_segment", [False, True])
@given(history=histories())
@QUICK
def test_files_hold_the_same_text_however_split(history: History, per_segment: bool) -> None:
    files = log_files([history], Tool(), per_segment=per_segment)
    assert b"".join(files.values()) == log_text(history, Tool()).encode()
    assert len(files) == (len(history.segments) if per_segment else 1)
