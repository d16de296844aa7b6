"""Storage that fails: one clear line, exit code 2, and what earlier runs wrote stays readable."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import SparkSession

from tests.faults.scene import EARLIER, LATER, WORDS, settings, tables
from txn_analysis import audit
from txn_analysis.cli.main import app

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Verb = Callable[..., str]


@pytest.fixture(scope="module")
def earlier(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse with one run; tests work on copies of it."""
    warehouse = tmp_path_factory.mktemp("earlier") / "warehouse"
    audit.audit(spark, EARLIER, settings(warehouse))
    return warehouse


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
def small_disk(tmp_path: Path, earlier: Path) -> Iterator[tuple[Path, Path]]:
    """A file system of its own with a copy of the warehouse, and room for little more."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", disk], capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip(f"mounting is not allowed here: {mounted.stderr.decode().strip()}")
    try:
        shutil.copytree(earlier, disk / "warehouse")
        yield disk, disk / "warehouse"
    finally:
        subprocess.run(["umount", disk], check=True)


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


def test_one_table_cannot_be_made(fails: Verb, tmp_path: Path) -> None:
    warehouse = tmp_path / "warehouse"
    warehouse.mkdir()
    (warehouse / "findings").write_text("not a table")
    line = fails("audit", *LATER, "--warehouse", str(warehouse), *WORDS)
    assert str(warehouse / "findings") in line


def test_the_disk_is_full(fails: Verb, spark: SparkSession, small_disk: tuple[Path, Path]) -> None:
    disk, warehouse = small_disk
    before = tables(spark, warehouse)
    with (disk / "ballast").open("wb") as ballast:
        free_bytes = shutil.disk_usage(disk).free
        ballast.write(bytes(max(free_bytes - 50_000, 0)))
    line = fails("audit", *LATER, "--warehouse", str(warehouse), *WORDS)
    assert str(warehouse) in line
    assert "no space left on the disk" in line
    assert tables(spark, warehouse) == before
    (disk / "ballast").unlink()
    audit.audit(spark, LATER, settings(warehouse))
    assert len(tables(spark, warehouse)["runs"]) == 2


def test_the_disk_is_read_only(fails: Verb, spark: SparkSession, small_disk: tuple[Path, Path]) -> None:
    disk, warehouse = small_disk
    before = tables(spark, warehouse)
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    line = fails("audit", *LATER, "--warehouse", str(warehouse), *WORDS)
    assert line.startswith(f"error: {warehouse}: the file system is read-only.")
    assert tables(spark, warehouse) == before


@pytest.mark.parametrize("damage", ["no first commit", "garbage in a commit", "rows are gone", "no log at all"])
@pytest.mark.parametrize("verb", ["audit", "report"])
def test_a_table_is_damaged(fails: Verb, earlier: Path, tmp_path: Path, verb: str, damage: str) -> None:
    warehouse = tmp_path / "warehouse"
    shutil.copytree(earlier, warehouse)
    log = warehouse / "inputs" / "_delta_log"
    if damage == "no first commit":
        (log / f"{0:020}.json").unlink()
    elif damage == "garbage in a commit":
        (log / f".{1:020}.json.crc").unlink()
        (log / f"{1:020}.json").write_text("{garbage")
    elif damage == "rows are gone":
        for file in warehouse.glob("inputs/*.parquet"):
            file.unlink()
    else:
        shutil.rmtree(log)
    line = fails(verb, *(LATER if verb == "audit" else ()), "--warehouse", str(warehouse))
    assert str(warehouse) in line
    assert "damaged" in line or "no warehouse here (inputs is missing)" in line
