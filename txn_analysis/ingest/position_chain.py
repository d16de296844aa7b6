"""Which candidate lines are batches: the position chain.

kafka-dump-log prints payloads, keys and header keys raw, so any line can be forged. What cannot be forged without a
trace is the chain: a segment's first batch is at position 0, and each next one where the one before it ended.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from txn_analysis.ingest.batch_lines import Candidates
    from txn_analysis.ingest.line_form import Array


@dataclass(frozen=True)
class Chain:
    """The candidates that make up the segment: `chosen` are indexes in file order, `is_contested` is parallel to it."""

    chosen: Array
    is_contested: Array


def follow_chain(found: Candidates, *, starts_segment: bool) -> Chain:
    """The chain through one slice of a segment.

    A slice that does not start its segment does not know where the chain enters it; the longest run of linked lines
    is taken for it, and whether it really joins the slice before is checked when the slices are linked. Where no line
    continues the chain, it resumes at the next plausible run: the break shows in the positions.
    A chosen batch is contested where a line that is not in the chain claims the same position.
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
    chosen = np.concatenate([np.arange(run.first, run.stop) for run in _choose(runs, starts_segment=starts_segment)])
    return Chain(chosen, _contested(position, base, last, chosen, starts_segment=starts_segment))


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


def _choose(runs: list[_Run], *, starts_segment: bool) -> list[_Run]:
    chain = (
        [runs[0]] if starts_segment else _before(runs, max(runs, key=lambda run: (run.stop - run.first, -run.first)))
    )
    by_position: dict[int, list[_Run]] = {}
    for run in runs:
        by_position.setdefault(run.position, []).append(run)
    while True:  # ends grow from run to run, and nothing is looked at twice: damage everywhere costs no more time
        tail = chain[-1]
        linked = (r for r in by_position.get(tail.end, []) if r.number > tail.number and r.continues(tail))
        later = (runs[number] for number in range(tail.number + 1, len(runs)))
        following = next(linked, None) or next((r for r in later if r.may_resume(tail)), None)
        if following is None:
            return chain
        chain.append(following)


def _before(runs: list[_Run], longest: _Run) -> list[_Run]:
    """The runs that lead up to `longest` without a break, then `longest` itself."""
    chain = [longest]
    for run in reversed(runs[: longest.number]):
        if chain[-1].continues(run):
            chain.append(run)
    return chain[::-1]


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
