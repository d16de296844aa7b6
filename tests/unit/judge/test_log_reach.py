"""How far a log is proven to reach is decided in one place, and what would settle it is said of what is there."""

from dataclasses import replace

import pytest

from tests.tools.judged_cases import NOW_MS, Case
from tests.unit.judge.proof_of_absence import EARLY
from txn_analysis.text import utc

ENDING_EARLY = [case for case in EARLY if case.rule == "log_may_end_early"]


@pytest.mark.parametrize("case", ENDING_EARLY, ids=lambda case: case.name)
def test_a_copy_behind_the_next_end_marker_or_a_manifest_would_settle_it(case: Case) -> None:
    judged = case.judged()
    again, manifest = judged.words.missing_in(judged.case)
    assert again.startswith("a copy of orders-0 from after the next end marker in it")
    assert "manifest" in manifest


@pytest.mark.parametrize("last_ms", [NOW_MS - 1, None], ids=["an-idle-partition", "all-its-records-are-deleted"])
def test_files_without_a_later_moment_are_not_asked_for_one(last_ms: int | None) -> None:
    judged = Case("", "", health={"last_moment_ms": last_ms}).judged()
    assert judged.case.last_moment_ms == last_ms
    (case,) = [case for case in ENDING_EARLY if case.name == "recorded after the log, history has a gap"]
    early = replace(case, health={"last_moment_ms": last_ms}).judged()
    assert early.rule.name == "log_may_end_early"
    silent = "when they were copied" if last_ms is None else f"whether anything followed {utc(last_ms)}"
    assert early.words.missing_in(early.case)[0].endswith(silent)
