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
from txn_analysis.logic import is_before

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from txn_analysis.judge.facts import Facts

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


def with_unsent_markers(found: Sequence[Facts], sections: Collection[Mapping[str, Any]]) -> list[Facts]:
    """The facts of all open transactions of a capture, those of decisions that stand with what they have in common.

    `sections` are rows of `Evidence.section_rows`, which say on which broker a partition's log was found.
    """
    unsent = _unsent([facts for facts in found if stands(facts)], sections)
    return [replace(facts, unsent=unsent) if unsent is not None and stands(facts) else facts for facts in found]


def stands(facts: Facts) -> bool:
    """A decision lists the partition; a minute later the state has it still, or the log has no marker of it."""
    known = facts.coordinator
    if known is None or not facts.is_prepared or not facts.state.is_of_these_logs:
        return False
    ends_ms = facts.state.end_ms, facts.log.last_moment_ms
    return any(is_before(known.update_ms, end_ms, _STANDS_AFTER_MS) for end_ms in ends_ms)


def _unsent(standing: Sequence[Facts], sections: Collection[Mapping[str, Any]]) -> UnsentMarkers | None:
    """None for fewer than several ids, and where one broker both decides and lacks a marker: it could write that."""
    decided = {f.coordinator.transactional_id: f.coordinator.state_partition for f in standing if f.coordinator}
    if len(decided) < SEVERAL:
        return None
    lacking = sorted({facts.open.topic_partition for facts in standing})
    deciding = sorted({TopicPartition(STATE_TOPIC, number) for number in decided.values() if number is not None})
    brokers = brokers_of(sections, {*lacking, *deciding})
    leaders, coordinators = (_leaders(places, brokers) for places in (lacking, deciding))
    if leaders is None or coordinators is None:
        return UnsentMarkers(len(decided), tuple(lacking), tuple(deciding), are_brokers_told=False, is_one_each=False)
    if leaders & coordinators:
        return None
    is_one_each = len(leaders) == len(coordinators) == 1
    return UnsentMarkers(len(decided), tuple(lacking), tuple(deciding), are_brokers_told=True, is_one_each=is_one_each)


def _leaders(
    places: Iterable[TopicPartition], brokers: Mapping[TopicPartition, set[str | None]]
) -> frozenset[str] | None:
    """The brokers that hold these partitions, each on one alone; None where any of several may lead one."""
    holders = [brokers.get(where, {None}) for where in places]
    found = frozenset(own for each in holders for own in each if own is not None)
    return found if holders and all(len(each) == 1 and None not in each for each in holders) else None
