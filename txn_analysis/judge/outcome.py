"""How a run came out: something is found, nothing is, or it could not be told.

The one place that decides it. Exit codes, headlines, the JSON report, metrics and the table `runs` all follow it, so
that none of them is green where another one is in the dark.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from txn_analysis.kafka.names import STATE_TOPIC
from txn_analysis.kafka.problems import MAY_HIDE_OPEN, ProblemKind
from txn_analysis.text import listed
from txn_analysis.verdict import Verdict

if TYPE_CHECKING:
    from txn_analysis.tables import PartitionHealth
    from txn_analysis.tables.finding_rows import FindingRows


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


class LogCoverage(NamedTuple):
    """Whether a run looked at all that could hang, apart from what it found open.

    Attributes:
        has_logs: the capture has the log of at least one partition whose topic is not the coordinator's, and not only
            some that were cut to nothing.
        contested: partitions whose dumps have lines that a client may have made, and that may open a transaction.
        unread: partitions whose dumps have lines that are none of the tool's behind the last batch, or in the producer
            snapshot that stands for what is older: what it printed may be among them, as where a part of a text has
            other line ends, or it may have stopped.
    """

    has_logs: bool = True
    contested: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()

    @classmethod
    def of(cls, logs: Iterable[PartitionHealth]) -> LogCoverage:
        """Of all logs of a run."""
        in_capture = [log for log in logs if log.is_in_capture and log.topic != STATE_TOPIC]
        contested, unread = (
            [log for log in in_capture if not kinds.isdisjoint(problem.kind for problem in log.problems)]
            for kinds in (MAY_HIDE_OPEN, {ProblemKind.LINES_OF_OTHERS})
        )
        return cls(not all(map(_is_cut_to_nothing, in_capture)), _names(contested), _names(unread))

    @property
    def in_the_dark(self) -> tuple[str, ...]:
        """The partitions that `missing` names: something may be open there that is not listed, whatever is."""
        return self.contested or self.unread

    @property
    def missing(self) -> str | None:
        """What keeps the run from the answer that nothing hangs, in words; None where nothing does."""
        if not self.has_logs:
            return NO_LOGS
        what, places = CONTESTED if self.contested else UNREAD, self.in_the_dark
        return f"{what} {listed([*places], _MOST_PLACES)}" if places else None


def _names(logs: Iterable[PartitionHealth]) -> tuple[str, ...]:
    return tuple(sorted(f"{log.topic}-{log.partition}" for log in logs))


def _is_cut_to_nothing(log: PartitionHealth) -> bool:
    """The copy has no batch of it, and its broker's high watermark lies beyond its end."""
    end_offset = log.end_offset
    has_no_batch = end_offset is not None and log.first_offset in {None, end_offset}
    return has_no_batch and (log.high_watermark or 0) > (end_offset or 0)


ALL_COVERED = LogCoverage()
NO_LOGS = "no log of a partition is in this capture"
CONTESTED = "lines of a dump that may be text of a client would open a transaction on"
UNREAD = "lines that kafka-dump-log does not print may hide an open transaction of"
_MOST_PLACES = 5

_EXIT_CODES = {Outcome.CLEAN: 0, Outcome.FINDINGS: 1, Outcome.COULD_NOT_TELL: 3}


class HasVerdict(Protocol):
    """One open transaction, as far as the outcome depends on it."""

    @property
    def verdict(self) -> Verdict:
        """What becomes of it."""

    @property
    def late_by_ms(self) -> int | None:
        """By how much it is beyond the bound, negative within it; None where no clock tells."""

    @property
    def is_recent(self) -> bool | None:
        """The brokers' clocks prove that its first batch is younger than the bound when the files were copied."""


class Answer(NamedTuple):
    """That much of a finding."""

    verdict: Verdict
    late_by_ms: int | None
    is_recent: bool | None


_Finding = TypeVar("_Finding", bound=HasVerdict)


def in_doubt(findings: Iterable[_Finding], *, has_state: bool) -> list[_Finding]:
    """The open transactions of which it could not be told whether they hang.

    Those are `inconclusive` and late, or no clock says how late they are; but not what began so shortly before the copy
    that it was being written (`is_recent`). Where no partition of `__transaction_state` was given (`has_state`), it is
    whatever is open: a coordinator that nobody heard has said nothing.

    Args:
        findings: all open transactions of a run.
        has_state: at least one partition of `__transaction_state` was given.
    """
    return [f for f in findings if not has_state or _is_open_question(f)]


def rows_in_doubt(findings: FindingRows, *, has_state: bool) -> FindingRows:
    """The same of rows; see `in_doubt`."""
    if not has_state:
        return findings
    inconclusive = findings.of_verdict(Verdict.INCONCLUSIVE)
    return inconclusive.where([_is_open_question(one) for one in inconclusive.records(Answer)])


def _is_open_question(finding: HasVerdict) -> bool:
    is_late = finding.late_by_ms is None or finding.late_by_ms > 0
    return finding.verdict is Verdict.INCONCLUSIVE and is_late and not finding.is_recent


def outcome_of(
    findings: Iterable[HasVerdict],
    *,
    has_state: bool,
    logs: LogCoverage = ALL_COVERED,
    fail_on: Verdict = Verdict.HANGING,
) -> Outcome:
    """How a run came out.

    Args:
        findings: all its open transactions.
        has_state: at least one partition of `__transaction_state` was given.
        logs: whether all was looked at that could hang; without any log that is asked only where nothing is open.
        fail_on: the most harmless verdict that is a finding.
    """
    every = list(findings)
    if any(finding.verdict.severity >= fail_on.severity for finding in every):
        return Outcome.FINDINGS
    is_seen = not logs.in_the_dark and (logs.has_logs or every)
    is_known = is_seen and not in_doubt(every, has_state=has_state)
    return Outcome.CLEAN if is_known else Outcome.COULD_NOT_TELL
