"""Disks that fill up under an audit (mounting takes root).

The earlier run stays what it was, the error is clear, and once there is room the same audit gives the usual tables.
"""

import random
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.proof.part import Report, counted
from tests.tools.scene import Scene
from txn_analysis.errors import WarehouseError

_DISK_BYTES = 3 << 20  # of a kernel's file system in memory; the audit itself needs a tenth
_TMPFS = ("mount", "-t", "tmpfs", "-o", f"size={_DISK_BYTES}", "tmpfs")


@dataclass(frozen=True)
class SmallDisk:
    """A mounted file system, and the warehouse on it."""

    folder: Path
    warehouse: Path

    @property
    def _ballast(self) -> Path:
        return self.folder / "ballast"

    def leave(self, free_bytes: int) -> None:
        """Fill it but for so many bytes."""
        with self._ballast.open("wb") as ballast:
            ballast.write(bytes(max(shutil.disk_usage(self.folder).free - free_bytes, 0)))

    def clear(self) -> None:
        """Free what `leave` has filled."""
        self._ballast.unlink()

    def make_read_only(self) -> None:
        """As some kernels do after an error of the disk."""
        subprocess.run(["mount", "-o", "remount,ro", self.folder], check=True)


def may_mount() -> bool:
    """Whether this process may mount file systems."""
    with tempfile.TemporaryDirectory() as folder:
        mounted = subprocess.run([*_TMPFS, folder], capture_output=True, check=False)
        if mounted.returncode == 0:
            subprocess.run(["umount", folder], check=True)
    return mounted.returncode == 0


@contextmanager
def small_disk(folder: Path, scene: Scene) -> Iterator[SmallDisk]:
    """A file system in memory with a copy of the warehouse of a scene; gone with the block."""
    disk = folder / "disk"
    disk.mkdir()
    subprocess.run([*_TMPFS, disk], check=True)
    try:
        yield SmallDisk(disk, scene.copied_to(disk / "warehouse"))
    finally:
        subprocess.run(["umount", "--lazy", disk], check=True)  # a process that was interrupted may still hold it


@dataclass
class DiskReport(Report):
    """What came of small disks."""

    tried: int = counted("disks tried")
    filled: int = counted("disks that were too small", least=1)


def run_disks(count: int, seed: int, scene: Scene) -> DiskReport:
    """Audit on disks with random room, from none to what an audit needs, and again when there is enough."""
    report = DiskReport()
    for number in range(count):
        room_bytes = random.Random(f"{seed}/{number}").randrange(scene.new_bytes)
        folder = scene.folder / f"disk-{number}"
        folder.mkdir()
        with small_disk(folder, scene) as disk:
            report.tried += 1
            found = _problems(scene, disk, room_bytes, report)
        report.problems += [f"seed {seed}, disk {number}, room for {room_bytes} bytes: {p}" for p in found]
    return report


def _problems(scene: Scene, disk: SmallDisk, room_bytes: int, report: DiskReport) -> list[str]:
    disk.leave(room_bytes)
    problems = []
    try:
        scene.audit(disk.warehouse)
    except WarehouseError as error:
        report.filled += 1
        problems = [] if "no space left on the disk" in str(error) else [f"not a clear error: {error}"]
    problems += scene.problems_before(disk.warehouse)
    disk.clear()
    scene.audit(disk.warehouse)
    return [*problems, *scene.problems_after(disk.warehouse)]
