"""What a run knows of the coordinator: in memory where its inputs are small, in Spark's tasks where they are not.

Both call the same pure functions. A small capture is judged some seconds sooner so: no job of Spark is faster than a
tenth of a second, and this takes a dozen of them.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import partial, reduce
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.sql import functions as F

from txn_analysis.coordinator.decisions import decisions_of
from txn_analysis.coordinator.end_markers import ENDED_COLUMNS, markers_of
from txn_analysis.coordinator.fit import MarkerSums, fit_of
from txn_analysis.coordinator.marker_look import Look, looker
from txn_analysis.coordinator.seen import fit_with, histories_of, state_seen, sums_of_all, views_with
from txn_analysis.coordinator.state_at_hand import state_at_hand
from txn_analysis.coordinator.state_records import StateRecords
from txn_analysis.coordinator.state_row import StateRow
from txn_analysis.kafka.sections import STATE
from txn_analysis.kafka.transactions import TopicPartition
from txn_analysis.pipeline.on_spark.markers import PLACE, end_markers, is_foreign, marker_sums, markers_in, with_markers
from txn_analysis.pipeline.on_spark.state import PICKLED, state_evidence, told
from txn_analysis.pipeline.on_spark.views import coordinator_views, open_rows
from txn_analysis.runs.ended_transactions import ended_listed
from txn_analysis.spark.parallel import in_parallel
from txn_analysis.storage.frames import collected, is_at_hand
from txn_analysis.tables import PARTITION_HEALTH, TRANSACTION_STATES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql import DataFrame

    from txn_analysis.coordinator.coverage import StateEvidence
    from txn_analysis.coordinator.end_markers import EndMarker
    from txn_analysis.coordinator.fit import Fit
    from txn_analysis.coordinator.view import Views
    from txn_analysis.kafka.transactions import OpenTransaction, PartitionView, StateRecord
    from txn_analysis.pipeline.run import Run

Key = tuple[TopicPartition, int]
Followed = Collection["PartitionView"]
"""All partitions of a run, by what is known of their logs."""


class CoordinatorSide(NamedTuple):
    """What was seen of the state and whether it fits the logs, and what it says of each open transaction."""

    state: StateEvidence
    views: Views


def coordinator_side(
    run: Run, opened: Sequence[OpenTransaction], followed: Followed, states: DataFrame
) -> CoordinatorSide:
    """What a run knows of the coordinator, where its inputs are too many to be held.

    Args:
        run: whose evidence counts.
        opened: the open transactions that are asked about.
        followed: all partitions of the run.
        states: the records of the coordinator that are evidence in the run.
    """
    markers = end_markers(run.ended_transactions(), run.rows(PARTITION_HEALTH))
    state_bytes = sum(item["text_bytes"] for item in run.evidence.inputs if _holds_state(item))
    if is_at_hand(state_bytes):
        return _state_in_memory(run, opened, followed, markers)
    return _on_spark(run, opened, followed, markers, states)


def _holds_state(item: Mapping[str, Any]) -> bool:
    kinds = [section["kind"] for section in item["sections"] or ()]
    return any(kind == STATE or kind.startswith("console") for kind in kinds)


def side_at_hand(run: Run, opened: Sequence[OpenTransaction], followed: Followed) -> CoordinatorSide:
    """What a run that is at hand knows of the coordinator; arguments as of `coordinator_side`."""
    records, ended, bare = in_parallel(
        lambda: run.state_records,
        lambda: ended_listed(run, *ENDED_COLUMNS),
        lambda: run.listed(PARTITION_HEALTH, "topic", "partition", "bare_markers"),
    )
    found = markers_of(ended, bare)
    state, known = state_seen(records, followed), histories_of(records, found, opened)
    fit = fit_with(records, state, known, found, opened, run.moments.reach_ms)
    views = views_with(known, opened, found, run.settings.max_clock_skew_ms)
    return CoordinatorSide(replace(state, fit=fit), views)


def _state_in_memory(
    run: Run, opened: Sequence[OpenTransaction], followed: Followed, markers: DataFrame
) -> CoordinatorSide:
    """Logs of any size beside a state that is small: of their markers only those that are asked about are collected."""
    rows = collected(run.evidence.of(TRANSACTION_STATES))
    records = StateRecords(run.settings, run.state_files, [StateRow.of(row) for row in rows])
    state, known = state_seen(records, followed), histories_of(records, None, opened)
    at_hand = state_at_hand(state, run.settings, run.moments.reach_ms)
    look, found = in_parallel(
        lambda: reduce(Look.plus, told(markers.mapInArrow(looker(known, at_hand), PICKLED)), Look()),
        lambda: _markers_of_decided(opened, known, markers, run.settings.max_clock_skew_ms),
    )
    sums = MarkerSums()
    if at_hand.chains and opened:
        own = _markers_of(suspects, markers) if (suspects := look.suspects) else {}
        sums = look.with_suspects(sums_of_all(own, known, at_hand, opened, look.version_2))
    fit = fit_of(
        sums,
        misplaced=state.misplaced,
        is_foreign=bool(at_hand.chains) and look.has_young and not look.knows_one,
        cluster_ids=run.state_files.cluster_ids,
    )
    views = views_with(known, opened, found, run.settings.max_clock_skew_ms)
    return CoordinatorSide(replace(state, fit=fit), views)


def _markers_of_decided(
    opened: Sequence[OpenTransaction],
    known: Mapping[int, Sequence[Sequence[StateRecord]]],
    markers: DataFrame,
    max_clock_skew_ms: int,
) -> dict[Key, list[EndMarker]]:
    """The markers that can serve a decision on an open transaction: none where the state has no such decision."""
    decided = {
        t.key: found
        for t in opened
        if (
            found := [
                d for h in known.get(t.producer_id, ()) for d in decisions_of(h, t.topic_partition, t.producer_id)
            ]
        )
    }
    if not decided:
        return {}
    since_ms = min(decision.prepared_ms for found in decided.values() for decision in found) - max_clock_skew_ms
    return _markers_of(decided, markers.where(F.col("at_ms").isNull() | (F.col("at_ms") >= since_ms)))


def _markers_of(keys: Iterable[Key], markers: DataFrame) -> dict[Key, list[EndMarker]]:
    places = [(*where, producer_id) for where, producer_id in sorted(keys)]
    asked = markers.sparkSession.createDataFrame(places, markers.select(*PLACE).schema)
    rows = collected(with_markers(asked, markers))
    return {(TopicPartition(row["topic"], row["partition"]), row["producer_id"]): markers_in(row) for row in rows}


def _on_spark(
    run: Run, opened: Sequence[OpenTransaction], followed: Followed, markers: DataFrame, states: DataFrame
) -> CoordinatorSide:
    state, views = in_parallel(
        partial(state_evidence, states, run.evidence, followed, run.state_count, run.settings.as_of_ms),
        lambda: _views(run, opened, markers, states) if opened else {},
    )
    asked = {transaction.producer_id for transaction in opened}
    return CoordinatorSide(replace(state, fit=_fit(run, asked, markers, states, state)), views)


def _views(run: Run, opened: Sequence[OpenTransaction], markers: DataFrame, states: DataFrame) -> Views:
    asked = open_rows(markers.sparkSession, opened)
    return coordinator_views(asked, markers, states, run.settings.max_clock_skew_ms)


def _fit(run: Run, asked: set[int], markers: DataFrame, states: DataFrame, state: StateEvidence) -> Fit:
    """Whether the state fits the logs; what the markers say is only asked where something open depends on it."""
    at_hand = state_at_hand(state, run.settings, run.moments.reach_ms)
    is_given = bool(at_hand.chains)
    sums, is_another = in_parallel(
        lambda: marker_sums(markers, states, at_hand, asked) if is_given and asked else MarkerSums(),
        lambda: is_given and is_foreign(states, markers, at_hand.known_since_ms),
    )
    return fit_of(sums, misplaced=state.misplaced, is_foreign=is_another, cluster_ids=run.state_files.cluster_ids)
