"""The records of the coordinator as rows: where each belongs, and those of each id in order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.columns.arrays import ABSENT, Array, codes_of, numbers, of_types, place_in, whole
from txn_analysis.columns.records import records_of
from txn_analysis.coordinator.history import History
from txn_analysis.coordinator.partition_count import IdSums, StateCount, positive_hashes, state_count, sums_of_files
from txn_analysis.coordinator.state_columns import InOrder, in_order
from txn_analysis.kafka.names import CLUSTER_ID, CONSOLE_KINDS, CONSOLE_TEXT, LOG, STATE, STATE_TOPIC
from txn_analysis.kafka.transactions import NAMED, PREPARE_ABORT, SAID, StateRecord
from txn_analysis.settings import Settings
from txn_analysis.tables import TRANSACTION_STATES
from txn_analysis.tables.inputs import InputSection
from txn_analysis.tables.readings import doubt_in_words
from txn_analysis.tables.schema import AUDIT, given_schema

STATE_COLUMNS = (
    *("input_id", "section_index", "ordinal", "capture_rank", "input_moment_ms", "state_partition", "offset"),
    *("recorded_ms", "batch_base_offset", "batch_last_offset", "leader_epoch", "transactional_id"),
    *("transactional_id_hash", "is_tombstone", "is_undecodable", "state", *NAMED, "producer_epoch", "timeout_ms"),
    *("topic_partitions", "last_update_ms", "start_ms", "client_transaction_version", "may_list_more", "may_name_more"),
)
"""Of `transaction_states`, and of the capture that a row was read with: `capture_rank` is 0 for the judged one,
`input_moment_ms` the newest moment of its input, by which console exports are ordered."""
READ_STATES = given_schema(TRANSACTION_STATES, *STATE_COLUMNS)
"""One row is one record of the coordinator as it was read, of the captures that are evidence."""
STATES = pa.schema([*READ_STATES, ("held_by", pa.int32()), ("is_id_uncertain", pa.bool_())])
"""One row is one record of the coordinator that is evidence.

