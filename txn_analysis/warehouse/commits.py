"""The writes of an audit that come last: from then on its rows count.

Content rows count by `inputs`, which names the ingest of each input, and result rows by `runs`. What a killed audit
left is never read. Whoever commits the same content or the same run second finds the first one's rows, and leaves them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.columns.records import batch_of, records_of
from txn_analysis.tables import INPUTS, LOG_PIECES, RUNS
from txn_analysis.tables.inputs import ReadInput, RunRecord
from txn_analysis.tables.readings import FIRST_READING, READING_VERSION
from txn_analysis.warehouse.delta_tables import Warehouse


def inputs_of(warehouse: Warehouse, **one_of: Collection[Any]) -> list[ReadInput]:
    """Rows of `inputs`; those of an earlier reading with their `lacking_sections`, which today's reading doubts."""
    rows = warehouse.records(ReadInput, INPUTS, **one_of)
    is_old = [row.has_dumped_logs and (row.reading_version or FIRST_READING) < READING_VERSION for row in rows]
    texts = sorted({row.input_id for row, old in zip(rows, is_old, strict=True) if old})
    lacking = defaultdict[str, set[int]](set)
    names = ("input_id", "section_index", "lacking_batch_count")
    for batch in warehouse.batches(LOG_PIECES, *names, input_id=texts) if texts else ():
        for piece in batch.filter(pc.greater(batch["lacking_batch_count"], 0)).to_pylist():
            lacking[piece["input_id"]].add(piece["section_index"])
    return [
        row._replace(lacking_sections=frozenset(lacking[row.input_id])) if old and row.input_id in lacking else row
        for row, old in zip(rows, is_old, strict=True)
    ]


def commit_inputs(warehouse: Warehouse, inputs: Sequence[ReadInput], prior: Sequence[ReadInput]) -> None:
    """Name inputs with the ingest that read them: from now on that ingest's rows of them count.

    An input that its capture holds already stays as it is, but for the cluster.id of its folder, which may have been
    copied since. Where another ingest has read the same content, that one keeps counting, and ours never does; an
    earlier reading of it counts in no capture any more. `prior` are the rows of `inputs` of their contents from before,
    of all captures; who commits in the meantime is seen.

    Raises:
        WarehouseError: it cannot be written, or other audits were faster every time.
    """
    newer = {
        row.content: row for row in inputs if any(row.is_newer_than(old) for old in prior if old.content == row.content)
    }
    given = {(row.cluster, row.capture, row.input_id): row.cluster_id for row in inputs if row.cluster_id is not None}
    if newer or any(_in_cluster(row, given) != row for row in prior):
        warehouse.revise(INPUTS, lambda rows: _as_read_by(rows, newer, given))

    def fresh(stored: pa.Table) -> pa.RecordBatch:
        rows = records_of(ReadInput, stored)
        of_content = {row.content: row for row in rows}
        places = {(row.cluster, row.capture, row.input_id) for row in rows}
        new = [row for row in inputs if (row.cluster, row.capture, row.input_id) not in places]
        read = [row.as_read_by(of_content.get(row.content, row)) for row in new]
        return batch_of(ReadInput, read, INPUTS.arrow_schema)

    warehouse.insert(INPUTS, fresh, input_id=[row.input_id for row in inputs])


def _as_read_by(
    rows: pa.Table, newer: Mapping[tuple[str, str | None], ReadInput], given: Mapping[tuple[str, str, str], str]
) -> pa.Table:
    """Rows of `inputs`, those of some contents as a newer reading found them, and with what their folders state now."""
    input_rows = records_of(ReadInput, rows)
    revised = [_revised(_in_cluster(row, given), newer.get(row.content, row)) for row in input_rows]
    return pa.Table.from_batches([batch_of(ReadInput, revised, INPUTS.arrow_schema)])


def _in_cluster(row: ReadInput, given: Mapping[tuple[str, str, str], str]) -> ReadInput:
    """An input with the cluster.id of the folder in which its capture was given it again; of two it has none."""
    cluster_id = given.get((row.cluster, row.capture, row.input_id), row.cluster_id)
    return row._replace(cluster_id=cluster_id if row.cluster_id in {None, cluster_id} else None)


def _revised(row: ReadInput, newer: ReadInput) -> ReadInput:
    if not newer.is_newer_than(row):
        return row
    is_same_place = (row.cluster, row.capture) == (newer.cluster, newer.capture)
    return newer if is_same_place else row.as_read_by(newer)


def commit_run(warehouse: Warehouse, run: RunRecord) -> None:
    """Write the record of a run, after all its other rows: from now on they count.

    A run that was completed before keeps its number; a new one gets the next, which no other run has.

    Raises:
        WarehouseError: it cannot be written, or other audits were faster every time.
    """

    def numbered(runs: pa.Table) -> pa.RecordBatch:
        is_new = run.run_id not in runs["run_id"].to_pylist()
        number = 1 + (pc.max(runs["run_number"]).as_py() or 0)
        return batch_of(RunRecord, [run._replace(run_number=number)] if is_new else [], RUNS.arrow_schema)

    if warehouse.insert(RUNS, numbered, "run_id", "run_number"):
        return
    for before in warehouse.records(RunRecord, RUNS, run_id=[run.run_id]):
        again = run._replace(run_number=before.run_number)
        # The same run again has read the same rows, at versions that may be newer.
        if before != again._replace(table_versions=before.table_versions):
            warehouse.replace([batch_of(RunRecord, [again], RUNS.arrow_schema)], RUNS, run_id=run.run_id)
        return
    commit_run(warehouse, run)  # it was taken out meanwhile
