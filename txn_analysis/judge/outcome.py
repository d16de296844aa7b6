"""How a run came out: something is found, nothing is, or it could not be told.

The one place that decides it. Exit codes, headlines, the JSON report, metrics and the table `runs` all follow it, so
that none of them is green where another one is in the dark.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Protocol, TypeVar

from txn_analysis.kafka.topics import STATE_TOPIC
from txn_analysis.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable


class Outcome(StrEnum):
    """What a run answers to the question whether anything hangs."""

    CLEAN = "clean"  # nothing at or above the verdict that is asked about, and nothing in doubt
    COULD_NOT_TELL = "could_not_tell"  # nothing at or above it, but something open is in doubt, or no log was read
    FINDINGS = "findings"  # something at or above it

    def exit_code(self, *, accept_inconclusive: bool = False, exit_zero: bool = False) -> int:
        """The code that a command ends with.

        Args:
            accept_inconclusive: what could not be told counts as nothing found.
            exit_zero: 0 whatever was found.
        """
        if exit_zero or (accept_inconclusive and self is Outcome.COULD_NOT_TELL):
            return 0
        return _EXIT_CODES[self]


def has_logs(partitions: Iterable[tuple[str, bool]]) -> bool:
    """Whether something was looked at that could hang: the log of a partition whose topic is not the coordinator's.

    Args:
        partitions: of a run, the topic of each, and whether the capture has files of it.
    """
    return any(is_in_capture and topic != STATE_TOPIC for topic, is_in_capture in partitions)


NO_LOGS = "no log of a partition is in this capture"
"""What is missing where nothing was read that could hang."""

_EXIT_CODES = {Outcome.CLEAN: 0, Outcome.FINDINGS: 1, Outcome.COULD_NOT_TELL: 3}


class Judged(Protocol):
    """One open transaction, as far as the outcome depends on it."""

    @property
    def verdict(self) -> Verdict:
        """What becomes of it."""

    @property
    def late_by_ms(self) -> int | None:
        """By how much it is beyond the bound, negative within it; None where no clock tells."""


_Judged = TypeVar("_Judged", bound=Judged)


def in_doubt(findings: Iterable[_Judged], *, has_state: bool) -> list[_Judged]:
    """The open transactions of which it could not be told whether they hang.

    Those are `inconclusive` and late, or no clock says how late they are. Where no partition of `__transaction_state`
    was given (`has_state`), it is whatever is open: a coordinator that nobody heard has said nothing.

    Args:
        findings: all open transactions of a run.
        has_state: at least one partition of `__transaction_state` was given.
    """
    return [f for f in findings if not has_state or _is_open_question(f)]


def _is_open_question(finding: Judged) -> bool:
    is_late = finding.late_by_ms is None or finding.late_by_ms > 0
    return finding.verdict is Verdict.INCONCLUSIVE and is_late


def outcome_of(
    findings: Iterable[Judged], *, has_state: bool, has_logs: bool = True, fail_on: Verdict = Verdict.HANGING
) -> Outcome:
    """How a run came out.

    Args:
        findings: all its open transactions.
        has_state: at least one partition of `__transaction_state` was given.
        has_logs: the log of at least one other partition was given; where nothing is open either, nothing was looked
            at that could hang.
        fail_on: the most harmless verdict that is a finding.
    """
    every = list(findings)
    if any(finding.verdict.severity >= fail_on.severity for finding in every):
        return Outcome.FINDINGS
    is_known = (has_logs or every) and not in_doubt(every, has_state=has_state)
    return Outcome.CLEAN if is_known else Outcome.COULD_NOT_TELL
