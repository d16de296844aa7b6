"""Transactional ids are data: nobody but the owner can look into a folder that an audit makes, whatever the umask."""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.proof.faults.interrupts import IN_TASKS
from tests.tools.repository import ROOT
from txn_analysis.warehouse.opening import OWNER_ONLY, make_private

DUMP = ROOT / "data" / "cases" / "kafka-4.2" / "capture-1" / "shallow"
LOOK_AGAIN_S = 0.02
OPEN_TO_ALL = 0o755


def mode(folder: Path) -> int:
    return folder.stat().st_mode & 0o777


class Watched:
    """An audit by the command line and Spark in folders of its own, and the modes that these were seen with last."""

    def __init__(self, place: Path, umask: int, *words: str) -> None:
        self.temp, self.home = place / "temp", place / "home"
        for folder in (self.temp, self.home):
            folder.mkdir()
        self.modes: dict[Path, int] = {}
        # Without the variables by which Spark would be told to use other folders than Java's.
        known = {name: value for name, value in os.environ.items() if name != "SPARK_LOCAL_DIRS"}
        told = place / "told"
        with (
            told.open("w") as errors,
            subprocess.Popen(
                [sys.executable, "-c", IN_TASKS, "audit", str(DUMP), "--exit-zero", *words],
                cwd=self.home,
                env=known | {"PYTHONPATH": str(ROOT), "TMPDIR": str(self.temp)},
                umask=umask,
                stdout=subprocess.DEVNULL,
                stderr=errors,
            ) as audit,
        ):
            while audit.poll() is None:
                self.modes.update(self._look())
                time.sleep(LOOK_AGAIN_S)
        self.code, self.told = audit.returncode, told.read_text().splitlines()

    def _look(self) -> dict[Path, int]:
        found = {}
        for top in (self.temp, self.home):
            for parent, folders, _ in os.walk(top):
                for name in folders:
                    folder = Path(parent, name)
                    try:
                        found[folder] = mode(folder)
                    except FileNotFoundError:  # deleted since
                        continue
        return found

    @property
    def open_to_others(self) -> list[Path]:
        """Folders that others can get into: open themselves, and so is every one above them."""
        return [
            folder
            for folder, its in self.modes.items()
            if its & ~OWNER_ONLY and not any(self.modes.get(above) == OWNER_ONLY for above in folder.parents)
        ]

    def of_spark(self, name: str) -> list[int]:
        """The modes of the folders of that name which Spark made for its own files."""
        return [its for folder, its in self.modes.items() if folder.name.startswith(f"{name}-")]


@pytest.mark.cluster
def test_all_folders_of_a_run_are_its_owners_alone(tmp_path: Path) -> None:
    """By the umask that takes no right away from anybody."""
    run = Watched(tmp_path, umask=0o000)
    assert run.code == 0
    assert [line for line in run.told if not line.startswith("txn-analysis: ")] == []
    assert run.open_to_others == []
    assert run.modes[run.home / "txn-warehouse"] == OWNER_ONLY
    for name in ("blockmgr", "spark", "artifacts"):
        assert set(run.of_spark(name)) == {OWNER_ONLY}, name


def test_a_warehouse_that_exists_keeps_its_mode(tmp_path: Path) -> None:
    warehouse = tmp_path / "shared"
    warehouse.mkdir()
    warehouse.chmod(OPEN_TO_ALL)
    make_private(warehouse)
    assert mode(warehouse) == OPEN_TO_ALL


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o000])
def test_a_new_warehouse_is_private_and_its_parents_are_as_ever(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        make_private(tmp_path / "audits" / "warehouse")
    finally:
        os.umask(before)
    assert mode(tmp_path / "audits" / "warehouse") == OWNER_ONLY
    assert mode(tmp_path / "audits") == 0o777 & ~umask


def test_sparks_folders_are_closed_where_the_operator_says_where_they_are(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    blocks = jvm.org.apache.spark.SparkEnv.get().blockManager().diskBlockManager().localDirs()
    assert {mode(Path(str(folder))) for folder in blocks} == {OWNER_ONLY}
