"""What Spark sees of a step: its rows as columns by name, of every kind of value that a table has."""

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from txn_analysis.columns.types import nullable_type, typed
from txn_analysis.columns.values import rows_of_kinds, schema_of_kinds
from txn_analysis.coordinator.marker_columns import MARKERS
from txn_analysis.coordinator.state_records import OF_PRODUCER, READ_WITH
from txn_analysis.coordinator.steps import OF_PRODUCERS, OF_STATE, OPENED
from txn_analysis.engine.engine import Engine
from txn_analysis.engine.in_process import InProcess
from txn_analysis.engine.on_spark import OnSpark
from txn_analysis.log.steps import LINKED_LOGS, PIECES, SECTIONS, SIDES, SUMMARIZED_AGAIN

PLACE = pa.struct([pa.field("topic", pa.string()), pa.field("partition", pa.int32(), nullable=False)])
ROWS = pa.schema(
    [
        ("id", pa.string()),
        pa.field("offset", pa.int64(), nullable=False),
        ("epoch", pa.int16()),
        ("is_last", pa.bool_()),
        ("value", pa.binary()),
        ("places", pa.list_(pa.field("element", PLACE, nullable=False))),
        ("before", pa.struct([("offset", pa.int64()), ("places", pa.list_(PLACE))])),
        ("counts", pa.map_(pa.string(), pa.int64())),
    ]
)
INT64 = st.integers(-(2**63), 2**63 - 1)
PLACES = st.lists(
    st.fixed_dictionaries({"topic": st.sampled_from(["a", "", None]), "partition": st.integers(-(2**31), 2**31 - 1)}),
    max_size=2,
)
VALUES = st.lists(
    st.fixed_dictionaries(
        {
            "id": st.none() | st.text(max_size=3),
            "offset": INT64,
            "epoch": st.none() | st.integers(-1, 2**15 - 1),
            "is_last": st.sampled_from([None, True, False]),
            "value": st.none() | st.binary(max_size=3),
            "places": st.none() | PLACES,
            "before": st.none() | st.fixed_dictionaries({"offset": st.none() | INT64, "places": st.none() | PLACES}),
            "counts": st.none() | st.lists(st.tuples(st.text(max_size=2), st.none() | INT64), max_size=2),
        }
    ),
    max_size=6,
)


def test_what_goes_into_a_step_are_columns_by_name(spark: SparkSession) -> None:
    engine = OnSpark(spark, 4)
    inputs = {
        "sections": SECTIONS,
        "pieces": PIECES,
        "states": READ_WITH,
        "histories": OF_PRODUCER,
        "opened": OPENED,
        "markers": MARKERS,
        "sides": SIDES,
    }
    given = {name: engine.made(schema.empty_table()) for name, schema in inputs.items()}
    parts = engine.in_parts(["audit"], None, **given)
    assert parts.columns == ["bucket", *inputs]
    for name, schema in inputs.items():
        assert parts.select(f"{name}.*").columns == schema.names
    assert "binary" not in parts.schema.simpleString()


def whole(engine: Engine[Any], rows: pa.Table) -> list[dict[str, Any]]:
    """All rows, through a step that gives them back."""
    made = engine.grouped(
        ["offset"], lambda tables: tables["rows"], ROWS, rows=engine.made(rows), none=engine.made(rows[:0])
    )
    return sorted(engine.collected(made).to_pylist(), key=repr)


def test_a_step_gets_every_value_as_it_is(spark: SparkSession) -> None:
    rows = pa.Table.from_pylist(
        [
            {
                "id": None if n % 5 == 0 else f"billing-{n}",
                "offset": n - 20,
                "epoch": None if n % 3 == 0 else n,
                "is_last": (None, True, False)[n % 3],
                "value": None if n % 4 == 0 else bytes([n, 255]),
                "places": None
                if n % 7 == 0
                else [{"topic": None if k else "ledger", "partition": k} for k in range(n % 3)],
                "before": None if n % 2 else {"offset": None, "places": None if n % 8 else []},
                "counts": None if n % 6 == 0 else [("a", n), ("b", None)],
            }
            for n in range(40)
        ],
        ROWS,
    )
    assert (
        whole(OnSpark(spark, 5), rows) == whole(InProcess(bucket_count=5), rows) == sorted(rows.to_pylist(), key=repr)
    )


ROWS_AND_IDS = schema_of_kinds(rows=ROWS, ids=pa.schema([ROWS.field("id")]))


