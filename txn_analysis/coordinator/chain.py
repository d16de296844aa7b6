"""How the batches of one partition of `__transaction_state` follow one another, in all copies and captures together.

What compaction took from today's copy an earlier capture may still hold: copies of the state are united, so that
nightly audits keep the evidence. Pure Python over the records of one partition.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from txn_analysis.coordinator.history import written_by_ms
from txn_analysis.kafka.transactions import COMPLETED, PREPARED_OF, begins_an_id
from txn_analysis.logic import UNBOUNDED_MS, is_before, later_of, latest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from txn_analysis.coordinator.state_records import StateRow


class StateBatch(NamedTuple):
    """One batch of a dump or folder, as far as its offsets and its leader go; by offset."""

    base_offset: int
    last_offset: int
    leader_epoch: int | None
    recorded_ms: int | None


class StateStep(NamedTuple):
    """The state, the times and the place of one record of an id: a `StateRecord` without its producer and partitions.

    `offset` and `leader_epoch` are those of its place in the log; None in an export, and where the dump has none.
    """

    transactional_id: str
    order: tuple[Any, ...]
    state: str | None
    recorded_ms: int | None
    last_update_ms: int | None
    offset: int | None
    leader_epoch: int | None
    is_of_a_new_id: bool = False

    @property
    def moment_ms(self) -> int | None:
        """As `StateRecord.moment_ms`."""
        return later_of(self.recorded_ms, self.last_update_ms)

    @property
    def is_completed(self) -> bool:
        """As `StateRecord.is_completed`."""
        return self.state in COMPLETED


class Rise(NamedTuple):
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
    `leader_epoch` is the largest. `orphan_ms` is when the newest Complete record whose Prepare is not there was written
    at the latest. `topics` are those that its transactions list, `largest_producer_id` is that of all records.
    `may_name_more`: fields of a newer Kafka in its records can hold further producer ids.
    """

    last_moment_ms: int | None = None
    last_until_as_of_ms: int | None = None
    first_moment_ms: int | None = None
    gap_end_ms: int | None = None
    export_gap_ms: int | None = None
    rises: tuple[Rise, ...] = ()
    lost_tails: tuple[Rise, ...] = ()
    leader_epoch: int | None = None
    orphan_ms: int | None = None
    topics: frozenset[str] = frozenset()
    largest_producer_id: int | None = None
    may_name_more: bool = False


NO_RECORDS = StateChain()


