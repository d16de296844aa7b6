"""Which rows are evidence, as Spark sees it: a semi-join with the inputs of the run, before anything is exchanged."""

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.sql import SparkSession

from tests.tools.repository import CASES
from txn_analysis.coordinator.marker_columns import BATCH_RANGES
from txn_analysis.coordinator.partition_count import IdSums
from txn_analysis.coordinator.state_records import READ_WITH, STATE_COLUMNS, Placing, Placings, StateFiles
from txn_analysis.coordinator.steps import placed
from txn_analysis.engine.on_spark import OnSpark
from txn_analysis.log.steps import SNAPSHOT_COLUMNS
from txn_analysis.pipeline import steps as pipeline
from txn_analysis.pipeline.linking import markers_in_logs
from txn_analysis.pipeline.run import Run, start_run
from txn_analysis.settings import EngineName, Settings
from txn_analysis.tables import LOG_PIECES, PRODUCER_SNAPSHOTS, TRANSACTION_STATES
from txn_analysis.warehouse.opening import open_warehouse

CAPTURE = CASES / "kafka-4.2/capture-1"
LOG = ["audit", "topic", "partition"]


@pytest.fixture(scope="module")
def run(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Run:
    own = Settings(warehouse=str(tmp_path_factory.mktemp("warehouse")), capture="tonight")
    pipeline.ingest(spark, [str(CAPTURE / "segments"), str(CAPTURE / "transaction-state")], own)
    return start_run(open_warehouse(spark, own.warehouse), own.model_copy(update={"engine": EngineName.SPARK}))


def states(run: Run) -> Any:
    placings = Placings({0: Placing.of(run.settings, StateFiles.of(run.evidence.sections), IdSums())})
    return run.rows(TRANSACTION_STATES, *STATE_COLUMNS, made=(placed(placings), READ_WITH))


def ranges(count: int) -> pa.Table:
    """A batch range of each of so many files."""
    ids = pa.array([f"{n:032}" for n in range(count)])
    zeros = pa.array([0] * count)
    return pa.table([zeros, ids, ids, zeros, zeros], BATCH_RANGES.names).cast(BATCH_RANGES)


def nodes(plan: Any) -> list[Any]:
    """The nodes of a plan that has one input, from the top down."""
    below = plan.children()
    return [plan, *(nodes(below.apply(0)) if below.size() else [])]


def joined(run: Run, key: list[str], rows: Any) -> tuple[str, set[str], list[str]]:
    """The kind of the one join behind an exchange, its columns, and what comes before the exchange."""
    engine = run.engine
    assert isinstance(engine, OnSpark)
    plan = engine.in_parts(key, None, rows=rows)._jdf.queryExecution().optimizedPlan()
    names = [node.nodeName() for node in nodes(plan)]
    (join,) = (node for node in nodes(plan) if node.nodeName() == "Join" and "id" not in columns(node.right()))
    sides = join.condition().get().sql()
    assert join.hint().rightHint().get().toString() == "(strategy=broadcast)"
    return join.joinType().toString(), {n for n in columns(join.right()) if n in sides}, names


def columns(plan: Any) -> list[str]:
    return [plan.output().apply(n).name() for n in range(plan.output().size())]


def test_what_a_log_is_linked_from_is_semi_joined_with_the_inputs(run: Run) -> None:
    for rows in (run.rows(LOG_PIECES, *LOG_PIECES.names), run.rows(PRODUCER_SNAPSHOTS, *SNAPSHOT_COLUMNS)):
        kind, key, names = joined(run, LOG, rows)
        assert (kind, key) == ("LeftSemi", {"ingest_id", "input_id"})
        assert names.count("MapInArrow") == 1  # which reads rows, and gives them their bucket


def test_records_of_the_state_are_joined_with_the_capture_that_they_are_of(run: Run) -> None:
    kind, key, names = joined(run, ["audit", "read_with"], states(run))
    assert (kind, key) == ("Inner", {"ingest_id", "input_id"})
    assert names.count("MapInArrow") == 1


def test_end_markers_are_semi_joined_with_the_batch_ranges_that_the_logs_were_built_from(run: Run) -> None:
    kind, key, names = joined(run, ["audit", "producer_id"], markers_in_logs(run, ranges(1)))
    assert (kind, key) == ("LeftSemi", {*BATCH_RANGES.names})
    assert names.count("MapInArrow") == 1


def test_rows_of_others_are_no_evidence_on_either_engine(run: Run) -> None:
    left_out = run.evidence.inputs[0].input_id
    some = replace(run.evidence, inputs=tuple(i for i in run.evidence.inputs if i.input_id != left_out))
    for engine in EngineName.SPARK, EngineName.LOCAL:
        settings = run.settings.model_copy(update={"engine": engine})
        own = replace(run, evidence=some, settings=settings)
        for table, key in ((LOG_PIECES, "input_id"), (TRANSACTION_STATES, "input_id")):
            rows = own.engine.collected(own.rows(table, key, "capture_rank"))
            every = replace(run, settings=settings)
            given = every.engine.collected(every.rows(table, key, "capture_rank"))
            assert sorted(rows[key].to_pylist()) == sorted(n for n in given[key].to_pylist() if n != left_out)


def test_what_a_task_unpickles_of_the_inputs_does_not_grow_with_them(run: Run) -> None:
    unpickled = []
    for count in (100, 100_000):
        inputs = tuple(run.evidence.inputs[0]._replace(input_id=f"{n:032}") for n in range(count))
        own = replace(run, evidence=replace(run.evidence, inputs=inputs))
        pieces, snapshots = own.rows(LOG_PIECES, *LOG_PIECES.names), own.rows(PRODUCER_SNAPSHOTS, *SNAPSHOT_COLUMNS)
        parts = pieces, snapshots, states(own), markers_in_logs(own, ranges(count))
        functions = [source.function for rows in parts for source in rows.sources]
        unpickled.append(len(cloudpickle.dumps(functions)))  # type: ignore[no-untyped-call]  # PySpark's
    assert unpickled[1] <= 1.1 * unpickled[0]
