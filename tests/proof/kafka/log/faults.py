"""Faults of the audit, made on purpose: whatever compares it with Kafka must find them."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from txn_analysis.columns.arrays import NONE, Array
from txn_analysis.log.producer_state import ProducerStateManager
from txn_analysis.tables import BatchRangeSummary


@dataclass(frozen=True)
class Fault:
    """What producers append is replayed otherwise than it is; `change` alters the rows of one batch range."""

    name: str
    change: Callable[[Array], None]

    def put_in(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """From now on, and as long as the test runs."""
        append = ProducerStateManager.append

        def with_fault(state: ProducerStateManager, summary: BatchRangeSummary) -> None:
            rows = summary.producers.rows.copy()
            self.change(rows)
            append(state, summary._replace(producers=replace(summary.producers, rows=rows)))

        monkeypatch.setattr(ProducerStateManager, "append", with_fault)


def _without_markers(rows: Array) -> None:
    """An end marker ends nothing."""
    rows["lead"]["end_offset"] = NONE


def _with_first_epoch(rows: Array) -> None:
    """The epoch of a producer is that of its first batch, not of its last."""
    rows["producer_epoch"] = rows["first_batch_epoch"]


FAULTS = (Fault("a-marker-is-ignored", _without_markers), Fault("an-epoch-of-the-wrong-batch", _with_first_epoch))
