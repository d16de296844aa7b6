"""Judgement: from the facts of one open transaction to its verdict, its cause, and what is said of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple, TypeGuard

from txn_analysis.judge.causes import cause_of
from txn_analysis.judge.copied import NOTHING_COPIED, copied_by
from txn_analysis.judge.fact_finding import facts_of
from txn_analysis.judge.rules import COMMIT_MARKER_MISSING, first_rule
from txn_analysis.kafka.names import STATE_TOPIC
from txn_analysis.kafka.transactions import PREPARED, TopicPartition
from txn_analysis.log.segments import brokers_of
from txn_analysis.logic import is_before, latest

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from txn_analysis.coordinator.coverage import StateEvidence
    from txn_analysis.coordinator.fit import Fit
    from txn_analysis.coordinator.view import CoordinatorView
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


TESTED_BY_ALL_LOGS = ("state_copied_last", "no_records_lost")
"""The assurances that any log of the capture may disprove: an audit of some partitions alone does not count them."""
_NOT_TESTED = "the end markers of partitions that were not asked for could say otherwise"


def disproved_by_state(fit: Fit) -> Disproved:
    """The word that the state was copied last, where a commit in the logs is later than it, and not in it."""
    later = fit.sums.later
    if later is None:
        return {}
    return {"state_copied_last": f"{later}, is later than what __transaction_state holds, and is not in it"}


def disproved_by_order(copied: Copied) -> Disproved:
    """The word that the state was copied last, where a manifest says another order."""
    return {} if copied.disproof is None else {"state_copied_last": copied.disproof}


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
    def is_recent(self) -> bool:
        """The brokers' clocks prove that it began while the files were copied, or a little before."""
        return self.facts.is_recent

    @property
    def opened(self) -> Transaction:
        """The transaction."""
        return self.facts.open


def judgement_of(facts: Facts) -> Judgement:
    """The first rule that holds, and the first cause that explains the facts; a cause never decides a verdict."""
    rule = first_rule(facts)
    return Judgement(facts, rule, cause_of(facts, rule))


Case = tuple["Transaction", "CoordinatorView | None"]
"""One open transaction, and what the coordinator knows of it."""
Cases = Callable[[], "Iterable[Sequence[Case]]"]
"""All open transactions of one capture, some at a time, whenever they are asked for: only those are in memory."""


@dataclass(frozen=True)
class Judge:
    """What every open transaction of one capture is judged by; see `judge_of`.

    Attributes:
        partitions: the health of every partition of the capture, those of `__transaction_state` included.
        state: what was seen of `__transaction_state`, and whether it fits the logs.
        settings: bounds, and what the operator gave their word for, without what the files disprove.
        moments: when the files were copied.
        untrue: names of the assurances that the files disprove.
        disproved: those of them for which the operator gave their word, and why they counted nowhere.
        standing: what says that a decision stands, and what all that do have in common; None where they are few.
        copied: what manifests prove of the copying.
    """

    partitions: Mapping[TopicPartition, PartitionHealth]
    state: StateEvidence
    settings: Settings
    moments: Moments
    untrue: frozenset[str] = frozenset()
    disproved: Disproved = field(default_factory=dict)
    standing: Standing | None = None
    copied: Copied = NOTHING_COPIED

    def judged(self, cases: Iterable[Case]) -> list[Judgement]:
        """The verdicts on some of them."""
        return [judgement_of(self._facts(case)) for case in cases]

    def _facts(self, case: Case) -> Facts:
        opened, known = case
        facts = facts_of(
            opened,
            self.partitions[opened.topic_partition],
            known,
            self.state,
            self.settings,
            self.moments,
            None if known is None else _leader_epoch(known, self.partitions),
            self.untrue,
            self.copied,
        )
        if self.standing is None or not self.standing.holds_for(facts):
            return facts
        return replace(facts, unsent=self.standing.unsent)

    def believing(self, settings: Settings, untrue: Disproved) -> Judge:
        """The same, where these assurances are disproved: each counts for nothing, and is asked for nowhere."""
        return replace(
            self,
            settings=without(settings, untrue),
            untrue=frozenset(untrue),
            disproved={name: told for name, told in untrue.items() if getattr(settings, name)},
        )

    def disproved_by_loss(self, cases: Cases) -> Disproved:
        """The word that no record was lost, where a marker was."""
        asked = (case for some in cases() for case in some)
        lost = min(
            (f"{j.facts.where} lost a COMMIT marker" for j in self.judged(asked) if j.rule is COMMIT_MARKER_MISSING),
            default=None,
        )
        cut = (
            f"a copy of {p.topic_partition} was truncated below an end marker at offset {p.truncated_marker_offset}"
            for p in self.partitions.values()
            if p.truncated_marker_offset is not None
        )
        told = min(cut, default=None) if lost is None else lost
        return {} if told is None else {"no_records_lost": told}

    def with_standing(self, cases: Cases, sections: Collection[InputSection]) -> Judge:
        """The same, with what all decisions that stand have in common."""
        decided = [
            (opened.topic_partition, known.transactional_id)
            for some in cases()
            for opened, known in some
            if _is_decided(known)
        ]
        if len({transactional_id for _, transactional_id in decided}) < SEVERAL:
            return self
        of_state = {_of_state(partition.state_partition) for partition in self.state.partitions}
        brokers = brokers_of(sections, {place for place, _ in decided} | of_state)
        standing = Standing(_ends_ms(self.state, brokers), None)
        asked = (self._facts(case) for some in cases() for case in some if _is_decided(case[1]))
        found = {
            (facts.open.topic_partition, facts.coordinator.transactional_id, facts.coordinator.state_partition)
            for facts in asked
            if facts.coordinator is not None and standing.holds_for(facts)
        }
        return replace(self, standing=standing._replace(unsent=_unsent(found, brokers)))


