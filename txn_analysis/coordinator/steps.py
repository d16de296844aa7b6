"""The steps of the coordinator's side, as an engine runs them: from rows of `transaction_states` to what they say.

states -- by partition of the state --> chains and sums, histories of ids
histories -- by producer id, with end markers --> views and marker sums
"""

from __future__ import annotations

import pickle
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.columns.arrays import ABSENT, Array, equal_runs, numbers
from txn_analysis.columns.records import records_of
from txn_analysis.columns.values import (
    VALUES,
    BatchFunction,
    GroupFunction,
    rows_of_kinds,
    rows_of_values,
    schema_of_kinds,
    unpickled,
)
from txn_analysis.coordinator.chain import StateChain, chains_of
from txn_analysis.coordinator.coverage import StateEvidence, state_evidence_of
from txn_analysis.coordinator.history import EndMarker, History, is_decision
from txn_analysis.coordinator.marker_checks import sums_of_markers
from txn_analysis.coordinator.marker_columns import markers_since
from txn_analysis.coordinator.partition_count import IdSums, sums_of_columns
from txn_analysis.coordinator.producer_bounds import GivenState
from txn_analysis.coordinator.sections import StateSums, by_partition, sections_of, sums_of_records
from txn_analysis.coordinator.state_records import (
    HISTORIES,
    NEWEST_RECORDS,
    Placing,
    Placings,
    StateFiles,
    abort_counts,
    asked_about,
    by_id,
    histories_in,
    histories_of,
    newest_records,
    read_at,
    read_with,
)
from txn_analysis.coordinator.view import Asked, Views, views_of
from txn_analysis.kafka.transactions import TopicPartition
from txn_analysis.tables import TRANSACTIONS, PartitionHealth, Transaction
from txn_analysis.tables.schema import AUDIT, by_audit
from txn_analysis.text import count

OPENED = pa.schema([AUDIT, *(field for field in TRANSACTIONS.arrow_schema if field.name in Transaction._fields)])
"""One row is one open transaction."""
VIEWED = pa.schema([*OPENED, ("view", pa.binary()), ("bears_on_others", pa.bool_())])
"""One row is one open transaction with its `CoordinatorView`, pickled; NULL where no id has, or had, its producer.

`bears_on_others` says that what becomes of others may depend on it: see `CoordinatorView.bears_on_others`.
"""
VIEWS = pa.schema([("place", pa.int64()), *(VIEWED.field(name) for name in ("view", "bears_on_others"))])
"""One row is the view of one open transaction, by its place among all."""
HASHES = ("transactional_id_hash", "state_partition")
ID_SUMS = pa.schema([AUDIT, *((name, pa.int64()) for name in IdSums._fields)])
"""One row is the `IdSums` of some records of one audit."""
_PRODUCER = (AUDIT, pa.field("producer_id", pa.int64()))
_ASKED = pa.struct(
    [pa.field(name, OPENED.field(name).type if name in OPENED.names else pa.int64()) for name in Asked._fields]
)
ASKED = pa.schema([*_PRODUCER, ("opened", pa.list_(_ASKED))])
"""One row is one producer id with its open transactions, as far as the state is asked about them."""
STATED = pa.schema([*_PRODUCER, ("state", pa.binary())])
"""One row is one producer id that an id has, or had, with its `ProducerHistories`, pickled."""
SUMS = pa.schema([AUDIT, ("sums", pa.binary())])
"""One row is one audit with the `MarkerSums` of some of its producers, pickled."""
OF_PRODUCERS = schema_of_kinds(stated=STATED, sums=SUMS)
"""What `producer_step` makes."""
OF_STATE = schema_of_kinds(histories=HISTORIES, aborted=HISTORIES, newest=NEWEST_RECORDS, chains=VALUES)
"""What `state_step` makes."""
JOINED = pa.schema([*ASKED, STATED.field("state")])
"""One row is one of `ASKED` with what is stated of its producer id; NULL where no id has, or had, it."""


class ProducerHistories(NamedTuple):
    """What the state says of one producer id, and what the logs say beside it.

    Attributes:
        histories: of the ids that have, or had, it.
        markers: by partition its end markers, from the first decision on that one of them can serve.
    """

    histories: list[History]
    markers: dict[TopicPartition, list[EndMarker]]

    def views(self, opened: Sequence[Asked], max_clock_skew_ms: int) -> Views:
        """What the coordinator knows of open transactions of the producer id."""
        return views_of(self.histories, opened, self.markers, max_clock_skew_ms)


_PRODUCERS_AT_ONCE = 2_048  # records of no others are in memory
_PLACE = ("audit", "topic", "partition", "txn_start_offset", "producer_id")


def in_place_order(opened: pa.Table) -> pa.Table:
    """Rows of `OPENED` or `VIEWED`, sorted by audit, partition and start."""
    return opened.sort_by([(name, "ascending") for name in _PLACE]).combine_chunks()


