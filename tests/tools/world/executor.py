"""Somebody who carries out a plan at any moment of its window, and honours exactly what it says.

Meanwhile producers go on. What the marker destroys is what the world knows to be acknowledged, or to be in progress;
a fence destroys what is in progress when it is typed, at the copy or at any later moment.
"""

import random
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tests.tools.world.evidence import is_acknowledged, is_live
from tests.tools.world.ids import letter_of
from tests.tools.world.model import ONGOING, Batch, Log, Step, World
from tests.tools.world.steps import after
from txn_analysis.plan.script import fence_with_kafkas_tool
from txn_analysis.tables import AbortRecord

COMMITS, ABORTS, IS_GONE = "commit", "abort", "nobody"
OWNERS = (COMMITS, ABORTS, IS_GONE)
"""What the owner of an id does with what is in progress, once it is asked to end it."""


def destroyed_by(world: World, plan: Iterable[AbortRecord]) -> list[AbortRecord]:
    """The records of a plan that, carried out now, would abort acknowledged data or a transaction in progress."""
    return [record for record in plan if is_due(world, record) and _destroys(world, record)]


def is_due(world: World, record: AbortRecord) -> bool:
    """Whether its abort may be sent now."""
    return record.not_before_ms <= world.now_ms <= record.not_after_ms


def _destroys(world: World, record: AbortRecord) -> bool:
    log = world.logs[record.partition]
    if record.must_end_producer:
        if not record.is_sendable_by_epochs:
            return False  # the script has no command for it
        world = _fenced(_ended_by_its_owner(world, record, COMMITS), record)
        log = world.logs[record.partition]
        if not _is_ended(world, record):
            return False  # a fresh `describe` says so, and the executor stops
    data = log.open_data(record.producer_id)
    if not data or not _is_what_was_copied(log, data, record):
        return False  # a fresh `describe-producers` says so
    return any(is_acknowledged(world, record.partition, b) or is_live(world, record.partition, b) for b in data)


def _is_what_was_copied(log: Log, data: Sequence[Batch], record: AbortRecord) -> bool:
    is_same = (data[0].offset, log.epoch_of(record.producer_id)) == (record.txn_start_offset, record.producer_epoch)
    return is_same and (record.last_timestamp_ms is None or data[-1].client_ms <= record.last_timestamp_ms)


@dataclass
class Fences:
    """What became of fences that were typed as printed, at the copy and later, and of the hangs behind them.

    Attributes:
        unknown: of how many records nobody knows the id.
        ids: of how many the producer must be fenced.
        two_phase: of how many of these nothing ever times out.
        typed: fences.
        refused: by their look at what is in progress.
        ended: of those that were not, how many ended something in progress.
        ended_unasked: how many would have without their look.
        owner_gone: fences that ended something, as nobody was there who could have committed it.
        repaired: hangs that were ended by abort, or with what their id had in progress.
        repaired_unasked: the same by fences that do not look.
    """

    unknown: int = 0
    ids: int = 0
    two_phase: int = 0
    typed: int = 0
    refused: int = 0
    ended: int = 0
    ended_unasked: int = 0
    owner_gone: int = 0
    repaired: int = 0
    repaired_unasked: int = 0

    def type_all(self, world: World, plan: Iterable[AbortRecord]) -> None:
        """The fences of a plan are typed now, each by itself."""
        for record in plan:
            if record.must_end_producer:
                is_going_on = _goes_on(world, record)
                self.typed += 1
                self.refused += not is_going_on
                self.ended += is_going_on and _is_in_progress(world, record)
                self.ended_unasked += _is_in_progress(world, record)

    def repair(self, world: World, record: AbortRecord, source: random.Random) -> None:
        """One hang is repaired as the report says, and beside it by a fence that does not look."""
        self.unknown += record.transactional_id is None
        self.ids += record.must_end_producer
        self.two_phase += record.must_end_producer and letter_of(str(record.transactional_id)) in world.two_phase
        self.repaired_unasked += _is_repaired(_fenced(world, record, asks=False), record)
        world = _ended_by_its_owner(world, record, source.choice(OWNERS))
        if record.must_end_producer and _is_in_progress(world, record):
            self.owner_gone += 1
            world = _fenced(world, record, asks=False)
        self.repaired += _is_repaired(_fenced(world, record), record)


def is_ended_by_its_fence(world: World, record: AbortRecord, line: str | None = None) -> bool:
    """The fence that is printed for a record, typed now, aborts what its owner may still commit.

    Args:
        world: as it is now.
        record: of a plan.
        line: another one than the program prints.
    """
    return _is_in_progress(world, record) and _goes_on(world, record, line)


def _is_in_progress(world: World, record: AbortRecord) -> bool:
    row = None if record.transactional_id is None else world.last(letter_of(record.transactional_id))
    return row is not None and row.state == ONGOING


def _goes_on(world: World, record: AbortRecord, line: str | None = None) -> bool:
    """What `describe` says now lets the line go on to its fence."""
    name = str(record.transactional_id)
    row = world.last(letter_of(name))
    guard = re.search("exit !/(.*)/ }", line or fence_with_kafkas_tool(name).line)
    if guard is None:
        return True
    if row is None or row.state is None:
        return False  # TransactionalIdNotFound
    partitions = ",".join(f"orders-{number}" for number in sorted(row.partitions))
    described = (
        f"0\t{name}\t{row.producer_id}\t{row.epoch}\t{row.state}\t{row.timeout_ms}\t{row.start_ms}\t1\t{partitions}\t"
    )
    return re.search(guard[1], described) is not None


def _ended_by_its_owner(world: World, record: AbortRecord, owner: str) -> World:
    """The application is stopped. What it had in progress its owner commits or aborts, or its timeout ends."""
    if record.transactional_id is None:
        return world
    name = letter_of(record.transactional_id)
    decided = None if owner == IS_GONE else after(world, Step(owner, name))
    return _completed(decided or after(world, Step("time_out", name)) or world, name)


def _fenced(world: World, record: AbortRecord, *, asks: bool = True) -> World:
    """The fence is typed, once or until it is done; one that asks goes on where nothing is in progress."""
    if record.transactional_id is None or not record.must_end_producer or (asks and not _goes_on(world, record)):
        return world
    name = letter_of(record.transactional_id)
    world = _completed(world, name)
    aborted = _completed(after(world, Step("fence", name)) or world, name)
    return aborted if _is_ended(aborted, record) else after(aborted, Step("fence", name)) or aborted


def _is_repaired(world: World, record: AbortRecord) -> bool:
    """The abort is sent where its checks hold, or nothing is to be done any more."""
    log = world.logs[record.partition]
    data = log.open_data(record.producer_id)
    if not data or data[0].offset != record.txn_start_offset:
        return True
    is_sendable = not record.must_end_producer or (record.is_sendable_by_epochs and _is_ended(world, record))
    return is_sendable and _is_what_was_copied(log, data, record)


def _completed(world: World, name: str) -> World:
    for step in (*(Step("marker", name, n) for n in range(len(world.logs))), Step("complete", name)):
        world = after(world, step) or world
    return world


def _is_ended(world: World, record: AbortRecord) -> bool:
    row = None if record.transactional_id is None else world.last(letter_of(record.transactional_id))
    if row is None:
        return False
    is_fenced = row.producer_id != record.producer_id or row.epoch > record.producer_epoch
    return is_fenced and record.partition not in row.partitions
