"""Somebody who carries out a plan at any moment of its window, and honours exactly what it says.

Meanwhile producers go on. What the marker destroys is what the world knows to be acknowledged, or to be in progress.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tests.world.evidence import is_acknowledged, is_live
from tests.world.model import ONGOING, Step
from tests.world.steps import after
from txn_analysis.plan.script import fence_with_kafkas_tool

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tests.world.model import Batch, Log, World
    from txn_analysis.tables import AbortRecord


def destroyed_by(world: World, plan: Iterable[AbortRecord]) -> list[AbortRecord]:
    """The records of a plan that, carried out now, would abort acknowledged data or a transaction in progress."""
    return [record for record in plan if _is_due(world, record) and _destroys(world, record)]


def _is_due(world: World, record: AbortRecord) -> bool:
    return record.not_before_ms <= world.now_ms <= record.not_after_ms


def _destroys(world: World, record: AbortRecord) -> bool:
    log = world.logs[record.partition]
    if record.must_end_producer:
        if not record.is_sendable_by_epochs:
            return False  # the script has no command for it
        if is_ended_by_its_fence(world, record):
            return True
        world = _with_producer_ended(world, record)
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


def is_ended_by_its_fence(world: World, record: AbortRecord, line: str | None = None) -> bool:
    """The fence that is printed for a record, typed now, aborts what its owner may still commit.

    Args:
        world: as it is now.
        record: of a plan.
        line: another one than the program prints.
    """
    name = record.transactional_id
    row = None if name is None else world.last(name)
    if name is None or row is None or row.state != ONGOING:
        return False
    guard = re.search("exit !/(.*)/ }", line or fence_with_kafkas_tool(name).line)
    partitions = ",".join(f"orders-{number}" for number in sorted(row.partitions))
    described = (
        f"0\t{name}\t{row.producer_id}\t{row.epoch}\t{row.state}\t{row.timeout_ms}\t{row.start_ms}\t1\t{partitions}\t"
    )
    return guard is None or re.search(guard[1], described) is not None


def _with_producer_ended(world: World, record: AbortRecord) -> World:
    """The application is stopped. What it had in progress its owner commits, or its timeout ends; then it is fenced."""
    name = record.transactional_id
    if name is None:
        return world
    decided = after(world, Step("commit", name)) or after(world, Step("time_out", name)) or world
    decided = _completed(decided, name)
    return _completed(after(decided, Step("fence", name)) or decided, name)


def _completed(world: World, name: str) -> World:
    for step in (*(Step("marker", name, n) for n in range(len(world.logs))), Step("complete", name)):
        world = after(world, step) or world
    return world


def _is_ended(world: World, record: AbortRecord) -> bool:
    row = None if record.transactional_id is None else world.last(record.transactional_id)
    if row is None:
        return False
    is_fenced = row.producer_id != record.producer_id or row.epoch > record.producer_epoch
    return is_fenced and record.partition not in row.partitions
