"""Where only Spark can write, as on an object store, its tables are those that tasks write themselves on a disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.faults.scene import LATER, differences, settings, tables
from txn_analysis import audit
from txn_analysis.warehouse import Warehouse

if TYPE_CHECKING:
    from pathlib import Path

    import pytest
    from pyspark.sql import SparkSession


def test_the_tables_are_those_of_a_disk(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    audit.audit(spark, LATER, settings(tmp_path / "disk"))
    monkeypatch.setattr(Warehouse, "_local", None)
    audit.audit(spark, LATER, settings(tmp_path / "store"))
    expected = tables(spark, tmp_path / "disk")
    assert all(expected[name] for name in ("log_batches", "log_pieces", "transaction_states", "transactions"))
    assert differences(tables(spark, tmp_path / "store"), expected) == []
