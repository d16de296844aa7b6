"""The steps of the coordinator's side, as an engine runs them: from rows of `transaction_states` to what they say.

states -- by partition of the state --> chains and sums, histories of ids
histories -- by producer id, with end markers --> views and marker sums
"""

from __future__ import annotations

import pickle
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.columns.arrays import ABSENT, numbers
from txn_analysis.columns.records import records_of
from txn_analysis.columns.values import named, rows_of_values
from txn_analysis.coordinator.chain import chains_of
from txn_analysis.coordinator.coverage import state_evidence_of
from txn_analysis.coordinator.history import decides
from txn_analysis.coordinator.marker_checks import sums_of_markers
from txn_analysis.coordinator.marker_columns import markers_since
from txn_analysis.coordinator.partition_count import IdSums, sums_of_columns
from txn_analysis.coordinator.sections import console_sections, sections_of, sums_of_records
from txn_analysis.coordinator.state_records import (
    abort_counts,
    asked_about,
    by_id,
    histories_in,
    histories_of,
    last_records,
    read_at,
    read_with,
)
from txn_analysis.coordinator.view import Views, views_of
from txn_analysis.tables import TRANSACTIONS, Transaction
from txn_analysis.tables.schema import AUDIT, by_audit

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from txn_analysis.columns.bloom_filter import BloomFilter
    from txn_analysis.columns.values import BatchFunction, GroupFunction
    from txn_analysis.coordinator.chain import StateChain
    from txn_analysis.coordinator.coverage import StateEvidence
    from txn_analysis.coordinator.history import History
    from txn_analysis.coordinator.producer_bounds import StateAtHand
    from txn_analysis.coordinator.sections import StateSums
    from txn_analysis.coordinator.state_records import Placing, Placings, StateFiles
    from txn_analysis.coordinator.view import CoordinatorView
    from txn_analysis.kafka.transactions import TopicPartition
    from txn_analysis.tables import PartitionHealth


OPENED = pa.schema([AUDIT, *(field for field in TRANSACTIONS.arrow_schema if field.name in Transaction._fields)])
"""One row is one open transaction."""
VIEWED = pa.schema([*OPENED, ("view", pa.binary()), ("bears_on_others", pa.bool_())])
"""One row is one open transaction with its `CoordinatorView`, pickled; NULL where no id has, or had, its producer.

`bears_on_others` says that what becomes of others may depend on it: see `CoordinatorView.bears_on_others`.
"""

_PLACE = ("audit", "topic", "partition", "txn_start_offset", "producer_id")


def in_place_order(opened: pa.Table) -> pa.Table:
    """Rows of `OPENED` or `VIEWED`, sorted by audit, partition and start."""
    return opened.sort_by([(name, "ascending") for name in _PLACE]).combine_chunks()


