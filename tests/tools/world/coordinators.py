"""What clients and their coordinators do: each step takes a world and gives the one that follows, or None.

The rules are those of `TransactionCoordinator` and `ProducerStateManager`: a coordinator's memory is the last record of
each id; data and markers are refused below the epoch that a partition has seen.
"""

from dataclasses import replace
from typing import Any

from tests.tools.world.model import (
    EMPTY,
    EPOCHS_MS,
    LAST_EPOCH,
    NOBODYS,
    ONGOING,
    Batch,
    StateRow,
    Step,
    Transaction,
    World,
    changed,
)

NEVER_GIVEN_ID = 800_000
EXPIRES_MS = 8 * 86_400_000
TIMEOUT_MS, NEVER_MS = 60_000, 2**31 - 1


def begin(world: World, step: Step) -> World | None:
    """AddPartitionsToTxn: the first one of an id also gets it its producer id (InitProducerId)."""
    world = _known(world, step.name)
    row = world.last(step.name)
    client = dict(world.clients)[step.name]
    if row is None or row.state is None or row.is_deciding or (row.producer_id, row.epoch) != client:
        return None
    if step.partition in row.partitions or row.epoch > LAST_EPOCH:
        return None
    is_new = row.state != ONGOING
    epoch = world.next_epoch(step.name, row.epoch) if is_new else row.epoch
    if epoch != row.epoch:
        row, client = row._replace(epoch=epoch), (row.producer_id, epoch)
        world = replace(world, now_ms=world.now_ms + EPOCHS_MS, clients=changed(world.clients, step.name, client))
    start_ms = world.now_ms if is_new else row.start_ms
    world = _recorded(world, row, ONGOING, row.partitions | {step.partition}, start_ms=start_ms)
    if not is_new:
        return world
    number = len(world.transactions)
    begun = Transaction(step.name, client[0])
    return replace(world, transactions=(*world.transactions, begun), current=changed(world.current, step.name, number))


def _known(world: World, name: str) -> World:
    if name in dict(world.clients):
        return world
    given = world.next_producer_id
    times = (world.now_ms, world.now_ms, None)
    timeout_ms = NEVER_MS if name in world.two_phase else TIMEOUT_MS
    first = StateRow(0, name, EMPTY, given, None, None, world.first_epoch, frozenset(), *times, timeout_ms, 0)
    world = replace(world, next_producer_id=given + 1, clients=changed(world.clients, name, (given, world.first_epoch)))
    return world.appended(first)


def write(world: World, step: Step) -> World | None:
    """Data of the transaction that is in progress, by its newest instance."""
    row, client = world.last(step.name), dict(world.clients).get(step.name)
    if row is None or client is None or row.state != ONGOING or (row.producer_id, row.epoch) != client:
        return None
    if step.partition not in row.partitions:
        return None
    return _data(world, step.partition, client, dict(world.current)[step.name])


def write_late(world: World, step: Step) -> World | None:
    """A request that comes late or unannounced; with transaction version 2 the broker asks the coordinator first."""
    row, client = world.last(step.name), dict(world.clients).get(step.name)
    if client is None or world.version_of(step.name) > 1:
        return None
    is_listed = row is not None and row.state == ONGOING and step.partition in row.partitions
    if is_listed and row is not None and row.producer_id == client[0]:
        return None
    return _data(world, step.partition, client, NOBODYS)


def _data(world: World, partition: int, client: tuple[int, int], txn: int) -> World | None:
    log = world.logs[partition]
    if log.epoch_of(client[0]) > client[1]:
        return None  # InvalidProducerEpoch
    batch = Batch(
        log.next_offset, *client, world.now_ms, world.now_ms - world.event_time_ms, None, 0, log.leader_epoch, txn
    )
    return world.with_log(partition, log.extended(batch))


def decide(world: World, step: Step, *, fences: bool = False) -> World | None:
    """The client commits or aborts (EndTxn), or its coordinator aborts for it (`fences`), which raises the epoch."""
    row = world.last(step.name)
    if row is None or row.state != ONGOING:
        return None
    client = dict(world.clients)[step.name]
    if not fences and (row.producer_id, row.epoch) != client:
        return None
    word = "Abort" if fences else step.kind.capitalize()
    is_raised = fences or world.version_of(step.name) > 1
    epoch = row.epoch + is_raised
    next_id = world.next_producer_id if is_raised and not fences and row.epoch >= LAST_EPOCH else None
    number = dict(world.current)[step.name]
    decided = world.transactions[number]._replace(decision=word, listed=row.partitions)
    world = replace(
        world,
        transactions=(*world.transactions[:number], decided, *world.transactions[number + 1 :]),
        owed=changed(world.owed, step.name, world.copied(row.partitions)),
        next_producer_id=world.next_producer_id + (next_id is not None),
    )
    world = _recorded(world, row, f"Prepare{word}", row.partitions, epoch=epoch, next_producer_id=next_id)
    return world if fences else _renewed(world, step.name)


def fence(world: World, step: Step) -> World | None:
    """InitProducerId of a new instance: what is in progress is aborted; it gets its epoch when that is done."""
    row = world.last(step.name)
    if row is None or row.is_deciding:
        return None
    if row.state == ONGOING:
        return decide(world, step, fences=True)
    if row.state is None:  # it had expired: InitProducerId knows it no more
        forgotten = tuple((name, client) for name, client in world.clients if name != step.name)
        return _known(replace(world, clients=forgotten), step.name)
    if row.epoch < LAST_EPOCH:
        renewed: dict[str, Any] = {"epoch": row.epoch + 1}
    else:
        before = row.producer_id if world.names_previous else None
        renewed = {"producer_id": world.next_producer_id, "previous_producer_id": before, "epoch": 0}
        world = replace(world, next_producer_id=world.next_producer_id + 1)
    return _renewed(_recorded(world, row, EMPTY, frozenset(), start_ms=None, **renewed), step.name)


