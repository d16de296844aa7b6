"""How the batches of one partition of `__transaction_state` follow one another, in all copies and captures together.

What compaction took from today's copy an earlier capture may still hold: copies of the state are united, so that
nightly audits keep the evidence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.columns.arrays import ABSENT, Array, codes_of, known, numbers
from txn_analysis.coordinator.state_columns import FROM_PREPARED, NO_TIME, RecordSequence, in_order, is_other
from txn_analysis.kafka.transactions import NAMED
from txn_analysis.logic import UNBOUNDED_MS, later_of

_COMPARED = ("state", "recorded_ms", "last_update_ms", "offset", "leader_epoch")


class LeaderEpochChange(NamedTuple):
    """The leader epoch rises between two batches of these moments: what the old leader had may have been cut off."""

    after_ms: int | None
    by_ms: int | None

    def may_touch(self, first_ms: int | None, last_ms: int | None, max_clock_skew_ms: int) -> bool:
        """The rise may have happened between two moments, as far as clocks may differ; None is no bound."""
        is_late_enough = first_ms is None or self.by_ms is None or self.by_ms + max_clock_skew_ms >= first_ms
        is_early_enough = last_ms is None or self.after_ms is None or self.after_ms - max_clock_skew_ms <= last_ms
        return is_late_enough and is_early_enough


class StateChain(NamedTuple):
    """What the records of one partition of the state say of themselves; moments in epoch milliseconds.

    `last_moment_ms` is that of the judged capture's batch with the highest offset, `last_until_as_of_ms` the same of
    those batches that are not later than the stated `as_of_ms`, `first_moment_ms` the earliest of all captures.
    `gap_end_ms` is the moment behind the newest hole that nothing fills; None without one. `export_gap_ms` is the same
    where exports alone speak: what came before the first record of an id is not in them. `rises` are all changes of
    the leader, `lost_tails` those at which records of the old leader can be lost, as no hole touches them.
    `leader_epoch` is the largest. `lone_complete_ms` is when the newest Complete record whose Prepare is not there was
    written at the latest. `topics` are those that its transactions list, `largest_producer_id` is that of all records.
    `may_name_more`: fields of a newer Kafka in its records can hold further producer ids.
    """

    last_moment_ms: int | None = None
    last_until_as_of_ms: int | None = None
    first_moment_ms: int | None = None
    gap_end_ms: int | None = None
    export_gap_ms: int | None = None
    rises: tuple[LeaderEpochChange, ...] = ()
    lost_tails: tuple[LeaderEpochChange, ...] = ()
    leader_epoch: int | None = None
    lone_complete_ms: int | None = None
    topics: frozenset[str] = frozenset()
    largest_producer_id: int | None = None
    may_name_more: bool = False


NO_RECORDS = StateChain()


def chains_of(
    states: pa.Table, audit: Array, dumped_rank: Array, as_of_ms: Mapping[int, int | None]
) -> dict[int, dict[int, StateChain]]:
    """By audit, and by partition of the state, what its records say of themselves.

    Args:
        states: rows of `STATES`, all of each partition: of all captures, in any order; copies may repeat them.
        audit: of each row the number of its audit.
        dumped_rank: of each row, see `Placing.dumped_rank`.
        as_of_ms: by audit the moment of the copy, where the operator states it.
    """
    records = _Records.of(states)
    held_by = records.held_by
    partition = np.where(held_by == ABSENT, ABSENT, audit * (held_by.max(initial=0) + 1) + held_by)
    ids = codes_of(states["transactional_id"])
    group = np.where((partition == ABSENT) | (ids == ABSENT), ABSENT, partition * (ids.max(initial=0) + 1) + ids)
    steps = in_order(states, group, dumped_rank, _COMPARED)
    rows = np.argsort(partition, kind="stable")
    rows = rows[partition[rows] != ABSENT]
    topics = _topics(states, partition)
    chains: dict[int, dict[int, StateChain]] = {}
    for of_partition in np.split(rows, np.flatnonzero(np.diff(partition[rows])) + 1) if len(rows) else []:
        number = int(partition[of_partition[0]])
        first, stop = np.searchsorted(partition[steps.row], [number, number + 1])
        begins = steps.first[np.searchsorted(steps.first, first) : np.searchsorted(steps.first, stop)] - first
        of_audit = int(audit[of_partition[0]])
        chain = _chain(records, of_partition, records.steps(steps.row[first:stop], begins), as_of_ms[of_audit])
        named = frozenset(topics.get(number, ()))
        chains.setdefault(of_audit, {})[int(held_by[of_partition[0]])] = chain._replace(topics=named)
    return chains


def _topics(states: pa.Table, partition: Array) -> dict[int, list[str]]:
    """By partition of the state the topics that its transactions list."""
    listed = pa.chunked_array(states["topic_partitions"])
    topics, of = pc.struct_field(pc.list_flatten(listed), "topic"), pc.list_parent_indices(listed)
    named = pa.table([pa.array(partition[of.to_numpy()]), topics], ["partition", "topic"])
    topics_of: dict[int, list[str]] = {}
    for each in named.group_by(["partition", "topic"]).aggregate([]).to_pylist():
        topics_of.setdefault(each["partition"], []).append(each["topic"])
    return topics_of


class _Records(NamedTuple):
    """Some columns of all records; ABSENT and NO_TIME are NULL. `producer_id` is the largest that one names."""

    held_by: Array
    capture_rank: Array
    offset: Array
    base_offset: Array
    last_offset: Array
    leader_epoch: Array
    recorded_ms: Array
    last_update_ms: Array
    is_undecodable: Array
    may_name_more: Array
    producer_id: Array
    begins_an_id: Array
    followed: RecordSequence

    @classmethod
    def of(cls, states: pa.Table) -> _Records:
        """Of rows of `STATES`. Records of an ingest that did not keep their batch stand for a batch each."""
        places = ("offset", "batch_base_offset", "batch_last_offset")
        offset, base, last = (numbers(states[name], ABSENT) for name in places)
        is_known = (base != ABSENT) & (last != ABSENT)
        names = {name: numbers(states[name], ABSENT) for name in (*NAMED, "producer_epoch")}
        none = np.zeros(0, np.int64)  # they are in no order
        followed = RecordSequence.of(states["state"], states["recorded_ms"], states["last_update_ms"], none)
        return cls(
            held_by=numbers(states["held_by"], ABSENT),
            capture_rank=numbers(states["capture_rank"], 0),
            offset=offset,
            base_offset=np.where(is_known, base, offset),
            last_offset=np.where(is_known, last, offset),
            leader_epoch=numbers(states["leader_epoch"], ABSENT),
            recorded_ms=followed.recorded_ms,
            last_update_ms=followed.last_update_ms,
            is_undecodable=states["is_undecodable"].to_numpy().astype(bool),
            may_name_more=pc.fill_null(states["may_name_more"], False).to_numpy().astype(bool),
            producer_id=np.maximum.reduce([names[name] for name in NAMED]),
            begins_an_id=followed.begins_an_id(
                names["producer_id"], names["previous_producer_id"], names["producer_epoch"]
            ),
            followed=followed,
        )

    def steps(self, row: Array, first: Array) -> _Steps:
        """The records at some rows, which are in order; `first` is where each id begins."""
        state, recorded_ms, last_update_ms, _ = self.followed
        sequence = RecordSequence(state[row], recorded_ms[row], last_update_ms[row], first)
        return _Steps(sequence, self.offset[row], self.leader_epoch[row], self.begins_an_id[row])


class _Steps(NamedTuple):
    """The records of the ids of one partition, in order, and the places of these in its log."""

    followed: RecordSequence
    offset: Array
    leader_epoch: Array
    begins_an_id: Array


class _Batches(NamedTuple):
    """Batches of dumps and folders of one partition by offset, each once. `is_own`: the judged capture holds it."""

    base_offset: Array
    last_offset: Array
    leader_epoch: Array
    recorded_ms: Array
    is_own: Array

    @classmethod
    def of(cls, records: _Records, rows: Array) -> _Batches:
        """The batches of some records."""
        names = ("base_offset", "last_offset", "leader_epoch", "recorded_ms")
        dumped = rows[records.offset[rows] != ABSENT]
        columns = [getattr(records, name)[dumped] for name in names]
        order = np.lexsort(columns[::-1])
        first = np.flatnonzero(is_other(order, columns))
        is_own = records.capture_rank[dumped][order] == 0
        base, last, epoch, recorded_ms = (column[order[first]] for column in columns)
        return cls(base, last, epoch, recorded_ms, np.logical_or.reduceat(is_own, first) if len(first) else is_own)

    def where(self, are_these: Array) -> _Batches:
        """Some of them."""
        return _Batches(*(column[are_these] for column in self))

    def recorded(self, row: int) -> int | None:
        """When one was appended."""
        return known(int(self.recorded_ms[row]), NO_TIME)


def _largest(values: Array, of_none: int) -> int | None:
    """The largest of those that are known."""
    return known(int(values.max(initial=of_none)), of_none)


def _chain(records: _Records, rows: Array, steps: _Steps, as_of_ms: int | None) -> StateChain:
    """What the records of one partition say of themselves; topics are said elsewhere."""
    every = _Batches.of(records, rows)
    batches = every.where(_are_filling(records, rows, every, steps))
    tails = _TruncatedTails.of(batches)
    exported = rows[(records.offset[rows] == ABSENT) & (records.capture_rank[rows] == 0)]
    updates_ms = records.last_update_ms[exported]
    of_kind = every.where(every.is_own)
    is_until = np.ones(len(of_kind.recorded_ms), bool) if as_of_ms is None else of_kind.recorded_ms <= as_of_ms
    until_ms = updates_ms if as_of_ms is None else updates_ms[updates_ms <= as_of_ms]
    return StateChain(
        last_moment_ms=later_of(_last_recorded_ms(of_kind), _largest(updates_ms, NO_TIME)),
        last_until_as_of_ms=later_of(_last_recorded_ms(of_kind.where(is_until)), _largest(until_ms, NO_TIME)),
        first_moment_ms=_first_ms(batches.recorded_ms, steps.followed.last_update_ms),
        gap_end_ms=_gap_end_ms(batches),
        export_gap_ms=_export_gap_ms(steps),
        rises=tuple(_rises(batches)),
        lost_tails=tuple(_lost_tails(batches.where(~tails.contain(batches.leader_epoch, batches.base_offset)))),
        leader_epoch=_largest(batches.leader_epoch, ABSENT),
        lone_complete_ms=_lone_complete_ms(steps, tails),
        largest_producer_id=_largest(records.producer_id[rows], ABSENT),
        may_name_more=bool(records.may_name_more[rows].any()),
    )


def _are_filling(records: _Records, rows: Array, batches: _Batches, steps: _Steps) -> Array:
    """The batches that show what was recorded, or that the judged capture holds.

    Those of earlier captures with a record that could not be decoded fill no hole, unless another copy has it.
    """
    lost = rows[records.is_undecodable[rows] & (records.capture_rank[rows] > 0)]
    if not len(lost):
        return np.ones(len(batches.is_own), bool)
    lost = lost[(records.base_offset[lost] != ABSENT) & ~np.isin(records.offset[lost], steps.offset)]
    places = {*zip(records.base_offset[lost].tolist(), records.last_offset[lost].tolist(), strict=True)}
    is_filling = np.ones(len(batches.is_own), bool)
    for base_offset, last_offset in places:
        is_filling &= (batches.base_offset != base_offset) | (batches.last_offset != last_offset) | batches.is_own
    return is_filling


def _last_recorded_ms(batches: _Batches) -> int | None:
    if not len(batches.last_offset):
        return None
    return batches.recorded(int(np.lexsort((batches.recorded_ms, batches.last_offset))[-1]))


def _first_ms(*kinds: Array) -> int | None:
    """The first moment of the first kind of which one is known."""
    known = (moments_ms[moments_ms != NO_TIME] for moments_ms in kinds)
    return next((int(moments_ms.min()) for moments_ms in known if len(moments_ms)), None)


def _holes(batches: _Batches) -> tuple[Array, Array]:
    """The batches before which offsets are missing, and from which offset on."""
    covered = np.append(0, np.maximum.accumulate(batches.last_offset + 1))[: len(batches.last_offset)]
    behind = np.flatnonzero(batches.base_offset > covered)
    return behind, covered[behind]


def _gap_end_ms(batches: _Batches) -> int | None:
    """The moment behind the newest hole; one of which nothing says when it ends may be the newest."""
    behind, _ = _holes(batches)
    ends_ms = batches.recorded_ms[behind]
    return _largest(np.where(ends_ms == NO_TIME, UNBOUNDED_MS, ends_ms), NO_TIME)


def _export_gap_ms(steps: _Steps) -> int | None:
    """When the first record of an exported id was written at the latest, of the id that begins last."""
    exported = np.flatnonzero(steps.offset == ABSENT)
    state, recorded_ms, last_update_ms, first = steps.followed
    begins = steps.followed.start[exported]
    first = np.flatnonzero(np.diff(begins, prepend=-1))
    sequence = RecordSequence(state[exported], recorded_ms[exported], last_update_ms[exported], first)
    return _largest(sequence.written_by_ms[first][~steps.begins_an_id[exported[first]]], NO_TIME)


def _rises(batches: _Batches) -> Iterator[LeaderEpochChange]:
    """Where the leader changed; around batches that do not say whose they are, it may have."""
    epoch = batches.leader_epoch
    known = np.flatnonzero(epoch != ABSENT)
    if not len(known):
        if len(epoch) > 1:
            yield LeaderEpochChange(None, None)
        return
    if known[0] and epoch[known[0]]:
        yield LeaderEpochChange(None, batches.recorded(known[0]))
    for place in np.flatnonzero(np.diff(epoch[known])).tolist():
        yield LeaderEpochChange(batches.recorded(known[place]), batches.recorded(known[place + 1]))
    if known[-1] != len(epoch) - 1:
        yield LeaderEpochChange(batches.recorded(known[-1]), None)


def _lost_tails(log: _Batches) -> Iterator[LeaderEpochChange]:
    """Where an old leader's end can have been lost, of batches that no later leader cut off.

    Where the log has a hole at the change, compaction took what was last written there: nobody knows where the old
    leader ended, and a lost end is no excuse. Batches that do not say whose they are excuse as in `_rises`.
    """
    if (log.leader_epoch == ABSENT).any():
        yield from _rises(log)
        return
    is_next = log.base_offset[1:] <= log.last_offset[:-1] + 1
    for place in np.flatnonzero(is_next & (np.diff(log.leader_epoch) != 0)).tolist():
        yield LeaderEpochChange(log.recorded(place), log.recorded(place + 1))


class _TruncatedTails(NamedTuple):
    """What dead leaders' copies hold behind the place from which a later leader wrote the log.

    `cuts` are these places, by the leader epoch that was cut off there, in `epochs`. The rest of the log lacks the
    offsets from each of `starts` to the one before each of `ends`.
    """

    epochs: Array
    cuts: Array
    starts: Array
    ends: Array

    @classmethod
    def of(cls, batches: _Batches) -> _TruncatedTails:
        """Of all batches of one partition, by offset."""
        known = np.flatnonzero(batches.leader_epoch != ABSENT)
        epochs, first = np.unique(batches.leader_epoch[known], return_index=True)
        # An epoch is cut off where the earliest of the later ones begins.
        later = np.minimum.accumulate(batches.base_offset[known][first][::-1])[::-1]
        none = np.zeros(0, np.int64)
        tails = cls(epochs[:-1], later[1:], none, none)
        log = batches.where(~tails.contain(batches.leader_epoch, batches.base_offset))
        behind, starts = _holes(log)
        return tails._replace(starts=starts, ends=log.base_offset[behind])

    def contain(self, leader_epoch: Array, offset: Array) -> Array:
        """What an old leader wrote at these offsets was cut off."""
        if not len(self.epochs):
            return np.zeros(len(offset), bool)
        place = np.minimum(np.searchsorted(self.epochs, leader_epoch), len(self.epochs) - 1)
        is_old = (self.epochs[place] == leader_epoch) & (offset != ABSENT)
        hold: Array = is_old & (offset >= self.cuts[place])
        return hold

    def may_lack(self, first: Array, last: Array) -> Array:
        """The log itself may have had records between two offsets."""
        may_lack: Array = (first == ABSENT) | (last == ABSENT)
        if len(self.ends):
            place = np.searchsorted(self.ends, first, "right")
            is_hole = place < len(self.ends)
            may_lack |= is_hole & (self.starts[np.where(is_hole, place, 0)] < last)
        return may_lack


def _lone_complete_ms(steps: _Steps, tails: _TruncatedTails) -> int | None:
    """When the newest Complete record was written whose Prepare is not there, as where a producer id rotated away.

    A coordinator that takes over completes a decision which the dead one may have completed as well: what was cut off
    is passed over, unless another decision could have been between.
    """
    sequence, place = steps.followed, np.arange(len(steps.offset))
    is_kept = ~tails.contain(steps.leader_epoch, steps.offset)
    before = np.append(-1, np.maximum.accumulate(np.where(is_kept, place, -1)))[: len(place)]
    has_one = before >= sequence.start
    before = np.where(has_one, before, 0)
    is_completing = has_one & (sequence.state[before] == sequence.state - FROM_PREPARED)
    is_behind_tail = (place > sequence.start) & (before != place - 1)
    is_completing &= ~(is_behind_tail & tails.may_lack(steps.offset[before], steps.offset))
    return _largest(sequence.written_by_ms[sequence.is_completed & ~is_completing], NO_TIME)
