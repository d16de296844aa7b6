"""What people accept, and what brings it back."""

from typing import Any

import pytest

from tests.tools import report_rows as rows
from txn_analysis.plan.standing import (
    EVIDENCE,
    AcceptedFinding,
    Decided,
    Standing,
    accepted_findings,
    decision_about,
    unaccepted,
)
from txn_analysis.tables import Finding

UNTIL_MS = rows.AS_OF_MS + 24 * rows.HOUR_MS
LIVE = rows.live_finding()


def decided(finding: Finding = LIVE, until_ms: int | None = UNTIL_MS, source: str = "warehouse") -> Decided:
    return Decided(decision_about(finding, "default", until_ms, "the topic goes", "anna"), source)


def said_of(finding: Finding, *decisions: Decided, as_of_ms: int | None = rows.AS_OF_MS) -> AcceptedFinding:
    (found,) = accepted_findings([rows.finding(), finding], decisions, as_of_ms)
    return found


def test_an_accepted_finding_is_left_out_and_no_other() -> None:
    accepted = (said_of(LIVE, decided()),)
    assert accepted[0].standing is Standing.ACCEPTED
    assert unaccepted([rows.finding(), LIVE], accepted) == (rows.finding(),)


@pytest.mark.parametrize(
    ("as_of_ms", "standing"),
    [(UNTIL_MS - 1, Standing.ACCEPTED), (UNTIL_MS, Standing.EXPIRED), (None, Standing.EXPIRED)],
)
def test_it_holds_for_files_that_were_copied_before_its_date(as_of_ms: int | None, standing: Standing) -> None:
    assert said_of(LIVE, decided(), as_of_ms=as_of_ms).standing is standing


CHANGES: dict[str, Any] = {
    "verdict": "suspect",
    "rule": "unknown_producer",
    "producer_epoch": 1,
    "last_offset": 190,
    "transactional_id": None,
    "must_end_producer": {"producer_may_return": False, "is_producer_live": False},
}


@pytest.mark.parametrize("name", EVIDENCE)
def test_it_comes_back_when_what_it_rests_on_changes(name: str) -> None:
    change = CHANGES[name] if isinstance(CHANGES[name], dict) else {name: CHANGES[name]}
    found = said_of(rows.live_finding(**change), decided())
    assert (found.standing, found.changed) == (Standing.EVIDENCE_CHANGED, (name,))
    assert unaccepted([LIVE], [found]) == (LIVE,)


@pytest.mark.parametrize(
    "change",
    [{"idle_ms": 1 << 40}, {"late_by_ms": 1 << 40}, {"evidence": ["seen up to 900"]}, {"coordinator_state": "Empty"}],
    ids=str,
)
def test_what_changes_from_night_to_night_by_itself_brings_nothing_back(change: dict[str, Any]) -> None:
    assert said_of(rows.live_finding(**change), decided()).standing is Standing.ACCEPTED


def test_a_decision_about_another_start_says_nothing() -> None:
    other = decided(rows.live_finding(txn_start_offset=100))
    assert accepted_findings([LIVE], [other], rows.AS_OF_MS) == ()


def test_one_good_decision_of_two_is_enough() -> None:
    good, late = decided(source="conf/accepted.toml"), decided(until_ms=1)
    for both in ((good, late), (late, good)):
        found = said_of(LIVE, *both)
        assert (found.standing, found.source) == (Standing.ACCEPTED, "conf/accepted.toml")


def test_what_is_withdrawn_is_no_decision() -> None:
    assert accepted_findings([LIVE], [decided(until_ms=None)], rows.AS_OF_MS) == ()
