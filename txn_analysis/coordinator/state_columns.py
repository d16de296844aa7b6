"""The records of the coordinator as columns: those of each transactional id in their order, each once.

As many as all ids ever had are sorted, compared and followed here; objects are made of the few that are asked about.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.columns.arrays import ABSENT, Array, codes_of, numbers, whole
from txn_analysis.kafka.transactions import COMPLETED, EMPTY, ONGOING, PREPARED
from txn_analysis.logic import UNBOUNDED_MS

NO_TIME = -(2**63)
"""In columns of moments: not known."""
_WORDS = pa.array([EMPTY, ONGOING, *PREPARED, *COMPLETED])
_EMPTY, _PREPARED, _COMPLETED = 0, 2, 4
FROM_PREPARED = _COMPLETED - _PREPARED
"""The number of a Complete state less that of its Prepare."""


class InOrder(NamedTuple):
    """Where the records stand that could be decoded, in some rows of `STATES`.

    Attributes:
        row: of each record; those of one id together, oldest first and each once, as copies and captures repeat them.
        first: where among them each id begins.
        is_hidden: of each id, that a record which could not be decoded may be later than its last one.
    """

    row: Array
    first: Array
    is_hidden: Array

    @property
    def length(self) -> Array:
        """Of each id the number of its records."""
        length: Array = np.diff(np.append(self.first, len(self.row)))
        return length

    @property
    def id_of(self) -> Array:
        """Of each record the number of its id."""
        return np.repeat(np.arange(len(self.first)), self.length)

    @property
    def last(self) -> Array:
        """Of each id the row of its last record."""
        row: Array = self.row[self.first + self.length - 1]
        return row

    def how_many(self, hold: Array) -> Array:
        """Of each id the number of its records of which something holds, which is said of each row."""
        return np.bincount(self.id_of, hold[self.row], len(self.first))

    def only(self, are_these: Array) -> InOrder:
        """Some of the ids."""
        if are_these.all():
            return self
        length = self.length[are_these]
        return InOrder(self.row[are_these[self.id_of]], np.cumsum(length) - length, self.is_hidden[are_these])


def in_order(rows: pa.Table, group: Array, dumped_rank: Array, compared: Sequence[str]) -> InOrder:
    """The records of each id in their order.

    Copies of one record that differ are broken evidence: none is lost, and which one comes last is never left to
    chance.

    Args:
        rows: rows of `STATES`.
        group: of each row the number of its id; -1 leaves it out.
        dumped_rank: of each row, see `Placing.dumped_rank`.
        compared: the columns in which the copies of a record are alike.
    """
    is_lost = rows["is_undecodable"].to_numpy().astype(bool)
    keys = [group, *_places(rows, dumped_rank), ~is_lost]
    order = _sorted(keys)
    order = order[group[order] >= 0]
    is_first = is_other(order, keys[:1])
    number, is_lost = np.cumsum(is_first) - 1, is_lost[order]
    is_hidden = np.zeros(int(is_first.sum()), bool)
    if is_lost.any():
        last = np.full(len(is_hidden), -1)
        last[number[~is_lost]] = np.flatnonzero(~is_lost)  # of those of one id the last stays
        # An export does not say when a record was appended.
        has_no_time = rows["recorded_ms"].is_null().to_numpy()[order]
        may_be_later = is_lost & (has_no_time | (np.arange(len(order)) > last[number]))
        is_hidden = (np.bincount(number, may_be_later, len(is_hidden)) > 0)[last >= 0]
        order = order[~is_lost]
    order = _each_once(rows, order, is_other(order, keys), compared)
    order = _united(rows, order, group, compared)
    return InOrder(order, np.flatnonzero(is_other(order, keys[:1])), is_hidden)


def _places(rows: pa.Table, dumped_rank: Array) -> list[Array]:
    """What sorts the records of one id.

    Dumped ones by offset, whichever capture they are from: the offset alone says which record it is. Console exports,
    which have no offsets, by capture, then by the newest moment of each export, then by arrival. Within one capture a
    dump counts after an export.
    """
    is_dump = rows["state_partition"].is_valid().to_numpy()
    exports = ABSENT if is_dump.all() else codes_of(rows["input_id"], is_sorted=True)
    return [
        -np.where(is_dump, dumped_rank, numbers(rows["capture_rank"], 0)),
        is_dump,
        np.where(is_dump, numbers(rows["offset"], 0), numbers(rows["input_moment_ms"], 0)),
        np.where(is_dump, 0, exports),
        np.where(is_dump, 0, numbers(rows["ordinal"], 0)),
    ]


def _sorted(keys: Sequence[Array]) -> Array:
    """The rows by some keys, of which most are often the same everywhere."""
    differing = [key for key in keys if len(key) and key.min() != key.max()]
    return np.lexsort(differing[::-1]) if differing else np.arange(len(keys[0]))


def is_other(order: Array, keys: Sequence[Array]) -> Array:
    """Of each row in an order, whether it differs from the one before in one of some keys."""
    differs = np.zeros(len(order), bool)
    differs[:1] = True
    for values in (key[order] for key in keys):
        differs[1:] |= values[1:] != values[:-1]
    return differs


def _each_once(rows: pa.Table, order: Array, is_at_other_place: Array, compared: Sequence[str]) -> Array:
    again = np.flatnonzero(~is_at_other_place)
    if not len(again):
        return order
    is_alike = _are_alike(rows.select([*compared]), order[again - 1], order[again])
    if is_alike.all():
        return np.delete(order, again)
    place = np.cumsum(is_at_other_place) - 1
    differing = np.unique(place[again[~is_alike]])
    is_left = np.ones(len(order), bool)
    is_left[again[~np.isin(place[again], differing)]] = False
    for number in differing.tolist():
        start, stop = np.searchsorted(place, [number, number + 1]).tolist()
        copies = rows.select([*compared]).take(pa.array(order[start:stop])).to_pylist()
        once = {repr([*each.values()]): row for each, row in zip(copies, order[start:stop].tolist(), strict=True)}
        is_left[start + len(once) : stop] = False
        order[start : start + len(once)] = [row for _, row in sorted(once.items())]
    return order[is_left]


def _united(rows: pa.Table, order: Array, group: Array, compared: Sequence[str]) -> Array:
    """The records in order without those that an export repeats: where the last copy stands, as a dump has it.

    Exports print no offsets, so that each repeats those before it, and what was dumped. A tombstone does not say which
    one it is.
    """
    if not rows["state_partition"].null_count:
        return order
    source = np.where(rows["state_partition"].is_null().to_numpy(), codes_of(rows["input_id"]), ABSENT)
    place = np.flatnonzero(~rows["is_tombstone"].to_numpy()[order])
    row = order[place]
    if not len(row) or source[row].min() == source[row].max():
        return order
    listed = pc.fill_null(pc.list_value_length(rows["topic_partitions"]), 0).to_numpy()
    updated_ms, state = numbers(rows["last_update_ms"], NO_TIME), codes_of(rows["state"])
    keys = [group[row], updated_ms[row], state[row], listed[row]]
    by_key = np.lexsort(keys[::-1])
    place, row = place[by_key], row[by_key]
    is_again = ~is_other(by_key, keys) & (source[row] != np.append(ABSENT, source[row[:-1]]))
    again = np.flatnonzero(is_again)
    is_again[again] = _is_one_record(rows, source, row[again - 1], row[again], compared)
    is_last = np.append(~is_again[1:], True)
    number, kept = np.cumsum(~is_again) - 1, row[is_last]
    is_dumped = source[row] == ABSENT
    kept[number[is_dumped]] = row[is_dumped]
    united = order.copy()
    united[place[is_last]] = kept
    return np.delete(united, place[~is_last])


_OF_A_DUMP = ("state_partition", "recorded_ms", "offset", "leader_epoch", "start_ms")
_OF_SOME_FORMS = ("previous_producer_id", "next_producer_id", "client_transaction_version")


def _is_one_record(rows: pa.Table, source: Array, one: Array, other: Array, compared: Sequence[str]) -> Array:
    """Whether pairs say the same, as far as both forms print it, and the copy that goes says nothing of its own."""
    printed = [name for name in compared if name not in {*_OF_A_DUMP, *_OF_SOME_FORMS}]
    is_same = _are_alike(rows.select(printed), one, other)
    start_ms = numbers(rows["start_ms"], NO_TIME)
    is_same &= (start_ms[one] == start_ms[other]) | (start_ms[one] == NO_TIME) | (start_ms[other] == NO_TIME)
    goes, stays = np.where(source[one] == ABSENT, (other, one), (one, other))
    for values in (numbers(rows[name], ABSENT) for name in _OF_SOME_FORMS):
        is_same &= (values[goes] == ABSENT) | (values[goes] == values[stays])
    return is_same


def _are_alike(rows: pa.Table, one: Array, other: Array) -> Array:
    """Whether pairs of rows are the same in all columns."""
    alike = np.ones(len(one), bool)
    for column in rows.columns:
        values = whole(column)
        left, right = values.take(pa.array(one)), values.take(pa.array(other))
        if pa.types.is_list(values.type):
            alike &= _are_lists_alike(left, right)
        else:
            same = pc.fill_null(pc.equal(left, right), False).to_numpy(zero_copy_only=False)
            alike &= same | pc.and_(left.is_null(), right.is_null()).to_numpy(zero_copy_only=False)
    return alike


def _are_lists_alike(one: pa.ListArray, other: pa.ListArray) -> Array:
    lengths, others = (pc.list_value_length(each).fill_null(0).to_numpy() for each in (one, other))
    alike: Array = lengths == others
    counts = np.where(alike, lengths, 0)
    of = np.repeat(np.arange(len(counts)), counts)
    inner = np.arange(len(of)) - np.repeat(np.cumsum(counts) - counts, counts)
    left, right = (
        each.flatten().take(pa.array((np.cumsum(length) - length)[of] + inner))
        for each, length in ((one, lengths), (other, others))
    )
    for name in (field.name for field in left.type):
        is_other = pc.not_equal(left.field(name), right.field(name)).to_numpy(zero_copy_only=False)
        alike &= np.bincount(of, is_other, len(alike)) == 0
    return alike


class RecordSequence(NamedTuple):
    """The records of some ids, of each oldest first, as far as they say how its transactions went on.

    Attributes:
        state: its place in `_WORDS`; -1 of a tombstone, and of any other word.
        recorded_ms: NO_TIME where it is not known; `last_update_ms` as well.
        last_update_ms: of each record.
        first: where each id begins.
    """

    state: Array
    recorded_ms: Array
    last_update_ms: Array
    first: Array

    @classmethod
    def of(cls, states: pa.Array, recorded_ms: pa.Array, last_update_ms: pa.Array, first: Array) -> RecordSequence:
        """From columns of records in order."""
        state = numbers(pc.index_in(states, _WORDS), -1)
        return cls(state, numbers(recorded_ms, NO_TIME), numbers(last_update_ms, NO_TIME), first)

    def begins_an_id(self, producer_id: Array, previous: Array, producer_epoch: Array) -> Array:
        """As `StateRecord.is_of_a_new_id`, by the producer ids and epochs of the records; -1 is none."""
        has_no_other = (previous == ABSENT) | (previous == producer_id)
        begins: Array = (self.state == _EMPTY) & (producer_epoch == 0) & has_no_other
        return begins

    @property
    def is_prepared(self) -> Array:
        """A decision, whose markers are written next."""
        return (self.state >= _PREPARED) & (self.state < _COMPLETED)

    @property
    def is_completed(self) -> Array:
        """Every marker of a decision was written."""
        is_completed: Array = self.state >= _COMPLETED
        return is_completed

    @property
    def is_of_commit(self) -> Array:
        """PrepareCommit and CompleteCommit."""
        is_of_commit: Array = (self.state == _PREPARED) | (self.state == _COMPLETED)
        return is_of_commit

    @property
    def moment_ms(self) -> Array:
        """As `StateRecord.moment_ms`."""
        return np.maximum(self.recorded_ms, self.last_update_ms)

    @property
    def stop(self) -> Array:
        """Of each record the place behind the last one of its id."""
        ends = np.append(self.first[1:], len(self.state))[: len(self.first)]
        return np.repeat(ends, ends - self.first)

    @property
    def start(self) -> Array:
        """Of each record the place of the first one of its id."""
        return np.repeat(self.first, np.diff(np.append(self.first, len(self.state))))

    @property
    def completes(self) -> Array:
        """The record completes the decision that is the one before it."""
        completes = np.zeros(len(self.state), bool)
        completes[1:] = self.is_completed[1:] & (self.state[:-1] == self.state[1:] - FROM_PREPARED)
        completes[self.first] = False
        return completes

    @property
    def written_by_ms(self) -> Array:
        """Of each record the latest moment at which it can have been written; UNBOUNDED_MS where nothing tells.

        A dump prints when its batch was appended. A console export does not, and the value of a Complete record carries
        the time of the decision: such a record was written at some time before the id's next one.
        """
        count, moment_ms = len(self.state), self.moment_ms
        tells = ((self.recorded_ms != NO_TIME) | ~self.is_completed) & (moment_ms != NO_TIME)
        telling = np.where(tells, np.arange(count), count)
        next_one = np.minimum.accumulate(telling[::-1])[::-1]
        is_there = next_one < self.stop
        return np.where(is_there, moment_ms[np.where(is_there, next_one, 0)] if count else 0, UNBOUNDED_MS)