def kinds(engine: Engine[Any], rows: pa.Table) -> list[list[dict[str, Any]]]:
    """What a step makes of several kinds, each kind by itself, and some columns of one."""

    def step(tables: Mapping[str, pa.Table]) -> pa.Table:
        return rows_of_kinds(ROWS_AND_IDS, rows=tables["rows"], ids=tables["rows"].select(["id"]))

    made = engine.grouped(["offset"], step, ROWS_AND_IDS, rows=engine.made(rows))
    with engine.kept(made) as kept:
        wanted = [("rows",), ("ids",), ("rows", "offset", "places")]
        collected = [engine.collected(engine.of_kind(kept, kind, *names)) for kind, *names in wanted]
    return [sorted(table.to_pylist(), key=repr) for table in collected]


@settings(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(VALUES)
def test_rows_of_several_kinds_come_back_kind_by_kind(spark: SparkSession, values: list[dict[str, Any]]) -> None:
    rows = pa.Table.from_pylist(values, ROWS)
    assert kinds(OnSpark(spark, 2), rows) == kinds(InProcess(bucket_count=2), rows)


def test_what_comes_out_of_a_step_are_columns_by_name(spark: SparkSession) -> None:
    engine = OnSpark(spark, 4)
    for schema in (LINKED_LOGS, SUMMARIZED_AGAIN, OF_STATE, OF_PRODUCERS):
        of_kinds = engine.made(schema.empty_table())
        for kind in schema.names:
            (source,) = engine.of_kind(of_kinds, kind).sources
            assert source.frame.columns == [field.name for field in schema.field(kind).type]


@given(VALUES)
def test_columns_of_other_types_hold_the_same_rows(values: list[dict[str, Any]]) -> None:
    batch = pa.RecordBatch.from_pylist(values, schema=ROWS)
    others = pa.schema([(field.name, nullable_type(field.type)) for field in ROWS])
    there = typed(batch, others)
    assert there.schema == others
    assert typed(there, ROWS).equals(batch)


LEFT = pa.schema(
    [("audit", pa.int32()), ("producer_id", pa.int64()), ("opened", pa.list_(pa.struct([("place", pa.int64())])))]
)
RIGHT = pa.schema([("audit", pa.int32()), ("producer_id", pa.int64()), ("histories", pa.list_(pa.string()))])


def rows_of(schema: pa.Schema, *rows: tuple[Any, ...]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)


OPEN_OF_PRODUCERS = rows_of(LEFT, (0, 7, [{"place": 1}]), (0, 8, [{"place": 0}]), (1, 7, [{"place": 2}]))
STATE_OF_PRODUCERS = rows_of(RIGHT, (0, 7, ["billing"]), (1, 8, ["ledger"]), (0, 9, ["payments"]))


def joined(engine: Engine[Any], left: pa.Table, right: pa.Table) -> list[dict[str, Any]]:
    rows = engine.joined(engine.made(left), engine.made(right), ["audit", "producer_id"])
    return sorted(engine.collected(rows).to_pylist(), key=repr)


def test_what_is_open_meets_the_state_by_audit_and_producer_id_and_is_never_lost() -> None:
    here = joined(InProcess(), OPEN_OF_PRODUCERS, STATE_OF_PRODUCERS)
    assert [(row["audit"], row["producer_id"], row["histories"]) for row in here] == [
        (0, 7, ["billing"]),
        (0, 8, None),
        (1, 7, None),
    ]
    assert [row["histories"] for row in joined(InProcess(), OPEN_OF_PRODUCERS, STATE_OF_PRODUCERS[:0])] == [None] * 3


def test_spark_joins_the_same(spark: SparkSession) -> None:
    for state in (STATE_OF_PRODUCERS, STATE_OF_PRODUCERS[:0]):
        here = joined(InProcess(), OPEN_OF_PRODUCERS, state)
        assert joined(OnSpark(spark, 5), OPEN_OF_PRODUCERS, state) == here


@pytest.fixture
def many_parts(spark: SparkSession) -> Iterator[None]:
    """A session as Spark comes, whose owner wants no join by broadcasts: rows are divided before each."""
    wanted = {
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.shuffle.partitions": "200",
        "spark.sql.autoBroadcastJoinThreshold": "-1",
    }
    before = {name: spark.conf.get(name) or "" for name in wanted}
    for name, value in wanted.items():
        spark.conf.set(name, value)
    yield
    for name, value in before.items():
        spark.conf.set(name, value)


@pytest.mark.usefixtures("many_parts")
def test_a_join_of_few_rows_takes_few_tasks(spark: SparkSession) -> None:
    engine = OnSpark(spark, 5)
    rows = engine.joined(engine.made(OPEN_OF_PRODUCERS), engine.made(STATE_OF_PRODUCERS), ["audit", "producer_id"])
    (source,) = rows.sources
    assert source.frame.rdd.getNumPartitions() <= engine.task_count