@dataclass
class StateRows:
    """The records of one partition of the state: of all captures, in any order; copies may repeat them.

    Attributes:
        as_of_ms: the moment of the copy, where the operator states it.
        batches: of every dump and folder.
        own: those of them that the judged capture holds.
        steps: everything that was decoded, console exports included.
        export_ms: the newest update time in console exports of the judged capture; `export_until_as_of_ms` the newest
            that is not after `as_of_ms`.
        topics: those that its transactions list.
        largest_producer_id: of all that its records name.
        undecoded: first and last offset of the batches of earlier captures that hold a record which could not be
            decoded, and that record's own: they fill no hole, unless another copy has it.
        may_name_more: fields of a newer Kafka in some of them can hold further producer ids.
    """

    as_of_ms: int | None
    batches: set[StateBatch]
    own: set[StateBatch]
    steps: set[StateStep]
    export_ms: int | None
    export_until_as_of_ms: int | None
    topics: frozenset[str]
    largest_producer_id: int | None
    undecoded: set[tuple[int, int, int | None]]
    may_name_more: bool

    @classmethod
    def of(cls, records: Sequence[tuple[StateRow, tuple[Any, ...]]], as_of_ms: int | None) -> StateRows:
        """Records, each with its place in the history of its id; `as_of_ms` as of `StateRows`.

        Records of an ingest that did not keep their batch stand for a batch each, of a leader that is not known.
        """
        rows = [row for row, _ in records]
        dumped = [row for row in rows if row.offset is not None]
        updates = [row.last_update_ms for row in rows if row.offset is None and not row.capture_rank]
        exported_ms = [ms for ms in updates if ms is not None]
        named = {producer_id for row in rows for producer_id in row.producer_ids if producer_id is not None}
        return cls(
            as_of_ms=as_of_ms,
            batches={_batch_of(row) for row in dumped},
            own={_batch_of(row) for row in dumped if not row.capture_rank},
            steps={
                StateStep(
                    row.transactional_id,
                    order,
                    row.state,
                    row.recorded_ms,
                    row.last_update_ms,
                    row.offset,
                    row.leader_epoch,
                    begins_an_id(row),
                )
                for row, order in records
                if row.transactional_id is not None and not row.is_undecodable
            },
            export_ms=max(exported_ms, default=None),
            export_until_as_of_ms=max([ms for ms in exported_ms if not is_before(as_of_ms, ms)], default=None),
            topics=frozenset(topic for row in rows for topic, _ in row.topic_partitions),
            largest_producer_id=max(named, default=None),
            undecoded={
                (base, last, row.offset)
                for row in rows
                if row.is_undecodable and row.capture_rank
                for base, last in [_reach_of(row)]
                if base is not None and last is not None
            },
            may_name_more=any(row.may_name_more for row in rows),
        )

    def _filling(self) -> set[StateBatch]:
        """The batches that show what was recorded, or that the judged capture holds."""
        decoded = {step.offset for step in self.steps} if self.undecoded else set()
        lost = {(base, last) for base, last, offset in self.undecoded if offset is None or offset not in decoded}
        return {b for b in self.batches if b in self.own or (b.base_offset, b.last_offset) not in lost}

    def chain(self) -> StateChain:
        """What they say of themselves."""
        ordered = sorted(self._filling() if self.undecoded else self.batches, key=_by_offset)
        until_as_of = (batch for batch in self.own if not is_before(self.as_of_ms, batch.recorded_ms))
        tails = _Tails.of(ordered)
        first_ms = min([b.recorded_ms for b in ordered if b.recorded_ms is not None], default=None)
        return StateChain(
            last_moment_ms=later_of(_last_recorded_ms(self.own), self.export_ms),
            last_until_as_of_ms=later_of(_last_recorded_ms(until_as_of), self.export_until_as_of_ms),
            first_moment_ms=first_ms if first_ms is not None else _first_exported_ms(self.steps),
            gap_end_ms=_gap_end_ms(ordered),
            export_gap_ms=_export_gap_ms(self.steps),
            rises=tuple(_rises(ordered)),
            lost_tails=tuple(_lost_tails([b for b in ordered if not tails.holds(b.leader_epoch, b.base_offset)])),
            leader_epoch=latest(*[b.leader_epoch for b in ordered]),
            orphan_ms=_orphan_ms(self.steps, tails),
            topics=self.topics,
            largest_producer_id=self.largest_producer_id,
            may_name_more=self.may_name_more,
        )


def _reach_of(row: StateRow) -> tuple[int | None, int | None]:
    """The first and the last offset of its batch; its own where the batch is not known."""
    base, last = row.batch_base_offset, row.batch_last_offset
    return (row.offset, row.offset) if base is None or last is None else (base, last)


def _batch_of(row: StateRow) -> StateBatch:
    base, last = _reach_of(row)
    assert base is not None
    assert last is not None
    return StateBatch(base, last, row.leader_epoch, row.recorded_ms)


def _last_recorded_ms(batches: Iterable[StateBatch]) -> int | None:
    newest = max(batches, key=lambda b: (b.last_offset, b.recorded_ms or 0), default=None)
    return None if newest is None else newest.recorded_ms


def _first_exported_ms(steps: Iterable[StateStep]) -> int | None:
    return min((step.last_update_ms for step in steps if step.last_update_ms is not None), default=None)


def _by_offset(batch: StateBatch) -> tuple[int, int, int, int]:
    return batch.base_offset, batch.last_offset, batch.leader_epoch or 0, batch.recorded_ms or 0


def _gap_end_ms(ordered: Sequence[StateBatch]) -> int | None:
    covered, found = 0, None
    for batch in ordered:
        if batch.base_offset > covered:
            found = latest(found, UNBOUNDED_MS if batch.recorded_ms is None else batch.recorded_ms)
        covered = max(covered, batch.last_offset + 1)
    return found


def _export_gap_ms(steps: Iterable[StateStep]) -> int | None:
    """When the first record of an exported id was written at the latest, of the id that begins last."""
    first_ms = [
        written_by_ms(own)[0] for own in _histories(s for s in steps if s.offset is None) if not own[0].is_of_a_new_id
    ]
    return max(first_ms, default=None)


