"""Which moments lie in one of many intervals: for millions of end markers beside the decisions that may be theirs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from txn_analysis.columns.arrays import Array

EVER, NEVER = 2**62, -(2**62)
"""Later and earlier than any moment; sums with a duration stay within INT64."""


def are_within(key: Array, at_ms: Array, of_key: Array, start_ms: Array, stop_ms: Array) -> Array:
    """Of each moment, whether an interval of its own key holds it; both bounds belong to an interval.

    Args:
        key: of each moment, a number from 0 up.
        at_ms: the moments.
        of_key: of each interval.
        start_ms: where it begins.
        stop_ms: where it ends.
    """
    found = np.zeros(len(at_ms), bool)
    if not len(of_key) or not len(at_ms):
        return found
    stops, rank = np.unique(stop_ms, return_inverse=True)
    keys, moments = np.concatenate([of_key, key]), np.concatenate([start_ms, at_ms])
    is_moment = np.arange(len(keys)) >= len(of_key)
    order = np.lexsort((is_moment, moments, keys))
    # In order of their starts the furthest end so far is the running maximum, which begins anew with each key.
    base = keys[order] * (len(stops) + 1)
    ends = np.concatenate([rank + 1, np.zeros(len(key), np.int64)])[order]
    furthest = np.maximum.accumulate(base + ends) - base
    is_held = (furthest > 0) & (stops[furthest - 1] >= moments[order])
    asked = order[is_moment[order]] - len(of_key)
    found[asked] = is_held[is_moment[order]]
    return found
