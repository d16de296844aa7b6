"""Whether the state fits the logs, and whether it was copied last, by the contract's text."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.tools.stories.stories import holder
from tests.tools.world.letter.copies import NEVER_MS, WEEK_MS, Copies, Entry, History, Marker, Part, Rise
from tests.tools.world.letter.decisions import prepared, runs_of

MINUTE_MS = 60_000
USED_UP = 32_766
HALF_USED_UP = 16_384


@dataclass
class Fit:
    """What speaks against the state: for everything, or by producer.

    `is_later` says that a marker is later than the state. Nothing hangs by a state that is unproven, as one of the
    markers is contradicted; and nothing of an unknown producer by one that is unproven for those, as a marker would
    contradict it if its kind were known, or the word of the operator is true. `is_testable`: some COMMIT marker is not
    surely confirmed. `sure_ms` is when the newest one was written that is, `newest_ms` when the newest one before the
    state's last moment, and `sure_of_any_ms` when the newest marker of either kind that is surely confirmed.
    """

    for_all: bool = False
    producers: set[int] = field(default_factory=set)
    is_later: bool = False
    is_unproven: bool = False
    is_testable: bool = False
    sure_ms: int | None = None
    newest_ms: int | None = None
    sure_of_any_ms: int | None = None
    is_unproven_for_unknown: bool = False

    def is_against(self, producer_id: int, *, is_known: bool) -> bool:
        """It counts for its producer, and for every unknown one."""
        return self.for_all or producer_id in self.producers or (bool(self.producers) and not is_known)


def fit_of(copies: Copies, *, nothing_lost: bool) -> Fit:
    """What all markers of the logs say."""
    owners = {(n, m): _Owners(copies, m, n, i) for (n, i), markers in copies.markers.items() for m in markers}
    found = Fit(is_later=any(own.are_behind() for own in owners.values()))
    is_last = copies.given.state_copied_last and not found.is_later
    test = _Test(copies, nothing_lost)
    confirmed_count, contradicted_count, is_doubted, is_unsure = 0, 0, False, False
    for (n, i), markers in copies.markers.items():
        for run in runs_of(markers):
            confirmed = [owners[n, m].are_there() for m in run]
            confirmed_count += sum(m.word == "COMMIT" and it for m, it in zip(run, confirmed, strict=True))
            is_unsure |= any(m.may_be("COMMIT") for m in run) and not any(owners[n, m].are_sure() for m in run)
            if any(confirmed):
                continue
            against = [m for m in run if m.word == "COMMIT" and test.is_contradicted(m, i)]
            contradicted_count += len(against)
            found.producers |= {i for _ in against}
            if copies.known(i):
                is_doubted |= any(m.is_of_unknown_kind and test.is_contradicted(m, i) for m in run)
            else:
                found.is_unproven_for_unknown |= any(test.is_contradicted(m, i, is_reached=is_last) for m in run)
    sure = [m for (_, m), own in owners.items() if own.are_sure()]
    found.sure_of_any_ms = max((m.at_ms for m in sure), default=None)
    found.sure_ms = max((m.at_ms for m in sure if m.may_be("COMMIT")), default=None)
    end_ms = max((part.last_ms for part in copies.parts.values() if part.last_ms is not None), default=-NEVER_MS)
    before = [m.at_ms for markers in copies.markers.values() for m in markers if m.may_be("COMMIT")]
    found.newest_ms = max((ms for ms in before if ms <= end_ms), default=None)
    found.is_testable = is_unsure
    found.is_unproven = bool(contradicted_count) or is_doubted
    found.for_all = contradicted_count > confirmed_count or _is_foreign(copies) or _is_misplaced(copies)
    return found


class _Owners:
    """The decisions that a marker may be of: of its kind, or of any if that is unknown; each with the next record."""

    def __init__(self, copies: Copies, m: Marker, n: int, producer_id: int) -> None:
        self.copies, self.m, self.producer_id = copies, m, producer_id
        self.histories = copies.known(producer_id)
        self.found = [
            (e, after)
            for own in self.histories
            for word in ("Commit", "Abort")
            if m.may_be(word.upper())
            for e, after in prepared(own, word, n, producer_id)
            if e.at_ms - copies.skew <= m.at_ms
        ]

    def are_there(self) -> bool:
        """One of them confirms a COMMIT: its Complete record, if there is one, is not before the marker."""
        if self.m.is_of_unknown_kind:
            return self._are_until_next()
        return any(
            after is None or after.word != "CompleteCommit" or self.m.at_ms <= after.by_ms + self.copies.skew
            for _, after in self.found
        )

    def are_sure(self) -> bool:
        """One of them has a next record, which is not before the marker, and one of the two is near to it."""
        near_ms, at_ms = MINUTE_MS + self.copies.skew, self.m.at_ms
        ends = [(e.at_ms, after.by_ms) for e, after in self.found if after is not None]
        ends += [(ms, end_ms) for ms, end_ms in self._left_alone() if ms - self.copies.skew <= at_ms]
        return any(
            at_ms <= end_ms + self.copies.skew and (at_ms <= ms + near_ms or at_ms >= end_ms - near_ms)
            for ms, end_ms in ends
        )

    def _left_alone(self) -> Iterator[tuple[int, int]]:
        """From when to when, by Complete records whose Prepare compaction took: their value has the decision's time.

        Of the marker's own producer epoch, and of a leader that is not before the marker's coordinator.
        """
        if self.copies.given.is_console or self.m.is_of_unknown_kind:
            return
        for own in self.histories:
            for before, e in zip((None, *own), own, strict=False):
                kind = e.word.removeprefix("Complete")
                is_alone = kind != e.word and (before is None or before.word != f"Prepare{kind}")
                is_its_own = self.producer_id in (e.row.producer_id, e.row.previous_producer_id)
                is_led = e.row.epoch == self.m.epoch and e.row.leader_epoch >= self.m.coordinator_epoch
                if is_alone and is_its_own and is_led and self.m.may_be(kind.upper()):
                    yield e.row.update_ms, e.by_ms

    def are_behind(self) -> bool:
        """The marker is later than the state, and none of them can be its own."""
        homes = [own[0].home for own in self.histories] or list(self.copies.parts)
        given = [self.copies.parts[home] for home in homes if home in self.copies.parts]
        is_later = all(part.said_ms is None or part.said_ms < self.m.at_ms - self.copies.skew for part in given)
        return self.m.may_be("COMMIT") and bool(given) and is_later and not self._are_until_next()

    def _are_until_next(self) -> bool:
        """The marker is not later than the id's next record, or the last moment of its partition of the state."""
        ends = [(after.by_ms if after is not None else self._last_ms(e)) for e, after in self.found]
        return any(self.m.at_ms <= end_ms + self.copies.skew for end_ms in ends)

    def _last_ms(self, e: Entry) -> int:
        said_ms = self.copies.parts[e.home].said_ms
        return NEVER_MS if said_ms is None else said_ms


