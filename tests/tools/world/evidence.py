"""What was copied of a world, as the core takes it; and what the truth says of the answer.

The only module of the world that knows the product.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tests.tools.stories.answer import Answer
from tests.tools.stories.histories import STATE_TOPIC, Described, File, data, marker, record, undecoded
from tests.tools.stories.histories import World as Copies
from tests.tools.stories.history import History
from tests.tools.world.described import Answer as Description
from tests.tools.world.files import Folder, files_of, manifest_of
from tests.tools.world.ids import id_of
from tests.tools.world.model import NOBODYS, ONGOING, Batch, StateRow, World
from txn_analysis.columns.arrays import ABSENT
from txn_analysis.settings import Settings
from txn_analysis.tables.inputs import Manifest

Row = dict[str, Any]

TOPIC = "orders"
BEGAN_MS = 1_800_000_000_000
HOUR_MS = 3_600_000
LATE_MS = 1_200_000
SKEW_MS = 1_000


@dataclass(frozen=True)
class Evidence:
    """The copies of the logs and of the state, what is wrong with how they are given, and what the operator says.

    Attributes:
        logs: by partition; those whose first batches are gone begin later.
        states: by partition of the state; an empty one was not copied where it is in `absent`.
        state_copied_last: the operator says so, true or not.
        no_records_lost: the operator says so, and it is true.
        absent: partitions of the state that are not given.
        stated_count: how many partitions the state is said to have.
        is_folder: the state lies in one log directory; else each partition of it was dumped.
        is_console: the state is an export of a console consumer, and said to be complete.
        as_of_ms: what is said of the moment of the copy.
        is_count_unsaid: nobody says how many partitions the state has.
        is_shallow: by partition, whether its log was dumped without the kinds of its end markers; empty where none was.
        clocks_ms: by how much the brokers' clocks differ that lead the logs; within the allowance.
        manifests: what is said of the copying.
        epoch_starts: of some partitions what the `leader-epoch-checkpoint` says last.
        absent_logs: those that were not copied, as a collector that fetches what is stuck leaves out all others.
        described: by partition what its leader said of its producers.
        folders: by partition of the state how it lies in files, and what a manifest says of that; empty where each is
            one file.
        cluster_id: that of the folders of all files; None where nothing states one.
        undecodable: records of the state whose values could not be decoded, by partition and place there; and whether
            their keys were.
        turn: of `ids.id_of`, which says what ids are called; None where each is a letter.
    """

    logs: tuple[tuple[Batch, ...], ...]
    states: tuple[tuple[StateRow, ...], ...]
    state_copied_last: bool = False
    no_records_lost: bool = False
    absent: frozenset[int] = frozenset()
    stated_count: int | None = None
    is_folder: bool = False
    is_console: bool = False
    as_of_ms: int | None = None
    clocks_ms: tuple[int, ...] = ()
    is_count_unsaid: bool = False
    is_shallow: tuple[bool, ...] = ()
    manifests: tuple[Manifest, ...] = ()
    epoch_starts: tuple[tuple[tuple[str, int], tuple[int, int]], ...] = ()
    absent_logs: frozenset[int] = frozenset()
    described: tuple[tuple[int, Description], ...] = ()
    folders: tuple[Folder, ...] = ()
    cluster_id: str | None = None
    undecodable: tuple[tuple[int, int, bool], ...] = ()
    turn: int | None = None

    def history(self) -> History:
        """It as the core takes it."""
        return self.copies().history()

    def copies(self) -> Copies:
        """What was copied, as a story told by hand has it."""
        settings = Settings(
            transaction_state_partitions=None if self.is_count_unsaid else self.stated_count or len(self.states),
            max_clock_skew_ms=SKEW_MS if self.clocks_ms else 0,
            state_copied_last=self.state_copied_last,
            no_records_lost=self.no_records_lost,
            transaction_state_complete=self.is_console,
            as_of_ms=self.as_of_ms,
        )
        clocks_ms = self.clocks_ms or (0,) * len(self.logs)
        is_shallow = self.is_shallow or (False,) * len(self.logs)
        logs = {
            (TOPIC, n): [_batch(b, clocks_ms[n], is_shallow=is_shallow[n]) for b in log]
            for n, log in enumerate(self.logs)
            if n not in self.absent_logs
        }
        copies = Copies(settings, logs)
        given = {n: list(_records(rows, self.turn)) for n, rows in enumerate(self.states) if n not in self.absent}
        for n, place, is_key_read in self.undecodable:
            given[n][place] = undecoded(given[n][place], is_key_read=is_key_read)
        copies.states, copies.export = (
            ({}, [r for rows in given.values() for r in rows]) if self.is_console else (given, [])
        )
        copies.cluster_id = self.cluster_id
        copies.manifests, copies.epoch_starts = list(self.manifests), dict(self.epoch_starts)
        copies.described = [_described(number, answer) for number, answer in self.described]
        if self.folders and copies.states:
            name = "copied" if self.is_folder else None
            files = {n: files_of(n, rows, self.folders[n], name) for n, rows in copies.states.items()}
            epochs = {n: rows[-1].leader_epoch if rows else 0 for n, rows in enumerate(self.states)}
            copies.manifests.append(manifest_of(files, self.folders, epochs))
            copies.epoch_starts |= {(STATE_TOPIC, n): (epochs[n], 0) for n in files}
            copies.files, copies.states = [file for own in files.values() for file in own], {}
        elif self.is_folder:
            copies.files = [File((STATE_TOPIC, n), rows, folder="copied") for n, rows in copies.states.items()]
            copies.states = {}
        return copies


def _described(number: int, answer: Description) -> Described:
    rows = [
        {
            "producer_id": each.producer_id,
            "producer_epoch": each.producer_epoch,
            "coordinator_epoch": each.coordinator_epoch,
            "current_txn_start_offset": each.start,
        }
        for each in answer.producers
    ]
    return Described((TOPIC, number), answer.first_offset, answer.high_watermark, rows)


def _batch(batch: Batch, clock_ms: int, *, is_shallow: bool) -> Row:
    place = {"offset": batch.offset, "leader_epoch": batch.leader_epoch}
    if batch.word is None:
        return data(batch.producer_id, batch.client_ms, batch.epoch, **place)
    ended = marker(batch.producer_id, batch.at_ms + clock_ms, batch.word, batch.epoch, **place)
    return ended | (
        {"marker": None, "coordinator_epoch": ABSENT} if is_shallow else {"coordinator_epoch": batch.coordinator_epoch}
    )


def _records(rows: Iterable[StateRow], turn: int | None) -> Iterable[Row]:
    before = -1
    for row in rows:
        known = record(id_of(row.name, turn), row.state, row.producer_id, row.update_ms) | {
            "recorded_ms": row.at_ms,
            "offset": row.offset,
            "leader_epoch": row.leader_epoch,
            "is_after_gap": before >= 0 and row.offset > before + 1,
            "previous_producer_id": row.previous_producer_id,
            "next_producer_id": row.next_producer_id,
            "producer_epoch": row.epoch,
            "topic_partitions": [{"topic": TOPIC, "partition": n} for n in sorted(row.partitions)],
            "start_ms": row.start_ms,
            "timeout_ms": row.timeout_ms,
        }
        if row.state is None:
            gone = ("producer_id", "producer_epoch", "last_update_ms", "start_ms", "timeout_ms", "previous_producer_id")
            known |= dict.fromkeys(gone)
        before = row.offset
        yield known


def evidence_of(world: World, *, says_last: bool, draws_together: bool = True) -> Evidence:
    """What was copied; with its times drawn together, as whether seconds or minutes lie between decides nothing."""
    logs, states = tuple(log.copy or () for log in world.logs), _copied_states(world)
    near = drawn_together(logs, states) if draws_together else _Unmoved()
    return Evidence(
        tuple(tuple(_known(at_other_times(b, near), draws_together) for b in log) for log in logs),
        tuple(tuple(row_at_other_times(row, near) for row in rows) for rows in states),
        says_last,
    )


def _copied_states(world: World) -> tuple[tuple[StateRow, ...], ...]:
    """By number of the partition of the state, also of those that hold no id."""
    if not world.state_numbers:
        return tuple(state.copy or () for state in world.states)
    held = {n: state.copy or () for n, state in zip(world.state_numbers, world.states, strict=True)}
    return tuple(held.get(n, ()) for n in range(world.state_count))


def _known(batch: Batch, is_alike_enough: bool) -> Batch:
    """Copies that are to be told apart by what they show do not show whose the data is."""
    return batch._replace(txn=NOBODYS) if is_alike_enough else batch


class _Unmoved(dict[int, int]):
    def __missing__(self, ms: int) -> int:
        return ms


def drawn_together(logs: Iterable[Iterable[Batch]], states: Iterable[Iterable[StateRow]]) -> dict[int, int]:
    """Every time in them by one in the same order, a second after the one before; hours stay hours."""
    moments = {ms for log in logs for b in log for ms in (b.at_ms, b.client_ms)}
    moments |= {ms for rows in states for r in rows for ms in (r.at_ms, r.update_ms, r.start_ms) if ms is not None}
    near: dict[int, int] = {}
    before, at_ms = None, BEGAN_MS
    for ms in sorted(moments):
        passed_ms = 0 if before is None else ms - before
        at_ms += 1_000 if passed_ms < HOUR_MS else passed_ms // HOUR_MS * HOUR_MS
        near[ms], before = at_ms, ms
    return near


def at_other_times(batch: Batch, near: dict[int, int]) -> Batch:
    """The batch at the times that stand for its own."""
    return batch._replace(at_ms=near[batch.at_ms], client_ms=near[batch.client_ms])


def row_at_other_times(row: StateRow, near: dict[int, int]) -> StateRow:
    """The record at the times that stand for its own."""
    start_ms = None if row.start_ms is None else near[row.start_ms]
    return row._replace(at_ms=near[row.at_ms], update_ms=near[row.update_ms], start_ms=start_ms)


@dataclass(frozen=True)
class Truth:
    """Of one answer: how many planned aborts are wrong, how many transactions truly hang, and how many were found."""

    wrong: tuple[tuple[int, int], ...]
    hanging: frozenset[tuple[int, int]]
    found: frozenset[tuple[int, int]]


def truth_of(world: World, answer: Answer, logs: tuple[tuple[Batch, ...], ...] | None = None) -> Truth:
    """What the world says of an answer about its copies, or about other logs; places are partition and producer id."""
    judged = logs or tuple(log.copy or () for log in world.logs)
    planned = frozenset((r.partition, r.producer_id) for r in answer.plan)
    wrong = tuple(sorted(place for place in planned if _is_wrong(world, judged, *place)))
    hanging = frozenset(_hanging(world, answer.as_of_ms or 0))
    return Truth(wrong, hanging, planned & hanging)


def _is_wrong(world: World, logs: tuple[tuple[Batch, ...], ...], partition: int, producer_id: int) -> bool:
    """An acknowledged commit, or a transaction that is live at its coordinator, would be aborted."""
    return any(
        is_acknowledged(world, partition, batch) or is_live(world, partition, batch)
        for batch in open_data(logs[partition], producer_id)
    )


def open_data(batches: Iterable[Batch], producer_id: int) -> tuple[Batch, ...]:
    """The data of a producer after its last end marker, in a copy."""
    found: tuple[Batch, ...] = ()
    for batch in batches:
        if batch.producer_id == producer_id:
            found = () if batch.word else (*found, batch)
    return found


def is_acknowledged(world: World, partition: int, batch: Batch) -> bool:
    """Its transaction was committed with this partition, and its client was told so."""
    txn = None if batch.txn == NOBODYS else world.transactions[batch.txn]
    return txn is not None and txn.decision == "Commit" and partition in txn.listed


def is_live(world: World, partition: int, batch: Batch) -> bool:
    """Its transaction is in progress at the coordinator, and lists the partition."""
    if batch.txn == NOBODYS or world.transactions[batch.txn].decision is not None:
        return False
    row = world.last(world.transactions[batch.txn].name)
    return (
        row is not None
        and row.state == ONGOING
        and row.producer_id == batch.producer_id
        and partition in row.partitions
        and dict(world.current).get(row.name) == batch.txn
    )


def _hanging(world: World, as_of_ms: int) -> Iterable[tuple[int, int]]:
    """What is open in the copy and on the broker, is late, and has nobody who would end it."""
    for n, log in enumerate(world.logs):
        for producer_id in {b.producer_id for b in log.copy or ()}:
            copied, there = open_data(log.copy or (), producer_id), log.open_data(producer_id)
            is_same = not {b.offset for b in copied}.isdisjoint(b.offset for b in there)
            if not is_same or any(is_acknowledged(world, n, b) for b in there):
                continue
            has_owner = is_owned(world, n, producer_id) or is_owned(world, n, producer_id, of_copy=True)
            if not has_owner and as_of_ms - copied[-1].client_ms > LATE_MS:
                yield n, producer_id


def is_owned(world: World, partition: int, producer_id: int, *, of_copy: bool = False) -> bool:
    """Its coordinator still has to end it: now, or as far as it was copied."""
    last = {row.name: row for state in world.states for row in (state.copy or () if of_copy else state.rows)}
    return any(
        row.state is not None and producer_id in (row.producer_id, row.next_producer_id) and partition in row.partitions
        for row in last.values()
    )
