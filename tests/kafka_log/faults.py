"""Faults of the audit, made on purpose: whatever compares it with Kafka must find them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from txn_analysis.log.producer_state import ProducerStateManager

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from txn_analysis.tables import BatchRangeSummary


@dataclass(frozen=True)
class Fault:
    """A method of `ProducerStateManager` that does something else."""

    name: str
    method: str
    instead: Callable[..., None]

    def put_in(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """From now on, and as long as the test runs."""
        monkeypatch.setattr(ProducerStateManager, self.method, self.instead)


def _without_markers(state: ProducerStateManager, *_: Any) -> None:
    """An end marker ends nothing."""


def _with_first_epoch(apply: Callable[..., None]) -> Callable[..., None]:
    """The epoch of a producer is that of its first batch, not of its last."""

    def applied(state: ProducerStateManager, piece: BatchRangeSummary) -> None:
        own = piece.producers.own
        wrong = own | {"producer_epoch": own["first_batch_epoch"]} if len(piece.producers) else own
        apply(state, piece._replace(producers=replace(piece.producers, own=wrong)))

    return applied


FAULTS = (
    Fault("a-marker-is-ignored", "_end", _without_markers),
    Fault("an-epoch-of-the-wrong-batch", "apply", _with_first_epoch(ProducerStateManager.apply)),
)