def judge_of(
    cases: Cases,
    partitions: Mapping[TopicPartition, PartitionHealth],
    state: StateEvidence,
    settings: Settings,
    moments: Moments,
    sections: Collection[InputSection] = (),
    manifests: Sequence[Manifest] = (),
    *,
    is_partial: bool = False,
) -> Judge:
    """What the open transactions of one capture are judged by.

    Args:
        cases: those that bear on others, see `CoordinatorView.bears_on_others`; more do no harm.
        partitions: the health of every partition of the capture, those of `__transaction_state` included.
        state: what was seen of `__transaction_state`, and whether it fits the logs.
        settings: bounds, and what the operator gave their word for.
        moments: when the files were copied.
        sections: all of the evidence, which say on which broker a log was found.
        manifests: those of the capture, which say how it was copied.
        is_partial: only some partitions are asked for: what the others could disprove is not counted, nor asked for.
    """
    copied = copied_by(manifests, sections, state, partitions, settings.max_clock_skew_ms)
    if is_partial:
        copied = copied.void(_NOT_TESTED)
    if copied.is_state_last:  # it takes the place of the word, and what disproves the one disproves the other
        settings = settings.model_copy(update={"state_copied_last": True})
    by_state = disproved_by_state(state.fit)
    if by_state:  # a marker that is later than the state: then the times of a manifest are not true either
        copied = copied.void(*by_state.values())
    state = copied.as_read(state)
    by_state = (
        disproved_by_order(copied) | by_state | (dict.fromkeys(TESTED_BY_ALL_LOGS, _NOT_TESTED) if is_partial else {})
    )
    judge = Judge(partitions, state, settings, moments, copied=copied).believing(settings, by_state)
    by_loss = judge.disproved_by_loss(cases)
    # A word that is not true counts for nothing; one that is true counts for all.
    if by_loss:
        judge = judge.believing(settings, by_state | by_loss)
    elif settings.no_records_lost and state.fit.sums.more_if_nothing_was_lost.marker_count:
        judge = replace(judge, state=replace(state, fit=replace(state.fit, sums=state.fit.sums.if_nothing_was_lost)))
    return judge.with_standing(cases, sections)


def _is_decided(known: CoordinatorView | None) -> TypeGuard[CoordinatorView]:
    return known is not None and known.is_listed is True and known.state in PREPARED


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


class Standing(NamedTuple):
    """What says that a decision stands, and what all that do have in common.

    `ends_ms` says by partition of the state up to when it speaks, with all that were copied off its broker.
    """

    ends_ms: Mapping[int, int | None]
    unsent: UnsentMarkers | None

    def holds_for(self, facts: Facts) -> bool:
        """A minute after a decision the state has it still, or the log has no marker of it."""
        known = facts.coordinator
        if known is None or not facts.is_prepared or not facts.state.is_of_these_logs:
            return False
        of_state = None if known.state_partition is None else self.ends_ms.get(known.state_partition)
        moments = of_state, facts.state.end_ms, facts.log.last_moment_ms
        return any(is_before(known.update_ms, end_ms, _STANDS_AFTER_MS) for end_ms in moments)


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


def _unsent(found: Collection[tuple[TopicPartition, str, int | None]], brokers: Brokers) -> UnsentMarkers | None:
    """What decisions have in common, by the partition that lacks the marker, the id, and the partition of the state.

    None for fewer than several ids, and where one broker both decides and lacks a marker: it could write that.
    """
    lacking, ids = {place for place, _, _ in found}, {transactional_id for _, transactional_id, _ in found}
    if len(ids) < SEVERAL:
        return None
    deciding = {_of_state(number) for _, _, number in found if number is not None}
    leaders, coordinators = _leaders(lacking, brokers), _leaders(deciding, brokers)
    are_told = leaders is not None and coordinators is not None
    if leaders is not None and coordinators is not None and leaders & coordinators:
        return None
    return UnsentMarkers(
        id_count=len(ids),
        lacking=tuple(sorted(lacking)),
        deciding=tuple(sorted(deciding)),
        are_brokers_told=are_told,
        is_one_each=are_told and len({*(leaders or ()), *(coordinators or ())}) == 2,
    )


def _leaders(places: Iterable[TopicPartition], brokers: Brokers) -> frozenset[str] | None:
    """The brokers that hold these partitions, each on one alone; None where any of several may lead one."""
    holders = [brokers.get(where, {None}) for where in places]
    found = frozenset(own for each in holders for own in each if own is not None)
    return found if holders and all(len(each) == 1 and None not in each for each in holders) else None
