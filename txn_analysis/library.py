"""The library: what `from txn_analysis import …` gives, for notebooks and schedulers with a Spark session of their own.

Each function works in any session of Spark 4.0 or newer, one of Spark Connect as well, and changes nothing in it. Those
that give no frame take None in its place: this process does the work, and refuses more than it may hold.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, overload

import pyarrow as pa

from txn_analysis.errors import ConfigError, MissingToolError
from txn_analysis.pipeline import steps as pipeline
from txn_analysis.pipeline.ingest import Ingested
from txn_analysis.questions import loaded_report, pruning
from txn_analysis.report.figures import run_options
from txn_analysis.report.model import AuditReport
from txn_analysis.runs import decisions
from txn_analysis.runs.ask import ask, needed, question, views
from txn_analysis.runs.past_run import Evidence
from txn_analysis.runs.run_tables import Capture, Forgotten, RunTables, run_tables
from txn_analysis.runs.run_tables import captures as captures_of
from txn_analysis.runs.run_tables import forget as forget_capture
from txn_analysis.settings import Settings, parse_age, parse_time
from txn_analysis.spark.jobs import Spark
from txn_analysis.spark.workers import check_spark
from txn_analysis.tables import ABORT_PLAN, ALL_TABLES, ENDED_TRANSACTIONS, FINDINGS, INPUTS, PARTITION_HEALTH, RUNS
from txn_analysis.tables.inputs import RunRecord
from txn_analysis.tables.keeping import ACCEPTED, Decision
from txn_analysis.tables.schema import Table
from txn_analysis.warehouse.delta_tables import Warehouse
from txn_analysis.warehouse.errors import spark_words, storage_errors_in_words
from txn_analysis.warehouse.opening import open_warehouse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


Path = str | os.PathLike[str]


def audit(spark: SparkSession | None, paths: Path | Iterable[Path], settings: Settings) -> AuditReport:
    """Read files, judge every open transaction, write findings and abort plan into the warehouse.

    Args:
        spark: any session; None where this process shall read and judge.
        paths: files, folders or globs, as paths or URIs; one, or several.
        settings: of the run; `Settings(warehouse=…)` at least.

    Returns:
        The report of the run: its `findings`, worst first, and all that they rest on.

    Raises:
        InputError: an input was not found or not understood; nothing is judged then.
        ConfigError: the file of `topic_config` was not understood.
        WarehouseError: the warehouse cannot be written.
        MissingToolError: the session is of a Spark older than 4.0; or there is none, and this process may not hold all
            that was given.
    """
    given = _listed(paths)
    with _at_work(spark, settings.warehouse) as session:
        report = pipeline.audit(session, given, settings)
    return report.with_options(run_options(settings, report.run.cluster))


def ingest(spark: SparkSession | None, paths: Path | Iterable[Path], settings: Settings) -> Ingested:
    """Only fill the input tables of the warehouse; arguments and errors as of `audit`."""
    given = _listed(paths)
    with _at_work(spark, settings.warehouse) as session:
        return pipeline.ingest(session, given, settings)


def load_report(spark: SparkSession | None, settings: Settings, run_id: str | None = None) -> AuditReport:
    """The report of a finished run again; of the last one of `settings.cluster` where none is named.

    Raises:
        WarehouseError: there is no such warehouse, or no such run.
    """
    with _at_work(spark, settings.warehouse) as session:
        report = loaded_report.load_report(open_warehouse(session, settings.warehouse), settings, run_id)
    return report.with_options(run_options(settings, report.run.cluster))


def findings(
    spark: SparkSession,
    warehouse: Path,
    *,
    cluster: str = "default",
    run_id: str | None = None,
    every_run: bool = False,
) -> DataFrame:
    """The table `findings`: one row per open transaction of the last run of a cluster, with its verdict.

    Args:
        spark: any session; the frame belongs to it.
        warehouse: the folder, or URI, of the Delta tables.
        cluster: whose last run is meant.
        run_id: another run, in place of the last one.
        every_run: the rows of all finished runs of the cluster, each with its `run_id`.

    Raises:
        WarehouseError: there is no such warehouse, or no such run.
    """
    return _rows(spark, os.fspath(warehouse), FINDINGS, cluster, run_id, every_run=every_run)


def abort_plan(
    spark: SparkSession,
    warehouse: Path,
    *,
    cluster: str = "default",
    run_id: str | None = None,
    every_run: bool = False,
) -> DataFrame:
    """The table `abort_plan`: one row per hanging transaction, with what would end it; arguments as of `findings`."""
    return _rows(spark, os.fspath(warehouse), ABORT_PLAN, cluster, run_id, every_run=every_run)


@overload
def read(
    spark: None,
    warehouse: Path,
    table: str,
    run_id: str | None = None,
    *,
    cluster: str = "default",
    capture: str | None = None,
) -> pa.Table: ...


@overload
def read(
    spark: SparkSession,
    warehouse: Path,
    table: str,
    run_id: str | None = None,
    *,
    cluster: str = "default",
    capture: str | None = None,
) -> DataFrame: ...


def read(
    spark: SparkSession | None,
    warehouse: Path,
    table: str,
    run_id: str | None = None,
    *,
    cluster: str = "default",
    capture: str | None = None,
) -> DataFrame | pa.Table:
    """The rows of one table of `txn_analysis.tables`, by its name, that belong to one run, or to one capture.

    Of tables with a `run_id` the rows that the run wrote; of `inputs` the files of its captures, and of all others the
    rows of these files that count, so that what a killed audit left is never among them.

    Args:
        spark: any session; None for a table of Arrow, which this process holds whole.
        warehouse: the folder, or URI, of the Delta tables.
        table: its name, such as `partition_health`.
        run_id: the run; the cluster's last one where none is named.
        cluster: whose last run is meant.
        capture: in place of a run, the files of this capture alone, judged or not: what `ingest` read of them.

    Returns:
        A frame of the session; without one, a `pyarrow.Table`. Columns and units are those of `txn_analysis.tables`.

    Raises:
        ConfigError: there is no table of this name; or a capture is named, and its files have no rows in the table.
        WarehouseError: there is no such warehouse, run or capture.
    """
    named = {one.name: one for one in (*ALL_TABLES, ACCEPTED)}
    if table not in named:
        raise ConfigError(f"table {table}: there is no such table; there are {', '.join(sorted(named))}")
    root = os.fspath(warehouse)
    with _at_work(spark, root) as session:
        opened = open_warehouse(session, root)
        if capture is not None:
            return _rows_of_capture(spark, opened, named[table], cluster, capture)
        tables = run_tables(opened, cluster, run_id)
        return tables.rows(named[table]) if spark is None else _frame(tables, named[table])


@overload
def query(
    spark: None, warehouse: Path, sql: str, run_id: str | None = None, *, cluster: str = "default"
) -> pa.Table: ...


@overload
def query(
    spark: SparkSession, warehouse: Path, sql: str, run_id: str | None = None, *, cluster: str = "default"
) -> DataFrame: ...


def query(
    spark: SparkSession | None, warehouse: Path, sql: str, run_id: str | None = None, *, cluster: str = "default"
) -> DataFrame | pa.Table:
    """The rows of any question, by SQL: a table's name means its rows of one run; see docs/queries.md.

    Args:
        spark: any session, by whose SQL it is answered; None for this process.
        warehouse: the folder, or URI, of the Delta tables.
        sql: one SELECT over the tables of `txn_analysis.tables` and the views `opened`, `ended`, `decided`, `ids`,
            `all_findings` and `all_runs`; nothing is written.
        run_id: the run; the cluster's last one where none is named.
        cluster: whose last run is meant.

    Returns:
        A frame of the session, whose views stay as they are; without one, a table of Arrow.

    Raises:
        ConfigError: it is no such question, or names what there is not.
        WarehouseError: there is no such warehouse or run.
    """
    root = os.fspath(warehouse)
    with _at_work(spark, root) as session:
        tables = run_tables(open_warehouse(session, root), cluster, run_id)
        return ask(tables.finished, sql) if spark is None else _asked_by(spark, tables, question(sql))


def _asked_by(spark: SparkSession, tables: RunTables, text: str) -> DataFrame:
    """The answer of a session's SQL. Names are those of a WITH clause: no view of the session is seen or made."""
    named = {table.name: table for table in ALL_TABLES}
    frames: dict[str, Any] = {}
    parts = []
    for name in needed(text, has_tables=True):
        stored = name.removeprefix("stored_")
        if (view := views().get(name)) is None:
            frames[name] = _frame(tables, named[name]) if stored == name else tables.warehouse.frame(named[stored])
            view = f"SELECT * FROM {{{name}}}"  # noqa: S608 a name of ours
        parts.append(f"{name} AS ({view.replace('to_timestamp_millis', 'timestamp_millis')})")
    # What writes is no body of a subquery; the text may end in a comment.
    asked = f"SELECT * FROM ({text}\n)".replace("{", "{{").replace("}", "}}")  # noqa: S608 the reader's own question
    from pyspark.errors import AnalysisException  # noqa: PLC0415 no local audit loads PySpark

    try:
        return spark.sql(f"WITH {', '.join(parts)} {asked}" if parts else asked.format(), **frames)
    except AnalysisException as error:  # one that does not parse is one of them
        raise ConfigError(f"no question that can be answered: {spark_words(error)}. Give one SELECT") from error


