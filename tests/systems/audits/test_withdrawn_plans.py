"""A plan that a later copy speaks against is not printed, also when still later ones cannot tell or do not hold it."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.systems.audits.test_prune_keeps_evidence import DAY_MS, HOUR_MS, WORDS, History
from tests.tools.program import program
from tests.tools.world.model import Step
from txn_analysis.report.model import AuditReport
from txn_analysis.verdict import Verdict


class Hanging(History):
    """`a` wrote late, and nobody will end that; `b` goes on."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.commit("a", 0)
        self.commit("b", 0, 1)
        self.happens(Step("write_late", "a", 0))
        self.world = replace(self.world, now_ms=self.world.now_ms + HOUR_MS)
        self.commit("b", 0, 1)

    def comes_back(self) -> None:
        """An abort of what hung would now destroy what `a` writes."""
        self.happens(Step("begin", "a", 0), Step("write", "a", 0))
        self.commit("b", 0, 1)

    def ends(self) -> None:
        self.happens(Step("commit", "a"), Step("marker", "a", 0), Step("complete", "a"))
        self.commit("b", 0, 1)


@pytest.fixture
def history(tmp_path: Path) -> Hanging:
    return Hanging(tmp_path)


def is_withdrawn(history: History, report: AuditReport) -> bool:
    words = ("abort-plan", "--warehouse", history.warehouse, "--run", report.run.run_id, "--format", "ndjson")
    done = program(*words)
    is_refused = "judged a later copy, and recommends no abort of it" in done.err
    assert (done.code, done.out) == (2, "") or not is_refused
    return is_refused


def verdicts(report: AuditReport) -> list[Verdict]:
    return [finding.verdict for finding in report.findings]


def test_it_stays_so_when_a_later_copy_cannot_tell(history: Hanging) -> None:
    first = history.night()
    assert not is_withdrawn(history, first)
    history.comes_back()
    assert verdicts(history.night()) == [Verdict.SUSPECT]
    history.commit("b", 0, 1)
    unsaid = dict.fromkeys(WORDS, False)
    assert verdicts(history.audited(history.copied(without="__transaction_state"), **unsaid)) == [Verdict.INCONCLUSIVE]
    assert is_withdrawn(history, first)


def test_a_copy_of_a_broker_that_was_down_is_not_later_because_it_was_copied_last(history: Hanging) -> None:
    of_a_broker_that_was_down = history.copied()
    history.commit("b", 0, 1)
    first = history.night()
    history.comes_back()
    copied_ms = (history.night().run.as_of_ms or 0) + DAY_MS
    last = history.audited(of_a_broker_that_was_down, as_of_ms=copied_ms)
    assert verdicts(last) == [Verdict.HANGING]
    assert is_withdrawn(history, last)
    assert is_withdrawn(history, first)


def test_more_files_of_the_same_night_speak_against_it(history: Hanging) -> None:
    early = history.copied()
    history.comes_back()
    copied_ms, late = history.world.now_ms, history.copied()
    first = history.audited(early, as_of_ms=copied_ms)
    assert not is_withdrawn(history, first)
    assert verdicts(history.audited(early, late, as_of_ms=copied_ms)) == [Verdict.SUSPECT]
    assert is_withdrawn(history, first)


def test_age_takes_no_run_that_speaks_against_a_plan_that_stays(history: Hanging) -> None:
    first = history.night()
    history.comes_back()
    history.ends()
    second = history.night()
    for _ in range(3):
        history.commit("b", 1)
        assert verdicts(history.audited(history.copied(without="orders-0"))) == []
    item = history.pruned(DAY_MS)
    assert item.runs_kept == (first.run.run_id, second.run.run_id)
    assert is_withdrawn(history, first)
