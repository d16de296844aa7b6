"""Judgement: from one open transaction and its evidence to its verdict and its cause."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from txn_analysis.coordinator.coverage import StateEvidence
from txn_analysis.coordinator.view import CoordinatorView
from txn_analysis.judge.case import Case, Moments
from txn_analysis.judge.causes import cause_of
from txn_analysis.judge.copied import NOTHING_COPIED, Copied, copied_by
from txn_analysis.judge.rules import Rule, commit_marker_missing, first_rule
from txn_analysis.judge.words import WORDS, Words
from txn_analysis.kafka.names import STATE_TOPIC
from txn_analysis.kafka.transactions import TopicPartition
from txn_analysis.settings import Settings
from txn_analysis.tables import FoundCause, PartitionHealth, Transaction
from txn_analysis.tables.inputs import InputSection, Manifest
from txn_analysis.verdict import Verdict

Disproved = dict[str, str]
"""By the name of its setting, what disproves an assurance, in words."""


TESTED_BY_ALL_LOGS = ("state_copied_last", "no_records_lost")
"""The assurances that any log of the capture may disprove: an audit of some partitions alone does not count them."""
_NOT_TESTED = "the end markers of partitions that were not asked for could say otherwise"


def without(settings: Settings, disproved: Mapping[str, str]) -> Settings:
    """The settings without the assurances that are disproved."""
    return settings.model_copy(update=dict.fromkeys(disproved, False))


@dataclass(frozen=True, slots=True)
class Judgement:
    """One open transaction with its evidence, the rule that decides about it, and why it is open; None: not known."""

    case: Case
    rule: Rule
    cause: FoundCause | None

    @property
    def verdict(self) -> Verdict:
        """What becomes of it."""
        return self.rule.verdict

    @property
    def late_by_ms(self) -> int | None:
        """By how much it is beyond the bound; None where no clock tells."""
        return self.case.late_by_ms

    @property
    def is_recent(self) -> bool:
        """Brokers' clocks prove that it began while the files were copied, or a little before."""
        return self.case.is_recent

    @property
    def words(self) -> Words:
        """What is said of that rule."""
        return WORDS[self.rule.name]

    @property
    def opened(self) -> Transaction:
        """The transaction."""
        return self.case.txn


def judgement_of(case: Case) -> Judgement:
    """The first rule that holds, and the first cause that explains it; a cause never decides a verdict."""
    rule = first_rule(case)
    return Judgement(case, rule, cause_of(case, rule))


Viewed = tuple["Transaction", "CoordinatorView | None"]
"""One open transaction, and what the coordinator knows of it."""
Cases = Callable[[], "Iterable[Sequence[Viewed]]"]
"""All open transactions of one capture, some at a time, whenever they are asked for: only those are in memory."""


def no_cases() -> Iterable[Sequence[Viewed]]:
    """Nothing is open in the capture."""
    return ()


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
        copied: what manifests prove of the copying.
    """

    partitions: Mapping[TopicPartition, PartitionHealth]
    state: StateEvidence
    settings: Settings
    moments: Moments
    untrue: frozenset[str] = frozenset()
    disproved: Disproved = field(default_factory=dict)
    copied: Copied = NOTHING_COPIED

    def judged(self, viewed: Iterable[Viewed]) -> list[Judgement]:
        """The verdicts on some of them."""
        return [judgement_of(self._case(*one)) for one in viewed]

    def _case(self, opened: Transaction, view: CoordinatorView | None) -> Case:
        number = None if view is None else view.state_partition
        holder = None if number is None else self.partitions.get(TopicPartition(STATE_TOPIC, number))
        return Case(
            opened,
            self.partitions[opened.topic_partition],
            view,
            self.state,
            self.settings,
            self.moments,
            None if holder is None else holder.leader_epoch,
            self.untrue,
            self.copied,
        )

    def believing(self, settings: Settings, untrue: Disproved) -> Judge:
        """The same, where these assurances are disproved: each counts for nothing, and is asked for nowhere."""
        return replace(
            self,
            settings=without(settings, untrue),
            untrue=frozenset(untrue),
            disproved={name: why for name, why in untrue.items() if getattr(settings, name)},
        )

    def disproved_by_loss(self, cases: Cases) -> Disproved:
        """The word that no record was lost, where a marker was."""
        judged = self.judged(one for some in cases() for one in some)
        losing = (j.case.where for j in judged if j.rule.condition is commit_marker_missing)
        lost = min((f"{where} lost a COMMIT marker" for where in losing), default=None)
        cut = (
            f"a copy of {p.topic_partition} was truncated below an end marker at offset {p.truncated_marker_offset}"
            for p in self.partitions.values()
            if p.truncated_marker_offset is not None
        )
        why = min(cut, default=None) if lost is None else lost
        return {} if why is None else {"no_records_lost": why}


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
    # The word that the state was copied last: a manifest says another order, or a commit in the logs is later than it.
    untrue = {} if copied.disproof is None else {"state_copied_last": copied.disproof}
    if later := state.fit.sums.later:
        why = f"{later}, is later than what __transaction_state holds, and is not in it"
        untrue, copied = (
            {"state_copied_last": why},
            copied.void(why),
        )  # then the times of a manifest are not true either
    if is_partial:
        untrue = dict.fromkeys(TESTED_BY_ALL_LOGS, _NOT_TESTED)
    state = copied.as_read(state)
    judge = Judge(partitions, state, settings, moments, copied=copied).believing(settings, untrue)
    by_loss = judge.disproved_by_loss(cases)
    # A word that is not true counts for nothing; one that is true counts for all.
    if by_loss:
        judge = judge.believing(settings, untrue | by_loss)
    elif settings.no_records_lost and state.fit.sums.more_if_nothing_was_lost.marker_count:
        judge = replace(judge, state=replace(state, fit=replace(state.fit, sums=state.fit.sums.if_nothing_was_lost)))
    return judge
