"""What is old goes out of a warehouse: answers stay, gaps stay filled, readers read on, and a kill costs time only."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.tools.captures import PARAMETERS, answers, run_audit
from tests.tools.program import Done, program
from tests.tools.repository import CASES
from tests.tools.sessions import no_session, opened
from txn_analysis.errors import WarehouseError
from txn_analysis.pipeline import ingest, steps
from txn_analysis.questions import verify as repairs
from txn_analysis.questions.captured_nights import captured_nights
from txn_analysis.questions.loaded_report import load_report
from txn_analysis.questions.pruning import PruneAnswer, prune
from txn_analysis.report.model import AuditReport
from txn_analysis.runs.prunes import prunes_of, unpruned_name
from txn_analysis.runs.run_tables import captures, forget
from txn_analysis.settings import Settings
from txn_analysis.tables import ALL_TABLES, FINDINGS, INPUTS, LOG_PIECES, PRUNES, RUNS
from txn_analysis.verdict import Verdict
from txn_analysis.warehouse.delta_folder import DeltaFolder
from txn_analysis.warehouse.roots import disk_root

# Night three is after a repair; night two has all that is open in it.
FIRST, SECOND, THIRD = (f"kafka-4.2/capture-{number}" for number in (1, 2, 3))
DAY_MS, START_MS = 86_400_000, 1_795_230_000_000
NOW_MS = START_MS + 1000 * DAY_MS
KEEP_MS = 10 * DAY_MS


def audited(folder: Path, night: str, day: int, *, without: str = "\0", name: str | None = None) -> AuditReport:
    """The audit of a real capture as of a day, without the files whose names have some word."""
    files = [file for part in ("segments", "transaction-state") for file in sorted((CASES / night / part).iterdir())]
    said = {"capture": name or f"day-{day:03}", "as_of_ms": START_MS + day * DAY_MS}
    return run_audit(no_session, str(folder), [str(file) for file in files if without not in file.name], **said)


def pruned(folder: Path, grace_ms: int = 0, now_ms: int = NOW_MS) -> PruneAnswer:
    return prune(opened(folder), KEEP_MS, now_ms, grace_ms)


def rejudged(folder: Path, day: int) -> AuditReport:
    """The capture of a day judged again, with what is left behind it."""
    said = {"warehouse": str(folder), "capture": f"day-{day:03}", "as_of_ms": START_MS + day * DAY_MS}
    settings = Settings.model_validate(PARAMETERS | said)
    steps.reconstruct(no_session, settings)
    run = steps.judge(no_session, settings)
    return load_report(opened(folder), settings, run.run_id)


def rows(folder: Path) -> dict[str, list[Any]]:
    warehouse = opened(folder)
    return {table.name: warehouse.rows(table).to_pylist() for table in ALL_TABLES}


@pytest.fixture(scope="module")
def kept_old_night(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("old") / "warehouse"
    audited(folder, FIRST, 0)
    return folder


@pytest.fixture(scope="module")
def kept_nights(kept_old_night: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = shutil.copytree(kept_old_night, tmp_path_factory.mktemp("nights") / "warehouse")
    audited(folder, SECOND, 100)
    audited(folder, THIRD, 101)
    return folder


@pytest.fixture(scope="module")
def kept_one_night_again(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("again") / "warehouse"
    for day in (0, 1, 2, 100):
        audited(folder, THIRD, day)
    return folder


@pytest.fixture
def one_night_again(kept_one_night_again: Path, tmp_path: Path) -> Path:
    """One capture, given on four days, in a warehouse of the test's own."""
    return shutil.copytree(kept_one_night_again, tmp_path / "warehouse")


@pytest.fixture
def old_night(kept_old_night: Path, tmp_path: Path) -> Path:
    """One old capture, in a warehouse of the test's own."""
    return shutil.copytree(kept_old_night, tmp_path / "warehouse")


@pytest.fixture
def nights(kept_nights: Path, tmp_path: Path) -> Path:
    """Three captures of one cluster, the first of them old, in a warehouse of the test's own."""
    return shutil.copytree(kept_nights, tmp_path / "warehouse")


def test_what_is_old_goes_and_what_is_new_stays(nights: Path) -> None:
    before = [one.name for one in captures(opened(nights))]
    (item,) = pruned(nights).clusters
    assert before == ["day-000", "day-100", "day-101"]
    assert (item.captures, item.input_count > 0) == (("day-000",), True)
    assert "day-101" in [one.name for one in captures(opened(nights))]


