"""People accept findings of real nights: they are no alarm until a date, and nothing else changes."""

import json
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tools.captures import run_audit
from tests.tools.program import program
from tests.tools.repository import CASES, ROOT
from tests.tools.sessions import no_session, opened
from tests.unit.plan.test_accepted import LIVE, UNTIL_MS, decided
from txn_analysis.errors import ConfigError
from txn_analysis.report.formats import prometheus_text
from txn_analysis.report.model import AuditReport
from txn_analysis.runs import decisions
from txn_analysis.settings import Settings

CONF = ROOT / "conf"
SECOND, THIRD = (f"kafka-4.2/capture-{number}" for number in (2, 3))
STILL_HANGING = ("ledger.events-1@135", "orders-2@155", "payments-0@187")
Said = tuple[int, str]


def audited(folder: Path, night: str, **settings: Any) -> AuditReport:
    parts = [str(CASES / night / part) for part in ("segments", "transaction-state")]
    return run_audit(no_session, str(folder), parts, **settings)


@pytest.fixture(scope="module")
def kept_third(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("third") / "warehouse"
    audited(folder, THIRD)
    return folder


@pytest.fixture
def third(kept_third: Path, tmp_path: Path) -> Path:
    """A warehouse in which the third night was audited."""
    return shutil.copytree(kept_third, tmp_path, dirs_exist_ok=True)


@pytest.fixture
def verb(tmp_path: Path) -> Callable[..., Said]:
    """Asks the warehouse in which a night was audited; the exit code, and what is printed."""
    return lambda *words: program(*words, "--warehouse", tmp_path)[:2]


def named(file: Path) -> Settings:
    return Settings(accepted=str(file))


def accepting(*findings: str, until: str = "2026-12-24") -> list[str]:
    return ["accept", *findings, "--until", until, "--reason", "the topic goes", "--by", "anna"]


@pytest.mark.usefixtures("third")
def test_what_is_accepted_is_no_alarm_in_any_answer(verb: Callable[..., Said]) -> None:
    before = json.loads(verb("report", "--format", "json")[1])
    assert [verb(*ask)[0] for ask in (["report"], ["find-hanging"])] == [1, 1]
    assert verb(*accepting(*STILL_HANGING))[0] == 0
    assert [verb(*ask)[0] for ask in (["report"], ["find-hanging"], ["verify"])] == [0, 0, 3]
    _code, text = verb("report")
    assert text.splitlines()[:2] == [
        "Nothing hangs in what was read, but what is accepted.",
        "Decided by people: 3 accepted.",
    ]
    assert "the topic goes" not in text
    assert "by anna: the topic goes" in verb("report", "--show-accepted", "--width", "200")[1]
    after = json.loads(verb("report", "--format", "json")[1])
    assert after["findings"] == before["findings"]
    assert [one["standing"] for one in after["accepted"]] == ["accepted"] * 3
    assert after["outcome"]["answer"] == "clean"


@pytest.mark.usefixtures("third")
def test_the_plan_still_contains_what_is_accepted(verb: Callable[..., Said]) -> None:
    plan = ("abort-plan", "--expired", "--format", "ndjson")
    before = verb(*plan)
    verb(*accepting(*STILL_HANGING))
    assert verb(*plan) == before


def test_the_next_night_knows_it_and_counts_it_apart(tmp_path: Path, verb: Callable[..., Said]) -> None:
    audited(tmp_path, SECOND)
    verb(*accepting(*STILL_HANGING))
    report = audited(tmp_path, THIRD)
    assert (report.outcome.answer, len(report.hanging), len(report.findings)) == ("clean", 0, 3)
    metrics = prometheus_text(report, 0)
    assert 'txn_analysis_open_transactions{cluster="default",verdict="hanging"} 0.0' in metrics
    assert 'txn_analysis_accepted_transactions{cluster="default"} 3.0' in metrics
    assert verb("report")[1].splitlines()[1] == "Since last run: 0 new, 3 gone, 0 still there, 3 accepted."
    assert verb("verify")[0] == 0  # one is repaired, and the others still hang


def test_the_date_and_a_deleted_entry_bring_it_back(tmp_path: Path, verb: Callable[..., Said]) -> None:
    audited(tmp_path, SECOND)
    verb(*accepting(*STILL_HANGING, until="2026-11-21T03:19:00Z"))  # before the files of the third night
    assert len(audited(tmp_path, THIRD).hanging) == 3
    assert verb("report")[1].splitlines()[1].endswith("3 no longer accepted.")
    verb(*accepting(*STILL_HANGING))
    assert verb("report")[0] == 0
    file = tmp_path / decisions.FILE
    file.write_text(file.read_text(encoding="ascii").rpartition("[[accepted]]")[0], encoding="ascii")
    assert verb("report")[0] == 1


def test_a_file_kept_in_git_does_the_same(tmp_path: Path, verb: Callable[..., Said]) -> None:
    run = audited(tmp_path, SECOND).run.run_id
    code, entries = verb(
        "accept", "--all-of", run, "--until", "2026-12-24", "--reason", "first night", "--format", "toml"
    )
    assert (code, verb("report")[0]) == (0, 1)  # nothing is kept
    file = tmp_path / "decisions.toml"
    file.write_text(entries, encoding="ascii")
    report = audited(tmp_path, THIRD, accepted=str(file))
    assert report.outcome.answer == "clean"
    assert {one.source for one in report.accepted} == {str(file)}
    file.write_text(entries.replace('rule = "unknown_producer"', 'rule = "another"'), encoding="ascii")
    assert [one.topic_partition for one in audited(tmp_path, THIRD, accepted=str(file)).hanging] == ["orders-2"]
    assert "since then changed: rule" in verb("report", "--accepted", str(file), "--width", "200")[1]
    assert verb("report", "--cluster", "default", "--accepted", str(file))[0] == 1


def test_of_another_cluster_nothing_is_accepted(third: Path, verb: Callable[..., Said]) -> None:
    audited(third, THIRD, cluster="other")
    verb(*accepting(*STILL_HANGING))
    assert (verb("report")[0], verb("report", "--cluster", "other")[0]) == (0, 1)


def test_of_two_decisions_about_one_finding_the_later_one_counts(tmp_path: Path) -> None:
    settings = Settings(warehouse=str(tmp_path))
    for until_ms in (UNTIL_MS, UNTIL_MS + 2, UNTIL_MS + 1):
        decisions.keep(settings, [decided(until_ms=until_ms).decision])
    (one,) = decisions.decisions_of(opened(tmp_path), settings, "default")
    assert (one.decision.until_ms, one.source) == (UNTIL_MS + 1, str(tmp_path / decisions.FILE))


def test_a_decision_stands_in_place_of_the_one_before_and_comments_stay(tmp_path: Path) -> None:
    settings, file = Settings(warehouse=str(tmp_path)), tmp_path / decisions.FILE
    first = decided().decision
    other = first._replace(producer_id=7)
    file.write_text(f"# first\n{decisions.toml_of([first])}# other, é\n{decisions.toml_of([other])}", encoding="utf-8")
    later = first._replace(until_ms=UNTIL_MS + 1)
    decisions.keep(settings, [later])
    both = decisions.toml_of([other, later])
    assert file.read_text(encoding="utf-8") == f"# first\n# other, é\n{both}"


def test_of_decisions_at_once_all_are_kept(tmp_path: Path) -> None:
    settings, first = Settings(warehouse=str(tmp_path)), decided().decision
    ids = range(40)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda one: decisions.keep(settings, [first._replace(producer_id=one)]), ids))
    assert sorted(one.producer_id for one in decisions.read_decisions(settings)) == [*ids]


