"""Batches are followed alike by Python and by compiled code."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.tools.compiling import NEVER, NOTHING, loading_takes
from txn_analysis.columns.arrays import NONE
from txn_analysis.log.producer_appends import Trace, trace

DATA, PLAIN, MARKER, OTHER_CONTROL = range(4)
batches = st.lists(
    st.tuples(st.sampled_from([NONE, 1, 2, 7]), st.sampled_from(range(4)), st.integers(0, 2), st.booleans()),
    max_size=40,
)


def traced(batches: list[tuple[int, int, int, bool]]) -> Trace:
    producer, kind, epoch, starts_piece = (np.array(column) for column in zip(*batches, strict=True))
    rows = {
        "producer_id": producer.astype(np.int64),
        "is_data": kind == DATA,
        "is_marker": kind == MARKER,
        "is_control": kind >= MARKER,
        "producer_epoch": epoch.astype(np.int64),
        "record_count": np.arange(len(kind)) % 5 - 1,
        "size_bytes": np.arange(len(kind)) + 100,
    }
    return trace(rows, np.cumsum(starts_piece))


@given(batches.filter(bool))
def test_python_and_compiled_code_find_the_same(batches: list[tuple[int, int, int, bool]]) -> None:
    with loading_takes(NEVER):
        plain = traced(batches)
    with loading_takes(NOTHING):
        fast = traced(batches)
    for ours, theirs in ((plain.groups, fast.groups), (plain.parts, fast.parts)):
        assert {name: values.tolist() for name, values in ours.items()} == {
            name: values.tolist() for name, values in theirs.items()
        }


def test_a_part_of_a_transaction_ends_with_its_producers_own_marker() -> None:
    found = traced([(1, DATA, 0, True), (2, DATA, 0, False), (1, MARKER, 0, False), (1, DATA, 0, False)])
    assert found.parts["start_row"].tolist() == [0, 1, 3]
    assert found.parts["end_row"].tolist() == [2, NONE, NONE]
    assert found.groups["lead"].tolist() == [0, 1]
    assert found.groups["tail"].tolist() == [2, 1]


def test_the_last_batch_of_a_producer_is_of_data() -> None:
    """Its sequence goes on from there: an end marker has none."""
    found = traced([(1, DATA, 0, True), (1, PLAIN, 0, False), (1, MARKER, 0, False), (2, MARKER, 0, False)])
    assert found.groups["data_row"].tolist() == [1, NONE]


def test_a_batch_whose_records_are_not_stated_counts_by_its_bytes_alone() -> None:
    unstated, _ = batches_of_one = [(1, DATA, 0, True), (1, DATA, 0, False)]
    assert traced([unstated]).parts["record_count"].tolist() == [0]
    assert traced(batches_of_one).parts["size_bytes"].tolist() == [201]
