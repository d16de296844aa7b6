"""Early warnings of records of the coordinator that are held in memory; as `pipeline.on_spark.warnings` on Spark."""

from __future__ import annotations

from collections import Counter
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING

from txn_analysis.judge.early_warning import (
    MANY,
    Flagged,
    RaisedFrom,
    by_application,
    flagged,
    kind_of,
    median_of,
    of_last_record,
    warnings_of,
)
from txn_analysis.judge.warnings.warning import Abort, Known, LastRecord
from txn_analysis.kafka.transactions import PREPARE_ABORT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from txn_analysis.coordinator.state_records import StateRecords
    from txn_analysis.coordinator.state_row import StateRow
    from txn_analysis.judge.early_warning import WarningLine

_last = attrgetter(*LastRecord._fields)
_before = attrgetter(*RaisedFrom._fields)


def id_warnings_of(records: StateRecords, as_of_ms: int | None) -> list[WarningLine]:
    """What the records of transactional ids warn of, in the order of `WARNINGS`."""
    histories = records.in_order()
    last = {name: history[-1] for name, history in histories.items()}
    live = {name: row for name, row in last.items() if not (row.is_tombstone or row.is_undecodable)}
    known = Known(records.settings, as_of_ms, median_of(row.timeout_ms for row in live.values()))
    of_last = (w for name, row in live.items() for w in of_last_record(name, LastRecord(*_last(row)), known))
    return warnings_of(by_application(chain(of_last, _repeated(histories))))


def _repeated(histories: Mapping[str, Sequence[StateRow]]) -> Iterator[Flagged]:
    """Of ids that were timed out, or fenced in the middle of a transaction, many times; see `judge.endings`."""
    for name, rows in histories.items():
        history = [row for row in rows if not row.is_undecodable]
        if sum(row.state == PREPARE_ABORT for row in history) >= MANY:
            for kind, count in Counter(_kinds(history)).items():
                if count >= MANY:
                    yield flagged(kind, name, count)


def _kinds(history: Sequence[StateRow]) -> Iterator[str]:
    for n, row in enumerate(history):
        if row.state == PREPARE_ABORT and n:
            later = history[n + 2] if n + 2 < len(history) else None
            after = (None, None) if later is None else (later.state, later.last_update_ms)
            abort = Abort(row.start_ms, row.timeout_ms, row.last_update_ms, *after)
            is_raised = RaisedFrom(*_before(history[n - 1])).is_raised_to(row.producer_id, row.producer_epoch)
            if is_raised and (kind := kind_of(abort)) is not None:
                yield kind
