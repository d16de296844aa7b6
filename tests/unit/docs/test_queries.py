"""Each question of docs/queries.md has the answer of the page, by this process and by Spark."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.tools.docs.examples import plain
from tests.tools.docs.queries import PAGE, questions, two_nights
from tests.tools.program import Done, program
from tests.unit.warehouses.kept import unpacked
from txn_analysis import query
from txn_analysis.errors import ConfigError

TWELVE = [pytest.param(sql, answer, id=heading) for heading, sql, answer in questions(PAGE.read_text(encoding="utf-8"))]


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> str:
    warehouse = str(tmp_path_factory.mktemp("queries") / "warehouse")
    two_nights(warehouse)
    return warehouse


@pytest.fixture
def asked(nights: str) -> Callable[..., Done]:
    """What `txn-analysis query` prints."""
    return lambda *words: program("query", *words, "--warehouse", nights)


def test_the_page_has_twelve_questions() -> None:
    assert len(TWELVE) == 12


@pytest.mark.parametrize(("sql", "answer"), TWELVE)
def test_a_question_has_the_answer_of_the_page(asked: Callable[..., Done], sql: str, answer: str) -> None:
    done = asked(sql)
    assert (done.code, plain(done.out)) == (0, answer), done.err


def test_the_columns_of_a_view_are_listed_with_what_they_say(asked: Callable[..., Done], nights: str) -> None:
    columns, rows = query(None, nights, "DESCRIBE opened;"), query(None, nights, "SELECT * FROM opened")
    words = dict(zip(columns["col_name"].to_pylist(), columns["comment"].to_pylist(), strict=True))
    assert [*words] == rows.column_names
    assert words["txn_start_offset"]
    assert words["address"] is None
    assert asked("describe `nothing`").code == 2


def test_values_that_json_does_not_have_are_text(asked: Callable[..., Done]) -> None:
    sql = "SELECT x'00ff' AS a, date '2020-01-01' AS b, 1.5::decimal(10,2) AS c, 'nan'::double AS d"
    done = asked(sql, "--format", "json")
    assert (done.code, json.loads(done.out)) == (
        0,
        [{"a": "00ff", "b": "2020-01-01", "c": "1.50", "d": "nan"}],
    )


UNITED = """
    SELECT producer_id, count(*) AS rows FROM (
        SELECT producer_id FROM transactions
        UNION ALL SELECT producer_id FROM ended_transactions
        UNION ALL SELECT producer_id FROM ids
    ) every WHERE producer_id >= 0 GROUP BY producer_id ORDER BY producer_id
