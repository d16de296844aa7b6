"""A night that is audited again: the same rows are not written again, so that who follows a table sees nothing new."""

from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tests.tools.repository import CASES
from tests.tools.sessions import no_session, opened
from txn_analysis.pipeline import steps as pipeline
from txn_analysis.report.headline import doubts
from txn_analysis.settings import EngineName, Settings
from txn_analysis.tables import ALL_TABLES, FINDINGS
from txn_analysis.warehouse.opening import open_warehouse

NIGHTS = [CASES / f"kafka-4.2/capture-{number}" for number in (1, 3)]


def settings(warehouse: Path, **more: Any) -> Settings:
    return Settings(warehouse=str(warehouse), transaction_state_partitions=4, max_clock_skew_ms=0, **more)


def audit(spark: Any, night: Path, own: Settings) -> int:
    """Audits a night; how many open transactions it has."""
    paths = [str(night / part) for part in ("segments", "transaction-state")]
    return len(pipeline.audit(spark, paths, own).findings)


def first_lines(spark: Any, night: Path, own: Settings) -> str:
    """Audits a night; what its report says beside the answer, before all else."""
    paths = [str(night / part) for part in ("segments", "transaction-state")]
    return "\n".join(doubt.text for doubt in doubts(pipeline.audit(spark, paths, own)))


def test_the_same_night_again_makes_no_version_of_any_table(tmp_path: Path) -> None:
    own = settings(tmp_path / "warehouse")
    audit(no_session, NIGHTS[0], own)
    before = opened(own.warehouse).versions(ALL_TABLES)
    audit(no_session, NIGHTS[0], own)
    assert opened(own.warehouse).versions(ALL_TABLES) == before


def test_another_night_under_the_name_of_one_that_is_there_is_said_in_the_first_lines(tmp_path: Path) -> None:
    own = settings(tmp_path / "warehouse", capture="2026-11-21")
    first, again = (first_lines(no_session, NIGHTS[0], own) for _ in range(2))
    mixed = first_lines(no_session, NIGHTS[1], own)
    assert "already had" not in first + again
    assert "Capture 2026-11-21 already had 7 other files, copied at 2026-11-21T02:59:50.736Z" in mixed
    assert "txn-analysis forget --cluster default --capture 2026-11-21" in mixed


def test_the_same_night_by_the_other_engine_has_the_same_rows(spark: SparkSession, tmp_path: Path) -> None:
    own = settings(tmp_path / "warehouse")
    audit(spark, NIGHTS[0], own)
    before = open_warehouse(spark, own.warehouse).versions(ALL_TABLES)
    audit(spark, NIGHTS[0], own.model_copy(update={"engine": EngineName.SPARK}))
    assert open_warehouse(spark, own.warehouse).versions(ALL_TABLES) == before


def test_a_stream_of_findings_goes_on_behind_a_night_that_was_repeated(spark: SparkSession, tmp_path: Path) -> None:
    own, streamed = settings(tmp_path / "warehouse"), list[int]()
    for night in (NIGHTS[0], NIGHTS[0], NIGHTS[1]):
        expected = audit(spark, night, own)
        stream = spark.readStream.format("delta").load(f"{own.warehouse}/{FINDINGS.name}").writeStream
        query = (
            stream.foreachBatch(lambda rows, _: streamed.append(rows.count()))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        assert query.exception() is None
    assert len(streamed) == len(NIGHTS)
    assert streamed[-1] == expected
