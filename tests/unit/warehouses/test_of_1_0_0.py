"""A warehouse that 1.0.0 wrote is read, audited into and pruned by today's version, as if today's had written it."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable, Schema
from pyspark.sql import SparkSession

from tests.tools.captures import PARAMETERS
from tests.tools.program import program
from tests.tools.records import plain
from tests.tools.repository import CASES
from tests.tools.sessions import no_session, opened
from tests.unit.warehouses.kept import ANSWERS, NIGHTS, unpacked
from txn_analysis import read
from txn_analysis.pipeline import steps
from txn_analysis.questions import stats
from txn_analysis.questions.loaded_report import load_report
from txn_analysis.questions.pruning import prune
from txn_analysis.report.model import AuditReport
from txn_analysis.runs.run_tables import run_tables
from txn_analysis.settings import EngineName, Settings
from txn_analysis.tables import ACCEPTED, ALL_TABLES, INPUTS

READ_AT = ("--now", "2026-11-21T00:00:00Z")
ASKED = {
    "report": ("report", *READ_AT),
    "write-txn-markers": ("abort-plan", "--expired"),
    "abort-plan": ("abort-plan", "--expired"),
    "describe-producers": ("describe-producers", "--all"),
}
FORMATS = {"abort-plan": "ndjson", "write-txn-markers": "write-txn-markers"}
NOW_MS = 1_800_000_000_000
# Versions of what is printed; they rise where a form grows.
VERSIONS = {"schema_version"}
# The commands of 1.0.0 that fence aborted what a checkpoint may hold; today's ask first, and `abort` is `fence`.
REPLACED = {"ways"}


def of_night(folder: Path, number: int) -> Settings:
    return Settings.model_validate(PARAMETERS | {"warehouse": str(folder), "capture": f"night-{number}"})


def audited(folder: Path, number: int) -> AuditReport:
    """A night of the real cluster, with the same files as those of 1.0.0, in another place."""
    night = CASES / f"kafka-4.2/capture-{number}"
    parts = ["segments", "transaction-state"] + ["producer-snapshots"] * (number > 1)
    return steps.audit(no_session, [str(night / part) for part in parts], of_night(folder, number))


def rejudged(folder: Path, number: int) -> AuditReport:
    settings = of_night(folder, number)
    steps.reconstruct(no_session, settings)
    run = steps.judge(no_session, settings)
    return load_report(opened(folder), settings, run.run_id)


def findings(report: AuditReport) -> list[dict[str, Any]]:
    """All that is said of what is open; paths are those of whoever read the files first."""
    return [plain(finding) for finding in report.findings]


def answers(report: AuditReport) -> dict[tuple[str, int, int], tuple[str, str]]:
    return {(f.topic, f.partition, f.txn_start_offset): (f.verdict.value, f.rule) for f in report.findings}


@pytest.fixture
def nights(tmp_path: Path) -> Path:
    """Two nights that 1.0.0 audited."""
    return unpacked(NIGHTS, tmp_path)


@pytest.fixture(scope="module")
def kept_todays(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("todays") / "today"
    for number in (1, 2):
        audited(folder, number)
    return folder


@pytest.fixture
def todays(kept_todays: Path, tmp_path: Path) -> Path:
    """The same two nights, audited today."""
    return shutil.copytree(kept_todays, tmp_path / "today")


@pytest.fixture
def ask(nights: Path) -> Callable[..., str]:
    return lambda *arguments: program(*arguments, "--warehouse", nights).out


WORDED = "facts"  # sentences for people, each behind its label: another version may say them otherwise


def labels(facts: list[dict[str, Any]]) -> set[str]:
    return {fact["label"] for fact in facts}


def lacks(before: Any, now: Any, place: str = "") -> list[str]:
    """What an answer lacked of one that 1.0.0 gave, or says otherwise; more may be said."""
    if isinstance(before, dict) and isinstance(now, dict):
        kept = before.keys() - VERSIONS - REPLACED
        gone = [f"{place}/{name} is gone" for name in sorted(kept - now.keys())]
        if WORDED in kept:
            gone += sorted(labels(before[WORDED]) - labels(now[WORDED]))
        both = sorted(kept & now.keys() - {WORDED})
        return gone + [word for name in both for word in lacks(before[name], now[name], f"{place}/{name}")]
    if isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        return [word for k, pair in enumerate(zip(before, now, strict=True)) for word in lacks(*pair, f"{place}/{k}")]
    return [] if before == now else [f"{place}: {before!r} is {now!r} now"]


def test_what_was_at_risk_is_upcoming(ask: Callable[..., str]) -> None:
    names = ("AtMs", "Risk", "Whom", "Topic", "Partition", "StartOffset", "TransactionalId", "What")
    before = [tuple(row[name] for name in names) for row in ANSWERS["at-risk"]]  # of the first hour
    now = [tuple(row.values()) for row in json.loads(ask("report", *READ_AT, "--format", "json"))["upcoming"]]
    # 1.0.0 did not say that the coordinator ends a transaction on those partitions alone that it lists.
    unconditional = [
        (*row, what.removeprefix(f"if the coordinator's transaction lists {row[2]}, ")) for *row, what in now
    ]
    assert unconditional[: len(before)] == before
    assert {row[1] for row, plain in zip(now, unconditional, strict=True) if row != plain} == {"timed_out"}


@pytest.mark.parametrize("name", sorted(ANSWERS.keys() - {"at-risk"}))
def test_it_is_read_with_the_answers_that_1_0_0_gave(ask: Callable[..., str], name: str) -> None:
    said = ask(*ASKED.get(name, (name,)), "--format", FORMATS.get(name, "json"))
    now = [json.loads(line) for line in said.splitlines()] if name == "abort-plan" else json.loads(said)
    assert lacks(ANSWERS[name], now) == []


def shrunk(before: Any, now: Any, place: str) -> list[str]:
    """What a type of Delta's has lost, or has that may not be NULL, since 1.0.0."""
    if not isinstance(before, dict) or not isinstance(now, dict):
        return [] if before == now else [f"{place}: {before} is {now} now"]
    if "fields" not in before:
        inner = before.keys() & {"elementType", "keyType", "valueType"}
        return [word for name in sorted(inner) for word in shrunk(before[name], now.get(name), place)]
    fields = {field["name"]: field for field in now.get("fields", ())}
    old = {field["name"]: field for field in before["fields"]}
    found = [f"{place}.{name} is gone" for name in old.keys() - fields.keys()]
    found += [f"{place}.{name} is never NULL" for name in fields.keys() - old.keys() if not fields[name]["nullable"]]
    both = sorted(old.keys() & fields.keys())
    return found + [
        word for name in both for word in shrunk(old[name]["type"], fields[name]["type"], f"{place}.{name}")
    ]


