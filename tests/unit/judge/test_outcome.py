"""How a run came out, and with which code a command ends that asks for it."""

from dataclasses import dataclass

import pytest

from tests.tools.cases import cases
from tests.tools.judged_cases import HEALTH
from txn_analysis.judge.outcome import LogCoverage, Outcome, in_doubt, outcome_of
from txn_analysis.kafka.names import STATE_TOPIC
from txn_analysis.kafka.problems import ProblemKind
from txn_analysis.tables import PartitionHealth, Problem
from txn_analysis.verdict import Verdict

LATE, YOUNG, UNKNOWN = 1, -1, None


@dataclass(frozen=True)
class Opened:
    verdict: Verdict
    late_by_ms: int | None = LATE
    is_recent: bool | None = None


HANGS, SUSPECT = Opened(Verdict.HANGING), Opened(Verdict.SUSPECT)
LISTED, BUSY = Opened(Verdict.COORDINATED), Opened(Verdict.IN_PROGRESS, YOUNG)
OPEN_QUESTION = Opened(Verdict.INCONCLUSIVE, LATE)
WITHOUT_A_CLOCK = Opened(Verdict.INCONCLUSIVE, UNKNOWN)
BEING_WRITTEN = Opened(Verdict.INCONCLUSIVE, LATE, is_recent=True)
NOT_YET_A_QUESTION = Opened(Verdict.INCONCLUSIVE, YOUNG)


NO_LOG, CONTESTED = LogCoverage(has_logs=False), LogCoverage(contested=("orders-0",))
UNREAD = LogCoverage(unread=("orders-0",))


def log(*kinds: str) -> PartitionHealth:
    return HEALTH._replace(problems=tuple(Problem(0, kind, "") for kind in kinds))


@cases(
    "findings has_state expected",
    {
        "nothing-is-open": ([], True, Outcome.CLEAN),
        "nothing-is-open-that-a-state-could-explain": ([], False, Outcome.CLEAN),
        "open-and-explained": ([BUSY, LISTED, SUSPECT], True, Outcome.CLEAN),
        "late-and-inconclusive": ([OPEN_QUESTION, BUSY], True, Outcome.COULD_NOT_TELL),
        "nobody-knows-how-late": ([WITHOUT_A_CLOCK], True, Outcome.COULD_NOT_TELL),
        "inconclusive-but-not-late": ([NOT_YET_A_QUESTION], True, Outcome.CLEAN),
        "written-while-it-was-copied": ([BEING_WRITTEN], True, Outcome.CLEAN),
        "beside-one-that-was-not": ([BEING_WRITTEN, OPEN_QUESTION], True, Outcome.COULD_NOT_TELL),
        "written-meanwhile-without-a-state": ([BEING_WRITTEN], False, Outcome.COULD_NOT_TELL),
        "anything-open-without-a-state": ([BUSY], False, Outcome.COULD_NOT_TELL),
        "what-hangs-comes-before-what-is-in-doubt": ([HANGS, OPEN_QUESTION], True, Outcome.FINDINGS),
    },
)
def test_outcome_of_a_run(findings: list[Opened], *, has_state: bool, expected: Outcome) -> None:
    assert outcome_of(findings, has_state=has_state) is expected


def test_without_any_log_nothing_was_looked_at_that_could_hang() -> None:
    assert outcome_of([], has_state=True, logs=NO_LOG) is Outcome.COULD_NOT_TELL
    assert outcome_of([LISTED], has_state=True, logs=NO_LOG) is Outcome.CLEAN
    assert outcome_of([HANGS], has_state=True, logs=NO_LOG) is Outcome.FINDINGS


@pytest.mark.parametrize("logs", [CONTESTED, UNREAD])
@pytest.mark.parametrize("findings", [[], [LISTED]])
def test_lines_that_may_hide_an_open_transaction_are_never_green(findings: list[Opened], logs: LogCoverage) -> None:
    assert outcome_of(findings, has_state=True, logs=logs) is Outcome.COULD_NOT_TELL
    assert outcome_of([*findings, HANGS], has_state=True, logs=logs) is Outcome.FINDINGS