def test_whoever_asked_before_sees_a_prune_of_somebody_else(nights: Path) -> None:
    mine, others = opened(nights), opened(nights)
    assert prunes_of(mine) == []
    (item,) = prune(others, KEEP_MS, NOW_MS, 0).clusters
    assert [one.prune_id for one in prunes_of(mine)] == [item.prune_id]
    assert prunes_of(mine, "another") == []


def test_a_night_whose_run_stays_is_listed_without_its_files(nights: Path) -> None:
    settings = Settings(warehouse=str(nights))
    before = captured_nights(opened(nights), settings)
    pruned(nights)
    after = captured_nights(opened(nights), settings)
    assert "day-000" not in [one.name for one in captures(opened(nights))]
    assert [(night.capture.name, night.capture.runs, night.answer) for night in after] == [
        (night.capture.name, night.capture.runs, night.answer) for night in before
    ]


def test_a_capture_whose_files_age_took_is_forgotten_all_the_same(nights: Path) -> None:
    pruned(nights)
    resting = forget(opened(nights), "default", "day-000").resting_runs
    assert resting
    for run_id in resting:
        run = load_report(opened(nights), Settings(warehouse=str(nights)), run_id).run
        assert run.forgotten_captures == ("day-000",)


def test_the_newest_capture_is_judged_as_before(nights: Path) -> None:
    expected = answers(load_report(opened(nights), Settings(warehouse=str(nights))))
    pruned(nights)
    assert answers(rejudged(nights, 101)) == expected
    assert expected


def test_nothing_is_old_where_all_is_new(old_night: Path) -> None:
    audited(old_night, THIRD, 1)
    (item,) = pruned(old_night).clusters
    assert (item.prune_id, item.captures, item.runs) == (None, (), ())


def test_a_warehouse_that_nobody_fed_loses_nothing(old_night: Path) -> None:
    (item,) = pruned(old_night, now_ms=NOW_MS * 2).clusters
    assert item.prune_id is None


def test_pruned_twice_is_pruned_once(nights: Path) -> None:
    pruned(nights)
    before = rows(nights)
    again = pruned(nights, now_ms=NOW_MS + 1)
    assert [item.prune_id for item in again.clusters] == [None]
    assert (again.cleared_row_count, again.freed_bytes) == (0, 0)
    assert rows(nights) == before


def test_a_rehearsal_says_what_goes_and_changes_nothing(nights: Path) -> None:
    before = opened(nights).versions(ALL_TABLES)
    said = prune(opened(nights), KEEP_MS, NOW_MS, 0, is_rehearsal=True)
    assert opened(nights).versions(ALL_TABLES) == before
    done = pruned(nights)
    assert [item.model_dump() for item in said.clusters] == [item.model_dump() for item in done.clusters]
    assert done.clusters[0].row_count == done.cleared_row_count + done.clusters[0].input_count + len(
        done.clusters[0].runs
    )


def test_a_plan_that_nobody_saw_carried_out_is_still_followed(old_night: Path) -> None:
    """What hung in the old night is repaired by the last one for some, and not in its files for others."""
    audited(old_night, SECOND, 100, without="payments-0")
    expected = {o.record.finding_id: o.repair for o in repairs.verify(repairs.nights(opened(old_night), "default"))}
    pruned(old_night)
    assert {
        o.record.finding_id: o.repair for o in repairs.verify(repairs.nights(opened(old_night), "default"))
    } == expected
    assert expected


def test_what_is_still_open_is_still_first_seen_where_it_was(tmp_path: Path) -> None:
    folder = tmp_path / "w"
    for day in (0, 1, 2, 100, 101):
        audited(folder, FIRST, day)

    def first_seen() -> dict[str, str]:
        past = repairs.past(repairs.nights(opened(folder), "default"))
        return {one.outcome.record.finding_id: one.findings[0].run_id for one in past}

    expected = first_seen()
    (item,) = pruned(folder).clusters
    assert (len(item.runs), len(item.runs_kept)) == (1, 2)
    assert first_seen() == expected
    since = load_report(opened(folder), Settings(warehouse=str(folder))).since
    assert since is not None
    assert not any(one.is_counted_whole for one in since.still)


