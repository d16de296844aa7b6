"""The steps of the coordinator's side, as an engine runs them: from rows of `transaction_states` to what they say.

states -- by partition of the state --> chains and sums
states -- by transactional id --> histories -- by producer id, with end markers --> views and marker sums
"""

from __future__ import annotations

import pickle
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.columns.records import fields_of
from txn_analysis.columns.values import rows_of_values, unpickled, values_in
from txn_analysis.coordinator.coverage import StateEvidence, state_evidence_of
from txn_analysis.coordinator.fit import MarkerSums, fit_of
from txn_analysis.coordinator.history import decisions_of
from txn_analysis.coordinator.marker_checks import sums_of_markers
from txn_analysis.coordinator.marker_columns import markers_since
from txn_analysis.coordinator.partition_count import IdSums, positive_hashes, sums_of_columns
from txn_analysis.coordinator.sections import console_sections, sections_of, sums_of_records
from txn_analysis.coordinator.state_records import StateRow, chains_of, histories_of, producers_of
from txn_analysis.coordinator.view import Views, views_of
from txn_analysis.tables import TRANSACTION_STATES
from txn_analysis.tables.given import AUDIT, by_audit, given_schema

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from txn_analysis.columns.values import BatchFunction, GroupFunction
    from txn_analysis.coordinator.chain import StateChain
    from txn_analysis.coordinator.history import History
    from txn_analysis.coordinator.producer_bounds import StateAtHand
    from txn_analysis.coordinator.sections import StateSums
    from txn_analysis.coordinator.state_records import Placing, StateFiles
    from txn_analysis.kafka.transactions import TopicPartition
    from txn_analysis.tables import PartitionHealth, Transaction


STATE_COLUMNS = tuple(fields_of(StateRow))
STATES = pa.schema([*given_schema(TRANSACTION_STATES, *STATE_COLUMNS), ("held_by", pa.int32())])
"""One row is one record of the coordinator that is evidence: in the fields of `StateRow`, and the partition of the
state that holds it, see `Placing.partition_of`."""
HISTORIES = pa.schema([AUDIT, ("producer_ids", pa.list_(pa.int64())), ("history", pa.binary())])
"""One row is one transactional id: the producer ids that it has, or had, and its records in order, pickled."""
OF_PRODUCER = pa.schema([AUDIT, ("producer_id", pa.int64()), ("value", pa.binary())])
"""One row is something of one producer, pickled: the history of an id that has, or had, it; an open transaction."""


