"""Planning a run: the abort marker of each transaction that hangs, as rows of `abort_plan`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pyarrow as pa

from txn_analysis.columns.records import fields_of, records_of
from txn_analysis.pipeline.run import Run
from txn_analysis.plan.abort_plan import planned, whole_plan
from txn_analysis.settings import Settings
from txn_analysis.spark.jobs import described
from txn_analysis.tables import ABORT_PLAN, FINDINGS, Finding
from txn_analysis.tables.findings import plan_rows
from txn_analysis.verdict import Verdict

_FINDINGS_AT_ONCE = 2_048
_NAMES = tuple(name for name in fields_of(Finding) if name in FINDINGS.names)


def plan_of(run: Run) -> pa.Table:
    """The `abort_plan` of a run whose findings are written: one row for each hanging one, in the plan's order.

    Raises:
        AuditError: a hanging finding cannot become a valid record.
    """
    engine, records = run.engine, partial(_records_of_plan, settings=run.settings, as_of_ms=run.as_of_ms)
    hanging = engine.table(FINDINGS, *_NAMES, run_id=[run.run_id], verdict=[Verdict.HANGING.value])
    with described("plan: make the abort markers of hanging transactions"):
        rows = engine.collected(engine.mapped(hanging, records, ABORT_PLAN.arrow_schema))
    return whole_plan(rows.to_batches())


def _records_of_plan(
    batches: Iterator[pa.RecordBatch], settings: Settings, as_of_ms: int | None
) -> Iterator[pa.RecordBatch]:
    """Rows of `abort_plan` without a fingerprint, of rows of `findings`; few of these at once, as they are large."""
    for batch in batches:
        for start in range(0, len(batch), _FINDINGS_AT_ONCE):
            findings = records_of(Finding, batch.slice(start, _FINDINGS_AT_ONCE))
            yield plan_rows(planned(findings, settings, as_of_ms))
