"""Whether the state fits the logs, and whether it was copied last, by the contract's text."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.core.stories import holder
from tests.world.letter.copies import NEVER_MS, WEEK_MS
from tests.world.letter.decisions import prepared, runs_of

if TYPE_CHECKING:
    from tests.world.letter.copies import Copies, History, Marker, Part, Rise

MINUTE_MS = 60_000
USED_UP = 32_766
HALF_USED_UP = 16_384


@dataclass
class Fit:
    """What speaks against the state: for everything, or by producer.

    `is_later` says that a marker is later than the state, `is_unproven` that the state confirms nothing where it
    should.
    """

    for_all: bool = False
    producers: set[int] = field(default_factory=set)
    is_later: bool = False
    is_unproven: bool = False

    def is_against(self, producer_id: int, *, is_known: bool) -> bool:
        """It counts for its producer, and for every unknown one."""
        return self.for_all or producer_id in self.producers or (bool(self.producers) and not is_known)


def fit_of(copies: Copies, *, nothing_lost: bool) -> Fit:
    """What all markers of the logs say."""
    found, confirmed_count, contradicted_count = Fit(), 0, 0
    test = _Test(copies, nothing_lost)
    for (n, i), markers in copies.markers.items():
        found.is_later |= any(_is_later(copies, m, n, i) for m in markers if m.may_be("COMMIT"))
        for run in (run for run in runs_of(markers) if run[0].word == "COMMIT"):
            commits = [m for m in run if m.word == "COMMIT"]
            confirmed = [_is_confirmed(copies, m, n, i) for m in commits]
            confirmed_count += sum(confirmed)
            against = [] if any(confirmed) else [m for m in commits if test.is_contradicted(m, i)]
            contradicted_count += len(against)
            found.producers |= {i for _ in against}
    found.is_unproven = not confirmed_count and _is_confirmable(copies)
    found.for_all = contradicted_count > confirmed_count or _is_foreign(copies) or _is_misplaced(copies)
    return found


def _is_confirmed(copies: Copies, m: Marker, n: int, producer_id: int) -> bool:
    for own in copies.known(producer_id):
        for e, after in prepared(own, "Commit", n, producer_id):
            done_ms = after.by_ms if after is not None and after.word == "CompleteCommit" else NEVER_MS
            if e.at_ms - copies.skew <= m.at_ms <= done_ms + copies.skew:
                return True
    return False


def _is_later(copies: Copies, m: Marker, n: int, producer_id: int) -> bool:
    """It is later than the state, and its decision is not there."""
    histories = copies.known(producer_id)
    homes = [own[0].home for own in histories] or list(copies.parts)
    given = [copies.parts[home] for home in homes if home in copies.parts]
    is_behind = all(part.said_ms is None or part.said_ms < m.at_ms - copies.skew for part in given)
    return bool(given) and is_behind and not any(_has_decided(copies, own, m, n, producer_id) for own in histories)


def _has_decided(copies: Copies, own: History, m: Marker, n: int, producer_id: int) -> bool:
    """A decision may be the marker's: no later than its next record, or the end of its partition of the state."""
    part = copies.parts.get(own[0].home)
    end_ms = NEVER_MS if part is None or part.said_ms is None else part.said_ms
    return any(
        e.at_ms - copies.skew <= m.at_ms <= (end_ms if after is None else after.by_ms) + copies.skew
        for word in ("Commit", "Abort")
        if m.may_be(word.upper())
        for e, after in prepared(own, word, n, producer_id)
    )


@dataclass
class _Test:
    """Whether COMMIT markers that nothing confirms speak against the state."""

    copies: Copies
    nothing_lost: bool

    def __post_init__(self) -> None:
        self.newer = {i for (_, i), markers in self.copies.markers.items() if any(map(_is_bumped, markers))}

    def is_contradicted(self, m: Marker, producer_id: int) -> bool:
        """The state cannot have lost its decision."""
        copies = self.copies
        histories = copies.known(producer_id)
        if m.at_ms < copies.reach - WEEK_MS and copies.is_compacted and all(map(_may_be_expired, histories)):
            return False
        homes = {own[0].home: copies.gap_of(own) for own in histories}
        parts = [copies.parts.get(home) for home in homes] if homes else list(copies.parts.values())
        given = [part for part in parts if part is not None]
        if len(given) < len(parts) or not all(self._reaches(part, m) for part in given):
            return False
        if homes:
            return all(
                self._is_ahead(m, part.top_epoch) or self._is_kept(part, gap_ms, m)
                for part, gap_ms in zip(given, homes.values(), strict=True)
            )
        return copies.is_whole and (self._is_ahead(m, copies.top_epoch) or self._is_nowhere(m, producer_id))

    def _is_nowhere(self, m: Marker, producer_id: int) -> bool:
        """No partition can have lost what named the producer: it cannot have rotated away, or nothing is gone."""
        may_have_rotated = producer_id in self.newer or m.epoch >= HALF_USED_UP
        if may_have_rotated and self.copies.given.is_console:
            return False
        parts = self.copies.parts.values()
        return all(self._is_kept(part, part.gap_ms if may_have_rotated else None, m) for part in parts)

    def _is_ahead(self, m: Marker, top_epoch: int) -> bool:
        return not self.copies.given.is_console and m.coordinator_epoch > top_epoch

    def _reaches(self, part: Part, m: Marker) -> bool:
        return part.last_ms is not None and part.last_ms >= m.at_ms + self.copies.skew

    def _is_kept(self, part: Part, gap_ms: int | None, m: Marker) -> bool:
        is_cut = any(self._is_excuse(rise, m) for rise in part.rises)
        return (gap_ms is None or gap_ms < m.at_ms - MINUTE_MS) and not is_cut

    def _is_excuse(self, rise: Rise, m: Marker) -> bool:
        """The tail that the old leader may have had in front of the others can have held the decision."""
        can_hold = rise.after_ms <= m.at_ms + self.copies.skew and rise.by_ms >= m.at_ms - MINUTE_MS
        return can_hold and not rise.is_at_hole and not self.nothing_lost


def _may_be_expired(own: History) -> bool:
    return any(e.word == "Tombstone" for e in own)


def _is_bumped(m: Marker) -> bool:
    """Only a COMMIT of transaction version 2 has an epoch above that of its data."""
    return m.word == "COMMIT" and m.data_epoch is not None and m.epoch > m.data_epoch


def _is_confirmable(copies: Copies) -> bool:
    """Some COMMIT marker is of a time of which a partition of the state has all, or may be."""
    commits = [m.at_ms for markers in copies.markers.values() for m in markers if m.word == "COMMIT"]
    return any(
        part.last_ms is not None and (part.gap_ms is None or ms > part.gap_ms) and ms < part.last_ms
        for part in copies.parts.values()
        for ms in commits
    )


def _is_foreign(copies: Copies) -> bool:
    young_ms = copies.reach - WEEK_MS
    ended = {i for (_, i), own in copies.markers.items() for m in own if m.at_ms >= young_ms}
    return bool(copies.parts) and bool(ended) and not any(copies.known(i) for i in ended)


def _is_misplaced(copies: Copies) -> bool:
    return any(holder(name, copies.count) != own[0].home for name, own in copies.ids.items())
