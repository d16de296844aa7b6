"""`marker_not_sent_in_upgrade`: a coordinator of 4.2.0 cannot send markers to older brokers (KAFKA-20322)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from txn_analysis.judge.causes.cause import Cause, Confidence, Reading
from txn_analysis.text.words import listed, utc

if TYPE_CHECKING:
    from txn_analysis.judge.facts import Facts

_MOST_NAMED = 5


def reading(facts: Facts) -> Confidence | None:
    """Decisions of several ids stand, and none is by a broker that lacks a marker; surer where it is one of each."""
    if facts.unsent is None:
        return None
    return Confidence.LIKELY if facts.unsent.is_one_each else Confidence.POSSIBLE


def evidence(facts: Facts) -> list[str | None]:
    """The decision, how many ids stand like it, and which brokers hold what."""
    known, unsent = facts.coordinator, facts.unsent
    if known is None or unsent is None:
        return []
    lacking, deciding = (listed([*map(str, places)], _MOST_NAMED) for places in (unsent.lacking, unsent.deciding))
    if unsent.is_one_each:
        brokers = f"one broker holds what lacks markers: {lacking}; another one all decisions: {deciding}"
    elif unsent.are_brokers_told:
        brokers = f"no broker that holds what lacks markers ({lacking}) holds a decision ({deciding})"
    else:
        brokers = f"which brokers lead what lacks markers ({lacking}), and decided ({deciding}), is not in the files"
    return [
        f"the coordinator has {known.state} since {utc(known.update_ms)}",
        f"that decision lists {facts.where}, and its marker is not in the log",
        f"{unsent.id_count} transactional ids stand like this for more than a minute",
        brokers,
    ]


MARKER_NOT_SENT_IN_UPGRADE = Cause(
    name="marker_not_sent_in_upgrade",
    meaning="a coordinator of 4.2.0 cannot send markers to brokers of 4.1 and older (KAFKA-20322): finish the upgrade, "
    "or use 4.2.1",
    story="several ids stand in PrepareCommit or PrepareAbort, and the brokers that lack the markers are not those "
    "that decided: a coordinator of 4.2.0 cannot send markers to brokers of 4.1 and older (KAFKA-20322). `likely` "
    "where log directories show one broker on each side",
    prevention="finish the upgrade, or use 4.2.1: the coordinator then sends the markers itself. Abort nothing",
    evidence=evidence,
    doubt="the versions of the brokers are in no file, and a leader that its coordinator cannot reach leaves the same",
)
READING = Reading(MARKER_NOT_SENT_IN_UPGRADE, reading)
