from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from tests.tools import report_rows as rows
from tests.tools.program import program
from txn_analysis.plan.abort_plan import abort_plan
from txn_analysis.plan.repair import Outcome, Recommended, Repair
from txn_analysis.questions import verify as repairs
from txn_analysis.settings import Settings

pytestmark = pytest.mark.usefixtures("library")

(PLANNED,) = abort_plan([rows.finding(transactional_id="a\nb")], Settings(), rows.AS_OF_MS)
RECORD = Recommended(**PLANNED.model_dump(include=set(Recommended._fields)))


@pytest.fixture
def ended_as(monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, Any]]:
    """Lets the library answer with one abort that came out like this."""

    def answer(*ends: Repair) -> dict[str, Any]:
        asked: dict[str, Any] = {}
        outcomes = [Outcome(RECORD, repair, 171, rows.AS_OF_MS, 155, 172, "for a reason") for repair in ends]

        def verify(_: Any, since: str | None) -> list[Outcome]:
            asked["since"] = since
            return outcomes

        cause = {
            "name": "late_write_after_marker",
            "confidence": "certain",
            "evidence_for": [],
            "evidence_against": [],
        }
        finding = rows.finding(cause=cause)
        past = [repairs.Past(outcome, (finding, finding), "run-3", 2) for outcome in outcomes]
        monkeypatch.setattr(
            repairs,
            "nights",
            lambda *_: SimpleNamespace(
                tables=SimpleNamespace(
                    forgotten_captures=(), believed_inputs={}, newer_run=None, run=SimpleNamespace(asked=None)
                )
            ),
        )
        monkeypatch.setattr(repairs, "verify", verify)
        monkeypatch.setattr(repairs, "past", lambda _: past)
        monkeypatch.setattr(repairs, "unverified", lambda *_: None)
        monkeypatch.setattr(repairs, "unaccepted", lambda _, found, __: found)
        return asked

    return answer


@pytest.mark.parametrize(
    ("ends", "code", "words"),
    [
        ((), 0, "No earlier run has an abort still to be verified."),
        ((Repair.REPAIRED, Repair.ENDED_BY_COORDINATOR), 0, "1 repaired, 1 ended_by_coordinator, 0 still_hanging"),
        ((Repair.REPAIRED, Repair.STILL_HANGING), 1, "1 repaired, 0 ended_by_coordinator, 1 still_hanging"),
        ((Repair.NOT_COVERED,), 1, "1 not_covered"),
    ],
)
def test_exit_code_is_zero_only_where_nothing_is_left(
    ended_as: Callable[..., Any], ends: tuple[Repair, ...], code: int, words: str
) -> None:
    ended_as(*ends)
    done = program("verify")
    assert done.code == code
    assert words in done.out.splitlines()[-1]
    assert program("verify", "--exit-zero").code == 0


NO_LATER = repairs.Unverified("run-9", 4, is_dated=True)
UNDATED = repairs.Unverified("run-9", 1, is_dated=False)


@pytest.mark.parametrize(
    ("ends", "open_plan", "code", "words"),
    [
        ((), NO_LATER, 3, "could not tell what became of 4 aborts: no capture is later than that of run run-9"),
        ((Repair.REPAIRED,), NO_LATER, 3, "Copy the files again, audit them, then verify"),
        ((Repair.STILL_HANGING,), NO_LATER, 1, "could not tell what became of 4 aborts"),
        ((), UNDATED, 3, "run run-9 does not know when its files were copied. Audit them again with --as-of TIME"),
    ],
)
def test_what_no_later_capture_tells_is_not_done(
    ended_as: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    ends: tuple[Repair, ...],
    open_plan: repairs.Unverified,
    code: int,
    words: str,
) -> None:
    ended_as(*ends)
    monkeypatch.setattr(repairs, "unverified", lambda *_: open_plan)
    done = program("verify")
    assert done.code == code
    assert words in done.err
    assert "No earlier run has an abort" not in done.out
    assert program("verify", "--accept-inconclusive").code == (1 if code == 1 else 0)