def test_an_old_capture_keeps_the_files_that_fill_a_gap(old_night: Path) -> None:
    """The new capture lacks a log in which something is open: it is known from the old one alone."""
    expected = answers(audited(old_night, FIRST, 100, without="orders-0"))
    (item,) = pruned(old_night).clusters
    assert item.captures_kept == ("day-000",)
    assert item.kept[0].why.endswith(": a transaction is open there")
    assert answers(rejudged(old_night, 100)) == expected
    assert any(place[:2] == ("orders", 0) for place in expected)


def test_records_of_the_coordinator_that_bear_on_what_is_open_stay(old_night: Path) -> None:
    """The new capture lacks all but one partition of the state, as a copy that was cut short does."""
    expected = answers(audited(old_night, FIRST, 100, without="__transaction_state"))
    pruned(old_night)
    assert answers(rejudged(old_night, 100)) == expected


def test_a_report_says_which_prune_took_what_an_answer_may_lack(nights: Path) -> None:
    """What was open is ended in the last night, so that the old capture goes; then a copy without the state comes."""
    (item,) = pruned(nights).clusters
    later = audited(nights, THIRD, 102, without="__transaction_state")
    lacking = [finding for finding in later.findings if finding.verdict is Verdict.INCONCLUSIVE]
    assert [one.prune_id for one in later.run.prunes] == [item.prune_id]
    assert lacking
    again = load_report(opened(nights), Settings(warehouse=str(nights)))
    assert again.run.prunes == later.run.prunes