def _rises(ordered: Sequence[StateBatch]) -> Iterable[Rise]:
    """Where the leader changed; around batches that do not say whose they are, it may have."""
    known = [batch for batch in ordered if batch.leader_epoch is not None]
    if not known:
        return [Rise(None, None)] if len(ordered) > 1 else []
    found = [] if ordered[0] is known[0] or known[0].leader_epoch == 0 else [Rise(None, known[0].recorded_ms)]
    found += [Rise(a.recorded_ms, b.recorded_ms) for a, b in pairwise(known) if a.leader_epoch != b.leader_epoch]
    return found if ordered[-1] is known[-1] else [*found, Rise(known[-1].recorded_ms, None)]


def _lost_tails(log: Sequence[StateBatch]) -> Iterable[Rise]:
    """Where an old leader's end can have been lost, of batches that no later leader cut off.

    Where the log has a hole at the change, compaction took what was last written there: nobody knows where the old
    leader ended, and a lost end is no excuse. Batches that do not say whose they are excuse as in `_rises`.
    """
    if any(batch.leader_epoch is None for batch in log):
        return _rises(log)
    return [
        Rise(a.recorded_ms, b.recorded_ms)
        for a, b in pairwise(log)
        if a.leader_epoch != b.leader_epoch and b.base_offset <= a.last_offset + 1
    ]


class _Tails(NamedTuple):
    """What dead leaders' copies hold behind the place from which a later leader wrote the log.

    `cuts` are these places, by the leader epoch that was cut off there; `holes` are ranges of offsets that the rest of
    the log lacks.
    """

    cuts: Mapping[int, int]
    holes: Sequence[tuple[int, int]]

    @classmethod
    def of(cls, ordered: Sequence[StateBatch]) -> _Tails:
        """Of all batches of one partition, by offset."""
        first: dict[int, int] = {}
        for batch in ordered:
            if batch.leader_epoch is not None:
                first.setdefault(batch.leader_epoch, batch.base_offset)
        cuts, cut = {}, None
        for epoch in sorted(first, reverse=True):
            if cut is not None:
                cuts[epoch] = cut
            cut = first[epoch] if cut is None else min(cut, first[epoch])
        return cls(cuts, _holes(b for b in ordered if not _is_behind(cuts, b.leader_epoch, b.base_offset)))

    def holds(self, leader_epoch: int | None, offset: int | None) -> bool:
        """What an old leader wrote at this offset was cut off."""
        return _is_behind(self.cuts, leader_epoch, offset)

    def may_hide(self, first: StateStep, last: StateStep) -> bool:
        """The log itself may have had records between these two."""
        if first.offset is None or last.offset is None:
            return True
        return any(start < last.offset and end > first.offset for start, end in self.holes)


def _is_behind(cuts: Mapping[int, int], leader_epoch: int | None, offset: int | None) -> bool:
    cut = None if leader_epoch is None else cuts.get(leader_epoch)
    return cut is not None and offset is not None and offset >= cut


def _holes(ordered: Iterable[StateBatch]) -> list[tuple[int, int]]:
    covered, found = 0, []
    for batch in ordered:
        if batch.base_offset > covered:
            found.append((covered, batch.base_offset))
        covered = max(covered, batch.last_offset + 1)
    return found


def _orphan_ms(steps: Iterable[StateStep], tails: _Tails) -> int | None:
    """When the newest Complete record was written whose Prepare is not there, as where a producer id rotated away."""
    found = None
    for history in _histories(steps):
        orphans = list(_orphans(history, tails))
        if orphans:
            written_ms = written_by_ms(history)
            found = latest(found, *(written_ms[n] for n in orphans))
    return found


def _histories(steps: Iterable[StateStep]) -> Iterator[list[StateStep]]:
    """The records of each id, in order."""
    found: defaultdict[str, list[StateStep]] = defaultdict(list)
    for step in steps:
        found[step.transactional_id].append(step)
    for history in found.values():
        yield sorted(history, key=_by_order)


def _orphans(history: Sequence[StateStep], tails: _Tails) -> Iterator[int]:
    """The Complete records that follow no Prepare of their kind.

    A coordinator that takes over completes a decision which the dead one may have completed as well: what was cut off
    is passed over, unless another decision could have been between.
    """
    before, is_behind_tail = None, False
    for number, step in enumerate(history):
        if step.state in COMPLETED and (
            before is None
            or before.state != PREPARED_OF[step.state]
            or (is_behind_tail and tails.may_hide(before, step))
        ):
            yield number
        if tails.holds(step.leader_epoch, step.offset):
            is_behind_tail = True
        else:
            before, is_behind_tail = step, False


def _by_order(step: StateStep) -> tuple[Any, ...]:
    return step.order, step.state or "", step.moment_ms or 0