def _rows_of_capture(
    spark: SparkSession | None, warehouse: Warehouse, table: Table, cluster: str, capture: str
) -> DataFrame | pa.Table:
    evidence = Evidence.of_capture_alone(warehouse, cluster, capture)
    if table is INPUTS:
        row_filter = {"cluster": [cluster], "capture": [capture]}
        return warehouse.rows(table, **row_filter) if spark is None else warehouse.frame(table, **row_filter)
    if "input_id" not in table.names or "run_id" in table.names:
        raise ConfigError(f"table {table.name}: its rows are a run's: name a run in place of capture {capture}")
    if spark is not None:
        return _of_files(warehouse, evidence, table)
    batches = [batch.select([*table.names]) for batch in evidence.batches(table, *table.names)]
    return pa.Table.from_batches(batches) if batches else table.arrow_schema.empty_table()


def _frame(tables: RunTables, table: Table) -> DataFrame:
    """The same rows as `RunTables.rows`; Spark's tasks read them."""
    warehouse, run_id = tables.warehouse, tables.run.run_id
    if (row_filter := tables.finished.row_filter(table)) is not None:
        return warehouse.frame(table, **row_filter)
    if table is ENDED_TRANSACTIONS:
        ended, piece = warehouse.frame(table), "struct(ingest_id, input_id, section_index, first_position) AS piece"
        pieces = warehouse.frame(PARTITION_HEALTH, run_id=[run_id]).selectExpr("explode(linked_pieces) AS piece")
        of_pieces = ended.selectExpr("*", piece).join(pieces, "piece", "left_semi").drop("piece")
        return of_pieces.unionAll(ended.where(f"ingest_id = '{run_id}'"))
    return _of_files(warehouse, tables.finished.evidence, table)