@pytest.mark.parametrize("at", [pytest.param(at, marks=[] if at == 3 else pytest.mark.cluster) for at in range(8)])
def test_killed_anywhere_it_answers_right_and_is_finished_by_the_next(
    nights: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    expected = answers(load_report(opened(nights), Settings(warehouse=str(nights))))
    warehouse, done = opened(nights), 0

    def dying(act: Callable[..., Any]) -> Callable[..., Any]:
        def called(*words: Any, **named: Any) -> Any:
            nonlocal done
            if done == at:
                raise KeyboardInterrupt
            done += 1
            return act(*words, **named)

        return called

    for name in ("_change", "tidy"):  # all writes
        monkeypatch.setattr(warehouse, name, dying(getattr(warehouse, name)))
    with pytest.raises(KeyboardInterrupt):
        prune(warehouse, KEEP_MS, NOW_MS, 0)
    assert answers(load_report(opened(nights), Settings(warehouse=str(nights)))) == expected
    assert answers(rejudged(nights, 101)) == expected
    pruned(nights, now_ms=NOW_MS + 1)
    assert all(one.cleared_ms is not None for one in prunes_of(opened(nights)))
    left = opened(nights)
    named = {(row["ingest_id"], row["input_id"]) for row in left.rows(INPUTS).to_pylist()}
    assert {(row["ingest_id"], row["input_id"]) for row in left.rows(LOG_PIECES).to_pylist()} <= named
    assert {*left.rows(FINDINGS)["run_id"].to_pylist()} <= {*left.rows(RUNS)["run_id"].to_pylist()}


def test_two_prunes_and_an_audit_at_once_do_each_others_work_no_harm(
    nights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second prune, and an audit, run whole in the middle of the first one."""
    warehouse = opened(nights)
    revise = warehouse.revise

    def interrupted(*words: Any) -> None:
        monkeypatch.undo()
        pruned(nights, now_ms=NOW_MS + 1)
        audited(nights, THIRD, 102)
        revise(*words)

    monkeypatch.setattr(warehouse, "revise", interrupted)
    prune(warehouse, KEEP_MS, NOW_MS, 0)
    found = load_report(opened(nights), Settings(warehouse=str(nights)))
    assert (found.run.capture, bool(found.findings)) == ("day-102", True)
    assert [item.prune_id for item in pruned(nights, now_ms=NOW_MS + 2).clusters] == [None]


def test_who_began_to_read_before_reads_on(nights: Path) -> None:
    reader = opened(nights)
    expected = sorted(map(str, opened(nights).rows(FINDINGS).to_pylist()))
    batches = reader.batches(FINDINGS)
    pruned(nights, grace_ms=DAY_MS)
    pruned(nights, grace_ms=DAY_MS, now_ms=NOW_MS + 2 * DAY_MS)
    assert sorted(str(row) for batch in batches for row in batch.to_pylist()) == expected


def test_rows_are_deleted_only_after_the_grace_period(nights: Path) -> None:
    def row_count() -> int:
        warehouse = opened(nights)
        return sum(len(warehouse.rows(table)) for table in ALL_TABLES if table.partition_by)

    whole = row_count()
    first = pruned(nights, grace_ms=DAY_MS)
    assert (row_count(), first.cleared_row_count) == (whole, 0)
    later = pruned(nights, grace_ms=DAY_MS, now_ms=NOW_MS + DAY_MS)
    assert 0 < later.cleared_row_count == whole - row_count()


def test_files_are_freed_once_nobody_reads_them(nights: Path) -> None:
    freed = pruned(nights)
    there = {str(path.relative_to(nights)) for path in nights.rglob("*.parquet") if "_delta_log" not in str(path)}
    tables = [(table, DeltaFolder(disk_root(nights), table)) for table in ALL_TABLES]
    assert there == {f"{table.name}/{file.path}" for table, stored in tables for file in stored.files}
    assert freed.freed_file_count
    assert freed.freed_bytes


def test_an_audit_that_found_content_which_a_prune_took_is_refused_in_one_line(
    old_night: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    audited(old_night, THIRD, 100)
    account = ingest._account

    def slow(*words: Any) -> Any:
        rows = account(*words)
        pruned(old_night)
        return rows

    monkeypatch.setattr(ingest, "_account", slow)
    with pytest.raises(WarehouseError, match=r"prune-\w+ took files of captures that this audit had found here"):
        audited(old_night, FIRST, 101, name="late")


def test_a_capture_that_comes_late_is_not_judged_without_what_lay_behind_it(old_night: Path) -> None:
    """The newer capture by which the prune decided is not behind it."""
    audited(old_night, THIRD, 100)
    pruned(old_night)
    with pytest.raises(WarehouseError, match=r"capture late is older than the newest one when prune-\w+ took"):
        audited(old_night, SECOND, 50, name="late")


def test_what_was_pruned_and_is_given_again_is_read_and_judged_under_other_names(one_night_again: Path) -> None:
    """The old rows may be deleted at any moment, and the new ones must not go with them."""
    (item,) = pruned(one_night_again, grace_ms=2 * DAY_MS).clusters
    assert len(item.runs) == 1
    warehouse, (name,) = opened(one_night_again), item.runs
    assert unpruned_name(warehouse, name) == f"{name}-again"
    assert unpruned_name(warehouse, item.runs_kept[0]) == item.runs_kept[0]


def nightly(folder: Path) -> Done:
    """One more night's audit, whose settings say how long is kept."""
    (folder.parent / "nightly.toml").write_text(f"warehouse = '{folder}'\nkeep_ms = '10d'\nprune_grace_ms = '0m'\n")
    given = [str(CASES / SECOND / part) for part in ("segments", "transaction-state")]
    said = ["--config", str(folder.parent / "nightly.toml"), "--transaction-state-partitions", "4"]
    return program("audit", *given, *said, "--capture", "day-102", "--as-of", START_MS + 102 * DAY_MS)


def test_an_audit_ends_with_it_where_settings_say_how_long_is_kept(nights: Path) -> None:
    code, _, said = nightly(nights)
    assert code == 1
    assert "and 11 files that were too old" in said
    assert len(prunes_of(opened(nights), "default")) == 1


def test_an_audit_keeps_its_exit_code_where_pruning_fails(nights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any, **__: Any) -> Any:
        raise WarehouseError("somebody else holds it")

    monkeypatch.setattr("txn_analysis.questions.pruning.prune", fails)
    code, _, said = nightly(nights)
    assert code == 1
    assert "note: what is old stays, as pruning failed: somebody else holds it" in said


def test_the_verb_prints_words_or_json_and_needs_an_age(nights: Path) -> None:
    def said(*words: str) -> Done:
        return program("forget", "--warehouse", nights, *words)

    assert said()[0] == 2
    assert "--older-than AGE" in said()[2]
    code, out, _ = said("--older-than", "10d", "--dry-run", "--format", "json")
    assert (code, json.loads(out)["is_rehearsal"], json.loads(out)["clusters"][0]["captures"]) == (0, True, ["day-000"])
    code, out, _ = said("--older-than", "10d")
    assert (code, "taken by prune-" in out) == (0, True)
    assert "the rows are deleted by the first forget --older-than after" in out
    assert len(opened(nights).rows(PRUNES)) == 1