def test_what_people_wrote_in_the_file_stays_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "decisions.toml"
    file.write_text("# asked by Anna", encoding="ascii")
    settings = Settings(warehouse=str(tmp_path), accepted=str(file))
    decisions.keep(settings, [decided().decision])
    assert file.read_text(encoding="ascii").startswith("# asked by Anna\n[[accepted]]\n")
    file.write_text("accepted", encoding="ascii")
    with pytest.raises(ConfigError, match="is not TOML"):
        decisions.keep(settings, [decided().decision])
    assert file.read_text(encoding="ascii") == "accepted"


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30)


@given(TEXTS, TEXTS)
def test_printed_entries_are_read_back_whatever_they_hold(tmp_path_factory: Any, name: str, reason: str) -> None:
    said = decided(LIVE._replace(transactional_id=name, topic=name)).decision._replace(reason=reason)
    file = tmp_path_factory.mktemp("toml") / "accepted.toml"
    file.write_text(decisions.toml_of([said]), encoding="ascii")
    assert decisions.read_decisions(named(file)) == [said._replace(finding_id="", run_id="")]


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("accepted = 3", "accepted"),
        ("[[accepted]]\ntopic = 'a'", "entry 1, partition"),
        ("[[accepted]]\ntypo = 1", "entry 1, typo"),
        ("accepted", "is not TOML"),
    ],
)
def test_a_file_that_is_not_understood_is_refused(tmp_path: Path, text: str, refused: str) -> None:
    file = tmp_path / "accepted.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=refused):
        decisions.read_decisions(named(file))
    with pytest.raises(ConfigError, match=refused):
        audited(tmp_path / "w", THIRD, accepted=str(file))
    assert not (tmp_path / "w").exists()


def test_the_example_beside_the_settings_is_an_entry(tmp_path: Path) -> None:
    assert decisions.read_decisions(named(CONF / "accepted.toml")) == []
    lines = (CONF / "accepted.toml").read_text(encoding="utf-8").splitlines()
    entry = [line[2:] for line in lines if line[2:4] == "[[" or " = " in line[2:].partition(" #")[0]]
    file = tmp_path / "accepted.toml"
    file.write_text("\n".join(line for line in entry if "`" not in line), encoding="utf-8")
    (read,) = decisions.read_decisions(named(file))
    assert read.place == ("orders", 0, 1002, 161)
