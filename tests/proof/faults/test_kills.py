"""A crash costs time only: after a kill at any moment, running again gives the tables of an uninterrupted run.

Here a worker and a driver die at moments that have names; `make proof` kills at random ones.
"""

from pathlib import Path

import pytest

from tests.proof.faults.kills import kill_at_first_file
from tests.tools.scene import Scene, tables, tables_by_spark
from tests.tools.table_rows import replace_rows, row_of
from txn_analysis.tables import FINDINGS, INPUTS, LOG_BATCHES, REJECTS, RUNS, TRANSACTIONS
from txn_analysis.warehouse.opening import open_warehouse


@pytest.mark.cluster
def test_a_worker_dies_while_contents_are_written(scene: Scene) -> None:
    kill = kill_at_first_file(scene, LOG_BATCHES, is_of_driver=False)
    assert kill.consequences(kill.cut_worker()) == (True, [])


def test_a_driver_dies_while_results_are_written(scene: Scene) -> None:
    kill = kill_at_first_file(scene, TRANSACTIONS, is_of_driver=True)
    assert kill.consequences(kill.cut_driver()) == (True, [])


@pytest.mark.cluster
def test_readers_past_spark_see_what_spark_sees(scene: Scene, tmp_path: Path) -> None:
    """Also beside rows that nothing has committed."""
    warehouse = scene.copied_to(tmp_path / "warehouse")
    stored = open_warehouse(scene.spark, str(warehouse))
    replace_rows(stored, [row_of(FINDINGS, run_id="cut-short")], FINDINGS, run_id="cut-short")
    replace_rows(stored, [row_of(REJECTS, ingest_id="cut-short")], REJECTS, ingest_id="cut-short")
    assert tables(scene.spark, warehouse) == scene.before
    by_spark = tables_by_spark(scene.spark, warehouse, (FINDINGS, INPUTS, LOG_BATCHES, RUNS))
    assert all(by_spark.values())
    assert by_spark == {name: scene.before[name] for name in by_spark}
