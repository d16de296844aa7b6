"""Makes the archive of a warehouse by the code of an earlier version, from a checkout of it.

    git worktree add /srv/earlier ececed8
    python -m tests.versions --code /srv/earlier --captures /srv/captures tests/versions/warehouse-ececed8.tar.gz

Files are given from `--captures`, which is made for it, so that the warehouse says of no machine where it was made.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from tests.versions.captures import COMPACTED, EAST, FIRST, compacted, parts_of

WORDS = ("--transaction-state-partitions", "4", "--max-clock-skew-ms", "0", "--exit-zero")


def main() -> None:
    """Audits both clusters with the earlier code, each as one capture named after its folder, and packs the tables."""
    parser = argparse.ArgumentParser(prog="python -m tests.versions")
    parser.add_argument("--code", type=Path, required=True, help="a checkout of the earlier version")
    parser.add_argument("--captures", type=Path, required=True, help="a folder to copy captures to; must not exist")
    parser.add_argument("archive", type=Path)
    given = parser.parse_args()
    shutil.copytree(FIRST, given.captures / FIRST.name)
    compacted(FIRST, given.captures)
    with tempfile.TemporaryDirectory() as folder:
        warehouse = Path(folder) / "warehouse"
        for cluster, name in ((EAST, FIRST.name), (COMPACTED, COMPACTED)):
            _audit(given.code, parts_of(given.captures / name), cluster, name, warehouse)
        pack(warehouse, given.archive)


def _audit(code: Path, paths: list[str], cluster: str, capture: str, warehouse: Path) -> None:
    where = ("--cluster", cluster, "--capture", capture, "--warehouse", str(warehouse))
    command = [sys.executable, "-m", "txn_analysis", "audit", *paths, *WORDS, *where]
    environment = os.environ | {"PYTHONPATH": str(code.absolute())}
    subprocess.run(command, check=True, cwd=code, env=environment, stdout=subprocess.DEVNULL)


def pack(warehouse: Path, archive: Path) -> None:
    """The tables without what Hadoop and locks leave beside them, nor whose files they were."""

    def bare(item: tarfile.TarInfo) -> tarfile.TarInfo | None:
        name = Path(item.name).name
        if name.startswith(".") or name in {"_staged_commits", "_sidecars"}:
            return None
        item.uid = item.gid = item.mtime = 0
        item.uname = item.gname = ""
        return item

    with tarfile.open(archive, "w:gz") as packed:
        packed.add(warehouse, "warehouse", filter=bare)


if __name__ == "__main__":
    main()