"""


def test_tables_that_comment_a_column_differently_can_be_united(
    asked: Callable[..., Done], spark: SparkSession, nights: str
) -> None:
    done, rows = asked(UNITED), query(None, nights, UNITED).to_pylist()
    assert (done.code, len(done.out.splitlines())) == (0, len(rows) + 1), done.err
    assert len(rows) > 1
    assert query(spark, nights, UNITED).toArrow().to_pylist() == rows


def test_how_long_transactions_took_by_the_coordinators_clock(spark: SparkSession, nights: str) -> None:
    sql = "SELECT transactional_id, outcome, duration_ms FROM decided ORDER BY 3 DESC NULLS LAST, 1, 2 LIMIT 20"
    rows = query(None, nights, sql).to_pylist()
    assert query(spark, nights, sql).toArrow().to_pylist() == rows
    assert rows[0]["duration_ms"] > 0
    assert {row["outcome"] for row in rows} == {"COMMIT", "ABORT"}


def at_utc(value: Any) -> Any:
    return value.replace(tzinfo=value.tzinfo or UTC).astimezone(UTC) if isinstance(value, datetime) else value


@pytest.mark.parametrize(("sql", "answer"), TWELVE)
def test_sparks_sql_gives_the_same_rows(spark: SparkSession, nights: str, sql: str, answer: str) -> None:
    here, there = query(None, nights, sql), query(spark, nights, sql).toArrow()
    assert there.column_names == here.column_names
    both = ([[at_utc(value) for value in row.values()] for row in rows.to_pylist()] for rows in (here, there))
    assert next(both) == next(both)
    assert len(answer.splitlines()) == len(here) + 1


def test_a_session_keeps_its_views_and_no_question_sees_them(spark: SparkSession, nights: str) -> None:
    spark.range(3).createOrReplaceTempView("findings")
    before = spark.sql("SHOW TABLES").collect()
    text = "WITH mine AS (SELECT '{}' AS word, count(*) AS n FROM opened) SELECT * FROM mine -- the end"
    assert query(spark, nights, text).toArrow().to_pylist() == query(None, nights, text).to_pylist()
    assert spark.sql("SHOW TABLES").collect() == before
    assert spark.table("findings").count() == 3
    spark.catalog.dropTempView("findings")


@pytest.mark.parametrize("sql", ["DROP VIEW findings", "CREATE TABLE kept AS SELECT 1", "SELECT 1; DROP VIEW findings"])
def test_sparks_sql_writes_nothing(spark: SparkSession, nights: str, sql: str) -> None:
    with pytest.raises(ConfigError, match=r"^no question that can be answered: \[PARSE_SYNTAX_ERROR\] .*SELECT$"):
        query(spark, nights, sql)


def test_a_column_that_is_not_there_is_named_by_spark_in_one_line(spark: SparkSession, nights: str) -> None:
    with pytest.raises(ConfigError, match=r"^no question that can be answered: .*`nope` cannot be resolved.*SELECT$"):
        query(spark, nights, "SELECT nope FROM opened")


NO_QUESTIONS = (
    "COPY findings TO '{folder}/out.parquet'",
    "DROP VIEW findings",
    "CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{folder}'",
    "INSERT INTO findings SELECT * FROM findings",
    "WITH x AS (SELECT 1) INSERT INTO findings SELECT * FROM findings",
    "SELECT * FROM '{folder}/findings'",
    "SELECT * FROM `file:///{folder}`",
    "SELECT 1; DROP VIEW findings",
    "SET datafusion.runtime.memory_limit = '100G'",
    "SELECT 1 INTO kept",
    "SELECT nothing_like_it FROM findings",
    "SELECT 1/0 AS fails_while_it_is_read",
    "",
)


@pytest.mark.parametrize("sql", NO_QUESTIONS)
def test_what_is_no_question_is_refused_and_writes_nothing(
    asked: Callable[..., Done], nights: str, tmp_path: Path, sql: str
) -> None:
    before = sorted(Path(nights).rglob("*"))
    done = asked(sql.format(folder=tmp_path))
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: no question")
    assert [*tmp_path.iterdir()] == []
    assert sorted(Path(nights).rglob("*")) == before


def test_a_tables_name_means_the_rows_of_one_run(nights: str) -> None:
    runs = query(None, nights, "SELECT run_id FROM all_runs ORDER BY run_number")["run_id"].to_pylist()
    counts = [query(None, nights, "SELECT count(*) AS n FROM findings", run_id)["n"].to_pylist()[0] for run_id in runs]
    every = query(None, nights, "SELECT count(*) AS n FROM all_findings")["n"].to_pylist()[0]
    last = query(None, nights, "SELECT count(*) AS n FROM findings")["n"].to_pylist()[0]
    assert (sum(counts), counts[-1]) == (every, last)


def test_rows_that_a_killed_audit_left_are_no_rows_of_a_run(nights: str) -> None:
    with pytest.raises(ConfigError, match="no question"):
        query(None, nights, "SELECT * FROM files_of_findings")


def test_a_warehouse_of_1_0_0_has_the_columns_of_today_without_values(tmp_path: Path) -> None:
    warehouse = str(unpacked("1.0.0", tmp_path))
    found = query(None, warehouse, "SELECT count(*) AS n, count(reading_version) AS versions FROM inputs")
    assert [column.to_pylist()[0] > 0 for column in found.columns] == [True, False]
