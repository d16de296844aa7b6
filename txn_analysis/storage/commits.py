"""The writes that come last, with which rows begin to count: of `inputs` for contents, of `runs` for results.

Several audits may write to one warehouse at once. Whoever commits the same content or the same run second finds the
first one's rows, and leaves them as they are.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from txn_analysis.columns.records import batch_of
from txn_analysis.storage.warehouse import MOST_ATTEMPTS, MatchKey, too_busy
from txn_analysis.tables import INPUTS, RUNS
from txn_analysis.tables.inputs import ReadInput, RunRecord

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from txn_analysis.storage.warehouse import Warehouse

_SAME_CONTENT = MatchKey(("input_id", "kind"))
_SAME_INPUT = MatchKey(("input_id", "cluster", "capture"))
_READ_BY_ANOTHER = replace(_SAME_CONTENT, but=("ingest_id",))
_SAME_RUN, _SAME_NUMBER = MatchKey(("run_id",)), MatchKey(("run_number",))


def held_inputs(warehouse: Warehouse, input_ids: Iterable[str]) -> list[ReadInput]:
    """Rows of `inputs` that list any of these contents, of whatever cluster and capture."""
    return warehouse.records(ReadInput, INPUTS, input_id=[*input_ids])


def commit_inputs(warehouse: Warehouse, inputs: Sequence[ReadInput], held: Sequence[ReadInput]) -> None:
    """Name inputs with the ingest that read them: from now on that ingest's rows of them count.

    An input that its capture holds already stays as it is. Where another ingest has read the same content, that one
    keeps counting, and ours never does. `held` is what `held_inputs` said of them before; who commits in the meantime
    is seen.

    Raises:
        WarehouseError: it cannot be written, or other audits were faster every time.
    """
    for _ in range(MOST_ATTEMPTS):
        known = {row.content: row for row in held}
        places = {(row.cluster, row.capture, row.input_id) for row in held}
        fresh = [
            row.found_as(known.get(row.content, row))
            for row in inputs
            if (row.cluster, row.capture, row.input_id) not in places
        ]
        rows = batch_of(ReadInput, fresh, INPUTS.arrow_schema)
        if not fresh or warehouse.insert(rows, INPUTS, (_SAME_INPUT, _READ_BY_ANOTHER)) == len(fresh):
            return
        held = held_inputs(warehouse, (row.input_id for row in inputs))
    raise too_busy(warehouse.path(INPUTS))


def commit_run(warehouse: Warehouse, run: RunRecord) -> None:
    """Write the record of a run, after all its other rows: from now on they count.

    A run that was completed before keeps its number; a new one gets the next, which no other run has.

    Raises:
        WarehouseError: it cannot be written, or other audits were faster every time.
    """
    for _ in range(MOST_ATTEMPTS):
        numbers = {known.run_id: known.run_number for known in warehouse.records(RunRecord, RUNS)}
        number = numbers.get(run.run_id, max(numbers.values(), default=0) + 1)
        row = batch_of(RunRecord, [run._replace(run_number=number)], RUNS.arrow_schema)
        if run.run_id in numbers:
            return warehouse.replace([row], RUNS, run_id=run.run_id)
        if warehouse.insert(row, RUNS, (_SAME_RUN, _SAME_NUMBER)):
            return None
    raise too_busy(warehouse.path(RUNS))
