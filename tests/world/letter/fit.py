"""Whether the state fits the logs, and whether it was copied last, by the contract's text."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.core.stories import holder
from tests.world.letter.copies import NEVER_MS, WEEK_MS
from tests.world.letter.decisions import prepared, runs_of

if TYPE_CHECKING:
    from tests.world.letter.copies import Copies, Marker, Part

MINUTE_MS = 60_000
USED_UP = 32_766


@dataclass
class Fit:
    """What speaks against the state: for everything, or by producer; and whether a commit is later than it."""

    for_all: bool = False
    producers: set[int] = field(default_factory=set)
    is_later: bool = False

    def is_against(self, producer_id: int, *, is_known: bool) -> bool:
        """It counts for its producer, and for every unknown one."""
        return self.for_all or producer_id in self.producers or (bool(self.producers) and not is_known)


def fit_of(copies: Copies) -> Fit:
    """What all COMMIT markers of the logs say."""
    found, confirmed_count, contradicted_count = Fit(), 0, 0
    for (n, i), markers in copies.markers.items():
        for run in (run for run in runs_of(markers) if run[0].word == "COMMIT"):
            confirmed = [_is_confirmed(copies, m, n, i) for m in run]
            confirmed_count += sum(confirmed)
            silent = [m for m, is_confirmed in zip(run, confirmed, strict=True) if not is_confirmed]
            found.is_later |= any(_is_later(copies, m, i) for m in silent)
            against = [] if any(confirmed) else [m for m in silent if _is_contradicted(copies, m, i)]
            contradicted_count += len(against)
            found.producers |= {i for _ in against}
    found.for_all = contradicted_count > confirmed_count or _is_foreign(copies) or _is_misplaced(copies)
    return found


def _is_confirmed(copies: Copies, m: Marker, n: int, producer_id: int) -> bool:
    for own in copies.known(producer_id):
        for e, after in prepared(own, "Commit", n, producer_id):
            done_ms = after.by_ms if after is not None and after.word == "CompleteCommit" else NEVER_MS
            if e.at_ms - copies.skew <= m.at_ms <= done_ms + copies.skew:
                return True
    return False


def _is_later(copies: Copies, m: Marker, producer_id: int) -> bool:
    homes = [own[0].home for own in copies.known(producer_id)] or list(copies.parts)
    given = [copies.parts[home] for home in homes if home in copies.parts]
    return bool(given) and all(part.last_ms is None or part.last_ms < m.at_ms - copies.skew for part in given)


def _is_contradicted(copies: Copies, m: Marker, producer_id: int) -> bool:
    if m.at_ms < copies.reach - WEEK_MS:
        return False
    homes = {own[0].home: copies.gap_of(own) for own in copies.known(producer_id)}
    if not homes:
        may_have_rotated = copies.given.is_console and m.epoch >= USED_UP
        is_kept = all(_reaches(copies, p, m) and _is_kept(p, p.gap_ms, m) for p in copies.parts.values())
        return copies.is_whole and is_kept and not may_have_rotated
    for home, gap_ms in homes.items():
        part = copies.parts.get(home)
        if part is None or not _reaches(copies, part, m):
            return False
        is_ahead = not copies.given.is_console and m.coordinator_epoch > part.top_epoch
        if not is_ahead and not _is_kept(part, gap_ms, m):
            return False
    return True


def _reaches(copies: Copies, part: Part, m: Marker) -> bool:
    return part.last_ms is not None and part.last_ms >= m.at_ms + copies.skew


def _is_kept(part: Part, gap_ms: int | None, m: Marker) -> bool:
    since_ms = m.at_ms - MINUTE_MS
    return (gap_ms is None or gap_ms < since_ms) and not any(by_ms >= since_ms for _, by_ms in part.rises)


def _is_foreign(copies: Copies) -> bool:
    young_ms = copies.reach - WEEK_MS
    ended = {i for (_, i), own in copies.markers.items() for m in own if m.at_ms >= young_ms}
    return bool(copies.parts) and bool(ended) and not any(copies.known(i) for i in ended)


def _is_misplaced(copies: Copies) -> bool:
    return any(holder(name, copies.count) != own[0].home for name, own in copies.ids.items())
