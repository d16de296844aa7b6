"""The rules in the contract's order, each as its text says it; the first one that holds gives its name."""

from collections.abc import Callable

from tests.tools.world.evidence import Evidence
from tests.tools.world.letter.copies import NEVER_MS, WEEK_MS, Copies, History, Part, lists, open_data
from tests.tools.world.letter.decisions import without_marker
from tests.tools.world.letter.fit import USED_UP, Fit, fit_of

LATE_MS = 1_200_000
BUFFER_MS = 300_000
TWO_PHASE_MS = 2**31 - 1

Places = dict[tuple[int, int], str]


def rules_of(given: Evidence, skew_ms: int) -> Places:
    """The rule of each open transaction, by partition and producer id."""
    copies = Copies(given, skew_ms)
    unassured = _rules(copies, nothing_lost=False)
    is_disproved = "commit_marker_missing" in unassured.values()
    return _rules(copies, nothing_lost=True) if given.no_records_lost and not is_disproved else unassured


def _rules(copies: Copies, *, nothing_lost: bool) -> Places:
    fit = fit_of(copies, nothing_lost=nothing_lost)
    return {
        (n, i): Asked(copies, fit, n, i, nothing_lost=nothing_lost).rule()
        for n, i in copies.markers
        if open_data(copies.logs[n], i)
    }


def recent_of(given: Evidence, skew_ms: int) -> set[tuple[int, int]]:
    """The open transactions that were written while they were copied, or a little before."""
    copies = Copies(given, skew_ms)
    fit = fit_of(copies, nothing_lost=False)
    opened = ((n, i) for n, i in copies.markers if open_data(copies.logs[n], i))
    return {(n, i) for n, i in opened if Asked(copies, fit, n, i, nothing_lost=False).is_recent()}


