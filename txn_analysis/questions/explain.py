"""Explain: everything that one run knows of some of its transactions, brought together from the tables.

Nothing is judged here: a finding keeps the rules that were asked, and what each of them said.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any

from txn_analysis.errors import ConfigError
from txn_analysis.judge.finding import Finding
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

MOST_EXPLAINED = 20
_RECORDS_BEFORE, _RECORDS_AFTER, _LAST_RECORDS = 4, 6, 3
Key = tuple[str, int, int, int]


def explain(run: PastRun, filters: Filters, start_offset: int | None = None) -> list[Explanation]:
    """Each open transaction of a finished run that is wanted, explained.

    Args:
        run: whose evidence counts.
        filters: which partitions and producers are wanted.
        start_offset: of the one that is wanted; None asks for all.

    Raises:
        ConfigError: none fits, or too many to read.
    """
    wanted: dict[str, Any] = {} if start_offset is None else {"txn_start_offset": [start_offset]}
    findings = [Finding.of(row) for row in run.listed(FINDINGS, **filters.rows, **wanted)]
    if not findings:
        raise ConfigError("no open transaction of this run fits; the verb `report` lists them")
    if len(findings) > MOST_EXPLAINED:
        raise ConfigError(f"more than {MOST_EXPLAINED} open transactions fit; say more with --topic, --partition, ...")
    rows = run.listed(TRANSACTIONS, *OPEN_COLUMNS, outcome=["open"], **filters.rows, **wanted)
    opened = {_key(transaction): transaction for transaction in map(OpenTransaction.of, rows)}
    batches = batches_around(run.evidence, [opened[_key(finding)] for finding in findings])
    histories = of_ids(run, {f.transactional_id for f in findings if f.transactional_id is not None})
    explained = [
        _explanation(finding, opened[_key(finding)], around, histories.get(finding.transactional_id or "", []))
        for finding, around in zip(findings, batches, strict=True)
    ]
    return sorted(explained, key=attrgetter("topic", "partition", "txn_start_offset"))


def _key(one: Finding | OpenTransaction) -> Key:
    return one.topic, one.partition, one.producer_id, one.txn_start_offset


def _explanation(
    finding: Finding, opened: OpenTransaction, batches: list[LoggedBatch], history: Sequence[StateRecord]
) -> Explanation:
    events = timeline(batches, _records_around(opened, history), opened.producer_id)
    told = finding.row()
    return Explanation.model_validate(
        told
        | {
            "events": [event._asdict() for event in events],
            "rules": told["rules_asked"],
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
