"""The picture of one transactional id: the coordinator's states of it over time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from txn_analysis.report.html.frame import LETTER, WIDTH, Frame
from txn_analysis.report.html.scales import Scale, time_ticks
from txn_analysis.text.escape import clip, escape
from txn_analysis.text.words import count, iso_utc

if TYPE_CHECKING:
    from txn_analysis.report.pictures import IdTimeline, StateChange

_HEIGHT = 72
_MOST_CHANGES_IN_WORDS = 10
_STATE_CLASSES = {
    "Ongoing": "ongoing",
    "PrepareCommit": "prepare",
    "PrepareAbort": "prepare",
    "PrepareEpochFence": "prepare",
    "CompleteCommit": "commit",
    "CompleteAbort": "abort",
}


@dataclass(frozen=True)
class StateBar:
    """One state of a transactional id for as long as it held; `label` is empty where there is no room for it."""

    x: float
    width: float
    kind: str
    label: str
    title: str


@dataclass(frozen=True)
class IdDrawing:
    """One transactional id's states over time, and its last records in words."""

    name: str
    title: str
    description: str
    frame: Frame
    bars: list[StateBar]
    changes: list[StateChange]


def id_drawing(timeline: IdTimeline, start_ms: int | None, as_of_ms: int | None) -> IdDrawing:
    """The picture of one id, from `start_ms` on if that is known, else from its first record on."""
    changes = sorted(timeline.changes, key=lambda change: change.time_ms)
    low = changes[0].time_ms if start_ms is None else min(start_ms, changes[-1].time_ms)
    high = max(as_of_ms or 0, changes[-1].time_ms)
    x = Scale(low, high, 4, WIDTH - 4)
    ends = [change.time_ms for change in changes[1:]] + [high]
    bars = [_bar(change, end_ms, x) for change, end_ms in zip(changes, ends, strict=True) if end_ms >= low]
    name, last = clip(timeline.transactional_id, 80), changes[-1]
    return IdDrawing(
        name=name,
        title=f"{name}: states over time",
        description=f"{clip(last.state, 24)} since {iso_utc(last.time_ms)}; "
        f"{count(len(changes), 'record')} of the coordinator.",
        frame=Frame(_HEIGHT, 4, time_ticks(x), []),
        bars=bars,
        changes=list(reversed(changes[-_MOST_CHANGES_IN_WORDS:])),
    )


def _bar(change: StateChange, end_ms: int, x: Scale) -> StateBar:
    start, stop = x(change.time_ms), x(end_ms)
    # A state that held for no time at all is still seen.
    width = max(round(stop - start, 1), 1.5)
    fits = width > LETTER * len(change.state) + 8
    title = f"{clip(change.state, 24)} from {iso_utc(change.time_ms)}, epoch {change.producer_epoch}"
    return StateBar(
        min(start, x.stop - width),
        width,
        _STATE_CLASSES.get(change.state, "other"),
        escape(change.state) if fits else "",
        title,
    )