def id_sums(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of `ID_SUMS` from rows that have `HASHES`, one of each stretch that is equal in all other columns.

    What they have beside `HASHES` is kept.
    """
    for rows in batches:
        known = rows.filter(pc.and_(*(rows[name].is_valid() for name in HASHES)))
        key = known.select([name for name in known.schema.names if name not in HASHES])
        if bounds := equal_runs(key, key.schema.names):
            columns = [known[name].to_numpy() for name in HASHES]
            sums = [sums_of_columns(*(column[start:stop] for column in columns)) for start, stop in bounds]
            first = key.take(pa.array([start for start, _ in bounds]))
            of_runs = (pa.array(column, pa.int64()) for column in zip(*sums, strict=True))
            yield pa.RecordBatch.from_arrays([*first.columns, *of_runs], [*key.schema.names, *IdSums._fields])


def placed(placings: Placings) -> BatchFunction:
    """Rows of `READ_WITH` from the same rows without what it adds to a record."""
    text_exports = placings.text_exports

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for rows in batches:
            yield from read_with(rows, placings.each(rows["audit"], "partition_count"), text_exports)

    return run


def state_step(placings: Placings, producers: Array, abort_count: int) -> GroupFunction:
    """By audit and `read_with`, of `states` (rows of `READ_WITH`): rows of `OF_STATE`.

    `histories` are of the ids that have, or had, a producer that the logs name; `aborted` of the ids that were aborted
    often; `chains` say by audit, by partition of the state its `StateChain`, and `StateSums` of its files.

    Args:
        placings: where the records belong.
        producers: the producer ids that the logs name, in order.
        abort_count: what was aborted so many times was aborted often.
    """

    def run(tables: Mapping[str, pa.Table]) -> pa.Table:
        states = read_at(tables["states"], "hashed_to")
        audit = numbers(states["audit"], 0)
        ordered = by_id(states, audit, placings.each(states["audit"], "dumped_rank"))
        some = asked_about(states, ordered, producers), abort_counts(states, ordered) >= abort_count
        histories, aborted = (histories_of(states, audit, ordered.only(chosen)) for chosen in some)
        chains = rows_of_values(_chains(read_at(tables["states"], "held_by"), placings))
        newest = newest_records(states, ordered)
        return rows_of_kinds(OF_STATE, histories=histories, aborted=aborted, newest=newest, chains=chains)

    return run


def _chains(states: pa.Table, placings: Placings) -> dict[int, tuple[dict[int, StateChain], StateSums]]:
    audit, dumped_rank = numbers(states["audit"], 0), placings.each(states["audit"], "dumped_rank")
    chains = chains_of(states, audit, dumped_rank, {n: placing.as_of_ms for n, placing in placings.of.items()})
    return {
        n: (chains.get(n, {}), sums_of_records(of_audit, numbers(of_audit["hashed_to"], ABSENT)))
        for n, of_audit in by_audit(states).items()
    }


def producer_step(states: Mapping[int, GivenState], asked: Mapping[int, Collection[int]]) -> GroupFunction:
    """By audit and `producer_id`, of `histories` and `markers`: rows of `OF_PRODUCERS`, of those that are `asked`.

    Args:
        states: by audit, what was given of the state.
        asked: by audit, the producer ids of all open transactions.
    """

    def run(tables: Mapping[str, pa.Table]) -> pa.Table:
        histories, markers = (by_audit(tables[name]) for name in ("histories", "markers"))
        no_histories, no_markers = (tables[name].slice(0, 0) for name in ("histories", "markers"))
        stated, sums = list[dict[str, Any]](), list[dict[str, Any]]()
        for n in {*histories, *markers} & states.keys():
            given = histories.get(n, no_histories), markers.get(n, no_markers)
            sums_of_audit = sums_of_markers(given[1], given[0], states[n], asked[n])
            sums.append({"audit": n, "sums": pickle.dumps(sums_of_audit)})
            producers = pc.unique(given[0]["producer_id"])
            producers = producers.filter(pc.is_in(producers, pa.array(asked[n], pa.int64())))
            for start in range(0, len(producers), _PRODUCERS_AT_ONCE):
                some = producers.slice(start, _PRODUCERS_AT_ONCE)
                of_histories, of_markers = (each.filter(pc.is_in(each["producer_id"], some)) for each in given)
                by_producer = states_by_producer(of_histories, of_markers, states[n].max_clock_skew_ms)
                stated += [
                    {"audit": n, "producer_id": producer_id, "state": pickle.dumps(state)}
                    for producer_id, state in by_producer.items()
                ]
        of_kinds = {"stated": pa.Table.from_pylist(stated, STATED), "sums": pa.Table.from_pylist(sums, SUMS)}
        return rows_of_kinds(OF_PRODUCERS, **of_kinds)

    return run


def states_by_producer(histories: pa.Table, markers: pa.Table, max_clock_skew_ms: int) -> dict[int, ProducerHistories]:
    """What the state says of each of some producer ids.

    Args:
        histories: rows of `OF_PRODUCER`: all that these producers have.
        markers: rows of `MARKERS`: all that these producers have.
        max_clock_skew_ms: by how much two brokers' clocks may differ.
    """
    known: defaultdict[int, list[History]] = defaultdict(list)
    for producer_id, history in zip(
        histories["producer_id"].to_pylist(), histories_in(histories["history"]), strict=True
    ):
        known[producer_id].append(history)
    of_places: dict[int, dict[TopicPartition, list[EndMarker]]] = {producer_id: {} for producer_id in known}
    since_ms = _decided_since(known, max_clock_skew_ms)
    for (where, producer_id), own_markers in markers_since(markers, since_ms).items():
        of_places[producer_id][where] = own_markers
    return {producer_id: ProducerHistories(known[producer_id], of_places[producer_id]) for producer_id in known}


def _decided_since(
    histories: Mapping[int, Iterable[History]], max_clock_skew_ms: int
) -> dict[tuple[TopicPartition, int], int]:
    """By partition and producer id since when, at the earliest, there are decisions that an end marker can serve.

    A decision that was written again counts from where it was written first.
    """
    since_ms: dict[tuple[TopicPartition, int], int] = {}
    for producer_id, of_one in histories.items():
        for record in (record for history in of_one for record in history):
            for where in record.topic_partitions if is_decision(record, producer_id) else ():
                ms = (record.moment_ms or 0) - max_clock_skew_ms
                since_ms[where, producer_id] = min(ms, since_ms.get((where, producer_id), ms))
    return since_ms


def asked_of(opened: pa.Table) -> pa.Table:
    """Rows of `ASKED`, of all rows of `OPENED`."""
    rows = opened.append_column("place", pa.array(range(len(opened)), pa.int64()))
    rows = rows.sort_by([("audit", "ascending"), ("producer_id", "ascending")]).combine_chunks()
    starts = [start for start, _ in equal_runs(rows, [field.name for field in _PRODUCER])]
    columns = [rows[field.name].combine_chunks() for field in _ASKED]
    bounds = pa.array([*starts, len(rows)], pa.int32())
    lists = pa.ListArray.from_arrays(bounds, pa.StructArray.from_arrays(columns, fields=[*_ASKED]))
    return pa.table([*(rows[field.name].take(bounds[:-1]) for field in _PRODUCER), lists], schema=ASKED)


def views_in(max_clock_skew_ms: Mapping[int, int]) -> BatchFunction:
    """Rows of `VIEWS` from rows of `JOINED`.

    Args:
        max_clock_skew_ms: by audit, by how much two brokers' clocks may differ.
    """

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            known = batch.filter(batch["state"].is_valid())
            lists, rows = known["opened"], list[dict[str, Any]]()
            opened = iter(records_of(Asked, lists.flatten()))
            counts = pc.list_value_length(lists).to_pylist()
            of_rows = zip(known["audit"].to_pylist(), counts, unpickled(known["state"].to_pylist()), strict=True)
            for n, length, state in of_rows:
                asked = [*islice(opened, length)]
                views = state.views(asked, max_clock_skew_ms[n])
                for one in asked:
                    view = views[one.key]
                    bears = view.bears_on_others
                    rows.append({"place": one.place, "view": pickle.dumps(view), "bears_on_others": bears})
            yield pa.RecordBatch.from_pylist(rows, VIEWS)

    return run


def with_views(opened: pa.Table, views: pa.Table) -> pa.Table:
    """Rows of `VIEWED`, in the order of `opened`.

    Args:
        opened: rows of `OPENED`.
        views: rows of `VIEWS`.
    """
    place = pc.index_in(pa.array(range(len(opened)), pa.int64()), views["place"].combine_chunks())
    bears = pc.fill_null(views["bears_on_others"].take(place), fill_value=False)
    bears = pc.or_(bears, opened["other_copy_commit_offset"].is_valid())
    return pa.table([*opened.columns, views["view"].take(place), bears], schema=VIEWED)


def sums_of(values: Iterable[Mapping[int, Any]]) -> dict[int, Any]:
    """By audit the sum of values that have `plus`."""
    total: dict[int, Any] = {}
    for value in values:
        for audit, value_of in value.items():
            total[audit] = total[audit].plus(value_of) if audit in total else value_of
    return total


def state_seen(
    placing: Placing,
    files: StateFiles,
    sums: StateSums,
    chains: Mapping[int, StateChain],
    followed: Iterable[PartitionHealth],
) -> StateEvidence:
    """How much of `__transaction_state` the judged capture holds; whether it fits the logs is asked afterwards.

    Args:
        placing: how many partitions there are.
        files: that hold the state.
        sums: of their records.
        chains: of all partitions of which there are records, see `chains_of`.
        followed: all partitions whose logs were followed.
    """
    sections, console = sections_of(sums.files, files.of_capture), by_partition(sums.console)
    doubts: dict[int | None, tuple[str, ...]] = {None: files.doubts, **files.undecoded}
    lost = sums.console.get(None)
    if lost is not None:  # its records may be of any partition, also where the export has no other one of it
        doubt = (f"{count(lost.undecodable_count, 'record')} of an export could not be decoded",)
        doubts |= {n: (*doubts.get(n, ()), *doubt) for n in range(placing.partition_count) if n not in console}
    return state_evidence_of(placing.state_count, sections, console, chains, followed, doubts)
