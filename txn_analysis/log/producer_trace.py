"""One look along the batches of some pieces, producer by producer: where fragments begin and end.

As a broker does when it loads a log (`ProducerStateManager`), it remembers of each producer only what is open.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.columns.arrays import NONE, Array
from txn_analysis.columns.compiled import compiled

if TYPE_CHECKING:
    from collections.abc import Mapping

_GROUP_COLUMNS = ("first_row", "last_row", "marker_row", "data_row", "changes", "changes_at_data", "lead", "tail")
_FIRST, _LAST, _MARKER, _DATA, _CHANGES, _CHANGES_AT_DATA, _LEAD, _TAIL = range(len(_GROUP_COLUMNS))
_FRAGMENT_COLUMNS = ("group", "start_row", "final_row", "end_row", "max_epoch", "record_count", "size_bytes")
_GROUP, _START, _FINAL, _END, _MAX_EPOCH, _RECORDS, _BYTES = range(len(_FRAGMENT_COLUMNS))
_PYTHON_US = 4  # for each row
_OPEN_PIECE, _OPEN_GROUP, _OPEN_FRAGMENT = range(3)


@dataclass(frozen=True)
class Trace:
    """What was found, in the order of its first rows; NONE where there is no such row.

    Attributes:
        groups: one for each producer of a piece: its first and last row, its last end marker and its last row of data,
            how often the producer's epoch changed, also up to that row of data, its first fragment and its last one.
        fragments: the group of each, its first and last row of transactional data, its end marker, and of its data the
            largest producer epoch, the records and the bytes.
    """

    groups: dict[str, Array]
    fragments: dict[str, Array]


class _Batches(NamedTuple):
    """The batches, in text order: their pieces and their producers, both counted from 0, and some of their columns."""

    piece: Array
    code: Array
    is_data: Array
    is_marker: Array
    is_control: Array
    producer_epoch: Array
    record_count: Array
    size_bytes: Array


class _Found(NamedTuple):
    """What is open of each producer while they are followed, and what is found: see `Trace`."""

    state: Array
    groups: Array
    fragments: Array


def trace(rows: Mapping[str, Array], piece: Array) -> Trace:
    """Follow the batches in text order.

    Args:
        rows: their columns.
        piece: the ordinal of each one's piece; it never falls.
    """
    producer = rows["producer_id"]
    is_kept = (producer != NONE) & (rows["is_marker"] | ~rows["is_control"])
    known = pc.dictionary_encode(pa.array(producer, mask=~is_kept))
    code = pc.fill_null(known.indices.cast(pa.int64()), NONE).to_numpy()
    most = int(is_kept.sum())
    groups = np.empty((most, len(_GROUP_COLUMNS)), np.int64)
    fragments = np.empty((most, len(_FRAGMENT_COLUMNS)), np.int64)
    state = np.full((len(known.dictionary), 3), NONE, np.int64)
    follow = _follow.for_work(most * _PYTHON_US)
    batches = _Batches(piece, code, *(rows[name] for name in _Batches._fields[2:]))
    group_count, fragment_count = follow(batches, _Found(state, groups, fragments))
    return Trace(
        dict(zip(_GROUP_COLUMNS, groups[:group_count].T.copy(), strict=True)),
        dict(zip(_FRAGMENT_COLUMNS, fragments[:fragment_count].T.copy(), strict=True)),
    )


@compiled
def _follow(batches: _Batches, found: _Found) -> tuple[int, int]:
    """Fills what is found; how many groups and fragments there are."""
    piece, code, is_data, is_marker, is_control, epoch, record_count, size_bytes = batches
    state, groups, fragments = found
    group_count = fragment_count = 0
    for row in range(len(code)):
        producer = code[row]
        if producer == NONE:
            continue
        if state[producer, _OPEN_PIECE] != piece[row]:
            state[producer, _OPEN_PIECE] = piece[row]
            state[producer, _OPEN_GROUP] = group_count
            state[producer, _OPEN_FRAGMENT] = NONE
            groups[group_count] = NONE
            groups[group_count, _FIRST] = groups[group_count, _LAST] = row
            groups[group_count, _CHANGES], groups[group_count, _LEAD] = 0, fragment_count
            group_count += 1
        group = state[producer, _OPEN_GROUP]
        if epoch[row] != epoch[groups[group, _LAST]]:
            groups[group, _CHANGES] += 1
        groups[group, _LAST] = row
        if not is_control[row]:
            groups[group, _DATA] = row
            groups[group, _CHANGES_AT_DATA] = groups[group, _CHANGES]
        if state[producer, _OPEN_FRAGMENT] == NONE:
            state[producer, _OPEN_FRAGMENT] = groups[group, _TAIL] = fragment_count
            fragments[fragment_count] = NONE
            fragments[fragment_count, _GROUP] = group
            fragments[fragment_count, _RECORDS] = fragments[fragment_count, _BYTES] = 0
            fragment_count += 1
        fragment = state[producer, _OPEN_FRAGMENT]
        if is_data[row]:
            if fragments[fragment, _START] == NONE:
                fragments[fragment, _START] = row
            fragments[fragment, _FINAL] = row
            fragments[fragment, _MAX_EPOCH] = max(fragments[fragment, _MAX_EPOCH], epoch[row])
            fragments[fragment, _RECORDS] += max(record_count[row], 0)
            fragments[fragment, _BYTES] += size_bytes[row]
        if is_marker[row]:
            groups[group, _MARKER] = row
            fragments[fragment, _END] = row
            state[producer, _OPEN_FRAGMENT] = NONE
    return group_count, fragment_count
