"""Whether a commit's marker was lost: what proves it, what only makes it possible, and what is said of it."""

import pytest

from tests.tools.cases import cases
from tests.tools.judged_cases import (
    AFTER_MS,
    BOUND_MS,
    HOLDER,
    NOW_MS,
    SKEW_MS,
    UNKNOWN,
    Case,
    left,
    listed,
    with_partition,
)
from tests.unit.judge.proof_of_absence import NOT_EXACT
from txn_analysis.coordinator.chain import LeaderEpochChange
from txn_analysis.coordinator.history import WithoutMarker
from txn_analysis.judge import case as judged_case
from txn_analysis.judge.rules import commit_marker_missing, commit_may_be_missing
from txn_analysis.judge.sentences import doubts_of_loss
from txn_analysis.logic import UNBOUNDED_MS

COMPACTED = with_partition(HOLDER, gap_end_ms=NOW_MS)
CUT = with_partition(HOLDER, rises=(LeaderEpochChange(1, NOW_MS),))
EXPORT = with_partition(HOLDER, is_console=True)


def evidence(**changes: object) -> judged_case.Case:
    return Case("", "", **changes).judged().case  # type: ignore[arg-type]  # of several types


def test_where_the_history_is_whole_and_every_decision_has_its_marker_nothing_was_lost() -> None:
    case = evidence()
    assert not commit_marker_missing(case)
    assert not commit_may_be_missing(case)
    assert not case.may_be_of_earlier_decision


@cases(
    "changes says",
    {
        "compacted": ({"partitions": COMPACTED}, "compaction or retention took records"),
        "cut": ({"partitions": CUT}, "the leader of __transaction_state changed by 2027-01-15"),
        "cut-nobody-knows-when": (
            {"partitions": with_partition(HOLDER, rises=(LeaderEpochChange(None, None),))},
            "changed by an unknown moment",
        ),
        "an-export": ({"partitions": EXPORT}, "compaction or retention took records"),
        "older-files-are-gone": (
            {"open": NOT_EXACT, "known": {"without_marker": WithoutMarker(has_commit_of_any_age=True)}},
            "its start may lie before the first file",
        ),
    },
)
def test_each_doubt_is_said_and_the_operators_word_rules_it_out(changes: dict[str, object], says: str) -> None:
    doubted = evidence(**changes)
    (doubt,) = doubts_of_loss(doubted)
    assert says in doubt
    assert commit_may_be_missing(doubted)
    ruled_out = evidence(**changes, settings={"no_records_lost": True})
    assert doubts_of_loss(ruled_out) == [doubt]
    assert not commit_may_be_missing(ruled_out)


def test_of_several_reasons_each_is_said() -> None:
    both = with_partition(HOLDER, gap_end_ms=NOW_MS, rises=(LeaderEpochChange(1, NOW_MS),))
    assert len(doubts_of_loss(evidence(partitions=both, open=NOT_EXACT, known=left("COMMIT", 1)))) == 3


def test_a_gap_of_which_nobody_knows_the_end_is_said_without_a_time() -> None:
    (doubt,) = doubts_of_loss(evidence(partitions=with_partition(HOLDER, gap_end_ms=UNBOUNDED_MS)))
    assert doubt == "compaction or retention took records of __transaction_state that may have decided it"


def test_an_unknown_producer_is_hidden_by_what_is_gone_of_any_partition() -> None:
    gone = with_partition(0, gap_end_ms=AFTER_MS)
    assert doubts_of_loss(evidence(partitions=gone)) == []
    assert commit_may_be_missing(evidence(known=UNKNOWN, partitions=gone))


@pytest.mark.parametrize(
    ("settled_ms", "is_proven"),
    [(NOW_MS - SKEW_MS, True), (NOW_MS - SKEW_MS + 1, False), (UNBOUNDED_MS, False)],
)
def test_a_loss_is_proven_once_the_log_goes_on(settled_ms: int, *, is_proven: bool) -> None:
    """The last case is an export's: the id's last Complete record may have been written at any time."""
    assert commit_marker_missing(evidence(known=left("COMMIT", AFTER_MS, settled_ms=settled_ms))) is is_proven


def test_the_operators_word_rules_out_no_loss_that_is_proven() -> None:
    assert commit_marker_missing(evidence(known=left("COMMIT", AFTER_MS), settings={"no_records_lost": True}))


@cases(
    "changes hides_none",
    {
        "nothing-was-decided": ({}, True),
        "an-abort-that-is-over": ({"known": left("ABORT", AFTER_MS)}, True),
        "an-abort-on-its-way": ({"known": left("ABORT", AFTER_MS, settled_ms=NOW_MS - SKEW_MS + 1)}, False),
        "a-commit": ({"known": left("COMMIT", AFTER_MS)}, False),
        "a-gap": ({"partitions": COMPACTED}, False),
        "no-brokers-clock": ({"health": {"last_moment_ms": None}}, False),
        "a-new-leader-hides-none": ({"partitions": CUT}, True),
    },
)
def test_whether_an_earlier_decision_can_own_the_data(changes: dict[str, object], *, hides_none: bool) -> None:
    assert evidence(**changes).may_be_of_earlier_decision is not hides_none


def test_what_is_told_of_a_proven_loss() -> None:
    judged = Case("", "", known=listed("Ongoing") | left("COMMIT", AFTER_MS, completed_ms=BOUND_MS)).judged()
    told = judged.words.evidence_in(judged.case)
    assert [words for words in told if words.startswith("PrepareCommit of 2027-01-15")]
    assert [words for words in told if words.startswith("it was completed by 2027-01-15")]
    gone = left("COMMIT", AFTER_MS, completed_ms=UNBOUNDED_MS, settled_ms=BOUND_MS)
    judged = Case("", "", known=listed("Ongoing") | gone).judged()
    assert "followed by its id's next record" in " ".join(judged.words.evidence_in(judged.case))
