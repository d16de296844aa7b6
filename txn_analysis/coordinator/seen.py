"""The coordinator's side in memory: what was seen of it, whether it fits, what it knows of what is open.

The same pure functions as on Spark (`pipeline.on_spark.state`, `pipeline.on_spark.markers`, `pipeline.on_spark.views`).
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from txn_analysis.coordinator.coverage import StateEvidence, state_evidence_of
from txn_analysis.coordinator.fit import Fit, MarkerSums, fit_of
from txn_analysis.coordinator.history import in_order
from txn_analysis.coordinator.marker_checks import sums_of_producer
from txn_analysis.coordinator.sections import console_sections, sections_of, sums_of
from txn_analysis.coordinator.state_at_hand import state_at_hand
from txn_analysis.coordinator.view import Views, views_of
from txn_analysis.logic import is_before

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from txn_analysis.coordinator.end_markers import EndMarker
    from txn_analysis.coordinator.state_at_hand import StateAtHand
    from txn_analysis.coordinator.state_records import StateRecords
    from txn_analysis.coordinator.view import Markers
    from txn_analysis.kafka.transactions import OpenTransaction, PartitionView, StateRecord, TopicPartition


def state_seen(records: StateRecords, partitions: Iterable[PartitionView]) -> StateEvidence:
    """How much of `__transaction_state` the judged capture holds; `partitions` are all that were followed."""
    sums = sums_of(records.section_records())
    return state_evidence_of(
        records.count,
        sections_of(sums.files, records.files.own),
        console_sections(sums.console),
        {number: rows.chain() for number, rows in records.state_rows().items()},
        partitions,
    )


def fit_with(
    records: StateRecords,
    state: StateEvidence,
    known: Mapping[int, Sequence[Sequence[StateRecord]]],
    markers: Markers,
    opened: Iterable[OpenTransaction],
    reach_ms: int | None,
) -> Fit:
    """Whether the state fits the logs.

    `known` are the histories of the producers of all `markers`; up to `reach_ms` the evidence of the capture speaks.
    """
    at_hand = state_at_hand(state, records.settings, reach_ms)
    sums = sums_of_all(markers, known, at_hand, opened) if at_hand.chains else MarkerSums()
    return fit_of(
        sums,
        misplaced=state.misplaced,
        is_foreign=bool(at_hand.chains) and _is_foreign(records, markers, at_hand.known_since_ms),
        cluster_ids=records.files.cluster_ids,
    )


def sums_of_all(
    markers: Markers,
    known: Mapping[int, Sequence[Sequence[StateRecord]]],
    at_hand: StateAtHand,
    opened: Iterable[OpenTransaction],
    version_2: Collection[int] | None = None,
) -> MarkerSums:
    """What all markers say of the state; nothing where nothing open depends on it.

    `version_2` are the producers that show transaction version 2; None where the markers are all that there are.
    """
    of_producer: defaultdict[int, dict[TopicPartition, Sequence[EndMarker]]] = defaultdict(dict)
    for (where, producer_id), own in markers.items():
        of_producer[producer_id][where] = own
    asked, sums = {transaction.producer_id for transaction in opened}, MarkerSums()
    for producer_id, places in of_producer.items() if asked else ():
        is_version_2 = None if version_2 is None else producer_id in version_2
        histories = known.get(producer_id, ())
        sums = sums.plus(sums_of_producer(producer_id, places, histories, at_hand, asked, is_version_2=is_version_2))
    return sums


def _is_foreign(records: StateRecords, markers: Markers, known_since_ms: int | None) -> bool:
    """Transactions ended in the logs not long ago, and the state knows none of their producers."""
    ended = {
        producer_id
        for (_, producer_id), own in markers.items()
        if any(not is_before(marker.at_ms, known_since_ms) for marker in own)
    }
    return bool(ended) and not any(not ended.isdisjoint(row.producer_ids) for row in records.rows)


def histories_of(
    records: StateRecords, markers: Markers | None, opened: Iterable[OpenTransaction]
) -> dict[int, list[list[StateRecord]]]:
    """By producer id, the records of each id that has, or had, it; in order. All of the state's without markers."""
    if markers is None:
        asked = {producer_id for row in records.rows for producer_id in row.producer_ids if producer_id is not None}
    else:
        asked = {transaction.producer_id for transaction in opened} | {producer_id for _, producer_id in markers}
    found: defaultdict[int, list[list[StateRecord]]] = defaultdict(list)
    for own in records.histories(asked).values():
        ordered = in_order(own)
        for producer_id in asked.intersection({i for r in ordered for i in r.producer_ids}):
            found[producer_id].append(ordered)
    return dict(found)


def views_with(
    known: Mapping[int, Sequence[Sequence[StateRecord]]],
    opened: Iterable[OpenTransaction],
    markers: Markers,
    max_clock_skew_ms: int,
) -> Views:
    """What the coordinator knows of open transactions, as `pipeline.on_spark.views.coordinator_views` on Spark.

    `known` has of each producer id the histories of the ids that have, or had, it.
    """
    of_producer: defaultdict[int, list[OpenTransaction]] = defaultdict(list)
    for transaction in opened:
        of_producer[transaction.producer_id].append(transaction)
    views: Views = {}
    for producer_id, transactions in of_producer.items():
        views |= views_of(known.get(producer_id, ()), transactions, markers, max_clock_skew_ms)
    return views
