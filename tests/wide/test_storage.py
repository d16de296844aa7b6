"""Where only Spark can write, as on an object store, its tables are those that tasks write themselves on a disk."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tests.by_spark import only_by_spark
from tests.faults.scene import EARLIER, LATER, differences, settings
from txn_analysis.pipeline import steps as pipeline

if TYPE_CHECKING:
    from pathlib import Path

    from tests.faults.scene import Scene


@pytest.mark.cluster
def test_the_tables_are_those_of_a_disk(
    scene: Scene, empty_warehouse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a later run takes over what an earlier one has read."""
    store = shutil.copytree(empty_warehouse, tmp_path / "store")
    expected = scene.before, scene.after
    for paths, cluster, rows in zip((EARLIER, LATER), ("earlier", "default"), expected, strict=True):
        with monkeypatch.context() as patched:
            only_by_spark(patched)
            pipeline.audit(scene.spark, paths, settings(store, cluster=cluster))
        assert all(rows[name] for name in ("log_batches", "log_pieces", "transaction_states", "transactions"))
        assert differences(scene.rows(store), rows) == []