def time_out(world: World, step: Step) -> World | None:
    """The coordinator's own abort raises the epoch, so that the client can write no more; never in two phases."""
    return None if step.name in world.two_phase else decide(world, step, fences=True)


def complete(world: World, step: Step) -> World | None:
    """With transaction version 2 an id whose epochs are used up goes on under its next producer id."""
    row = world.last(step.name)
    if row is None or not row.is_deciding or dict(world.owed).get(step.name):
        return None
    done = f"Complete{str(row.state).removeprefix('Prepare')}"
    if row.next_producer_id is None:
        world = _recorded(world, row, done, frozenset(), update_ms=row.update_ms)
    else:
        before = row.producer_id if world.names_previous else None
        rotated = row._replace(producer_id=row.next_producer_id, previous_producer_id=before, epoch=0)
        world = _recorded(world, rotated, done, frozenset(), update_ms=row.update_ms, next_producer_id=None)
    return _renewed(world, step.name)


def stray(world: World, step: Step) -> World | None:
    """Data under a producer id that no coordinator gave out, as a raw client can write without verification."""
    return _data(world, step.partition, (NEVER_GIVEN_ID + step.partition, 0), NOBODYS)


def expire(world: World, step: Step) -> World | None:
    """`transactional.id.expiration.ms` pass without a transaction: the coordinator writes a tombstone."""
    row = world.last(step.name)
    if row is None or row.state is None or row.state == ONGOING or row.is_deciding:
        return None
    world = replace(world, now_ms=world.now_ms + EXPIRES_MS)
    gone = row._replace(state=None, partitions=frozenset(), at_ms=world.now_ms)
    return world.appended(gone)


def _renewed(world: World, name: str) -> World:
    """The newest instance learns the producer id and epoch that the coordinator has."""
    row = world.last(name)
    assert row is not None
    if row.is_deciding and world.version < 2:
        return world
    return replace(world, clients=changed(world.clients, name, (row.producer_id, row.epoch)))


def _recorded(world: World, row: StateRow, state: str, partitions: frozenset[int], **changes: Any) -> World:
    """The next record of an id; a rotation's previous producer id is named by the Complete record alone."""
    kept = row.previous_producer_id if state.startswith("Complete") else None
    times: dict[str, Any] = {"at_ms": world.now_ms, "update_ms": world.now_ms}
    following = row._replace(state=state, partitions=partitions, previous_producer_id=kept)
    return world.appended(following._replace(**times | changes))


def marker(world: World, step: Step) -> World | None:
    """One of the markers that the coordinator owes."""
    owed, row = dict(world.owed).get(step.name, frozenset()), world.last(step.name)
    if step.partition not in owed or row is None or not row.is_deciding:
        return None
    world = replace(world, owed=changed(world.owed, step.name, owed - {step.partition}))
    return _ended(world, step.partition, row)


def marker_again(world: World, step: Step) -> World | None:
    """A coordinator that takes over between marker and Complete sends every marker once more."""
    row = world.last(step.name)
    if row is None or not row.is_deciding or step.partition not in row.partitions:
        return None
    if step.partition in dict(world.owed).get(step.name, frozenset()):
        return None
    return _ended(world, step.partition, row)


def skip(world: World, step: Step) -> World | None:
    """`addTxnMarkersToBrokerQueue` drops a partition without a leader that it knows."""
    owed, row = dict(world.owed).get(step.name, frozenset()), world.last(step.name)
    if step.partition not in owed or row is None or not row.is_deciding:
        return None
    return replace(world, owed=changed(world.owed, step.name, owed - {step.partition}), lost=True)


def administrator(world: World, step: Step) -> World | None:
    """`kafka-transactions.sh abort` of what nobody else will end."""
    client = dict(world.clients).get(step.name)
    if client is None:
        return None
    log = world.logs[step.partition]
    data = log.open_data(client[0])
    row = world.last(step.name)
    is_owned = row is not None and row.state is not None and step.partition in row.partitions
    if not data or is_owned or any(_is_acknowledged(world, step.partition, b) for b in data):
        return None
    marker = Batch(log.next_offset, client[0], log.epoch_of(client[0]), world.now_ms, world.now_ms, "ABORT", 0, 0)
    return world.with_log(step.partition, log.extended(marker._replace(leader_epoch=log.leader_epoch)))


def _ended(world: World, partition: int, row: StateRow) -> World:
    log = world.logs[partition]
    word = str(row.state).removeprefix("Prepare").upper()
    marker = Batch(
        log.next_offset,
        row.producer_id,
        max(row.epoch, log.epoch_of(row.producer_id)),
        world.now_ms,
        world.now_ms,
        word,
        world.states[world.holder(row.name)].leader_epoch,
        log.leader_epoch,
    )
    return world.with_log(partition, log.extended(marker))


def _is_acknowledged(world: World, partition: int, batch: Batch) -> bool:
    if batch.txn == NOBODYS:
        return False
    txn = world.transactions[batch.txn]
    return txn.decision == "Commit" and partition in txn.listed