`held_by` is the partition of the state that holds it: its own, or for an export the one that its id hashes to.
`is_id_uncertain` marks a tombstone of an export as text, which prints ids raw: some id that ends so is gone.
"""
_OF_HASH = "transactional_id_hash"
READ_WITH = pa.schema(
    [*(field for field in STATES if field.name != _OF_HASH), ("hashed_to", pa.int32()), ("read_with", pa.int32())]
)
"""One row is one record, and the partition of the state with which it is read: the one that holds it, and the one that
its id hashes to. A record that lies elsewhere than its id hashes to has two rows."""


@dataclass(frozen=True)
class StateFiles:
    """The files of some evidence, as far as the coordinator's side asks.

    Attributes:
        every: the files of the state, of all captures.
        has_own_records: the judged capture holds a file of the state, or a console export of it.
        text_exports: the inputs that are console exports as text.
        cluster_ids: every `cluster.id` that a log directory states in its `meta.properties`.
        doubts: of each export of the judged capture of which an earlier reading believed too much, why.
        undecoded: by partition, which dumps of it in the judged capture were made without their decoder, and hold more
            than the others.
    """

    every: tuple[InputSection, ...] = ()
    has_own_records: bool = False
    text_exports: frozenset[str] = frozenset()
    cluster_ids: frozenset[str] = frozenset()
    doubts: tuple[str, ...] = ()
    undecoded: Mapping[int | None, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, sections: Collection[InputSection]) -> StateFiles:
        """Among all sections of the evidence."""
        every = [section for section in sections if section.kind == STATE]
        return cls(
            tuple(every),
            any(s.kind == STATE or s.kind.startswith("console") for s in sections if not s.capture_rank),
            frozenset(s.input_id for s in sections if s.kind == CONSOLE_TEXT),
            frozenset(s.stated for s in sections if s.kind == CLUSTER_ID and s.stated is not None),
            tuple(
                f"{s.shown_path} {doubt_in_words(s.doubt)}"
                for s in sections
                if s.kind in CONSOLE_KINDS and not s.capture_rank and s.doubt is not None
            ),
            _undecoded([f for f in every if not f.capture_rank], sections),
        )

    @property
    def of_capture(self) -> list[InputSection]:
        """The files of the state that the judged capture holds."""
        return [file for file in self.every if not file.capture_rank]

    @property
    def partitions(self) -> list[int]:
        """The partitions of the state that the files are of."""
        return [file.partition for file in self.every]

    @property
    def dumped_rank(self) -> int:
        """The rank of the newest capture with a file of the state: dumped records count as of then; 0 without any."""
        return min((file.capture_rank for file in self.every), default=0)


def _undecoded(
    decoded: Collection[InputSection], sections: Collection[InputSection]
) -> dict[int | None, tuple[str, ...]]:
    """By partition of the state the dumps without their decoder that hold what no decoded one of the capture does."""
    undecoded = defaultdict[int, list[str]](list)
    for section in sections:
        if section.kind != LOG or section.topic != STATE_TOPIC or section.capture_rank or section.end_offset is None:
            continue
        of_partition = [file for file in decoded if file.partition == section.partition]
        end = max((file.end_offset or file.file_base_offset for file in of_partition), default=0)
        first = min((file.file_base_offset for file in of_partition), default=end)
        if not first <= (section.first_offset or 0) <= section.end_offset <= end:
            undecoded[section.partition].append(f"{section.shown_path} was dumped without --transaction-log-decoder")
    return {partition: tuple(sorted(words)) for partition, words in undecoded.items()}


class Placing(NamedTuple):
    """Where the records of a run belong.

    Attributes:
        state_count: how many partitions the state has, and why.
        dumped_rank: of the newest capture that has a dump or a folder of the state; 0 where none has.
        as_of_ms: the moment of the copy, where the operator states it.
        text_exports: the inputs that are console exports as text.
    """

    state_count: StateCount
    dumped_rank: int
    as_of_ms: int | None
    text_exports: frozenset[str] = frozenset()

    @property
    def partition_count(self) -> int:
        """How many partitions the state is taken to have."""
        return self.state_count.used

    @classmethod
    def of(cls, settings: Settings, files: StateFiles, ids: IdSums) -> Placing:
        """By what the ids of all records, and the names of the files, say of the count."""
        counted = state_count(settings.transaction_state_partitions, ids.plus(sums_of_files(files.partitions)))
        return cls(counted, files.dumped_rank, settings.as_of_ms, files.text_exports)


class Placings(NamedTuple):
    """Where the records of some audits belong, by audit."""

    of: Mapping[int, Placing]

    def each(self, audits: pa.ChunkedArray | pa.Array, name: str) -> Array:
        """Of rows of some audits what their placing says: `dumped_rank` or `partition_count`."""
        known = np.array(sorted(self.of), np.int64)
        values = np.array([getattr(self.of[number], name) for number in known.tolist()], np.int64)
        return values[np.searchsorted(known, numbers(audits, 0))]

    @property
    def text_exports(self) -> frozenset[str]:
        """The inputs that are console exports as text; what an input is follows from its content, in every audit."""
        return frozenset().union(*(placing.text_exports for placing in self.of.values()))


def hashed_to(rows: pa.RecordBatch, partition_count: Array | int) -> pa.Array:
    """The partition of the state that the id of each row hashes to; NULL where it has none."""
    hashes = rows["transactional_id_hash"]
    partition = positive_hashes(numbers(hashes, 0)) % partition_count
    return pa.array(partition.astype(np.int32), mask=hashes.is_null().to_numpy(zero_copy_only=False))


def with_held_by(
    rows: pa.RecordBatch, partition_count: Array | int, text_exports: Collection[str] = ()
) -> pa.RecordBatch:
    """The rows with the partition of the state that holds each, and whether their id is uncertain."""
    return _with_home(rows, hashed_to(rows, partition_count), text_exports)


def _with_home(rows: pa.RecordBatch, of_id: pa.Array, text_exports: Collection[str]) -> pa.RecordBatch:
    exports = pa.array([*text_exports], pa.string())
    is_uncertain = pc.and_(rows["is_tombstone"], pc.is_in(rows["input_id"], exports))
    placed = rows.append_column(STATES.field("held_by"), pc.coalesce(rows["state_partition"], of_id))
    return placed.append_column(STATES.field("is_id_uncertain"), is_uncertain)


def read_with(
    rows: pa.RecordBatch, partition_count: Array | int, text_exports: Collection[str] = ()
) -> Iterator[pa.RecordBatch]:
    """Rows of `READ_WITH` from the same rows without what it adds to a record."""
    of_id = hashed_to(rows, partition_count)
    placed = _with_home(rows.drop_columns([_OF_HASH]), of_id, text_exports)
    placed = placed.append_column(READ_WITH.field("hashed_to"), of_id)
    yield placed.append_column(READ_WITH.field("read_with"), placed["held_by"])
    is_elsewhere = pc.fill_null(pc.not_equal(placed["held_by"], of_id), False)
    if pc.any(is_elsewhere).as_py():
        elsewhere = placed.filter(is_elsewhere)
        yield elsewhere.append_column(READ_WITH.field("read_with"), elsewhere["hashed_to"])


def read_at(rows: pa.Table, name: str) -> pa.Table:
    """Of rows of `READ_WITH` the records that are read with the partition of the state that a column names, or none."""
    is_none = pc.and_(rows["read_with"].is_null(), rows[name].is_null())
    is_there = pc.or_(is_none, pc.fill_null(pc.equal(rows["read_with"], rows[name]), False))
    return rows if pc.all(is_there).as_py() is not False else rows.filter(is_there)


_NOT_COMPARED = ("held_by", "is_id_uncertain", "leader_epoch")
_RECORD = pa.struct([*map(STATES.field, SAID), ("is_hidden", pa.bool_()), *map(STATES.field, _NOT_COMPARED[1:])])
HISTORIES = pa.schema([AUDIT, ("producer_ids", pa.list_(pa.int64())), ("history", pa.list_(_RECORD))])
"""One row is one transactional id: the producer ids that it has, or had, and its records, oldest first; never none."""
NEWEST_RECORDS = pa.schema([*_RECORD])
"""One row is the newest record of a transactional id, of those that could be decoded; it may be a tombstone."""
OF_PRODUCER = pa.schema([AUDIT, ("producer_id", pa.int64()), HISTORIES.field("history")])
"""One row is the history of an id that has, or had, a producer id."""


def by_id(states: pa.Table, audit: Array, dumped_rank: Array) -> InOrder:
    """The records of each transactional id in their order.

    Args:
        states: rows of `STATES`: all records of each id.
        audit: of each row the number of its audit.
        dumped_rank: of each row, see `Placing.dumped_rank`.
    """
    ids = codes_of(states["transactional_id"])
    group = np.where(ids == ABSENT, ABSENT, audit * (ids.max(initial=0) + 1) + ids)
    return in_order(states, group, dumped_rank, SAID)


def asked_about(states: pa.Table, ordered: InOrder, producers: Array) -> Array:
    """Of each id in order, whether it has, or had, one of some producer ids, which are in order and differ."""
    names_one = [place_in(producers, numbers(states[name], ABSENT)) != ABSENT for name in NAMED]
    asked: Array = ordered.how_many(np.logical_or.reduce(names_one)) > 0
    return asked


def abort_counts(states: pa.Table, ordered: InOrder) -> Array:
    """How many decisions to abort each id in order has."""
    is_abort = pc.fill_null(pc.equal(states["state"], PREPARE_ABORT), False)
    return ordered.how_many(is_abort.to_numpy().astype(bool))


def newest_records(states: pa.Table, ordered: InOrder) -> pa.Table:
    """Rows of `NEWEST_RECORDS`, of ids in order; `states` as of `by_id`."""
    newest = InOrder(ordered.last, np.arange(len(ordered.first)), ordered.is_hidden)
    rows = states.select([*SAID, *_NOT_COMPARED]).take(pa.array(newest.row)).combine_chunks()
    return pa.table(_records(rows, newest).flatten().flatten(), schema=NEWEST_RECORDS)


def live(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Of rows of `NEWEST_RECORDS` those of ids that are not gone, and of which no later record is hidden."""
    return rows.filter(pc.invert(pc.or_(rows["is_tombstone"], rows["is_hidden"])))


