"""Which candidate lines are batches: the position chain.

kafka-dump-log prints payloads, keys and header keys raw, so any line can be forged. What cannot be forged without a
trace is the chain: a segment's first batch is at position 0, and each next one where the one before it ended.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from txn_analysis.kafka.batch_format import CODECS
from txn_analysis.read.dump.proof.record_sizes import REPLACED

if TYPE_CHECKING:
    from txn_analysis.columns.arrays import Array
    from txn_analysis.read.dump.batch_lines import Candidates


_PLAIN = CODECS.index("none")
_UNBOUNDED = np.iinfo(np.int64).max  # nobody knows how much text a compressed batch holds


@dataclass(frozen=True)
class Chain:
    """The candidates that make up the segment: `chosen` are indexes in file order, `is_contested` is parallel to it."""

    chosen: Array
    is_contested: Array


def follow_chain(found: Candidates, text_start: Array, *, starts_segment: bool) -> Chain:
    """The chain through one slice of a segment.

    A slice that does not start its segment does not know where the chain enters it; the longest run of linked lines
    is taken for it, and whether it really joins the slice before is checked when the slices are linked. Where no line
    continues the chain, it resumes at the next plausible run: the break shows in the positions.

    Where several lines continue it, all but one are text of a client. The first is, if the next one stands so near that
    the batch before can hold all that is between them; so the one is taken that more lines follow. A chosen batch is
    contested where a line that is not in the chain claims the same position; and so are those behind it that would be
    text if that line is true.

    Args:
        found: the candidates of the slice, in text order.
        text_start: where their lines begin.
        starts_segment: the slice begins where the segment's body does.
    """
    position = found.columns["position"]
    end = position + found.columns["size"]
    base, last = found.columns["base_offset"], found.columns["last_offset"]
    is_linked = (position[1:] == end[:-1]) & (base[1:] > last[:-1])
    if is_linked.all():
        return Chain(np.arange(len(found)), np.zeros(len(found), bool))
    cuts = np.flatnonzero(~is_linked) + 1
    starts, stops = np.append(0, cuts), np.append(cuts, len(found))
    runs = [
        _Run(number, int(a), int(b), int(position[a]), int(end[b - 1]), int(base[a]), int(last[b - 1]))
        for number, (a, b) in enumerate(zip(starts, stops, strict=True))
    ]
    room = np.where(found.columns["codec"] == _PLAIN, found.columns["size"] * len(REPLACED), _UNBOUNDED)
    texts = _Texts(text_start, room)
    taken = _choose(runs, texts, starts_segment=starts_segment)
    chosen = np.concatenate([np.arange(run.first, run.stop) for run in taken])
    is_contested = _contested(position, base, last, chosen, starts_segment=starts_segment)
    _add_overlapped(is_contested, position, chosen, [run for run in runs if run not in set(taken)], texts)
    return Chain(chosen, is_contested)


@dataclass(frozen=True)
class _Texts:
    """Where the lines of the candidates begin, and the most text that a record of each batch can print."""

    start: Array
    room: Array

    def can_hide(self, holder: int, first: int, stop: int) -> bool:
        """Whether the batch of line `holder` can hold the text from line `first` on, up to line `stop`."""
        return int(self.start[stop] - self.start[first]) < int(self.room[holder])


@dataclass(frozen=True)
class _Run:
    """Linked lines, by their indexes; `number` counts the runs of the slice in file order."""

    number: int
    first: int
    stop: int
    position: int
    end: int
    base_offset: int
    last_offset: int

    def continues(self, before: _Run) -> bool:
        return self.position == before.end and self.base_offset > before.last_offset

    def may_resume(self, before: _Run) -> bool:
        return self.position > before.end and self.base_offset > before.last_offset


def _choose(runs: list[_Run], texts: _Texts, *, starts_segment: bool) -> list[_Run]:
    chain = (
        [runs[0]] if starts_segment else _before(runs, max(runs, key=lambda run: (run.stop - run.first, -run.first)))
    )
    by_position: dict[int, list[_Run]] = {}
    for run in runs:
        by_position.setdefault(run.position, []).append(run)
    followed = _lines_followed(runs)
    while True:  # ends grow from run to run, and nothing is looked at twice: damage everywhere costs no more time
        tail = chain[-1]
        linked = [r for r in by_position.get(tail.end, []) if r.number > tail.number and r.continues(tail)]
        near = [r for r in linked if r is linked[0] or texts.can_hide(tail.stop - 1, linked[0].first, r.first)]
        later = (runs[number] for number in range(tail.number + 1, len(runs)))
        following = max(near, key=lambda run: followed[run.number], default=None)
        following = following or next((r for r in later if r.may_resume(tail)), None)
        if following is None:
            return chain
        chain.append(following)


def _lines_followed(runs: list[_Run]) -> list[int]:
    """How many lines each run and those that continue it have, of several the one that has most."""
    followed = [run.stop - run.first for run in runs]
    most: dict[int, _Run] = {}  # by position
    for run in reversed(runs):
        following = most.get(run.end)
        if following and following.continues(run):
            followed[run.number] += followed[following.number]
        if run.position not in most or followed[run.number] >= followed[most[run.position].number]:
            most[run.position] = run
    return followed


def _before(runs: list[_Run], longest: _Run) -> list[_Run]:
    """The runs that lead up to `longest` without a break, then `longest` itself."""
    chain = [longest]
    for run in reversed(runs[: longest.number]):
        if chain[-1].continues(run):
            chain.append(run)
    return chain[::-1]


def _add_overlapped(is_contested: Array, position: Array, chosen: Array, others: list[_Run], texts: _Texts) -> None:
    """Adds chosen batches behind a contested one that the rival line would cover, if that is the true one."""
    place = position[chosen]
    contested = {int(place[k]): k for k in np.flatnonzero(is_contested).tolist() if k > 0}
    for run in others:
        forks = np.flatnonzero(np.isin(position[run.first : run.stop], list(contested)))
        for fork in forks[:1].tolist():
            other = run.first + fork
            k = contested[int(position[other])]
            if chosen[k] < other and texts.can_hide(int(chosen[k - 1]), int(chosen[k]), other):
                is_contested[k : int(np.searchsorted(place, run.end))] = True


def _contested(position: Array, base: Array, last: Array, chosen: Array, *, starts_segment: bool) -> Array:
    """Chosen batches whose position another line claims from a place where the true line could stand."""
    contested = np.zeros(len(chosen), bool)
    is_chosen = np.zeros(len(position), bool)
    is_chosen[chosen] = True
    place = {int(position[c]): k for k, c in enumerate(chosen.tolist())}
    for other in np.flatnonzero(~is_chosen).tolist():
        k: Any = place.get(int(position[other]))
        if k is None:
            continue
        # Nothing a client wrote can precede a segment's first batch, so that one is beyond doubt.
        is_first = k == 0 and not starts_segment
        contested[k] |= is_first or (k > 0 and other > chosen[k - 1] and base[other] > last[chosen[k - 1]])
    return contested
