"""Faults of the audit, made on purpose: whatever compares it with Kafka must find them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from txn_analysis.log.producer_entries import EntryColumns
from txn_analysis.log.replay import RangesAtOnce


@dataclass(frozen=True)
class Fault:
    """A step of the replay that does something else."""

    name: str
    of: type
    step: str
    instead: Callable[..., None]

    def put_in(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """From now on, and as long as the test runs."""
        monkeypatch.setattr(self.of, self.step, self.instead)


def _without_markers(*_: Any) -> None:
    """An end marker ends nothing."""


def _with_first_epoch(take: Callable[..., None]) -> Callable[..., None]:
    """The epoch of a producer is that of its first batch, not of its last."""
    return lambda entries, rows, own: take(entries, rows, own | {"producer_epoch": own["first_batch_epoch"]})


FAULTS = (
    Fault("a-marker-is-ignored", RangesAtOnce, "end", _without_markers),
    Fault(
        "an-epoch-of-the-wrong-batch",
        EntryColumns,
        "take_last_batches",
        _with_first_epoch(EntryColumns.take_last_batches),
    ),
)
