"""Builders for the proof table: an open transaction that hangs in every respect, and what may be different about it.

All of it is worded as changes to one story: producer 7 wrote to orders-0 an hour before the capture, the coordinator
knows its id with nothing in progress, every partition of `__transaction_state` was seen up to the capture, from its
first record on and without a gap.
"""

from dataclasses import dataclass, field, replace
from typing import Any

from txn_analysis.coordinator.chain import StateChain
from txn_analysis.coordinator.coverage import StateEvidence, StatePartition
from txn_analysis.coordinator.fit import Fit
from txn_analysis.coordinator.history import ABORT, COMMIT, Decision, WithoutMarker
from txn_analysis.coordinator.partition_count import GIVEN, StateCount
from txn_analysis.coordinator.view import Asked, CoordinatorView, Origins
from txn_analysis.judge import case as judged_case
from txn_analysis.judge.case import Moments
from txn_analysis.judge.judgement import Judgement, judgement_of
from txn_analysis.settings import Settings
from txn_analysis.tables import PartitionHealth, Transaction

Row = dict[str, Any]

NOW_MS = 1_800_000_000_000
MINUTE_MS = 60_000
MAX_TIMEOUT_MS = 900_000
LATE_MS = MAX_TIMEOUT_MS + 300_000
SKEW_MS = 1_000
WRITTEN_MS = NOW_MS - 60 * MINUTE_MS
BOUND_MS = WRITTEN_MS + 1_000
AFTER_MS = WRITTEN_MS - 5_000
MARKED_MS = WRITTEN_MS - 10_000
HOLDER = 2

OPEN = Transaction(
    outcome="open",
    topic="orders",
    partition=0,
    producer_id=7,
    txn_start_offset=100,
    is_txn_start_exact=True,
    first_producer_epoch=3,
    max_producer_epoch=3,
    producer_epoch=3,
    coordinator_epoch=5,
    coordinator_epoch_basis="marker",
    last_offset=104,
    record_count=5,
    size_bytes=500,
    last_timestamp_ms=WRITTEN_MS,
    first_appended_before_ms=BOUND_MS,
    appended_after_ms=AFTER_MS,
    appended_before_ms=BOUND_MS,
    last_marker_ms=MARKED_MS,
    previous_last_timestamp_ms=None,
    has_coordinator_epoch_fallen=False,
    evidence_gaps=(),
    first_appended_after_ms=AFTER_MS,
)
HEALTH = PartitionHealth(
    topic="orders",
    partition=0,
    is_in_capture=True,
    first_offset=0,
    end_offset=200,
    log_start_offset=None,
    high_watermark=None,
    open_transaction_count=1,
    hidden_record_count=None,
    last_stable_offset=100,
    hidden_bytes=4_000,
    log_bytes=10_000,
    first_moment_ms=WRITTEN_MS - 60_000,
    last_moment_ms=NOW_MS,
    last_credible_timestamp_ms=NOW_MS,
    leader_epoch=0,
)
KNOWN = CoordinatorView(
    transactional_id="billing",
    state_partition=HOLDER,
    state="CompleteCommit",
    producer_id=7,
    producer_epoch=3,
    start_ms=None,
    update_ms=MARKED_MS,
    timeout_ms=MINUTE_MS,
    txn_epoch=None,
    is_listed=False,
    runs_under_producer_id=True,
    is_producer_live=False,
    producer_may_return=True,
    state_epoch=3,
    changed_ms=MARKED_MS,
    recorded_ms=MARKED_MS,
    export_gap_ms=None,
    without_marker=WithoutMarker(),
    origins=Origins(),
)
UNKNOWN = None
CHAIN = StateChain(
    last_moment_ms=NOW_MS, first_moment_ms=WRITTEN_MS - 60_000, leader_epoch=5, topics=frozenset({"orders"})
)
FOUR = StateCount(4, GIVEN)
ALL_SEEN = tuple(StatePartition(p, is_seen=True, chain=CHAIN) for p in range(4))


def asked(opened: Transaction) -> Asked:
    """What the coordinator is asked about an open transaction, the first of all."""
    return Asked(0, *(getattr(opened, name) for name in Asked._fields[1:]))


@dataclass(frozen=True)
class Case:
    """One line of the proof table: what is different, which rule must fire, and why.

    `holder` is different about the id's partition of `__transaction_state`, `another` about partition 0.
    """

    name: str
    rule: str
    open: Row = field(default_factory=dict)
    health: Row = field(default_factory=dict)
    known: Row | None = field(default_factory=dict)
    partitions: tuple[StatePartition, ...] = ALL_SEEN
    holder: Row = field(default_factory=dict)
    another: Row = field(default_factory=dict)
    fit: Fit = field(default_factory=Fit)
    settings: Row = field(default_factory=dict)
    is_of_one_cluster: bool = True
    as_of_ms: int | None = NOW_MS
    newest_ms: int | None = NOW_MS

    def run_settings(self) -> Settings:
        return Settings.model_validate(
            {"transaction_state_partitions": 4, "max_clock_skew_ms": SKEW_MS} | self.settings
        )

    def judged(self) -> Judgement:
        """The rule that fires, and the evidence."""
        known = None if self.known is None else KNOWN._replace(**self.known)
        opened, health = OPEN._replace(**self.open), HEALTH._replace(**self.health)
        of_one_cluster = frozenset({opened.topic_partition} if self.is_of_one_cluster else ())
        partitions = changed(changed(self.partitions, HOLDER, self.holder), 0, self.another)
        state = StateEvidence([*partitions], FOUR, replace(self.fit, of_one_cluster=of_one_cluster))
        moments = Moments(self.as_of_ms, self.newest_ms)
        return judgement_of(judged_case.Case(opened, health, known, state, self.run_settings(), moments))


def listed(state: str, **changes: Any) -> Row:
    """The coordinator has the partition in a transaction that began just before the data was written."""
    live = {
        "state": state,
        "is_listed": True,
        "is_producer_live": True,
        "start_ms": WRITTEN_MS - 100,
        "update_ms": NOW_MS - MINUTE_MS,
        "txn_epoch": 3,
        "timeout_ms": 24 * 60 * MINUTE_MS,
    }
    return live | changes


def left(kind: str, prepared_ms: int, *, completed_ms: int | None = None, settled_ms: int | None = None) -> Row:
    """A decision on the partition whose marker is not in its log, with when it was completed, or else settled."""
    done_ms = prepared_ms + 1 if completed_ms is None else completed_ms
    decision = Decision(prepared_ms, kind, done_ms, done_ms if settled_ms is None else settled_ms)
    commit, abort = (decision if kind == word else None for word in (COMMIT, ABORT))
    return {"without_marker": WithoutMarker(commit, abort, has_commit_of_any_age=kind == COMMIT)}


def with_partition(number: int, **changes: Any) -> tuple[StatePartition, ...]:
    """All partitions of `__transaction_state`, one of them different: in what its records say, or in what was seen."""
    return changed(ALL_SEEN, number, changes)


def changed(partitions: tuple[StatePartition, ...], number: int, changes: Row) -> tuple[StatePartition, ...]:
    """The same with one of them different."""
    chained = {name: value for name, value in changes.items() if name in StateChain._fields}
    others = {name: value for name, value in changes.items() if name not in chained}
    return tuple(
        replace(p, chain=p.chain._replace(**chained), **others) if p.state_partition == number else p
        for p in partitions
    )