def histories_of(states: pa.Table, audit: Array, ordered: InOrder) -> pa.Table:
    """Rows of `HISTORIES`, of ids in order.

    Args:
        states: rows of `STATES`.
        audit: of each row the number of its audit.
        ordered: the records of ids, as of `by_id`.
    """
    rows = states.select([*SAID, *_NOT_COMPARED]).take(pa.array(ordered.row)).combine_chunks()
    of_audit = pa.array(audit[ordered.row[ordered.first]], AUDIT.type)
    return pa.table([of_audit, _producers(rows, ordered), _records(rows, ordered)], schema=HISTORIES)


def _records(rows: pa.Table, ordered: InOrder) -> pa.ListArray:
    """The history of each id."""
    stops = ordered.first + ordered.length
    is_hidden = np.zeros(len(ordered.row), bool)
    is_hidden[stops - 1] = ordered.is_hidden
    columns = {name: whole(rows[name]) for name in (*SAID, *_NOT_COMPARED)}
    columns |= {"state_partition": columns["held_by"], "is_hidden": pa.array(is_hidden)}
    columns["topic_partitions"] = _never_null(columns["topic_partitions"])
    arrays = of_types([columns[field.name] for field in _RECORD], _RECORD)
    return pa.ListArray.from_arrays(
        pa.array(np.append(0, stops), pa.int32()), pa.StructArray.from_arrays(arrays, fields=[*_RECORD])
    )