def id_sums(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Values: by audit `IdSums`, of rows that have `transactional_id_hash` and `state_partition`."""
    sums = defaultdict[int, IdSums](IdSums)
    for rows in batches:
        known = pc.drop_null(rows.select(["audit", "transactional_id_hash", "state_partition"]))
        for audit, own in by_audit(pa.Table.from_batches([known])).items():
            sums[audit] = sums[audit].plus(sums_of_columns(*[column.to_numpy() for column in own.columns[1:]]))
    yield from rows_of_values(dict(sums)).to_batches()


def placed(placings: Mapping[int, Placing]) -> BatchFunction:
    """Rows of `STATES` from the same rows without `held_by`."""
    numbers = np.array(sorted(placings), np.int64)
    counts = np.array([placings[number].state_count.used for number in numbers.tolist()], np.int64)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for rows in batches:
            hashes, audits = rows.column("transactional_id_hash").cast(pa.int64()), rows.column("audit").to_numpy()
            count = counts[np.searchsorted(numbers, audits)]
            hashed = positive_hashes(hashes.fill_null(0).to_numpy(zero_copy_only=False)) % count
            of_id = pa.array(hashed.astype(np.int32), mask=hashes.is_null().to_numpy(zero_copy_only=False))
            held_by = pc.coalesce(rows.column("state_partition"), of_id)
            yield pa.RecordBatch.from_arrays([*rows.columns, held_by], schema=STATES)

    return run


def _rows_of(states: pa.Table) -> dict[int, list[StateRow]]:
    """The records of each audit."""
    found: defaultdict[int, list[StateRow]] = defaultdict(list)
    for audit, row in zip(states["audit"].to_pylist(), StateRow.listed(states), strict=True):
        found[audit].append(row)
    return found


def chain_step(placings: Mapping[int, Placing]) -> GroupFunction:
    """By audit and `held_by`, of `states`.

    Values: by audit, by partition of the state its `StateChain`, and `StateSums` of its files.
    """

    def run(tables: Mapping[str, pa.Table]) -> pa.Table:
        found = _rows_of(tables["states"]).items()
        return rows_of_values(
            {n: (chains_of(rows, placings[n]), sums_of_records(rows, placings[n])) for n, rows in found}
        )

    return run


def history_step(placings: Mapping[int, Placing]) -> GroupFunction:
    """By audit and `transactional_id`, of `states`: rows of `HISTORIES`."""

    def run(tables: Mapping[str, pa.Table]) -> pa.Table:
        found = _rows_of(tables["states"]).items()
        histories = [(audit, history) for audit, rows in found for history in histories_of(rows, placings[audit])]
        producers = [sorted(producers_of(history)) for _, history in histories]
        values = [pickle.dumps(history) for _, history in histories]
        return pa.table([[audit for audit, _ in histories], producers, values], schema=HISTORIES)

    return run


def by_producer_id(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of `OF_PRODUCER` from rows of `HISTORIES`: each history for each of its producer ids."""
    for rows in batches:
        number = pc.list_parent_indices(rows.column("producer_ids"))
        audit, history = rows.column("audit").take(number), rows.column("history").take(number)
        columns = [audit, rows.column("producer_ids").flatten(), history]
        yield pa.RecordBatch.from_arrays(columns, schema=OF_PRODUCER)


def producer_step(states: Mapping[int, StateAtHand], asked: Mapping[int, Collection[int]]) -> GroupFunction:
    """By audit and `producer_id`, of `histories`, `opened` and `markers`. Values: by audit `OfProducers`.

    Args:
        states: by audit, what was given of the state.
        asked: by audit, the producer ids of all open transactions.
    """

    def run(tables: Mapping[str, pa.Table]) -> pa.Table:
        histories: defaultdict[int, dict[int, list[History]]] = defaultdict(dict)
        for audit, producer_id, history in _values_of(tables["histories"]):
            histories[audit].setdefault(producer_id, []).append(history)
        opened: defaultdict[int, list[Transaction]] = defaultdict(list)
        for audit, _, transaction in _values_of(tables["opened"]):
            opened[audit].append(transaction)
        markers, none = by_audit(tables["markers"]), tables["markers"].slice(0, 0)
        found = {
            n: of_producers(histories.get(n, {}), markers.get(n, none), opened.get(n, ()), states[n], asked[n])
            for n in {*histories, *opened, *markers} & states.keys()
        }
        return rows_of_values(found)

    return run


def _values_of(rows: pa.Table) -> Iterator[tuple[int, int, Any]]:
    """The audit, the producer id and the value of rows of `OF_PRODUCER`."""
    values = unpickled(rows["value"].to_pylist())
    return zip(rows["audit"].to_pylist(), rows["producer_id"].to_pylist(), values, strict=True)


def added_up(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Values: the sums of what was told by audit, of values that have `plus`."""
    yield from rows_of_values(sums_of(value for part in parts for value in values_in(part))).to_batches()


def sums_of(values: Iterable[Mapping[int, Any]]) -> dict[int, Any]:
    """By audit the sum of values that have `plus`."""
    found: dict[int, Any] = {}
    for value in values:
        for audit, own in value.items():
            found[audit] = found[audit].plus(own) if audit in found else own
    return found


class CoordinatorSide(NamedTuple):
    """What was seen of the state and whether it fits the logs, and what it says of each open transaction."""

    state: StateEvidence
    views: Views


class OfProducers(NamedTuple):
    """What the state says of some producers: of their open transactions, and their end markers of it."""

    views: Views
    sums: MarkerSums

    def plus(self, other: OfProducers) -> OfProducers:
        """Of those of both."""
        return OfProducers(self.views | other.views, self.sums.plus(other.sums))


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
    sections, console = sections_of(sums.files, files.own), console_sections(sums.console)
    return state_evidence_of(placing.state_count, sections, console, chains, followed)


def of_producers(
    histories: Mapping[int, Sequence[History]],
    markers: pa.Table,
    opened: Iterable[Transaction],
    state: StateAtHand,
    asked: Collection[int],
) -> OfProducers:
    """What the state says of some producers.

    Args:
        histories: by producer id, the records of each id that has, or had, it; in order.
        markers: rows of `MARKERS`: all that these producers have.
        opened: open transactions of these producers.
        state: what was given of the state.
        asked: the producer ids of all open transactions.
    """
    of_producer: defaultdict[int, list[Transaction]] = defaultdict(list)
    for transaction in opened:
        if transaction.producer_id in histories:
            of_producer[transaction.producer_id].append(transaction)
    skew_ms, views = state.max_clock_skew_ms, Views()
    own_markers = markers_since(markers, dict(_decided_since(histories, of_producer, skew_ms)))
    for producer_id, own in of_producer.items():
        views |= views_of(histories[producer_id], own, own_markers, skew_ms)
    return OfProducers(views, sums_of_markers(markers, histories, state, asked))


def _decided_since(
    histories: Mapping[int, Sequence[History]], opened: Mapping[int, Iterable[Transaction]], max_clock_skew_ms: int
) -> Iterator[tuple[tuple[TopicPartition, int], int]]:
    """Of open transactions since when the state has decisions that an end marker can serve; none where it has none."""
    for producer_id, own in opened.items():
        for transaction in own:
            decided = (decisions_of(h, transaction.topic_partition, producer_id) for h in histories[producer_id])
            prepared_ms = [decision.prepared_ms for found in decided for decision in found]
            if prepared_ms:
                yield transaction.key, min(prepared_ms) - max_clock_skew_ms


def side_of(state: StateEvidence, said: OfProducers, cluster_ids: Collection[str]) -> CoordinatorSide:
    """The whole, from what was seen of the state and what it says of all producers."""
    fit = fit_of(said.sums, misplaced=state.misplaced, cluster_ids=cluster_ids)
    return CoordinatorSide(replace(state, fit=fit), said.views)