def _of_files(warehouse: Warehouse, evidence: Evidence, table: Table) -> DataFrame:
    """The rows of a content table that are of the files of some evidence."""
    keys = ", ".join(f"'{ingest_id} {input_id}'" for ingest_id, input_id in evidence.read_inputs)
    rows = warehouse.frame(table, ingest_id=evidence.ingests)
    return rows.where(f"concat(ingest_id, ' ', input_id) IN ({keys})" if keys else "false")


def captures(spark: SparkSession | None, warehouse: Path, *, cluster: str | None = None) -> list[Capture]:
    """The captures of a warehouse, of one cluster or of all: when each was copied, and which runs judged it.

    Raises:
        WarehouseError: there is no such warehouse.
    """
    root = os.fspath(warehouse)
    with _at_work(spark, root) as session:
        return captures_of(open_warehouse(session, root), cluster)


def forget(spark: SparkSession | None, warehouse: Path, capture: str, *, cluster: str = "default") -> Forgotten:
    """Take one capture out of a warehouse, with the runs that judged it; see `runs.run_tables`.

    Raises:
        WarehouseError: there is no such warehouse or capture, or it cannot be written.
    """
    root = os.fspath(warehouse)
    with _at_work(spark, root) as session:
        return forget_capture(open_warehouse(session, root), cluster, capture)