@dataclass
class _Test:
    """Whether markers that nothing confirms speak against the state."""

    copies: Copies
    nothing_lost: bool

    def __post_init__(self) -> None:
        self.newer = {i for (_, i), markers in self.copies.markers.items() if any(map(_is_bumped, markers))}

    def is_contradicted(self, m: Marker, producer_id: int, *, is_reached: bool = False) -> bool:
        """The state cannot have lost its decision; one of unknown kind is taken for a COMMIT of version 0 or 1."""
        copies = self.copies
        if not m.may_be("COMMIT"):
            return False
        histories = copies.known(producer_id)
        if m.at_ms < copies.reach - WEEK_MS and copies.is_compacted and all(map(_may_be_expired, histories)):
            return False
        homes = {own[0].home: copies.gap_of(own) for own in histories}
        parts = [copies.parts.get(home) for home in homes] if homes else list(copies.parts.values())
        given = [part for part in parts if part is not None]
        if len(given) < len(parts) or not (is_reached or all(self._reaches(part, m) for part in given)):
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
        if not may_have_rotated:
            return all(self._is_kept(part, None, m) for part in self.copies.parts.values())
        if self.copies.given.is_console:
            ends = [NEVER_MS if m.epoch >= USED_UP else 0, *self.copies.gaps_of_ids()]
            return max(ends) < m.at_ms - MINUTE_MS
        return all(self._is_kept(part, part.gap_ms, m) for part in self.copies.parts.values())

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


def _is_foreign(copies: Copies) -> bool:
    young_ms = copies.reach - WEEK_MS
    ended = {i for (_, i), own in copies.markers.items() for m in own if m.at_ms >= young_ms}
    return bool(copies.parts) and bool(ended) and not any(copies.known(i) for i in ended)


def _is_misplaced(copies: Copies) -> bool:
    return any(holder(name, copies.count) != own[0].home for name, own in copies.ids.items())
