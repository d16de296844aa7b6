"""Storage that fails: one clear line, exit code 2, and what earlier runs wrote stays readable."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.proof.faults.disks import SmallDisk, may_mount, small_disk
from tests.tools.scene import LATER, WORDS, Scene
from txn_analysis.cli.main import app

Verb = Callable[..., str]


@pytest.fixture
def fails(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Verb:
    """Runs a verb in the shared session, and returns the one line that it ends with."""
    monkeypatch.setattr(SparkSession, "stop", lambda _: None)

    def run(*words: str) -> str:
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            app(list(words), prog_name="txn-analysis")
        out, err = capfd.readouterr()
        said = [line for line in err.splitlines() if not line.startswith("txn-analysis: ")]
        assert ended.value.code == 2
        assert out == ""
        assert len(said) == 1, err[:3000]
        assert said[0].startswith("error: ")
        return said[0]

    return run


@pytest.fixture
def disk(scene: Scene, tmp_path: Path) -> Iterator[SmallDisk]:
    """A file system of its own with a copy of the warehouse."""
    if not may_mount():
        pytest.skip("mounting is not allowed here")
    with small_disk(tmp_path, scene) as disk:
        yield disk


def test_the_warehouse_is_a_file(fails: Verb, tmp_path: Path) -> None:
    warehouse = tmp_path / "file"
    warehouse.write_text("not a folder")
    assert fails("audit", *LATER, "--warehouse", str(warehouse), *WORDS).endswith(
        f"{warehouse} is not a folder. Give another --warehouse"
    )


def test_the_warehouse_is_below_a_file(fails: Verb, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    line = fails("audit", *LATER, "--warehouse", str(tmp_path / "file" / "warehouse"), *WORDS)
    assert line.endswith(f"{tmp_path / 'file'} is not a folder. Give another --warehouse")


def test_one_table_cannot_be_made(fails: Verb, empty_warehouse: Path, tmp_path: Path) -> None:
    warehouse = shutil.copytree(empty_warehouse, tmp_path / "warehouse")
    shutil.rmtree(warehouse / "findings")
    (warehouse / "findings").write_text("not a table")
    line = fails("audit", *LATER, "--warehouse", str(warehouse), *WORDS)
    assert str(warehouse / "findings") in line


def test_the_disk_is_full(fails: Verb, scene: Scene, disk: SmallDisk) -> None:
    disk.leave(50_000)
    line = fails("audit", *LATER, "--warehouse", str(disk.warehouse), *WORDS)
    assert str(disk.warehouse) in line
    assert "no space left on the disk" in line
    assert scene.rows(disk.warehouse) == scene.before
    disk.clear()
    scene.audit(disk.warehouse)
    assert scene.problems_after(disk.warehouse) == []


def test_the_disk_is_read_only(fails: Verb, scene: Scene, disk: SmallDisk) -> None:
    disk.make_read_only()
    line = fails("audit", *LATER, "--warehouse", str(disk.warehouse), *WORDS)
    assert line.startswith(f"error: {disk.warehouse}: the file system is read-only.")
    assert scene.rows(disk.warehouse) == scene.before


@pytest.mark.parametrize("damage", ["no first commit", "garbage in a commit", "rows are gone", "no log at all"])
@pytest.mark.parametrize("verb", ["audit", "report"])
def test_a_table_is_damaged(fails: Verb, scene: Scene, tmp_path: Path, verb: str, damage: str) -> None:
    warehouse = scene.copied_to(tmp_path / "warehouse")
    log = warehouse / "inputs" / "_delta_log"
    if damage == "no first commit":
        (log / f"{0:020}.json").unlink()
    elif damage == "garbage in a commit":
        (log / f".{1:020}.json.crc").unlink(missing_ok=True)  # where Spark wrote it
        (log / f"{1:020}.json").write_text("{garbage")
    elif damage == "rows are gone":
        for file in warehouse.glob("inputs/*.parquet"):
            file.unlink()
    else:
        shutil.rmtree(log)
    words = LATER if verb == "audit" else ("--cluster", "earlier")
    line = fails(verb, *words, "--warehouse", str(warehouse))
    assert str(warehouse) in line
    assert "damaged" in line or "no warehouse here (inputs is missing)" in line
