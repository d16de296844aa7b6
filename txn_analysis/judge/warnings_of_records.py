"""Early warnings of one transactional id, by its history; `judge.early_warning` adds them up."""

from __future__ import annotations

from collections import Counter
from operator import attrgetter
from typing import TYPE_CHECKING

from txn_analysis.judge.early_warning import MANY, Flagged, RaisedFrom, flagged, kind_of, of_last_record
from txn_analysis.judge.warnings.warning import Abort, Known, LastRecord
from txn_analysis.kafka.transactions import PREPARE_ABORT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from txn_analysis.coordinator.history import History
    from txn_analysis.kafka.transactions import StateRecord

_last = attrgetter(*LastRecord._fields)
_before = attrgetter(*RaisedFrom._fields)


def warnings_of_id(history: History, known: Known) -> Iterator[Flagged]:
    """What one id is warned of: by its last record, and for being timed out, or fenced, many times."""
    name, last = history[-1].transactional_id, history[-1]
    if is_live(last):
        yield from of_last_record(name, LastRecord(*_last(last)), known)
    if sum(record.state == PREPARE_ABORT for record in history) >= MANY:
        for kind, count in Counter(_kinds(history)).items():
            if count >= MANY:
                yield flagged(kind, name, count)


def is_live(last: StateRecord) -> bool:
    """The last record of an id is known, and the id is not gone."""
    return not (last.is_tombstone or last.is_hidden)


def _kinds(history: History) -> Iterator[str]:
    for n, record in enumerate(history):
        if record.state == PREPARE_ABORT and n:
            later = history[n + 2] if n + 2 < len(history) else None
            after = (None, None) if later is None else (later.state, later.last_update_ms)
            abort = Abort(record.start_ms, record.timeout_ms, record.last_update_ms, *after)
            is_raised = RaisedFrom(*_before(history[n - 1])).is_raised_to(record.producer_id, record.producer_epoch)
            if is_raised and (kind := kind_of(abort)) is not None:
                yield kind