def id_sums(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Values: by audit `IdSums`, of rows that have `transactional_id_hash` and `state_partition`."""
    sums = defaultdict[int, IdSums](IdSums)
    for rows in batches:
        known = pc.drop_null(rows.select(["audit", "transactional_id_hash", "state_partition"]))
        for audit, of_audit in by_audit(pa.Table.from_batches([known])).items():
            sums[audit] = sums[audit].plus(sums_of_columns(*[column.to_numpy() for column in of_audit.columns[1:]]))
    yield from rows_of_values(dict(sums)).to_batches()


def placed(placings: Placings) -> BatchFunction:
    """Rows of `READ_WITH` from the same rows without what it adds to a record."""
    text_exports = placings.text_exports

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for rows in batches:
            yield from read_with(rows, placings.each(rows["audit"], "partition_count"), text_exports)

    return run


def state_step(placings: Placings, producers: BloomFilter, abort_count: int) -> GroupFunction:
    """By audit and `read_with`, of `states` (rows of `READ_WITH`), as named rows.

    `histories` are rows of `HISTORIES`, of the ids that have, or had, a producer that the logs name; `aborted` are such
    rows of the ids that were aborted often; `last` are rows of `LAST_RECORDS`, of all ids; `chains` are values: by
    audit, by partition of the state its `StateChain`, and `StateSums` of its files.

    Args:
        placings: where the records belong.
        producers: the producer ids that the logs name.
        abort_count: what was aborted so many times was aborted often.
    """

    def run(tables: Mapping[str, pa.Table]) -> pa.Table:
        states = read_at(tables["states"], "hashed_to")
        audit = numbers(states["audit"], 0)
        ordered = by_id(states, audit, placings.each(states["audit"], "dumped_rank"))
        some = asked_about(states, ordered, producers), abort_counts(states, ordered) >= abort_count
        histories, aborted = (_batch(histories_of(states, audit, ordered.only(chosen))) for chosen in some)
        chains = _batch(rows_of_values(_chains(read_at(tables["states"], "held_by"), placings)))
        return named(histories=histories, aborted=aborted, last=_batch(last_records(states, ordered)), chains=chains)

    return run


def _chains(states: pa.Table, placings: Placings) -> dict[int, tuple[dict[int, StateChain], StateSums]]:
    audit, dumped_rank = numbers(states["audit"], 0), placings.each(states["audit"], "dumped_rank")
    chains = chains_of(states, audit, dumped_rank, {n: placing.as_of_ms for n, placing in placings.of.items()})
    return {
        n: (chains.get(n, {}), sums_of_records(of_audit, numbers(of_audit["hashed_to"], ABSENT)))
        for n, of_audit in by_audit(states).items()
    }


def producer_step(states: Mapping[int, StateAtHand], asked: Mapping[int, Collection[int]]) -> GroupFunction:
    """By audit and `producer_id`, of `histories`, `opened` and `markers`, as named rows.

    `viewed` are rows of `VIEWED`; `sums` are values: by audit `MarkerSums`.

    Args:
        states: by audit, what was given of the state.
        asked: by audit, the producer ids of all open transactions.
    """

    def run(tables: Mapping[str, pa.Table]) -> pa.Table:
        opened = tables["opened"]
        of_audit: defaultdict[int, list[Transaction]] = defaultdict(list)
        audits = opened["audit"].to_pylist()
        for audit, transaction in zip(audits, records_of(Transaction, opened), strict=True):
            of_audit[audit].append(transaction)
        histories, markers = (by_audit(tables[name]) for name in ("histories", "markers"))
        no_histories, no_markers = (tables[name].slice(0, 0) for name in ("histories", "markers"))
        views, sums = dict[int, Views](), {}
        for n in {*histories, *of_audit, *markers} & states.keys():
            given = histories.get(n, no_histories), markers.get(n, no_markers)
            views[n] = views_of_producers(*given, of_audit.get(n, ()), states[n].max_clock_skew_ms)
            sums[n] = sums_of_markers(given[1], given[0], states[n], asked[n])
        of_audit_next = {n: iter(transactions) for n, transactions in of_audit.items()}
        in_order = [views.get(n, {}).get(next(of_audit_next[n]).key) for n in audits]
        return named(viewed=_batch(with_views(opened, in_order)), sums=_batch(rows_of_values(sums)))

    return run


def with_views(opened: pa.Table, views: Sequence[CoordinatorView | None]) -> pa.Table:
    """Rows of `VIEWED`, from those of `OPENED` and what the coordinator knows of each."""
    packed = pa.array([None if view is None else pickle.dumps(view) for view in views], pa.binary())
    bears = pa.array([view is not None and view.bears_on_others for view in views], pa.bool_())
    bears = pc.or_(bears, opened["other_copy_commit_offset"].is_valid())
    return pa.table([*opened.columns, packed, bears], schema=VIEWED)


def _batch(rows: pa.Table) -> pa.RecordBatch:
    return next(iter(rows.combine_chunks().to_batches()), pa.RecordBatch.from_pylist([], rows.schema))


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
    sections, console = sections_of(sums.files, files.of_capture), console_sections(sums.console)
    doubts: dict[int | None, tuple[str, ...]] = {None: files.doubts, **files.undecoded}
    lost = sums.console.get(None)
    if lost is not None:  # its records may be of any partition, also where the export has no other one of it
        doubt = (f"{lost.undecodable_count} records of an export could not be decoded",)
        doubts |= {n: (*doubts.get(n, ()), *doubt) for n in range(placing.partition_count) if n not in console}
    return state_evidence_of(placing.state_count, sections, console, chains, followed, doubts)


def views_of_producers(
    histories: pa.Table, markers: pa.Table, opened: Iterable[Transaction], max_clock_skew_ms: int
) -> Views:
    """What the state says of open transactions of some producers.

    Args:
        histories: rows of `OF_PRODUCER`: all that these producers have.
        markers: rows of `MARKERS`: all that these producers have.
        opened: open transactions of these producers.
        max_clock_skew_ms: by how much two brokers' clocks may differ.
    """
    of_producer: defaultdict[int, list[Transaction]] = defaultdict(list)
    for transaction in opened:
        of_producer[transaction.producer_id].append(transaction)
    known: defaultdict[int, list[History]] = defaultdict(list)
    wanted = histories.filter(pc.is_in(histories["producer_id"], pa.array([*of_producer], pa.int64())))
    for producer_id, history in zip(wanted["producer_id"].to_pylist(), histories_in(wanted["history"]), strict=True):
        known[producer_id].append(history)
    asked_of, views = {producer_id: of_producer[producer_id] for producer_id in known}, Views()
    own_markers = markers_since(markers, dict(_decided_since(known, asked_of, max_clock_skew_ms)))
    for producer_id, of_one in asked_of.items():
        views |= views_of(known[producer_id], of_one, own_markers, max_clock_skew_ms)
    return views


def _decided_since(
    histories: Mapping[int, Sequence[History]], opened: Mapping[int, Iterable[Transaction]], max_clock_skew_ms: int
) -> Iterator[tuple[tuple[TopicPartition, int], int]]:
    """Of open transactions since when, at the earliest, the state has decisions that an end marker can serve.

    None where it has none; a decision that was written again counts from where it was written first.
    """
    for producer_id, of_one in opened.items():
        records = [record for history in histories[producer_id] for record in history]
        for transaction in of_one:
            where = transaction.topic_partition
            prepared_ms = [record.moment_ms or 0 for record in records if decides(record, where, producer_id)]
            if prepared_ms:
                yield transaction.key, min(prepared_ms) - max_clock_skew_ms
