"""Judgement: from the facts of one open transaction to its verdict, and to what is said of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from txn_analysis.judge.applications import application_of, why_to_hold
from txn_analysis.judge.causes import cause_of
from txn_analysis.judge.facts import facts
from txn_analysis.judge.rules import first_rule
from txn_analysis.judge.words import evidence, missing_evidence

if TYPE_CHECKING:
    from txn_analysis.config import Settings
    from txn_analysis.judge.state_coverage import StateEvidence

Row = dict[str, Any]


def judgement_of(
    opened: Row,
    partition: Row,
    coordinator: Row | None,
    state: StateEvidence,
    settings: Settings,
    as_of_ms: int | None,
    state_leader_epoch: int | None = None,
) -> Row:
    """The facts of one open transaction, the `rule` that decides, its `verdict` with its evidence, the `cause`,
    and whose it is: `application` and `hold`.

    The arguments are those of `judge.facts.facts`; `state_leader_epoch` is the leader epoch of the partition of
    `__transaction_state` that decides about it, as far as that was read.
    """
    row = facts(opened, partition, coordinator, state, settings, as_of_ms)
    rule = first_rule(row)
    row |= {"rule": rule.name, "verdict": rule.verdict.value}
    row |= {"evidence": evidence(row), "missing_evidence": missing_evidence(row)}
    row |= {"cause": cause_of(row | {"state_leader_epoch": state_leader_epoch}, settings, as_of_ms)}
    return row | _owner(row["transactional_id"], row["coordinator_timeout_ms"])


def _owner(transactional_id: str | None, timeout_ms: int | None) -> Row:
    name = None if transactional_id is None else application_of(transactional_id).name
    return {"application": name, "hold": why_to_hold(transactional_id, timeout_ms)}
