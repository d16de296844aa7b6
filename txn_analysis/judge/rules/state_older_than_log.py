"""`state_older_than_log`: the coordinator's state is not proven to reach up to the open data.

Files are copied one after another: what the coordinator recorded after the copy of its state may explain the data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txn_analysis.judge.rules.rule import Rule
from txn_analysis.logic import either
from txn_analysis.text.words import utc
from txn_analysis.verdict import Verdict

if TYPE_CHECKING:
    from txn_analysis.judge.facts import Facts
    from txn_analysis.logic import Truth


def when(facts: Facts) -> Truth:
    """Nothing bounds the data, the state ends before it, or is of a lower epoch."""
    return either(facts.state.is_unbounded, facts.state.is_behind, facts.state.is_epoch_ahead)


def evidence(facts: Facts) -> list[str | None]:
    """Up to when the data was appended."""
    before = utc(facts.open.appended_before_ms)
    return [facts.coordinator_says, None if before is None else f"the data was appended by {before}"]


def missing(facts: Facts) -> list[str | None]:
    """What would show that the state reaches far enough."""
    reach, word = facts.state, "state_copied_last"
    after, later = "an end marker after the data in this partition", "__transaction_state up to a later moment"
    return [
        None if reach.partitions_seen else "__transaction_state, copied after the logs: no partition of it was given",
        facts.or_word(after, word) if reach.is_unbounded else None,
        facts.or_word(later, word) if reach.is_behind else None,
        f"state records of epoch {facts.open.max_producer_epoch}" if reach.is_epoch_ahead else None,
    ]


def why_not(facts: Facts) -> str:
    """The state reaches far enough."""
    return f"__transaction_state reaches up to the data, which was appended by {utc(facts.open.appended_before_ms)}"


STATE_OLDER_THAN_LOG = Rule(
    name="state_older_than_log",
    verdict=Verdict.INCONCLUSIVE,
    meaning="the coordinator's state is not proven to reach up to the open data",
    when=when,
    evidence=evidence,
    missing=missing,
    why_not=why_not,
    reason="The state was copied before the data, or nothing shows that it was not. What the coordinator recorded "
    "afterwards may explain the data.",
    remedy="Copy the logs first and `__transaction_state` last, from the leaders, and say so with "
    "`--state-copied-last`.",
)
