"""Judgement: from the facts of one open transaction to its verdict, its cause, and what is said of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from txn_analysis.judge.causes import cause_of
from txn_analysis.judge.fact_finding import facts_of
from txn_analysis.judge.rules import first_rule
from txn_analysis.judge.rules.asked_first import COMMIT_MARKER_MISSING
from txn_analysis.judge.unsent_markers import with_unsent_markers
from txn_analysis.kafka.topics import STATE_TOPIC
from txn_analysis.kafka.transactions import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from txn_analysis.coordinator.coverage import StateEvidence
    from txn_analysis.coordinator.fit import Fit
    from txn_analysis.coordinator.view import CoordinatorView, Views
    from txn_analysis.judge.causes.cause import FoundCause
    from txn_analysis.judge.fact_finding import Moments
    from txn_analysis.judge.facts import Facts
    from txn_analysis.judge.rules.rule import Rule
    from txn_analysis.kafka.transactions import OpenTransaction, PartitionView
    from txn_analysis.settings import Settings
    from txn_analysis.verdict import Verdict

Disproved = dict[str, str]
"""By the name of its setting, what disproves an assurance, in words."""


def disproved_by_state(fit: Fit) -> Disproved:
    """The word that the state was copied last, where a commit in the logs is later than it, and not in it."""
    later = fit.sums.later
    if later is None:
        return {}
    return {"state_copied_last": f"{later}, is later than what __transaction_state holds, and is not in it"}


def disproved_by_loss(judged: Iterable[Judgement], partitions: Iterable[PartitionView]) -> Disproved:
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
    def opened(self) -> OpenTransaction:
        """The transaction."""
        return self.facts.open


def judgement_of(facts: Facts) -> Judgement:
    """The first rule that holds, and the first cause that explains the facts; a cause never decides a verdict."""
    rule = first_rule(facts)
    return Judgement(facts, rule, cause_of(facts, rule))


@dataclass(frozen=True, slots=True)
class Judgements:
    """All open transactions of one capture, judged; `disproved` are assurances that counted nowhere, and why."""

    of_open: list[Judgement]
    disproved: Disproved


def judgements_of(
    opened: Sequence[OpenTransaction],
    partitions: Mapping[TopicPartition, PartitionView],
    views: Views,
    state: StateEvidence,
    settings: Settings,
    moments: Moments,
    sections: Collection[Mapping[str, Any]] = (),
) -> Judgements:
    """Judge open transactions of one capture.

    Args:
        opened: the transactions.
        partitions: the health of every partition of the capture, those of `__transaction_state` included.
        views: what the coordinator knows of them.
        state: what was seen of `__transaction_state`, and whether it fits the logs.
        settings: bounds, and what the operator gave their word for.
        moments: when the files were copied.
        sections: rows of `Evidence.section_rows`, which say on which broker a log was found.
    """

    def judged_without(untrue: Disproved, state: StateEvidence) -> list[Judgement]:
        found, believed = [], without(settings, untrue)
        for transaction in opened:
            known, partition = views.get(transaction.key), partitions[transaction.topic_partition]
            leader_epoch = None if known is None else _leader_epoch(known, partitions)
            found.append(
                facts_of(transaction, partition, known, state, believed, moments, leader_epoch, frozenset(untrue))
            )
        return [judgement_of(facts) for facts in with_unsent_markers(found, state, sections)]

    by_state = disproved_by_state(state.fit)
    judged = judged_without(by_state, state)
    by_loss = disproved_by_loss(judged, partitions.values())
    # Once more: a word that is not true counts for nothing, and is asked for nowhere; one that is counts for all.
    if by_loss:
        judged = judged_without(by_state | by_loss, state)
    elif settings.no_records_lost and state.fit.sums.more_if_nothing_was_lost.marker_count:
        fit = replace(state.fit, sums=state.fit.sums.if_nothing_was_lost)
        judged = judged_without(by_state, replace(state, fit=fit))
    return Judgements(judged, given(settings, by_state | by_loss))


def _leader_epoch(known: CoordinatorView, partitions: Mapping[TopicPartition, PartitionView]) -> int | None:
    """That of the partition of the state that holds the id, as far as it was read."""
    if known.state_partition is None:
        return None
    holder = partitions.get(TopicPartition(STATE_TOPIC, known.state_partition))
    return None if holder is None else holder.leader_epoch
