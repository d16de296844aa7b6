"""Planning a run: the abort marker of each transaction that hangs, as rows of `abort_plan`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from txn_analysis.columns.records import fields_of, records_of
from txn_analysis.plan.abort_plan import planned, whole_plan
from txn_analysis.spark.jobs import described
from txn_analysis.tables import ABORT_PLAN, FINDINGS, Finding
from txn_analysis.tables.findings import plan_rows
from txn_analysis.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from txn_analysis.columns.values import BatchFunction
    from txn_analysis.pipeline.run import Run
    from txn_analysis.settings import Settings

_NAMES = tuple(name for name in fields_of(Finding) if name in FINDINGS.names)


def plan_of(run: Run) -> pa.Table:
    """The `abort_plan` of a run whose findings are written: one row for each hanging one, in the plan's order.

    Raises:
        AuditError: a hanging finding cannot become a valid record.
    """
    engine = run.engine
    hanging = engine.table(FINDINGS, *_NAMES, run_id=[run.run_id], verdict=[Verdict.HANGING.value])
    rows = engine.mapped(hanging, _markers(run.settings, run.as_of_ms), ABORT_PLAN.arrow_schema)
    with described("plan: make the abort markers of hanging transactions"):
        return whole_plan(engine.collected(rows).to_batches())


def _markers(settings: Settings, as_of_ms: int | None) -> BatchFunction:
    """Of rows of `findings` their rows of `abort_plan`, without a fingerprint."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield plan_rows(planned(records_of(Finding, batch), settings, as_of_ms))

    return run
