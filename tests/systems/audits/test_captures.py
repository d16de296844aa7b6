"""What `captures` says of each real night is what its report says."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.tools.captures import PARAMETERS
from tests.tools.program import program
from tests.tools.repository import CASES
from tests.tools.sessions import no_session, opened
from txn_analysis.cli.main import app
from txn_analysis.pipeline import steps
from txn_analysis.questions.captured_nights import Against, CapturedNight, captured_nights
from txn_analysis.questions.loaded_report import load_report
from txn_analysis.report.model import AuditReport
from txn_analysis.settings import Settings

FIRST, SECOND, THIRD = (f"kafka-4.2/capture-{number}" for number in (1, 2, 3))
STILL_HANGING = ("ledger.events-1@135", "orders-2@155", "payments-0@187")


def settings_of(folder: Path, **known: Any) -> Settings:
    return Settings.model_validate(PARAMETERS | {"warehouse": str(folder / "w")} | known)


def audited(folder: Path, night: str, **known: Any) -> AuditReport:
    parts = [CASES / night / part for part in ("segments", "transaction-state")]
    return steps.audit(no_session, [str(part) for part in parts], settings_of(folder, **known))


def nights_of(folder: Path, **known: Any) -> list[CapturedNight]:
    settings = settings_of(folder, **known)
    return captured_nights(opened(settings.warehouse), settings)


@pytest.fixture
def verb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Runs a command in the folder of the warehouse `w`; its exit code."""
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> int:
        with pytest.raises(SystemExit) as ended:
            app([*words, "--warehouse", "w"])
        return int(ended.value.code or 0)

    return run


def test_each_night_counts_what_its_own_report_counts(tmp_path: Path) -> None:
    reports = [audited(tmp_path, night) for night in (FIRST, SECOND, THIRD)]
    nights = nights_of(tmp_path)
    assert [night.capture.runs for night in nights] == [(report.run.run_id,) for report in reports]
    assert [night.answer for night in nights] == [f"{len(report.hanging)} hanging" for report in reports]
    warehouse = opened(tmp_path / "w")
    for night in nights:
        since = load_report(warehouse, settings_of(tmp_path), night.capture.runs[-1]).since
        told = None if since is None else Against(len(since.new), len(since.gone), len(since.still))
        assert night.against == told
    assert nights[0].against is None
    assert nights[1].against is not None


def test_a_night_of_which_all_is_accepted_hangs_no_more_and_counts_it(tmp_path: Path, verb: Callable[..., int]) -> None:
    audited(tmp_path, SECOND)
    audited(tmp_path, THIRD)
    before = nights_of(tmp_path)[1]
    named = [word for finding in STILL_HANGING for word in ("--finding", finding)]
    assert verb("accept", *named, "--until", "2026-12-24", "--reason", "the topic goes") == 0
    after = nights_of(tmp_path)[1]
    report = load_report(opened(tmp_path / "w"), settings_of(tmp_path))
    assert (before.answer, before.accepted) == ("3 hanging", 0)
    assert (after.answer, after.accepted) == ("nothing hangs", 3)
    assert before.against is not None
    assert after.against == before.against._replace(still=before.against.still - 3)
    assert report.outcome.answer.value == "clean"


def test_a_night_that_could_not_tell_is_not_green(tmp_path: Path) -> None:
    parts = [str(CASES / FIRST / "segments")]
    steps.audit(no_session, parts, settings_of(tmp_path))
    assert [night.answer for night in nights_of(tmp_path)] == ["could not tell"]


def test_files_that_no_audit_judged_are_a_night_all_the_same(tmp_path: Path) -> None:
    steps.ingest(no_session, [str(CASES / FIRST / "segments")], settings_of(tmp_path))
    (night,) = nights_of(tmp_path)
    assert (night.answer, night.capture.runs) == ("not judged", ())
    assert night.copied_ms is not None


def test_each_cluster_has_its_own_nights(tmp_path: Path) -> None:
    audited(tmp_path, FIRST, cluster="eu")
    audited(tmp_path, SECOND, cluster="us")
    assert [night.capture.cluster for night in nights_of(tmp_path)] == ["eu", "us"]


def test_a_plan_that_a_later_copy_speaks_against_is_not_printed(tmp_path: Path) -> None:
    first, third = audited(tmp_path, FIRST), audited(tmp_path, THIRD)
    for is_audited_again in (False, True):  # then it is the last run, of the earlier copy
        if is_audited_again:
            first = audited(tmp_path, FIRST)
        words = ("abort-plan", "--warehouse", tmp_path / "w", "--run", first.run.run_id, "--format", "ndjson")
        plan = program(*words, "--expired").out.splitlines()
        assert (len(plan), len(third.hanging)) == (4, 3)
        refused = program(*words)
        assert (refused.code, refused.out) == (2, "")
        assert f"orders-0@161: run {third.run.run_id} judged a later copy, and recommends no abort of it" in refused.err
        still_there = program(*words, "ledger.events-1@135")
        assert "judged a later copy" not in still_there.err


def test_the_last_run_says_where_it_is_of_an_older_copy_that_came_late(tmp_path: Path) -> None:
    third, first = (audited(tmp_path, night, capture=night) for night in (THIRD, FIRST))
    newer = f"note: this is the last run, of capture {FIRST}; capture {THIRD} is newer: --run {third.run.run_id}\n"
    for verb in ("report", "find-hanging", "verify", "list", "captures"):
        words = (verb, "--warehouse", tmp_path / "w")
        assert program(*words).err.count(newer) == (verb != "captures")
        if verb != "captures":
            assert newer not in program(*words, "--run", first.run.run_id).err
