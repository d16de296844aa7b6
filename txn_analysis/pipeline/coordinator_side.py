"""What audits know of the coordinator: the steps of its side, one after another, on whichever engine there is."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa

from txn_analysis.columns.arrays import Array, tuples_of
from txn_analysis.columns.values import VALUES, unpickled, values_in
from txn_analysis.coordinator.chain import StateChain
from txn_analysis.coordinator.coverage import StateEvidence
from txn_analysis.coordinator.fit import MarkerSums, fit_of, of_one_cluster
from txn_analysis.coordinator.partition_count import IdSums
from txn_analysis.coordinator.producer_bounds import GivenState, given_state
from txn_analysis.coordinator.sections import StateSums
from txn_analysis.coordinator.state_records import (
    OF_PRODUCER,
    READ_WITH,
    STATE_COLUMNS,
    Placing,
    Placings,
    by_producer_id,
)
from txn_analysis.coordinator.steps import (
    HASHES,
    ID_SUMS,
    OF_PRODUCERS,
    OF_STATE,
    VIEWS,
    asked_of,
    id_sums,
    placed,
    producer_step,
    state_seen,
    state_step,
    sums_of,
    views_in,
    with_views,
)
from txn_analysis.engine.engine import Engine
from txn_analysis.judge.applications import (
    NO_GROUPS,
    ConnectGroups,
    groups_led,
    topics_of_tasks,
    with_topics,
)
from txn_analysis.judge.early_warning import MANY, Known, median_of
from txn_analysis.judge.warning_steps import (
    LAST_RECORDS,
    OF_APPLICATION,
    WarningLine,
    timeouts_and_leaders,
    warnings_of,
    warnings_of_aborts,
    warnings_of_last,
    worst_step,
)
from txn_analysis.pipeline.linking import Logs
from txn_analysis.pipeline.run import Given, Run
from txn_analysis.settings import Settings
from txn_analysis.spark.jobs import described, in_parallel
from txn_analysis.tables import CURRENT_STATES, TRANSACTION_STATES
from txn_analysis.tables.schema import by_audit, rows_of_run

_MOST_GROUPS = 1_000


class CoordinatorSide(NamedTuple):
    """What is known of the coordinator.

    Attributes:
        seen: by audit, what was seen of the state, and whether it fits the logs.
        viewed: rows of `VIEWED`: all open transactions, with what the state says of each.
    """

    seen: Mapping[int, StateEvidence]
    viewed: pa.Table


class States(NamedTuple):
    """The records of the coordinator, of those audits that have any.

    Attributes:
        placings: by audit, where they belong.
        histories: the rows of that kind of `OF_STATE`, as the others: see `state_step`.
        last: rows of `LAST_RECORDS`, of `newest`.
    """

    placings: Placings
    histories: Any
    aborted: Any
    newest: Any
    chains: Any
    last: Any

    @classmethod
    def of(cls, engine: Engine[Any], placings: Placings, rows: Any) -> States:
        """Of rows of `OF_STATE`."""
        histories, aborted, newest, chains = (engine.of_kind(rows, kind) for kind in OF_STATE.names)
        last = engine.of_kind(rows, "newest", *LAST_RECORDS.names)
        return cls(placings, histories, aborted, newest, chains, last)


@contextmanager
def states_of(given: Given, producers: Array) -> Iterator[States]:
    """What the records of the coordinator say, of each id and of each partition of the state; made once.

    Args:
        given: the audits.
        producers: the producer ids that their logs name, in order.
    """
    engine = given.engine
    files = {n: audit.state_files for n, audit in given.audits.items()}
    with_records = {n: of_state for n, of_state in files.items() if of_state.every or of_state.has_own_records}
    sums = dict[int, IdSums]()
    if any(of_state.every for of_state in files.values()):
        of_parts = given.rows(TRANSACTION_STATES, *HASHES, made=(id_sums, ID_SUMS))
        with described("judge: derive the number of partitions of __transaction_state"):
            rows = tuples_of(engine.collected(of_parts), ID_SUMS.names)
        sums = sums_of({n: IdSums(*of_part)} for n, *of_part in rows)
    known = {n: Placing.of(given.audits[n].settings, of_state, sums.get(n, IdSums())) for n, of_state in files.items()}
    placings = Placings(known)
    if not with_records:  # no capture has a record of it
        none = engine.made(OF_STATE.empty_table())
        yield States.of(engine, placings, none)
        return
    rows = given.rows(TRANSACTION_STATES, *STATE_COLUMNS, made=(placed(placings), READ_WITH))
    step = state_step(placings, producers, MANY)
    with engine.kept(engine.grouped(["audit", "read_with"], step, OF_STATE, states=rows)) as kept:
        yield States.of(engine, placings, kept)


def coordinator_side(given: Given, states: States, logs: Logs) -> CoordinatorSide:
    """What is known of the coordinator of each audit.

    Args:
        given: the audits.
        states: the records of the coordinator.
        logs: whose open transactions are asked about, and whose end markers test the state.
    """
    engine, files = given.engine, {n: audit.state_files for n, audit in given.audits.items()}
    chains: defaultdict[int, dict[int, StateChain]] = defaultdict(dict)
    sums = defaultdict[int, StateSums](lambda: StateSums({}, {}))
    with described("judge: follow __transaction_state by partition and transactional id"):
        of_buckets = engine.collected(states.chains)
    for of_some in values_in(of_buckets):
        for number, (partition_chains, of_files) in of_some.items():
            chains[number].update(partition_chains)
            sums[number].update(of_files)
    seen = {
        n: state_seen(
            states.placings.of[n],
            of_state,
            sums[n],
            chains.get(n, {}),
            logs.health.get(n, ()),
        )
        for n, of_state in files.items()
    }
    given_states = {
        n: given_state(state, given.audits[n].settings, given.audits[n].moments.reach_ms) for n, state in seen.items()
    }
    viewed, sums_of_audit = _of_producers(
        given, states, logs, {n: audit_state for n, audit_state in given_states.items() if audit_state.chains}
    )
    fits = {
        n: fit_of(
            sums_of_audit.get(n, MarkerSums()),
            misplaced=state.misplaced,
            cluster_ids=files[n].cluster_ids,
            is_partial=given.audits[n].is_partial,
            has_undecodable=state.has_undecodable,
            of_one_cluster=of_one_cluster(given.audits[n].sections, given.audits[n].manifests),
        )
        for n, state in seen.items()
    }
    return CoordinatorSide({n: replace(state, fit=fits[n]) for n, state in seen.items()}, viewed)


def _of_producers(
    given: Given, states: States, logs: Logs, given_states: Mapping[int, GivenState]
) -> tuple[pa.Table, dict[int, MarkerSums]]:
    """One row for each producer id, with its histories and end markers, is joined to its open transactions.

    Returns:
        Rows of `VIEWED`, and by audit what the end markers say.
    """
    if not given_states:
        return with_views(logs.opened, VIEWS.empty_table()), {}
    engine, key = given.engine, ["audit", "producer_id"]
    asked = {n: frozenset(opened["producer_id"].to_pylist()) for n, opened in by_audit(logs.opened).items()}
    made = engine.grouped(
        key,
        producer_step(given_states, {n: asked.get(n, frozenset()) for n in given_states}),
        OF_PRODUCERS,
        histories=engine.mapped(states.histories, by_producer_id, OF_PRODUCER),
        markers=logs.end_markers,
    )
    skews_ms = {n: audit_state.max_clock_skew_ms for n, audit_state in given_states.items()}
    words = described("judge: join open transactions with the coordinator's state by producer_id")
    with words, engine.kept(made) as of_producers:
        joined = engine.joined(engine.made(asked_of(logs.opened)), engine.of_kind(of_producers, "stated"), key)
        sums, views = in_parallel(
            partial(engine.collected, engine.of_kind(of_producers, "sums")),
            partial(engine.collected, engine.mapped(joined, views_in(skews_ms), VIEWS)),
        )
    of_audits = zip(sums["audit"].to_pylist(), unpickled(sums["sums"].to_pylist()), strict=True)
    return with_views(logs.opened, views), sums_of([{n: marker_sums} for n, marker_sums in of_audits])


def ids_side(
    engine: Engine[Any], states: States, settings: Settings, as_of_ms: int | None
) -> tuple[list[WarningLine], ConnectGroups]:
    """What the records of transactional ids warn of, in the order of `WARNINGS`, and the groups of Kafka Connect.

    Args:
        engine: whose rows they are.
        states: the records.
        settings: as for the audit.
        as_of_ms: when the files were copied; None where no broker's clock speaks.
    """
    with described("judge: count the timeouts of transactional ids, and find the leaders of Kafka Connect"):
        of_parts = [*values_in(engine.collected(engine.mapped(states.last, timeouts_and_leaders, VALUES)))]
    counts = sum((timeouts for timeouts, _ in of_parts), Counter[int]())
    warnings = _warnings_of_ids(engine, states, Known(settings, as_of_ms, median_of(counts)))
    return warnings, _connect_groups(engine, states, [name for _, names in of_parts for name in names])


def _warnings_of_ids(engine: Engine[Any], states: States, known: Known) -> list[WarningLine]:
    warned = engine.together(
        engine.mapped(states.last, warnings_of_last(known), OF_APPLICATION),
        engine.mapped(states.aborted, warnings_of_aborts, OF_APPLICATION),
    )
    with described("judge: find the early warnings of each application"):
        worst_rows = engine.collected(engine.grouped(["application"], worst_step, VALUES, warnings=warned))
    return warnings_of([each for worst in values_in(worst_rows) for each in worst])


def write_current_states(run: Run, states: States) -> None:
    """Write `current_states` of a run."""
    rows = partial(map, rows_of_run(CURRENT_STATES, run.run_id))
    with described("judge: write the newest record of each transactional id"):
        run.engine.write(states.newest, rows, CURRENT_STATES, run_id=run.run_id)


def _connect_groups(engine: Engine[Any], states: States, leader_ids: Iterable[str]) -> ConnectGroups:
    """The groups of Kafka Connect whose leaders have an id that is not gone, the first thousand by name; and what the
    records of their tasks show.
    """
    names = frozenset(groups_led(leader_ids)[:_MOST_GROUPS])
    if not names:
        return NO_GROUPS
    with described("judge: find what the tasks of Kafka Connect write"):
        listed = engine.collected(engine.mapped(states.histories, topics_of_tasks(names), VALUES))
    topics: defaultdict[str, set[str]] = defaultdict(set)
    for some in values_in(listed):
        for name, task_topics in some:
            topics[name] |= task_topics
    return with_topics(names, topics)
