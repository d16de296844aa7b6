"""The rules of a partition that the coordinator's transaction lists: decided or not, within its time or past it."""

from __future__ import annotations

from txn_analysis.judge.rules.rule import Rule
from txn_analysis.kafka.transactions import NEVER_TIMES_OUT_MS, PREPARE_ABORT, PREPARE_COMMIT, TWO_PHASE_COMMIT
from txn_analysis.logic import both
from txn_analysis.verdict import Verdict

MARKER_OVERDUE = Rule(
    name="marker_overdue",
    verdict=Verdict.SUSPECT,
    meaning="a commit or abort was decided, lists the partition, and has not moved for longer than the bound",
    background="KAFKA-16352, KAFKA-19999 and KAFKA-20322 are ways to get there. It is never aborted: the commit was "
    "acknowledged.",
    when=lambda facts: both(facts.is_prepared, facts.live.is_update_overdue),
    evidence=lambda facts: [
        facts.coordinator_says,
        facts.listed_here,
        f"unchanged since {facts.unchanged_since}",
        facts.state_end,
    ],
    why_not=lambda facts: (
        facts.not_listed_here
        or f"the decision of {facts.unchanged_since} is not older than transaction.max.timeout.ms + 300000, or none is"
    ),
    would_change="the marker in a later copy of the log, or a coordinator that moved on",
    reason="The coordinator decided, and should have written the marker within moments. It has stopped trying, or "
    "cannot reach the partition's leader (KAFKA-16352, KAFKA-19999 and KAFKA-20322 are ways to get there).",
    remedy="Never write a marker yourself: after PrepareCommit an abort destroys acknowledged data. Look at the "
    "broker that leads the partition of __transaction_state; restarting it lets another one take over and send the "
    "markers again. In an upgrade from 4.1 or older through 4.2.0, finish it, or use 4.2.1: a coordinator of 4.2.0 "
    "cannot send markers to older brokers.",
)


MARKER_PENDING_COMMIT = Rule(
    name="marker_pending_commit",
    verdict=Verdict.COORDINATED,
    meaning="a commit was decided and lists the partition; its marker is on the way",
    condition="a commit was decided and lists the partition. It is never aborted: it was acknowledged",
    background="`TransactionCoordinator.endTransaction` answers the client as soon as the decision is written.",
    when=lambda facts: facts.is_listed_in(PREPARE_COMMIT),
    evidence=lambda facts: [facts.coordinator_says, facts.listed_here],
    why_not=lambda facts: facts.not_decided_here,
    would_change="the marker in a later copy of the log",
    reason="The commit was acknowledged to the client. An abort marker here would destroy acknowledged data.",
    remedy="Nothing. Never abort it. Look again if it is still there in the next audit.",
)


MARKER_PENDING_ABORT = Rule(
    name="marker_pending_abort",
    verdict=Verdict.COORDINATED,
    meaning="an abort was decided and lists the partition; its marker is on the way",
    when=lambda facts: facts.is_listed_in(PREPARE_ABORT),
    evidence=lambda facts: [facts.coordinator_says, facts.listed_here],
    why_not=lambda facts: facts.not_decided_here,
    would_change="the marker in a later copy of the log",
    reason="The coordinator will write the abort marker itself.",
    remedy="Nothing. Look again if it is still there in the next audit.",
)


COORDINATOR_OVERDUE = Rule(
    name="coordinator_overdue",
    verdict=Verdict.SUSPECT,
    meaning="the coordinator's transaction lists the partition and is past its own timeout + 5 minutes",
    background="A timeout of 2147483647 ms is a two-phase commit (KIP-939), and never overdue.",
    when=lambda facts: both(facts.is_ongoing, facts.live.is_transaction_overdue),
    evidence=lambda facts: [
        facts.coordinator_says,
        facts.listed_here,
        f"that transaction began at {facts.began_at} with a timeout of {facts.timeout_ms} ms",
        facts.state_end,
    ],
    why_not=lambda facts: (
        facts.not_listed_here
        or f"the transaction of {facts.began_at} is within its timeout of {facts.timeout_ms} ms + 300000, or is decided"
    ),
    would_change="a later record of the coordinator that ends the transaction",
    reason="The coordinator should have aborted it when its timeout had passed. It still counts as the transaction's "
    "owner, so it may yet end it. (A timeout of 2147483647 ms is a two-phase commit, and never overdue.)",
    remedy="Look at the broker that leads the partition of __transaction_state: does it run, is it in charge, what "
    "does its log say of this id? Do not write markers while the coordinator has the transaction.",
)


IN_COORDINATOR = Rule(
    name="in_coordinator",
    verdict=Verdict.COORDINATED,
    meaning="the coordinator's transaction lists the partition and is within its own timeout",
    when=lambda facts: facts.is_ongoing,
    evidence=lambda facts: [
        facts.coordinator_says,
        facts.listed_here,
        TWO_PHASE_COMMIT if facts.timeout_ms == NEVER_TIMES_OUT_MS else None,
    ],
    why_not=lambda facts: facts.not_decided_here,
    would_change="a later record of the coordinator, once the transaction ends or is past its timeout",
    reason="The coordinator knows of the data here and will end it by the client's word or by the timeout.",
    remedy="Nothing. If the application is gone for good, wait for the timeout. A two-phase commit has none: its owner "
    "must end it.",
)
