"""End markers that are not sent: decisions of several ids that stand, on partitions that other brokers lead.

KAFKA-20322: a coordinator of 4.2.0 sends WriteTxnMarkers 2 without asking which versions the other broker knows
(`TransactionMarkerChannelManager`), so no leader of 4.1 and older takes its markers, and nobody else writes them. One
id alone tells nothing; several ids show it, for all of them wait between the same brokers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from txn_analysis.kafka.topics import STATE_TOPIC
from txn_analysis.kafka.transactions import TopicPartition
from txn_analysis.log.sections import brokers_of
from txn_analysis.logic import is_before, latest

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from txn_analysis.coordinator.coverage import StateEvidence
    from txn_analysis.coordinator.view import CoordinatorView
    from txn_analysis.judge.facts import Facts

    Brokers = Mapping[TopicPartition, set[str | None]]

SEVERAL = 2
_STANDS_AFTER_MS = 60_000  # a marker is written within milliseconds of its decision


class UnsentMarkers(NamedTuple):
    """What all decisions of a capture that stand have in common.

    `lacking` are the partitions without the markers, `deciding` those of the state. `are_brokers_told`: the files say
    that other brokers hold the first than the second; `is_one_each`: one broker holds the first, and one the second.
    """

    id_count: int
    lacking: tuple[TopicPartition, ...]
    deciding: tuple[TopicPartition, ...]
    are_brokers_told: bool
    is_one_each: bool


def with_unsent_markers(
    found: Sequence[Facts], state: StateEvidence, sections: Collection[Mapping[str, Any]]
) -> list[Facts]:
    """The facts of all open transactions of a capture, those of decisions that stand with what they have in common.

    Args:
        found: the facts.
        state: what was seen of `__transaction_state`.
        sections: rows of `Evidence.section_rows`, which say which brokers hold a partition's log.
    """
    decided = {n: facts.coordinator for n, facts in enumerate(found) if facts.coordinator and facts.is_prepared}
    if not _are_several(decided.values()):
        return list(found)
    lacking = {found[n].open.topic_partition for n in decided}
    of_state = {_of_state(partition.state_partition) for partition in state.partitions}
    brokers = brokers_of(sections, lacking | of_state)
    ends_ms = _ends_ms(state, brokers)
    standing = {n: known for n, known in decided.items() if _stands(found[n], known, ends_ms)}
    unsent = _unsent([found[n].open.topic_partition for n in standing], [*standing.values()], brokers)
    return [replace(facts, unsent=unsent) if n in standing else facts for n, facts in enumerate(found)]


def _are_several(decided: Collection[CoordinatorView]) -> bool:
    return len({known.transactional_id for known in decided}) >= SEVERAL


def _of_state(number: int) -> TopicPartition:
    return TopicPartition(STATE_TOPIC, number)


def _ends_ms(state: StateEvidence, brokers: Brokers) -> dict[int, int | None]:
    """By partition of the state, up to when it speaks, with all that were copied off the one broker that holds it.

    An id that is stuck writes nothing more, so that its own partition may have ended with its decision.
    """
    moments = {partition.state_partition: partition.moment_ms for partition in state.partitions}
    leaders = {number: _leaders([_of_state(number)], brokers) for number in moments}
    return {
        number: latest(ms, *(moments[n] for n, leader in leaders.items() if leader and leader == leaders[number]))
        for number, ms in moments.items()
    }


def _stands(facts: Facts, known: CoordinatorView, ends_ms: Mapping[int, int | None]) -> bool:
    """A minute after a decision the state has it still, or the log has no marker of it."""
    of_state = None if known.state_partition is None else ends_ms.get(known.state_partition)
    moments = of_state, facts.state.end_ms, facts.log.last_moment_ms
    is_later = any(is_before(known.update_ms, end_ms, _STANDS_AFTER_MS) for end_ms in moments)
    return is_later and facts.state.is_of_these_logs


def _unsent(
    lacking: Collection[TopicPartition], decided: Collection[CoordinatorView], brokers: Brokers
) -> UnsentMarkers | None:
    """None for fewer than several ids, and where one broker both decides and lacks a marker: it could write that."""
    if not _are_several(decided):
        return None
    deciding = {_of_state(known.state_partition) for known in decided if known.state_partition is not None}
    leaders, coordinators = _leaders(lacking, brokers), _leaders(deciding, brokers)
    are_told = leaders is not None and coordinators is not None
    if leaders is not None and coordinators is not None and leaders & coordinators:
        return None
    return UnsentMarkers(
        id_count=len({known.transactional_id for known in decided}),
        lacking=tuple(sorted({*lacking})),
        deciding=tuple(sorted(deciding)),
        are_brokers_told=are_told,
        is_one_each=are_told and len({*(leaders or ()), *(coordinators or ())}) == 2,
    )


def _leaders(places: Iterable[TopicPartition], brokers: Brokers) -> frozenset[str] | None:
    """The brokers that hold these partitions, each on one alone; None where any of several may lead one."""
    holders = [brokers.get(where, {None}) for where in places]
    found = frozenset(own for each in holders for own in each if own is not None)
    return found if holders and all(len(each) == 1 and None not in each for each in holders) else None
