"""The calendar of real nights says of each what its report says."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.captures import CASES, PARAMETERS
from tests.sessions import no_session
from txn_analysis.cli.main import app
from txn_analysis.pipeline import steps
from txn_analysis.questions.loaded_report import load_report
from txn_analysis.questions.night_calendar import night_calendar
from txn_analysis.report.model import AuditReport
from txn_analysis.report.night_calendar import Against, Answer, ClusterNights
from txn_analysis.settings import Settings
from txn_analysis.storage.opening import open_warehouse

FIRST, SECOND, THIRD = (f"kafka-4.2/capture-{number}" for number in (1, 2, 3))
STILL_HANGING = ("ledger.events-1@135", "orders-2@155", "payments-0@187")


def settings_of(folder: Path, **known: Any) -> Settings:
    return Settings.model_validate(PARAMETERS | {"warehouse": str(folder / "w")} | known)


def audited(folder: Path, night: str, **known: Any) -> AuditReport:
    parts = [CASES / night / part for part in ("segments", "transaction-state")]
    return steps.audit(no_session, [str(part) for part in parts], settings_of(folder, **known))


def calendar(folder: Path, **known: Any) -> list[ClusterNights]:
    settings = settings_of(folder, **known)
    return night_calendar(open_warehouse(no_session, settings.warehouse), settings)


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
    (own,) = calendar(tmp_path)
    assert [night.run_id for night in own.nights] == [report.run.run_id for report in reports]
    assert [night.number for night in own.nights] == [len(report.hanging) for report in reports]
    warehouse = open_warehouse(no_session, str(tmp_path / "w"))
    for night in own.nights:
        since = load_report(warehouse, settings_of(tmp_path), night.run_id).since
        told = None if since is None else Against(len(since.new), len(since.gone), len(since.still))
        assert night.against == told
    assert own.nights[0].against is None
    assert own.nights[1].against is not None


def test_a_night_of_which_all_is_accepted_hangs_no_more_and_counts_it(tmp_path: Path, verb: Callable[..., int]) -> None:
    audited(tmp_path, SECOND)
    audited(tmp_path, THIRD)
    before = calendar(tmp_path)[0].nights[1]
    named = [word for finding in STILL_HANGING for word in ("--finding", finding)]
    assert verb("accept", *named, "--until", "2026-12-24", "--reason", "the topic goes") == 0
    after = calendar(tmp_path)[0].nights[1]
    report = load_report(open_warehouse(no_session, str(tmp_path / "w")), settings_of(tmp_path))
    assert (before.answer, before.accepted) == (Answer.HANGING, 0)
    assert (after.answer, after.accepted) == (Answer.CLEAN, 3)
    assert before.against is not None
    assert after.against == before.against._replace(still=before.against.still - 3)
    assert report.outcome.answer.value == "clean"


def test_a_night_that_could_not_tell_is_not_green(tmp_path: Path) -> None:
    parts = [str(CASES / FIRST / "segments")]
    steps.audit(no_session, parts, settings_of(tmp_path))
    assert [night.answer for night in calendar(tmp_path)[0].nights] == [Answer.COULD_NOT_TELL]


def test_files_that_no_audit_judged_are_a_night_all_the_same(tmp_path: Path) -> None:
    steps.ingest(no_session, [str(CASES / FIRST / "segments")], settings_of(tmp_path))
    (night,) = calendar(tmp_path)[0].nights
    assert (night.answer, night.run_id) == (Answer.NOT_JUDGED, None)
    assert night.copied_on is not None


def test_each_cluster_has_its_own_nights(tmp_path: Path) -> None:
    audited(tmp_path, FIRST, cluster="eu")
    audited(tmp_path, SECOND, cluster="us")
    assert [(own.cluster, len(own.nights)) for own in calendar(tmp_path)] == [("eu", 1), ("us", 1)]


def test_the_page_links_each_nights_page_whatever_its_name_is(tmp_path: Path, verb: Callable[..., int]) -> None:
    runs = [audited(tmp_path, night).run.run_id for night in (FIRST, SECOND)]
    verb("report", "--run", runs[0], "-o", "the first night.html")
    verb("report", "--run", runs[1], "--topic", "orders", "-o", "a-part.html")
    assert verb("captures", "-o", "nights.html") == 0
    page = (tmp_path / "nights.html").read_text()
    assert re.findall(r'href="([^"#]+)"', page) == ["the%20first%20night.html"]
    assert f"txn-analysis report --run {runs[1]}" in re.sub(r"</?span[^>]*>", "", page)


def test_the_printed_commands_make_the_same_page_with_one_link_more(tmp_path: Path, verb: Callable[..., int]) -> None:
    audited(tmp_path, FIRST)
    verb("captures", "-o", "nights.html")
    commands = re.findall(r"<code>(.*?)</code>", re.sub(r"</?span[^>]*>", "", (tmp_path / "nights.html").read_text()))
    again, of_night = ([*command.removeprefix("txn-analysis ").split()] for command in commands)
    assert again == ["captures", "--warehouse", "w", "-o", "nights.html"]
    verb(*of_night[: of_night.index("--warehouse")], *of_night[of_night.index("--warehouse") + 2 :])
    verb("captures", "-o", "nights.html")
    assert of_night[-1] in (tmp_path / "nights.html").read_text()


def test_rows_and_page_are_written_by_one_call(tmp_path: Path, verb: Callable[..., int]) -> None:
    audited(tmp_path, FIRST)
    assert verb("captures", "-o", "nights.html", "-o", "captures.csv") == 0
    assert (tmp_path / "captures.csv").read_text().startswith("Cluster,Capture")
    assert (tmp_path / "nights.html").read_text().startswith("<!doctype html>")