def test_no_table_lost_a_column_and_what_is_added_may_be_null(nights: Path) -> None:
    """Who renames or removes one raises `FORMAT`, and writes a migration that is tested on this warehouse."""
    for table in (*ALL_TABLES, ACCEPTED):
        if (nights / table.name).is_dir():  # a table that came since has no rows of 1.0.0
            before = json.loads(DeltaTable(str(nights / table.name)).schema().to_json())
            now = json.loads(Schema.from_arrow(table.arrow_schema).to_json())
            assert shrunk(before, now, table.name) == []
    tables = {table.name for table in (*ALL_TABLES, ACCEPTED)}
    assert {folder.name for folder in nights.iterdir()} <= tables


def test_its_rows_name_no_machine(nights: Path) -> None:
    paths = opened(nights).rows(INPUTS, "path")["path"].to_pylist()
    assert paths
    assert {path.split("/")[0] for path in paths} == {"kafka-4.2"}


def test_a_third_night_is_judged_as_behind_nights_of_today(nights: Path, todays: Path) -> None:
    assert findings(audited(nights, 3)) == findings(audited(todays, 3))


@pytest.mark.cluster
def test_a_third_night_by_sparks_tasks_is_judged_as_in_this_process(
    spark: SparkSession, nights: Path, tmp_path: Path
) -> None:
    """Tasks write files with the columns that came since, and the driver commits them to the tables of 1.0.0."""
    here = shutil.copytree(nights, tmp_path / "here")
    expected = findings(audited(here, 3))
    settings = of_night(nights, 3).model_copy(update={"engine": EngineName.SPARK})
    night = CASES / "kafka-4.2/capture-3"
    steps.audit(
        spark, [str(night / part) for part in ("segments", "transaction-state", "producer-snapshots")], settings
    )
    loaded = load_report(opened(nights), of_night(nights, 3))
    assert findings(loaded) == findings(load_report(opened(here), of_night(here, 3)))
    assert len(loaded.findings) == len(expected) > 0
    for table in ALL_TABLES:  # Delta in Spark reads old files and new ones, by the schema that grew
        of_delta = spark.read.format("delta").load(str(nights / table.name))
        assert {f.name for f in DeltaTable(str(here / table.name)).schema().fields} == {*of_delta.columns}
        assert of_delta.count() == len(opened(nights).rows(table))


def test_its_nights_judged_again_are_judged_as_today(nights: Path, todays: Path) -> None:
    assert findings(rejudged(nights, 2)) == findings(rejudged(todays, 2))
    assert findings(rejudged(nights, 2))


def test_what_people_accepted_in_it_is_accepted_still(nights: Path) -> None:
    assert read(None, nights, "accepted")["reason"].to_pylist() == ["its owner is on leave"]
    assert len(rejudged(nights, 2).accepted) == 1


def test_what_people_accepted_in_it_is_exported_as_entries_of_the_file(nights: Path) -> None:
    code, entries, _ = program("accept", "--export", "--warehouse", nights)
    assert (code, entries.count("[[accepted]]"), 'reason = "its owner is on leave"' in entries) == (0, 1, True)
    (nights / "accepted.toml").write_text(entries, encoding="ascii")
    (accepted,) = rejudged(nights, 2).accepted
    assert accepted.source == str(nights / "accepted.toml")


def test_it_is_pruned_as_one_of_today(nights: Path, todays: Path) -> None:
    taken, left = [], []
    for folder in (nights, todays):
        audited(folder, 3)
        (item,) = prune(opened(folder), 0, NOW_MS, 0).clusters
        taken.append((item.captures, item.captures_kept, item.input_count, item.runs, item.runs_kept))
        left.append(findings(rejudged(folder, 3)))
    assert taken[0] == taken[1]
    assert taken[0][2] > 0
    assert left[0] == left[1]


def test_rows_that_do_not_say_when_they_began_are_counted_as_those_that_do(
    nights: Path, todays: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stats, "_PART_ROWS", 100)
    before, now = (program("ended", "--by", "id", "--format", "json", "--warehouse", it).out for it in (nights, todays))
    timed = json.loads(now)["total"]["timed_count"]
    assert timed > 300
    assert {**json.loads(before), "run_id": ""} == {**json.loads(now), "run_id": ""}


def test_the_newest_record_of_each_id_is_found_as_it_is_written_today(nights: Path, todays: Path) -> None:
    before, now = (run_tables(opened(it), "default") for it in (nights, todays))
    assert (before.finished.has_current_states, now.finished.has_current_states) == (False, True)
    found = sorted(before.current_states())
    assert len(found) > 10
    assert found == sorted(now.current_states())
