"""Moments within intervals of their own keys, however large keys, moments and their numbers are."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from txn_analysis.coordinator.producer_bounds import EVER, NEVER, are_within

KEYS = st.sampled_from([0, 1, 2, 2**40, 2**62, 2**63 - 1])
MOMENTS = st.one_of(st.integers(0, 9), st.sampled_from([NEVER, EVER]))


@given(st.lists(st.tuples(KEYS, MOMENTS)), st.lists(st.tuples(KEYS, MOMENTS, MOMENTS)))
def test_an_interval_holds_the_moments_of_its_own_key_alone(
    asked: list[tuple[int, int]], intervals: list[tuple[int, int, int]]
) -> None:
    key, at_ms = np.array(asked, np.int64).reshape(-1, 2).T
    of_key, start_ms, stop_ms = np.array(intervals, np.int64).reshape(-1, 3).T
    found = are_within(key, at_ms, of_key, start_ms, stop_ms)
    assert found.tolist() == [
        any(own == k and start <= at <= stop for own, start, stop in intervals) for k, at in asked
    ]
