"""What is copied off the nodes of a cluster to be kept: no indexes, nothing of the cluster's metadata."""

import shutil
from collections.abc import Iterable
from pathlib import Path

from tests.systems.e2e.broker import Cluster

_OF_LOG_DIR = ("replication-offset-checkpoint", "log-start-offset-checkpoint", "meta.properties")
_EVIDENCE = {".log", ".snapshot", ".txnindex"}
_OF_PARTITION = {"leader-epoch-checkpoint", "partition.metadata"}


def copy_nodes(cluster: Cluster, target: Path, nodes: Iterable[int]) -> None:
    """Copy the log directories of some nodes into `n1` and so on, the logs of all before the state of any."""
    asked = list(nodes)
    for is_state in (False, True):
        for node in asked:
            _copy(cluster.log_dir(node), target / f"n{node + 1}", is_state=is_state)


def _copy(source: Path, target: Path, *, is_state: bool) -> None:
    for folder in sorted(source.iterdir()):
        if folder.is_dir() and folder.name.startswith("__transaction_state-") == is_state:
            files = [file for file in sorted(folder.iterdir()) if _is_evidence(file)]
            if files and not folder.name.startswith("__cluster_metadata"):
                (target / folder.name).mkdir(parents=True)
                for file in files:
                    shutil.copy2(file, target / folder.name / file.name)
    for name in _OF_LOG_DIR if is_state else ():
        shutil.copy2(source / name, target / name)


def _is_evidence(file: Path) -> bool:
    return file.suffix in _EVIDENCE or file.name in _OF_PARTITION