class Asked:
    """One open transaction."""

    def __init__(self, copies: Copies, fit: Fit, n: int, producer_id: int, *, nothing_lost: bool) -> None:
        self.copies, self.skew, self.nothing_lost = copies, copies.skew, nothing_lost
        self.fit = fit
        self.is_last = copies.given.state_copied_last and not fit.is_later
        log, self.data = copies.logs[n], open_data(copies.logs[n], producer_id)
        first, self.last = self.data[0], self.data[-1]
        moments = [(b.offset, b.at_ms) for b in log if b.word]
        self.log_end = moments[-1][1] if moments else None
        self.first_after = next((ms for o, ms in reversed(moments) if o < first.offset), None)
        self.first_before = next((ms for o, ms in moments if o > first.offset), None)
        self.before = next((ms for o, ms in moments if o > self.last.offset), None)
        self.after = next((ms for o, ms in reversed(moments) if o < self.last.offset), None)
        markers = copies.markers[n, producer_id]
        self.marked = markers[-1].at_ms - self.skew if markers else -NEVER_MS
        self.is_exact = bool(markers) or log[0].offset == 0
        credible = [b.client_ms for b in log if not b.word and b.client_ms <= (copies.as_of or 0)]
        self.seen = self.log_end if self.log_end is not None else max(credible, default=None)
        known = copies.known(producer_id)
        self.own: History = max(known, key=lambda h: (lists(h, n, producer_id), h[-1].at_ms, h[0].row.name), default=[])
        self.is_listed = bool(self.own) and lists(self.own, n, producer_id)
        self.part = copies.parts.get(self.own[0].home) if self.own else None
        self.misfit = fit.is_against(producer_id, is_known=bool(self.own))
        self.unserved = without_marker(self.own, n, producer_id, markers, self.skew)
        self.matter = [d for d in self.unserved if d.at_ms >= self._since()]
        self.gaps = self._gaps()
        self.hiding = [ms for ms in self.gaps if not self.is_exact or ms >= self._since()]

    def _since(self) -> int:
        return -NEVER_MS if self.first_after is None else self.first_after - self.skew

    def _gaps(self) -> list[int]:
        if self.own:
            gap_ms = self.copies.gap_of(self.own)
            return [gap_ms] if gap_ms is not None and gap_ms >= self.marked else []
        found = [p.gap_ms for p in self.copies.parts.values() if p.gap_ms is not None]
        has_expired = self.first_after is None or self.first_after < self.copies.reach - WEEK_MS
        is_lost = self.copies.given.is_console and (has_expired or self.last.epoch >= USED_UP)
        if not self.copies.given.is_console:
            return found
        before_ids = self.copies.gaps_of_ids()
        return [*before_ids, NEVER_MS] if is_lost else before_ids

    def rule(self) -> str:
        """The first rule that holds."""
        return next(name for name, holds in RULES.items() if holds(self))

    # What several rules ask.

    @property
    def state(self) -> str:
        """What the id's newest record says where that lists the partition."""
        return self.own[-1].word if self.is_listed else ""

    @property
    def state_end(self) -> int:
        """The last moment of the id's partition of the state, or any in its folder; --as-of if that was copied last."""
        known = [self.part.last_ms if self.part else None, self.copies.as_of if self.is_last else None]
        if self.copies.given.is_folder:
            known += [part.last_ms for part in self.copies.parts.values()]
        return max((ms for ms in known if ms is not None), default=-NEVER_MS)

    def current(self) -> tuple[int | None, int | None]:
        """When the transaction in progress began, and at which epoch it runs."""
        others = [k for k, e in enumerate(self.own) if e.word != "Ongoing"]
        live = self.own[others[-1] + 1 :] if others else self.own
        start = live[-1].row.start_ms if live else None
        return (live[0].at_ms if live and start is None else start), (live[-1].row.epoch if live else None)

    def is_over(self, next_ms: int) -> bool:
        """A marker that was written before a moment would be in the log."""
        return self.log_end is not None and self.log_end >= next_ms + self.skew

    def is_after_log(self, ms: int) -> bool:
        """It was recorded after the log's last moment."""
        return self.log_end is None or ms > self.log_end - self.skew

    @property
    def quiet_since(self) -> int | None:
        """Since when it is idle, by the best clock there is."""
        is_credible = self.copies.as_of is not None and 0 < self.last.client_ms <= self.copies.as_of
        return self.last.client_ms if is_credible else self.before

    # The rules.

    def is_stale(self) -> bool:
        """Older than the transaction in progress that lists it, and of no earlier decision."""
        if self.state != "Ongoing" or self.misfit or self.log_end is None or self.hiding:
            return False
        start, epoch = self.current()
        by_clock = start is not None and self.first_before is not None and self.first_before + self.skew < start
        by_epoch = epoch is not None and epoch > max(b.epoch for b in self.data)
        return (by_clock or by_epoch) and all(d.word == "Abort" and self.is_over(d.next_ms) for d in self.matter)

    def is_not_late(self) -> bool:
        """Idle within the bound."""
        as_of, since = self.copies.as_of, self.quiet_since
        return as_of is not None and since is not None and as_of - since <= LATE_MS

    def is_without_clock(self) -> bool:
        """Nothing says how long it is idle."""
        return self.copies.as_of is None or self.quiet_since is None

    def is_commit_lost(self) -> bool:
        """A commit without its marker in a log that goes on."""
        return any(d.word == "Commit" and self.is_over(d.next_ms) for d in self.matter)

    def is_marker_overdue(self) -> bool:
        """Decided, and nothing moved for longer than the bound."""
        return self.state.startswith("Prepare") and self.state_end > self.own[-1].row.update_ms + LATE_MS

    def is_coordinator_overdue(self) -> bool:
        """Past its own timeout."""
        start, timeout = self.current()[0], self.own[-1].row.timeout_ms if self.own else 0
        is_timed = start is not None and timeout != TWO_PHASE_MS
        return self.state == "Ongoing" and is_timed and self.state_end > (start or 0) + timeout + BUFFER_MS

    def is_state_older(self) -> bool:
        """The state does not reach up to the data, or is of a lower epoch."""
        newest = self.own[-1].row if self.own else None
        is_same = newest is not None and newest.state is not None and newest.producer_id == self.last.producer_id
        is_ahead = is_same and newest is not None and max(b.epoch for b in self.data) > newest.epoch
        deciding = [self.part] if self.part else [] if self.own else list(self.copies.parts.values())
        bound = NEVER_MS if self.before is None else self.before + self.skew
        is_behind = self.before is None or any(p.last_ms is None or p.last_ms < bound for p in deciding)
        return is_ahead or (is_behind and not self.is_last)

    def may_log_end_early(self) -> bool:
        """It may have been ended after its log was copied."""
        if self.own:
            return self.is_after_log(max(e.by_ms for e in self.own)) and bool(self.gaps or self.matter)
        is_old = self.seen is None or self.seen < self.copies.reach - WEEK_MS
        return is_old or any(self.is_after_log(ms) for ms in (*self.gaps, *self._orphans()))

    def _orphans(self) -> list[int]:
        return [
            e.by_ms
            for own in self.copies.ids.values()
            for before, e in zip(("", *(e.word for e in own)), own, strict=False)
            if e.word.startswith("Complete") and before != e.word.replace("Complete", "Prepare")
        ]

    def is_state_incomplete(self) -> bool:
        """What could hold the answer was not given, or was made again; or confirms nothing where it should."""
        by_ms = None if self.before is None else self.before - self.copies.skew
        is_own = self.copies.given.cluster_id is not None or _is_no_earlier(self.fit.sure_of_any_ms, by_ms)
        is_confirmed = _is_no_earlier(self.fit.sure_ms, self.fit.newest_ms if by_ms is None else by_ms)
        is_unproven = not is_own or self.fit.is_unproven or (self.fit.is_testable and not is_confirmed)
        parts = ([self.part] if self.part else []) if self.own else list(self.copies.parts.values())
        if any(self._is_file_missing(part, self.marked if self.own else -NEVER_MS) for part in parts):
            return True
        if self.own:
            return self.part is None or is_unproven
        firsts = [p.first_ms for p in self.copies.parts.values() if p.first_ms is not None]
        is_new = self.before is not None and not any(ms < self.before for ms in firsts)
        return is_new or not self.copies.is_whole or is_unproven or self.fit.is_unproven_for_unknown

    def _is_file_missing(self, part: Part, since_ms: int) -> bool:
        """Its first file, or one before a moment that matters; not where the folder is whole and nothing was lost."""
        is_cleaners = part.is_folder_whole and self.nothing_lost
        has_hole = part.hole_ms is not None and part.hole_ms >= since_ms
        return not is_cleaners and (part.is_without_first_file or has_hole)

    def is_recent(self) -> bool:
        """Its first batch is younger than the bound by the brokers' clocks, at the moment that was said of the copy."""
        said, newest = self.copies.given.as_of_ms, self.copies.newest
        if said is None or said < (newest or 0) or self.first_after is None or not self.is_exact:
            return False
        return self.first_after <= said and said + self.skew - self.first_after < LATE_MS

    def may_commit_be_missing(self) -> bool:
        """A decision may be compacted away, or cut off with the state's tail."""
        parts = ([self.part] if self.part else []) if self.own else self.copies.parts.values()
        first = self.first_after if self.is_exact and self.first_after is not None else -NEVER_MS
        last = NEVER_MS if self.first_before is None else self.first_before
        rises = (rise for p in parts for rise in p.rises)
        is_cut = any(by + self.skew >= first and after - self.skew <= last for after, by, _ in rises)
        is_aged = not self.is_exact and any(d.word == "Commit" for d in self.unserved)
        return (bool(self.hiding) or is_cut or is_aged) and not self.nothing_lost


def _is_no_earlier(marker_ms: int | None, since_ms: int | None) -> bool:
    """A marker was written, and no earlier than something whose time is known."""
    return marker_ms is not None and since_ms is not None and marker_ms >= since_ms


RULES: dict[str, Callable[[Asked], bool]] = {
    "stale_data_in_live_transaction": Asked.is_stale,
    "not_late": Asked.is_not_late,
    "clock_not_credible": Asked.is_without_clock,
    "state_does_not_fit": lambda asked: asked.misfit,
    "commit_marker_missing": Asked.is_commit_lost,
    "marker_overdue": Asked.is_marker_overdue,
    "marker_pending_commit": lambda asked: asked.state == "PrepareCommit",
    "marker_pending_abort": lambda asked: asked.state == "PrepareAbort",
    "coordinator_overdue": Asked.is_coordinator_overdue,
    "in_coordinator": lambda asked: asked.state == "Ongoing",
    "state_older_than_log": Asked.is_state_older,
    "log_may_end_early": Asked.may_log_end_early,
    "state_incomplete": Asked.is_state_incomplete,
    "commit_may_be_missing": Asked.may_commit_be_missing,
    "unknown_producer": lambda asked: not asked.own,
    "partition_not_in_transaction": lambda _: True,
}
