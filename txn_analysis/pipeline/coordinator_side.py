"""What a run knows of the coordinator: the steps of its side, one after another, on whichever engine the run has."""

from __future__ import annotations

import pickle
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from txn_analysis.coordinator.fit import MarkerSums
from txn_analysis.coordinator.marker_columns import (
    ENDED_COLUMNS,
    MARKERS,
    markers_of_ended,
    markers_of_health,
)
from txn_analysis.coordinator.sections import StateSums
from txn_analysis.coordinator.sections import added_up as sections_added_up
from txn_analysis.coordinator.seen import CoordinatorSide, OfProducers, side_of, state_seen
from txn_analysis.coordinator.state_at_hand import state_at_hand
from txn_analysis.engine.told import TOLD, heard
from txn_analysis.pipeline.state_steps import (
    HISTORIES,
    OF_PRODUCER,
    STATE_COLUMNS,
    STATES,
    added_up,
    by_producer_id,
    chain_step,
    history_step,
    placed,
    producer_step,
)
from txn_analysis.pipeline.warning_steps import warnings_of_ids
from txn_analysis.runs.ended_transactions import ended_columns, ended_filter, ended_ingests
from txn_analysis.spark.parallel import in_parallel
from txn_analysis.tables import ENDED_TRANSACTIONS, PARTITION_HEALTH, TRANSACTION_STATES

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from txn_analysis.coordinator.chain import StateChain
    from txn_analysis.coordinator.state_at_hand import StateAtHand
    from txn_analysis.judge.early_warning import WarningLine
    from txn_analysis.kafka.transactions import OpenTransaction, PartitionView
    from txn_analysis.pipeline.run import Run

_BARE = pa.schema([PARTITION_HEALTH.arrow_schema.field(name) for name in ("topic", "partition", "bare_markers")])


class Coordinator(NamedTuple):
    """What a run knows of the coordinator, and what the records of transactional ids warn of."""

    side: CoordinatorSide
    of_ids: list[WarningLine]


def coordinator_of(run: Run, opened: Sequence[OpenTransaction], followed: Collection[PartitionView]) -> Coordinator:
    """What a run knows of the coordinator.

    Args:
        run: whose evidence counts.
        opened: the open transactions that are asked about.
        followed: all partitions of the run.
    """
    engine, placing, files = run.engine, run.placing, run.state_files
    if not files.every and not files.has_own_records:  # no capture has a record of it
        return Coordinator(side_of(state_seen(placing, files, *_NO_STATE, followed), _NOTHING, files.cluster_ids), [])
    rows = engine.mapped(run.evidence_rows(TRANSACTION_STATES, *STATE_COLUMNS), placed(placing), STATES)
    of_ids = engine.grouped(["transactional_id"], history_step(placing), HISTORIES, states=rows)
    with engine.kept(of_ids) as histories:
        (chains, sums), warnings = in_parallel(
            lambda: _chains(engine.collected(engine.grouped(["held_by"], chain_step(placing), TOLD, states=rows))),
            lambda: warnings_of_ids(engine, histories, run.settings, run.as_of_ms),
        )
        seen = state_seen(placing, files, sums, chains, followed)
        given = state_at_hand(seen, run.settings, run.moments.reach_ms)
        said = _of_producers(run, histories, opened, given) if given.chains else _NOTHING
    return Coordinator(side_of(seen, said, files.cluster_ids), warnings)


_NO_STATE = StateSums({}, {}), dict[int, "StateChain"]()
_NOTHING = OfProducers({}, MarkerSums())


def _chains(rows: pa.Table) -> tuple[Mapping[int, StateChain], StateSums]:
    found = list(heard(rows))
    chains = {number: chain for of_some, _ in found for number, chain in of_some.items()}
    return chains, sections_added_up(sums for _, sums in found)


def _of_producers(run: Run, histories: Any, opened: Sequence[OpenTransaction], state: StateAtHand) -> OfProducers:
    """By bucket of producers their histories, open transactions and end markers; only sums and views travel."""
    engine, asked = run.engine, frozenset(transaction.producer_id for transaction in opened)
    ids = pa.array([transaction.producer_id for transaction in opened], pa.int64())
    values = pa.array([pickle.dumps(transaction) for transaction in opened], pa.binary())
    found = engine.grouped(
        ["producer_id"],
        producer_step(state, asked),
        TOLD,
        histories=engine.mapped(histories, by_producer_id, OF_PRODUCER),
        opened=engine.made(pa.table([ids, values], schema=OF_PRODUCER)),
        markers=end_markers(run),
    )
    told = heard(engine.collected(engine.mapped(found, added_up, TOLD)))
    return reduce(OfProducers.plus, told, _NOTHING)


def end_markers(run: Run) -> Any:
    """Rows of `MARKERS`: every end marker of the logs of a run, whether the run is complete or not."""
    engine, names = run.engine, ended_columns(*ENDED_COLUMNS)
    schema = pa.schema([ENDED_TRANSACTIONS.arrow_schema.field(name) for name in names])
    rows = engine.table(ENDED_TRANSACTIONS, *names, ingest_id=ended_ingests(run))
    ended = engine.mapped(engine.mapped(rows, ended_filter(run), schema), markers_of_ended, MARKERS)
    health = engine.table(PARTITION_HEALTH, *_BARE.names, run_id=[run.run_id])
    return engine.together(ended, engine.mapped(health, markers_of_health, MARKERS))
