"""Somebody who carries out a plan at any moment of its window, and honours exactly what it says.

Meanwhile producers go on. What the marker destroys is what the world knows to be acknowledged, or to be in progress.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.world.evidence import is_acknowledged, is_live
from tests.world.model import Step
from tests.world.steps import after

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.world.model import World
    from txn_analysis.advise.abort_plan import AbortRecord


def destroyed_by(world: World, plan: Iterable[AbortRecord]) -> list[AbortRecord]:
    """The records of a plan that, carried out now, would abort acknowledged data or a transaction in progress."""
    return [record for record in plan if _is_due(world, record) and _destroys(world, record)]


def _is_due(world: World, record: AbortRecord) -> bool:
    return record.not_before_ms <= world.now_ms <= record.not_after_ms


def _destroys(world: World, record: AbortRecord) -> bool:
    if record.producer_is_live:
        world = _with_producer_ended(world, record)
        if _lists(world, record):
            return False  # a fresh `describe` still lists the partition: the executor stops
    data = world.logs[record.partition].open_data(record.producer_id)
    if not data or not _is_start(data[0].offset, record):
        return False  # `abort --start-offset` finds no such transaction
    return any(is_acknowledged(world, record.partition, b) or is_live(world, record.partition, b) for b in data)


def _is_start(offset: int, record: AbortRecord) -> bool:
    return offset == record.txn_start_offset if record.is_txn_start_exact else offset <= record.txn_start_offset


def _with_producer_ended(world: World, record: AbortRecord) -> World:
    """The application is stopped and its id fenced; the coordinator aborts what it had in progress."""
    name = record.transactional_id
    if name is None:
        return world
    for step in (
        Step("fence", name),
        *(Step("marker", name, n) for n in range(len(world.logs))),
        Step("complete", name),
    ):
        world = after(world, step) or world
    return world


def _lists(world: World, record: AbortRecord) -> bool:
    row = None if record.transactional_id is None else world.last(record.transactional_id)
    return row is not None and record.partition in row.partitions and row.producer_id == record.producer_id
