"""Ended transactions by time, as pictures and `stats` show them."""

from __future__ import annotations

from typing import NamedTuple


class EndedSlice(NamedTuple):
    """Transactions, each on one partition, whose end marker came from `from_ms` to before `to_ms`, by their outcome."""

    from_ms: int
    to_ms: int
    committed_count: int
    aborted_count: int
    unknown_outcome_count: int

    @property
    def ended_count(self) -> int:
        """All of them."""
        return self.committed_count + self.aborted_count + self.unknown_outcome_count
