"""Judgement: from the facts of one open transaction to its verdict, its cause, and what is said of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from txn_analysis.judge.causes import cause_of
from txn_analysis.judge.copied import NOTHING_COPIED, copied_by
from txn_analysis.judge.fact_finding import facts_of
from txn_analysis.judge.rules import first_rule
from txn_analysis.judge.rules.asked_first import COMMIT_MARKER_MISSING
from txn_analysis.kafka.names import STATE_TOPIC
from txn_analysis.kafka.transactions import TopicPartition
from txn_analysis.log.segments import brokers_of
from txn_analysis.logic import is_before, latest

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from txn_analysis.coordinator.coverage import StateEvidence
    from txn_analysis.coordinator.fit import Fit
    from txn_analysis.coordinator.view import CoordinatorView, Views
    from txn_analysis.judge.copied import Copied
    from txn_analysis.judge.fact_finding import Moments
    from txn_analysis.judge.facts import Facts
    from txn_analysis.judge.rules.rule import Rule
    from txn_analysis.settings import Settings
    from txn_analysis.tables import FoundCause, PartitionHealth, Transaction
    from txn_analysis.tables.inputs import InputSection, Manifest
    from txn_analysis.verdict import Verdict

    Brokers = Mapping[TopicPartition, set[str | None]]


Disproved = dict[str, str]
"""By the name of its setting, what disproves an assurance, in words."""


def disproved_by_state(fit: Fit) -> Disproved:
    """The word that the state was copied last, where a commit in the logs is later than it, and not in it."""
    later = fit.sums.later
    if later is None:
        return {}
    return {"state_copied_last": f"{later}, is later than what __transaction_state holds, and is not in it"}


def disproved_by_order(copied: Copied) -> Disproved:
    """The word that the state was copied last, where a manifest says another order."""
    return {} if copied.disproof is None else {"state_copied_last": copied.disproof}


def disproved_by_loss(judged: Iterable[Judgement], partitions: Iterable[PartitionHealth]) -> Disproved:
    """The word that no record was lost, where a marker was."""
    lost = (f"{j.facts.where} lost a COMMIT marker" for j in judged if j.rule is COMMIT_MARKER_MISSING)
    cut = (
        f"a copy of {p.topic_partition} was truncated below an end marker at offset {p.truncated_marker_offset}"
        for p in partitions
        if p.truncated_marker_offset is not None
    )
    told = next(iter((*sorted(lost), *sorted(cut))), None)
    return {} if told is None else {"no_records_lost": told}


def given(settings: Settings, disproved: Disproved) -> Disproved:
    """Of what is disproved, that for which the operator gave their word."""
    return {name: told for name, told in disproved.items() if getattr(settings, name)}


def without(settings: Settings, disproved: Mapping[str, str]) -> Settings:
    """The settings without the assurances that are disproved."""
    return settings.model_copy(update=dict.fromkeys(disproved, False))


@dataclass(frozen=True, slots=True)
class Judgement:
    """One open transaction with its facts, the rule that decides about it, and why it is open; None: not known."""

    facts: Facts
    rule: Rule
    cause: FoundCause | None

    @property
    def verdict(self) -> Verdict:
        """What becomes of it."""
        return self.rule.verdict

    @property
    def late_by_ms(self) -> int | None:
        """By how much it is beyond the bound; None where no clock tells."""
        return self.facts.lateness.late_by_ms

    @property
    def opened(self) -> Transaction:
        """The transaction."""
        return self.facts.open


def judgement_of(facts: Facts) -> Judgement:
    """The first rule that holds, and the first cause that explains the facts; a cause never decides a verdict."""
    rule = first_rule(facts)
    return Judgement(facts, rule, cause_of(facts, rule))


@dataclass(frozen=True, slots=True)
class Judgements:
    """All open transactions of one capture, judged; `disproved` are assurances that counted nowhere, and why.

    `copied` is what manifests prove of the copying.
    """

    of_open: list[Judgement]
    disproved: Disproved
    copied: Copied = NOTHING_COPIED


def judgements_of(
    opened: Sequence[Transaction],
    partitions: Mapping[TopicPartition, PartitionHealth],
    views: Views,
    state: StateEvidence,
    settings: Settings,
    moments: Moments,
    sections: Collection[InputSection] = (),
    manifests: Sequence[Manifest] = (),
) -> Judgements:
    """Judge open transactions of one capture.

    Args:
        opened: the transactions.
        partitions: the health of every partition of the capture, those of `__transaction_state` included.
        views: what the coordinator knows of them.
        state: what was seen of `__transaction_state`, and whether it fits the logs.
        settings: bounds, and what the operator gave their word for.
        moments: when the files were copied.
        sections: all of the evidence, which say on which broker a log was found.
        manifests: those of the capture, which say how it was copied.
    """
    copied = copied_by(manifests, sections, state, partitions, settings.max_clock_skew_ms)
    state = copied.as_read(state)
    if copied.is_state_last:  # it takes the place of the word, and what disproves the one disproves the other
        settings = settings.model_copy(update={"state_copied_last": True})

    def judged_without(untrue: Disproved, state: StateEvidence) -> list[Judgement]:
        found, believed = [], without(settings, untrue)
        for transaction in opened:
            known, partition = views.get(transaction.key), partitions[transaction.topic_partition]
            leader_epoch = None if known is None else _leader_epoch(known, partitions)
            found.append(
                facts_of(
                    transaction, partition, known, state, believed, moments, leader_epoch, frozenset(untrue), copied
                )
            )
        return [judgement_of(facts) for facts in with_unsent_markers(found, state, sections)]

    by_state = disproved_by_state(state.fit)
    if by_state:  # a marker that is later than the state: then the times of a manifest are not true either
        copied = copied.void(*by_state.values())
    by_state = disproved_by_order(copied) | by_state
    judged = judged_without(by_state, state)
    by_loss = disproved_by_loss(judged, partitions.values())
    # Once more: a word that is not true counts for nothing, and is asked for nowhere; one that is counts for all.
    if by_loss:
        judged = judged_without(by_state | by_loss, state)
    elif settings.no_records_lost and state.fit.sums.more_if_nothing_was_lost.marker_count:
        fit = replace(state.fit, sums=state.fit.sums.if_nothing_was_lost)
        judged = judged_without(by_state, replace(state, fit=fit))
    return Judgements(judged, given(settings, by_state | by_loss), copied)


def _leader_epoch(known: CoordinatorView, partitions: Mapping[TopicPartition, PartitionHealth]) -> int | None:
    """That of the partition of the state that holds the id, as far as it was read."""
    if known.state_partition is None:
        return None
    holder = partitions.get(TopicPartition(STATE_TOPIC, known.state_partition))
    return None if holder is None else holder.leader_epoch


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
    found: Sequence[Facts], state: StateEvidence, sections: Collection[InputSection]
) -> list[Facts]:
    """The facts of all open transactions of a capture, those of decisions that stand with what they have in common.

    Args:
        found: the facts.
        state: what was seen of `__transaction_state`.
        sections: all of the evidence, which say which brokers hold a partition's log.
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
