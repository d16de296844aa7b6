"""The coordinator's side of an audit: how much of the state was seen, whether it fits the logs, what it says."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from txn_analysis.coordinator.coverage import StateEvidence, state_evidence_of
from txn_analysis.coordinator.decisions import decisions_of
from txn_analysis.coordinator.fit import MarkerSums, fit_of
from txn_analysis.coordinator.marker_checks import sums_of_markers
from txn_analysis.coordinator.marker_columns import markers_since
from txn_analysis.coordinator.sections import console_sections, sections_of
from txn_analysis.coordinator.view import Views, views_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from txn_analysis.coordinator.chain import StateChain
    from txn_analysis.coordinator.history import History
    from txn_analysis.coordinator.producer_bounds import StateAtHand
    from txn_analysis.coordinator.sections import StateSums
    from txn_analysis.coordinator.state_records import Placing, StateFiles
    from txn_analysis.kafka.transactions import TopicPartition
    from txn_analysis.tables import PartitionHealth, Transaction


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
