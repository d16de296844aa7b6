"""What a cause is: a name, what speaks for it, and its readings: ways in which evidence leads to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from txn_analysis.coordinator.view import Origins
from txn_analysis.tables.findings import Confidence
from txn_analysis.text import if_known, utc

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from txn_analysis.judge.case import Case


@dataclass(frozen=True, kw_only=True)
class Cause:
    """Why a transaction is open, and its words.

    Attributes:
        name: as reports and metrics print it.
        meaning: what happened, in half a sentence.
        story: what happened, as docs/rules.md tells it.
        prevention: what prevents it; `-` where nothing has to.
        evidence: what speaks for it, a sentence each; None for what has nothing to say.
        doubt: what keeps it from being certain where it is not; None where that is only missing evidence.
    """

    name: str
    meaning: str
    story: str
    prevention: str
    evidence: Callable[[Case], Sequence[str | None]]
    doubt: str | None = None

    def evidence_in(self, c: Case) -> tuple[str, ...]:
        """What speaks for it, in words."""
        return tuple(fact for fact in self.evidence(c) if fact is not None)


@dataclass(frozen=True)
class Diagnosis:
    """One way in which evidence leads to a cause: how sure it is; None where it explains nothing there."""

    cause: Cause
    confidence: Callable[[Case], Confidence | None]


# What several causes ask and say.


def if_holds(condition: bool | None, confidence: Confidence) -> Confidence | None:
    """This sure where the condition holds."""
    return confidence if condition else None


def origins_in(c: Case) -> Origins:
    """What the records of its id say of the time around the open data; nothing where no id is known."""
    return Origins() if c.id is None else c.id.origins


def as_far_as_recorded(c: Case) -> Confidence:
    """How sure a cause is that rests on the id's records since the producer's last end marker here."""
    return Confidence.LIKELY if c.gap_ends_ms or origins_in(c).is_order_doubtful else Confidence.CERTAIN


def last_marker(c: Case) -> str | None:
    """When the producer's last end marker in the partition was written."""
    return if_known("the producer's last end marker here is of {}", utc(c.txn.last_marker_ms))


def written(c: Case) -> str | None:
    """When the data was appended, by the brokers' clocks."""
    after, before = utc(c.txn.appended_after_ms), utc(c.txn.appended_before_ms)
    if before is None:
        return None if after is None else f"by the brokers' clocks the last write came after {after}"
    return f"by the brokers' clocks the last write came by {before}" + ("" if after is None else f", after {after}")


def never_listed(c: Case) -> str | None:
    """That no record since the marker lists the partition."""
    if origins_in(c).listed_since_ms is not None:
        return None
    since = "" if c.txn.last_marker_ms is None else " since that marker"
    return f"no record of the transactional id lists {c.where}{since}"
