"""A crash costs time only: after a kill at any moment, running again gives the tables of an uninterrupted run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.faults.kills import run_kills

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def test_audits_that_were_killed_and_run_again(spark: SparkSession, tmp_path: Path) -> None:
    report = run_kills(5, seed=4, spark=spark, folder=tmp_path)
    assert not report.problems, str(report)
    assert report.struck > 0, f"no kill hit an audit at work: {report}"
