"""What of the state can confirm or contradict an end marker of the logs: its chains, and what they cannot have lost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from txn_analysis.logic import is_before, latest, minus, plus

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from txn_analysis.coordinator.chain import StateChain
    from txn_analysis.coordinator.coverage import StateEvidence
    from txn_analysis.settings import Settings

# How long before its marker a decision is looked for: what is lost earlier cannot have held it.
DECIDED_WITHIN_MS = 60_000


@dataclass(frozen=True)
class StateAtHand:
    """What of the state can confirm or contradict a marker.

    Attributes:
        chains: by number, the partitions of the state that were given.
        is_whole: all partitions were given, and no larger count of partitions fits the ids.
        exports: numbers of those for which only a console export speaks.
        is_export_complete: the operator says that the exports are complete.
        is_nothing_lost: the operator says that no record was ever lost.
        max_clock_skew_ms: by how much two brokers' clocks may differ.
        known_since_ms: an id that was last used before this moment may have been forgotten.
    """

    chains: Mapping[int, StateChain]
    is_whole: bool
    exports: frozenset[int]
    is_export_complete: bool
    is_nothing_lost: bool
    max_clock_skew_ms: int
    known_since_ms: int | None

    def gap_end_ms(self, partition: int) -> int | None:
        """The moment behind the newest hole of a partition, or behind what an export can lack; None without one."""
        chain = self.chains[partition]
        return latest(chain.gap_end_ms, chain.export_gap_ms if partition in self.exports else None)

    def is_before_end(self, partitions: Iterable[int], at_ms: int) -> bool:
        """A moment is not later than everything that some partitions hold; one without any moment counts as behind.

        What is later than the stated moment of the copy does not count.
        """
        ends = (plus(self.chains[n].last_until_as_of_ms, self.max_clock_skew_ms) for n in partitions)
        return any(ms is not None and at_ms <= ms for ms in ends)

    def may_have_expired(self, at_ms: int) -> bool:
        """The transactional id of a commit may have been forgotten since, and compacted away."""
        return is_before(at_ms, self.known_since_ms)


def state_at_hand(state: StateEvidence, settings: Settings, newest_ms: int | None) -> StateAtHand:
    """What of the state was given, as far as it can confirm or contradict a marker."""
    given = {p.state_partition: p for p in state.expected if p.is_seen}
    return StateAtHand(
        chains={number: partition.chain for number, partition in given.items()},
        is_whole=len(given) == state.expected_count and state.count.larger is None,
        exports=frozenset(number for number, partition in given.items() if partition.is_console),
        is_export_complete=settings.transaction_state_complete,
        is_nothing_lost=settings.no_records_lost,
        max_clock_skew_ms=settings.max_clock_skew_ms,
        known_since_ms=minus(newest_ms, settings.transactional_id_expiration_ms),
    )
