"""A warehouse with a damaged table is refused by every verb, in one line, whichever table it is."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake import DeltaTable

from tests.tools.captures import SEGMENTS, run_audit
from tests.tools.program import program
from tests.tools.repository import CASES
from tests.tools.sessions import no_session

VERBS = (
    "find-hanging",
    "list",
    "describe --transactional-id inventory-sync",
    "describe-producers --topic payments --partition 0",
    "explain",
    "ended",
    "ended --by application",
    "abort-plan",
    "verify",
    "report",
    "report --format json",
    "report --format html",
)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Each of its tables has two commits or more: two clusters were audited."""
    folder = tmp_path_factory.mktemp("sound") / "warehouse"
    paths = [str(CASES / "kafka-4.2/capture-1" / part) for part in SEGMENTS]
    for cluster in ("east", "west"):
        run_audit(no_session, str(folder), paths, cluster=cluster)
    return folder


def first_commits_are_gone(log: Path) -> None:
    (log / f"{0:020}.json").unlink()
    (log / f"{1:020}.json").unlink()


def a_hole(log: Path) -> None:
    (log / f"{1:020}.json").unlink()
    assert (log / f"{2:020}.json").exists()


def a_commit_is_cut(log: Path) -> None:
    newest = max(log.glob("*.json"))
    newest.write_bytes(newest.read_bytes()[:-40])


def a_commit_lost_its_last_lines(log: Path) -> None:
    newest = max(log.glob("*.json"))
    newest.write_text("".join(newest.read_text().splitlines(keepends=True)[:1]))


def a_checkpoint_is_cut(log: Path) -> None:
    DeltaTable(str(log.parent)).create_checkpoint()
    (checkpoint,) = log.glob("*.checkpoint.parquet")
    for commit in log.glob("*.json"):
        commit.unlink()
    checkpoint.write_bytes(checkpoint.read_bytes()[: checkpoint.stat().st_size // 2])


@pytest.mark.parametrize("table", ["findings", pytest.param("runs", marks=pytest.mark.cluster)])
@pytest.mark.parametrize(
    "damage",
    [first_commits_are_gone, a_hole, a_commit_is_cut, a_commit_lost_its_last_lines, a_checkpoint_is_cut],
    ids=lambda damage: damage.__name__,
)
def test_every_verb_says_that_the_warehouse_is_damaged(
    sound: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    damage: Callable[[Path], None],
    table: str,
) -> None:
    warehouse = shutil.copytree(sound, tmp_path / "warehouse")
    damage(warehouse / table / "_delta_log")
    monkeypatch.setattr("txn_analysis.cli.spark.spark_session", no_session)
    for verb in VERBS:
        done = program(*verb.split(), "--warehouse", warehouse, "--cluster", "east")
        assert (done.code, done.out) == (2, ""), verb
        (line,) = done.err.splitlines()
        assert f"{table}: the warehouse is damaged here" in line, verb