def _never_null(lists: pa.ListArray) -> pa.ListArray:
    lengths = pc.list_value_length(lists).fill_null(0).to_numpy()
    return pa.ListArray.from_arrays(pa.array(np.append(0, np.cumsum(lengths)), pa.int32()), lists.flatten())


def _producers(rows: pa.Table, ordered: InOrder) -> pa.ListArray:
    """Of each id the producer ids that it has, or had, in order."""
    named = np.concatenate([numbers(rows[name], ABSENT) for name in NAMED])
    number = np.tile(ordered.id_of, len(NAMED))[named != ABSENT]
    named = named[named != ABSENT]
    order = np.lexsort((named, number))
    number, named = number[order], named[order]
    is_first = np.append(True, (np.diff(number) != 0) | (np.diff(named) != 0))[: len(named)]
    stops = np.searchsorted(number[is_first], np.arange(len(ordered.first) + 1))
    return pa.ListArray.from_arrays(pa.array(stops, pa.int32()), pa.array(named[is_first], pa.int64()))


def by_producer_id(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of `OF_PRODUCER` from rows of `HISTORIES`: each history for each of its producer ids."""
    for rows in batches:
        number = pc.list_parent_indices(rows["producer_ids"])
        is_each_once = np.array_equal(number.to_numpy(), np.arange(len(rows)))
        repeated = rows if is_each_once else rows.take(number)  # most ids have one producer id, and histories are long
        columns = [repeated["audit"], rows["producer_ids"].flatten(), repeated["history"]]
        yield pa.RecordBatch.from_arrays(columns, schema=OF_PRODUCER)


def histories_in(lists: pa.ListArray | pa.ChunkedArray) -> list[History]:
    """Such histories as records."""
    if isinstance(lists, pa.ChunkedArray):
        return [history for chunk in lists.chunks for history in histories_in(chunk)]
    records = iter(records_of(StateRecord, lists.flatten()))
    return [[*islice(records, length)] for length in pc.list_value_length(lists).to_pylist()]
