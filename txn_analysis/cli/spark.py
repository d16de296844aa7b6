"""Where a command finds its rows, and the one Spark session that it starts where it needs one."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from txn_analysis.cli.output import note
from txn_analysis.errors import ConfigError, WarehouseError
from txn_analysis.files.places import PlaceError, local_path, place_of, shown
from txn_analysis.report.terminal import Progress, progress_on
from txn_analysis.settings import EngineName, Settings
from txn_analysis.spark.interrupts import handle_signals
from txn_analysis.spark.jobs import Spark, started_once
from txn_analysis.text import escape
from txn_analysis.warehouse.errors import storage_errors_in_words
from txn_analysis.warehouse.opening import check_writable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from txn_analysis.questions.filters import Filters
    from txn_analysis.runs.run_tables import RunTables
    from txn_analysis.warehouse.delta_tables import Warehouse

_COUNT = r"\s*[0-9]+\s*"
_MASTER = re.compile(
    rf"local|local\[(?:[0-9]+|\*)(?:\s*,{_COUNT})?\]|local-cluster\[{_COUNT},{_COUNT},{_COUNT}\]"
    r"|spark://[^\s:]+:[0-9]+(?:,[^\s:]+:[0-9]+)*|yarn|k8s://\S+|sc://\S+"
)
RUNS_FOLDER = "runs"
"""The table without which there is nothing to read; its schema takes a second to import."""


_quiet: list[bool] = []  # of the commands that run, one in another


@contextmanager
def quietly(*, is_quiet: bool) -> Iterator[None]:
    """Meanwhile there is no progress on stderr, where that is asked for."""
    _quiet.append(is_quiet)
    try:
        yield
    finally:
        _quiet.pop()


def progress() -> Progress:
    """The progress display for stderr."""
    if any(_quiet):
        return Progress()
    return progress_on(sys.stderr, is_dumb=os.environ.get("TERM") == "dumb")


def check_warehouse(settings: Settings) -> None:
    """Refuses a warehouse that is not there, before Arrow is imported; of one in a store its tables tell.

    Raises:
        WarehouseError: there is no such folder, or it holds no run; or it is named by a URI that names nothing.
    """
    folder = _folder(settings)
    if folder is not None and not (folder / RUNS_FOLDER).is_dir():
        raise WarehouseError(
            f"{settings.warehouse}: no warehouse here: give the --warehouse of an audit, or audit first"
        )


def check_new_warehouse(settings: Settings) -> None:
    """Refuses a warehouse that cannot be made or written here, before Spark starts and files are read.

    Raises:
        WarehouseError: a part of its path is a file or a table, or it cannot be written.
    """
    folder = _folder(settings)
    if folder is not None:
        check_writable(folder.absolute())


def _folder(settings: Settings) -> Path | None:
    """The folder of this machine that a warehouse is; None where it is in a store."""
    try:
        return None if place_of(settings.warehouse) else Path(local_path(settings.warehouse))
    except PlaceError as error:
        raise WarehouseError(f"{shown(settings.warehouse)}: {error}") from None


def check_master(master: str | None) -> None:
    """Refuses what Spark would not take for a master, before its Java starts and ends with a stack trace.

    Raises:
        ConfigError: it is none of the forms that Spark knows.
    """
    if master is not None and not _MASTER.fullmatch(master):
        raise ConfigError(
            f"--master {master}: not a master of Spark; give local[*], local[N], spark://HOST:7077, yarn, "
            "k8s://https://HOST:443, or sc://HOST:15002 of a Spark Connect server"
        )


@contextmanager
def spark_when_needed(settings: Settings, input_bytes: int) -> Iterator[Spark]:
    """A session for work that may need none: it is started here and now, or once something asks for it.

    Args:
        settings: of the command; where they ask for Spark, or there is much to read, it is started at once.
        input_bytes: what the command will read beside the warehouse.

    Raises:
        ConfigError, WarehouseError: as with `spark_session`; or this process shall judge more than it may hold.
    """
    check_master(settings.master)
    from txn_analysis.engine.engine import is_on_spark  # --help needs no Arrow

    starts_now = is_on_spark(settings, input_bytes)
    with (
        storage_errors_in_words(settings.warehouse),
        started_once(lambda: spark_session(settings)) as start,
    ):
        yield start() if starts_now else start


@contextmanager
def spark_session(settings: Settings) -> Iterator[SparkSession]:
    """A session for the length of the command, stopped on every way out.

    Raises:
        ConfigError: the master is none.
        WarehouseError: the disk was full, the warehouse damaged, a process of Spark killed, or the like.
    """
    check_master(settings.master)
    # Spark takes a second to import; --help must not.
    from py4j.protocol import Py4JError

    from txn_analysis.spark.session import address_of_ui, session

    with progress().stage("starting Spark"):
        has_ui = settings.engine is EngineName.SPARK
        spark = session(settings.master, has_ui=has_ui)
    if has_ui and (address := address_of_ui(spark)):
        with progress().stage(f"Spark's UI: {address}"):
            pass  # said between two stages
    handle_signals()
    try:
        with storage_errors_in_words(settings.warehouse):
            yield spark
    finally:
        with suppress(Py4JError, ConnectionError):  # there is nothing left to stop where Java was killed
            spark.stop()


@contextmanager
def stored(settings: Settings) -> Iterator[Warehouse]:
    """The tables of the warehouse, for the length of a command; Spark starts only where it is needed.

    Raises:
        ConfigError: the master is none, although it may not be needed.
        WarehouseError: there is no such warehouse, or no storage where it is said to be.
    """
    check_master(settings.master)
    check_warehouse(settings)
    with storage_errors_in_words(settings.warehouse), started_once(lambda: spark_session(settings)) as start:
        from txn_analysis.warehouse.opening import open_warehouse

        yield open_warehouse(start, settings.warehouse)


@contextmanager
def asked_run(
    settings: Settings, run_id: str | None, *wanted: Filters, of_coordinator: bool = False
) -> Iterator[RunTables]:
    """The tables as a run left them, if it has seen what is wanted; as the cluster's last one where none is named.

    Raises:
        ConfigError: it has never seen what a filter names; see `check_seen`.
        WarehouseError: there is no such warehouse, or no such run.
    """
    with stored(settings) as warehouse:
        # Not needed for --help.
        from txn_analysis.questions.filters import check_seen
        from txn_analysis.runs.run_tables import run_tables

        tables = run_tables(warehouse, settings.cluster, run_id)
        note_evidence(tables)
        note_newer(tables, run_id)
        for filters in wanted:
            check_seen(tables, filters, of_coordinator=of_coordinator)
        yield tables


def note_newer(tables: RunTables, run_id: str | None) -> None:
    """Says on stderr, where no run was asked for, that the last one is of an older copy, which came late."""
    if run_id is None and (newer := tables.newer_run) is not None:
        captures = f"of capture {escape(tables.run.capture)}; capture {escape(newer.capture)} is newer"
        note(f"this is the last run, {captures}: --run {newer.run_id}")


def note_loaded(tables: RunTables, run_id: str | None) -> None:
    """Says on stderr what a report does not say of its own evidence."""
    for words in believed(tables):
        note(words)
    note_newer(tables, run_id)


def note_evidence(tables: RunTables) -> None:
    """Says on stderr what a run's evidence lacks by now, or was read too trustingly; and of what alone it is."""
    asked = tables.run.asked
    alone = [] if asked is None else [f"this run was asked for {escape(', '.join(map(str, asked)))} alone"]
    for words in (*doubts_of(tables), *alone):
        note(words)


def doubts_of(tables: RunTables) -> Iterator[str]:
    """Why a run's evidence does not count as it did, in words; nothing where it does."""
    if tables.forgotten_captures:
        from txn_analysis.report.headline import rests_on_forgotten

        yield rests_on_forgotten(tables.forgotten_captures)
    yield from believed(tables)


def believed(tables: RunTables) -> Iterator[str]:
    """That the version which made a run read some files too trustingly, in words; nothing where it did not."""
    if tables.believed_inputs:
        from txn_analysis.report.headline import rests_on_believed

        yield rests_on_believed(tables.believed_inputs)
