"""Where a verb that asks finds its rows: on a disk of this machine in Python, elsewhere by Spark."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from txn_analysis.cli.spark import check_master, check_warehouse, spark_session
from txn_analysis.spark.when_needed import started_once
from txn_analysis.storage.errors import said_in_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from txn_analysis.runs.run_tables import RunTables
    from txn_analysis.settings import Settings
    from txn_analysis.storage.stored import Stored


@contextmanager
def stored(settings: Settings) -> Iterator[Stored]:
    """The tables of the warehouse, for the length of a command; Spark starts only where it is needed.

    Raises:
        ConfigError: the master is none, although it may not be needed.
        WarehouseError: there is no such warehouse, or no storage where it is said to be.
    """
    check_master(settings.master)
    check_warehouse(settings)
    with said_in_words(settings.warehouse), started_once(lambda: spark_session(settings)) as start:
        from txn_analysis.storage.opening import open_to_read

        yield open_to_read(settings.warehouse, start)


@contextmanager
def asked_run(settings: Settings, run_id: str | None) -> Iterator[RunTables]:
    """The tables as a run left them; as the cluster's last one where none is named.

    Raises:
        WarehouseError: there is no such warehouse, or no such run.
    """
    with stored(settings) as warehouse:
        # Not needed for --help.
        from txn_analysis.runs.run_tables import run_tables

        tables = run_tables(warehouse, settings.cluster, run_id)
        note_forgotten(tables.forgotten_captures)
        yield tables


def note_forgotten(captures: Sequence[str]) -> None:
    """Says on stderr that captures behind a run are not in the warehouse any more."""
    if captures:
        from txn_analysis.report.headline import rests_on_forgotten

        print(f"note: {rests_on_forgotten(captures)}", file=sys.stderr)
