"""Explain: everything that one run knows of some of its transactions, brought together from the tables.

Nothing is judged here: a finding keeps the rules that were asked, and what each of them said.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from txn_analysis.errors import ConfigError, WarehouseError
from txn_analysis.judge.timeline import timeline
from txn_analysis.kafka.transactions import OPEN_COLUMNS, OpenTransaction
from txn_analysis.questions.batches_around import batches_around
from txn_analysis.report.explanation import Explanation
from txn_analysis.runs.asked_states import of_ids
from txn_analysis.tables import FINDINGS, TRANSACTIONS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from txn_analysis.judge.timeline import LoggedBatch
    from txn_analysis.kafka.transactions import StateRecord
    from txn_analysis.questions.filters import Filters
    from txn_analysis.runs.past_run import PastRun

Row = dict[str, Any]

MOST_EXPLAINED = 20
_RECORDS_BEFORE, _RECORDS_AFTER, _LAST_RECORDS = 4, 6, 3
_KEY = ("topic", "partition", "producer_id", "txn_start_offset")
_TOLD = (*_KEY, "transactional_id", "verdict", "rule", "cause", "rules_asked", "would_change")


def explain(run: PastRun, filters: Filters, start_offset: int | None = None) -> list[Explanation]:
    """Each open transaction of a finished run that is wanted, explained.

    Args:
        run: whose evidence counts.
        filters: which partitions and producers are wanted.
        start_offset: of the one that is wanted; None asks for all.

    Raises:
        ConfigError: none fits, or too many to read.
        WarehouseError: an earlier version judged the run, and did not keep what its rules said.
    """
    wanted: dict[str, Any] = {} if start_offset is None else {"txn_start_offset": [start_offset]}
    findings = run.listed(FINDINGS, *_TOLD, **filters.rows, **wanted)
    if not findings:
        raise ConfigError("no open transaction of this run fits; the verb `report` lists them")
    if len(findings) > MOST_EXPLAINED:
        raise ConfigError(f"more than {MOST_EXPLAINED} open transactions fit; say more with --topic, --partition, ...")
    if any(finding["rules_asked"] is None for finding in findings):
        raise WarehouseError(
            f"{run.warehouse.root}: {run.run_id} was judged by an earlier version: audit its files again"
        )
    rows = run.listed(TRANSACTIONS, *OPEN_COLUMNS, outcome=["open"], **filters.rows, **wanted)
    opened = {_key(row): OpenTransaction.of(row) for row in rows}
    batches = batches_around(run.evidence, [opened[_key(finding)] for finding in findings])
    histories = of_ids(run, {finding["transactional_id"] for finding in findings} - {None})
    return [
        _explanation(
            run.run_id, finding, opened[_key(finding)], batches[at], histories.get(finding["transactional_id"], [])
        )
        for at, finding in sorted(enumerate(findings), key=lambda numbered: _in_order(numbered[1]))
    ]


def _key(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in _KEY)


def _in_order(finding: Row) -> tuple[Any, ...]:
    return finding["topic"], finding["partition"], finding["txn_start_offset"]


def _explanation(
    run_id: str, finding: Row, opened: OpenTransaction, batches: list[LoggedBatch], history: Sequence[StateRecord]
) -> Explanation:
    events = timeline(batches, _records_around(opened, history), opened.producer_id)
    told = {name: value for name, value in finding.items() if name != "rules_asked"}
    return Explanation.model_validate(
        told
        | {
            "run_id": run_id,
            "events": [event._asdict() for event in events],
            "rules": finding["rules_asked"],
            "are_batches_kept": bool(batches),
        }
    )


def _records_around(opened: OpenTransaction, history: Sequence[StateRecord]) -> list[StateRecord]:
    """The coordinator's records before and after the data was appended, and its last ones; in order."""
    moments = (opened.first_appended_before_ms, opened.appended_before_ms, opened.last_marker_ms)
    pivot_ms = next((ms for ms in moments if ms is not None), None)
    timed = [(at, record.moment_ms) for at, record in enumerate(history) if record.moment_ms is not None]
    shown = {*range(len(history))[-_LAST_RECORDS:]}
    if pivot_ms is not None:
        shown |= {at for at, moment_ms in [(a, m) for a, m in timed if m <= pivot_ms][-_RECORDS_BEFORE:]}
        shown |= {at for at, moment_ms in [(a, m) for a, m in timed if m > pivot_ms][:_RECORDS_AFTER]}
    return [history[at] for at in sorted(shown)]