def prune(
    spark: SparkSession | None, warehouse: Path, *, keep: str, grace: str = "1d", is_rehearsal: bool = False
) -> pruning.PruneAnswer:
    """Take out of a warehouse what is older than an age, as far as nothing newer needs it; see the verb `prune`.

    Args:
        spark: any session.
        warehouse: the folder, or URI, of the Delta tables.
        keep: the age: a number of minutes, hours, days or weeks, such as `90d`.
        grace: how long what goes is still there for whoever began to read it before.
        is_rehearsal: say what would go, and change nothing.

    Raises:
        ConfigError: an age is none.
        WarehouseError: there is no such warehouse, or it cannot be written.
    """
    root = os.fspath(warehouse)
    try:
        keep_ms, grace_ms = parse_age(keep), parse_age(grace)
    except ValueError as error:
        raise ConfigError(f"keep {keep}, grace {grace}: {error}") from error
    with _at_work(spark, root) as session:
        now_ms = time.time_ns() // 1_000_000
        return pruning.prune(open_warehouse(session, root), keep_ms, now_ms, grace_ms, is_rehearsal=is_rehearsal)


def accept(
    spark: SparkSession | None,
    warehouse: Path,
    findings: Iterable[str],
    *,
    until: str | int,
    reason: str,
    by: str | None = None,
    cluster: str = "default",
    run_id: str | None = None,
    file: Path | None = None,
) -> list[Decision]:
    """Accept findings of a run until a date, so that they are no alarm; see the verb `accept`.

    Args:
        spark: any session.
        warehouse: the folder, or URI, of the Delta tables.
        findings: each as `finding_id`, or as `TOPIC-PARTITION@START`.
        until: it holds for files that were copied before: ISO-8601, or epoch milliseconds.
        reason: why.
        by: who decides.
        cluster: whose last run is meant.
        run_id: another run, in place of the last one.
        file: the TOML file that keeps it, a path or URI; by default `accepted.toml` in the warehouse.

    Raises:
        ConfigError: the date is none, or not after the run's files; or the file cannot be read or written.
        WarehouseError: there is no such warehouse, run or finding.
    """
    root = os.fspath(warehouse)
    try:
        until_ms = parse_time(until)
    except ValueError as error:
        raise ConfigError(f"until {until}: {error}") from error
    with _at_work(spark, root) as session:
        tables = run_tables(open_warehouse(session, root), cluster, run_id)
        decided = decisions.decide(tables, [*findings], until_ms, reason, by)
        decisions.keep(Settings(warehouse=root, accepted=None if file is None else os.fspath(file)), decided)
        return decided


def _rows(
    spark: SparkSession, root: str, table: Table, cluster: str, run_id: str | None, *, every_run: bool
) -> DataFrame:
    with _at_work(spark, root) as session:
        tables = run_tables(open_warehouse(session, root), cluster, run_id)
        runs = tables.warehouse.records(RunRecord, RUNS, cluster=[tables.run.cluster]) if every_run else [tables.run]
        return tables.warehouse.frame(table, run_id=[run.run_id for run in runs])  # they are finished: these rows count


@contextmanager
def _at_work(spark: SparkSession | None, warehouse: str) -> Iterator[Spark]:
    with storage_errors_in_words(warehouse):
        yield _no_session if spark is None else check_spark(spark)


def _no_session() -> SparkSession:
    raise MissingToolError(
        "this makes a frame, or reads more than this process may hold: give a session of Spark in place of None"
    )


def _listed(paths: Path | Iterable[Path]) -> list[str]:
    """One path is no list of characters."""
    return [os.fspath(path) for path in ([paths] if isinstance(paths, str | os.PathLike) else paths)]