@cases(
    "log coverage",
    {
        "two-lines-claim-one-place": (log(ProblemKind.CONTESTED_LINE), CONTESTED),
        "text-of-a-client-would-open-one": (log(ProblemKind.HEADER_KEYS_MAY_OPEN), CONTESTED),
        "text-of-a-client-opens-none": (log(ProblemKind.MAY_BE_HEADER_KEYS), LogCoverage()),
        "its-dump-goes-on-unread": (log(ProblemKind.LINES_OF_OTHERS), UNREAD),
        "another-problem": (log(ProblemKind.TORN_TAIL), LogCoverage()),
        "of-an-earlier-capture": (log(ProblemKind.CONTESTED_LINE)._replace(is_in_capture=False), NO_LOG),
        "of-the-coordinator": (log(ProblemKind.CONTESTED_LINE)._replace(topic=STATE_TOPIC), NO_LOG),
    },
)
def test_which_logs_may_hide_an_open_transaction(log: PartitionHealth, coverage: LogCoverage) -> None:
    assert LogCoverage.of([log]) == coverage


EMPTY = HEALTH._replace(first_offset=10, end_offset=10, high_watermark=10)
CUT = EMPTY._replace(high_watermark=11)


@cases(
    "logs has_logs",
    {
        "all-records-are-deleted": ([EMPTY], True),
        "no-checkpoint": ([EMPTY._replace(high_watermark=None)], True),
        "all-cut-to-nothing": ([CUT, CUT], False),
        "a-snapshot-alone": ([CUT._replace(first_offset=None)], False),
        "written-on-while-it-was-copied": ([CUT._replace(first_offset=9)], True),
        "a-partition-that-began-while-others-were-copied": ([CUT, EMPTY], True),
    },
)
def test_a_copy_whose_logs_were_all_cut_to_nothing_has_no_log(logs: list[PartitionHealth], has_logs: bool) -> None:
    coverage = LogCoverage.of(logs)
    assert coverage.has_logs == has_logs
    expected = Outcome.CLEAN if has_logs else Outcome.COULD_NOT_TELL
    assert outcome_of([], has_state=True, logs=coverage) is expected


@pytest.mark.parametrize(
    ("fail_on", "expected"),
    [
        (Verdict.HANGING, Outcome.COULD_NOT_TELL),
        (Verdict.SUSPECT, Outcome.COULD_NOT_TELL),
        (Verdict.INCONCLUSIVE, Outcome.FINDINGS),
        (Verdict.IN_PROGRESS, Outcome.FINDINGS),
    ],
)
def test_who_asks_for_milder_verdicts_finds_them(fail_on: Verdict, expected: Outcome) -> None:
    assert outcome_of([OPEN_QUESTION], has_state=True, fail_on=fail_on) is expected


def test_in_doubt_is_what_the_outcome_rests_on() -> None:
    every = [HANGS, OPEN_QUESTION, WITHOUT_A_CLOCK, NOT_YET_A_QUESTION, BUSY]
    assert in_doubt(every, has_state=True) == [OPEN_QUESTION, WITHOUT_A_CLOCK]
    assert in_doubt([BUSY, NOT_YET_A_QUESTION], has_state=False) == [BUSY, NOT_YET_A_QUESTION]


@pytest.mark.parametrize(
    ("outcome", "code", "accepted"), [(Outcome.CLEAN, 0, 0), (Outcome.FINDINGS, 1, 1), (Outcome.COULD_NOT_TELL, 3, 0)]
)
def test_codes(outcome: Outcome, code: int, accepted: int) -> None:
    assert outcome.exit_code() == code
    assert outcome.exit_code(accept_inconclusive=True) == accepted
    assert outcome.exit_code(exit_zero=True) == 0
