"""The writes that come last, with which rows begin to count: of `inputs` for contents, of `runs` for results.

Several audits may write to one warehouse at once. Whoever commits the same content or the same run second finds the
first one's rows, and leaves them as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from txn_analysis.frames import collected
from txn_analysis.tables import INPUTS, RUNS
from txn_analysis.warehouse import MOST_ATTEMPTS, too_busy

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from txn_analysis.warehouse import Warehouse

    Row = dict[str, Any]

# What reading an input found out; content that was read before keeps what was found then.
_FOUND_BY_READING = ("ingest_id", "parsed_bytes", "rejected_bytes", "newest_moment_ms", "sections")
_SAME_CONTENT = "t.input_id = s.input_id AND t.kind <=> s.kind"
_SAME_INPUT = "t.input_id = s.input_id AND t.cluster = s.cluster AND t.capture = s.capture"
_READ_BY_ANOTHER = f"{_SAME_CONTENT} AND NOT t.ingest_id <=> s.ingest_id"


def held_inputs(warehouse: Warehouse, input_ids: Iterable[str]) -> list[Row]:
    """Rows of `inputs` that list any of these contents, of whatever cluster and capture."""
    if warehouse.is_new(INPUTS):
        return []
    wanted = warehouse.spark.createDataFrame([(i,) for i in input_ids], "input_id string")
    rows = warehouse.read(INPUTS).join(F.broadcast(wanted), "input_id", "left_semi")
    return collected(rows)


def found_by_reading(inputs: Iterable[Row]) -> dict[tuple[str, str | None], Row]:
    """What reading found out, by content and kind: content that was not recognised then may be now."""
    return {(row["input_id"], row["kind"]): {name: row[name] for name in _FOUND_BY_READING} for row in inputs}


def commit_inputs(warehouse: Warehouse, inputs: Sequence[Row], held: Sequence[Row]) -> None:
    """Name inputs with the ingest that read them: from now on that ingest's rows of them count.

    An input that its capture holds already stays as it is. Where another ingest has read the same content, that one
    keeps counting, and ours never does. `held` is what `held_inputs` said of them before; who commits in the meantime
    is seen.

    Raises:
        WarehouseError: it cannot be written, or other audits were faster every time.
    """
    for _ in range(MOST_ATTEMPTS):
        known = found_by_reading(held)
        places = {(row["cluster"], row["capture"], row["input_id"]) for row in held}
        fresh = [
            row | known.get((row["input_id"], row["kind"]), {})
            for row in inputs
            if (row["cluster"], row["capture"], row["input_id"]) not in places
        ]
        if not fresh or warehouse.insert(fresh, INPUTS, f"({_SAME_INPUT}) OR ({_READ_BY_ANOTHER})") == len(fresh):
            return
        held = held_inputs(warehouse, (row["input_id"] for row in inputs))
    raise too_busy(warehouse.path(INPUTS))


def deepen_inputs(warehouse: Warehouse, inputs: Sequence[Row]) -> None:
    """Let contents that were read before count as they were read now, for every cluster and capture that has them.

    Raises:
        WarehouseError: it cannot be written.
    """
    warehouse.update(inputs, INPUTS, _SAME_CONTENT, _FOUND_BY_READING)


def commit_run(warehouse: Warehouse, run: Row) -> None:
    """Write the row of a run, after all its other rows: from now on they count.

    A run that was completed before keeps its number; a new one gets the next, which no other run has.

    Raises:
        WarehouseError: it cannot be written, or other audits were faster every time.
    """
    for _ in range(MOST_ATTEMPTS):
        numbers = {} if warehouse.is_new(RUNS) else _run_numbers(warehouse)
        if run["run_id"] in numbers:
            numbered = run | {"run_number": numbers[run["run_id"]]}
            return warehouse.replace_rows([numbered], RUNS, run_id=run["run_id"])
        numbered = run | {"run_number": max(numbers.values(), default=0) + 1}
        if warehouse.insert([numbered], RUNS, "t.run_id = s.run_id OR t.run_number = s.run_number"):
            return None
    raise too_busy(warehouse.path(RUNS))


def _run_numbers(warehouse: Warehouse) -> dict[str, int]:
    rows = collected(warehouse.read(RUNS).select("run_id", "run_number"))
    return {row["run_id"]: row["run_number"] for row in rows}
