"""The log of one partition, put together from copies of its segments: of several brokers and of several captures.

Between two offsets one of the copies is chosen (`log.choice`), in offset order.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from txn_analysis.kafka.sections import ProblemKind
from txn_analysis.log.choice import Choice, Comparisons, Copies, Truncation
from txn_analysis.log.copies import Part, stretches
from txn_analysis.log.other_copies import OtherCopies, Span
from txn_analysis.log.segments import TO_THE_END, Problem, Segment
from txn_analysis.log.whole_log import PartitionLog, look_whether_whole

if TYPE_CHECKING:
    from collections.abc import Iterable

    from txn_analysis.log.pieces import LogPiece


def partition_log(segments: list[Segment], comparisons: Comparisons) -> PartitionLog:
    """The log that all copies of one partition make up; `comparisons` has all of `copies.pairs_to_compare`."""
    found = list(stretches(segments))
    copies = Copies.of(segments, {pair: comparisons[pair] for stretch in found for pair in stretch.pairs})
    choices: list[Choice] = []
    truncations: list[Truncation] = []
    chosen: list[Part] = []
    for stretch in found:
        choice = copies.choose(stretch, truncations, chosen)
        choices.append(choice)
        truncations += choice.truncations
        if choice.chosen is not None:
            chosen.append(choice.chosen)
    return _joined(segments, choices, chosen)


def _joined(segments: list[Segment], choices: list[Choice], chosen: list[Part]) -> PartitionLog:
    """The log of everything that was chosen."""
    newest = min((s.capture_rank for s in segments), default=0)
    used: dict[int, list[LogPiece]] = {}
    for part in chosen:
        used.setdefault(id(part.segment), []).extend(part.pieces)
    log = PartitionLog(
        [s for s in segments if id(s) in used or (not s.pieces and s.capture_rank == newest)],
        [piece for part in chosen for piece in part.pieces],
        [problem for choice in choices for problem in choice.problems],
        _witnesses(choices),
        [remark for choice in choices for remark in choice.remarks],
        compacted_away=[
            (c.stretch.stop, c.fullest.pieces) for c in choices if c.lost and c.compacted_until is not None
        ],
        others=_others(choices),
        two_logs=tuple(dict.fromkeys(found for choice in choices for found in choice.two_logs)),
    )
    for segment in log.segments:
        log.problems += _problems_of(segment, used.get(id(segment), []), newest)
    log.remarks += _compacted(choices)
    log.problems += _cut_short(choices)
    log.problems += _doubtful_tails(segments, chosen)
    look_whether_whole(log)
    return log


def _others(choices: list[Choice]) -> OtherCopies:
    """What the copies say that were not chosen."""
    others = OtherCopies()
    for choice in choices:
        for parts, offset in choice.truncated:
            others.truncated(parts, offset)
        others.pass_over(choice.passed_over)
        if choice.best:
            holders = [part for group in choice.groups for part in group]
            others.spans.append(Span(choice.stretch.start, choice.stretch.stop, choice.best[0], holders))
    return others


def _witnesses(choices: list[Choice]) -> list[str]:
    agreed = max((choice.stretch.stop for choice in choices if len(choice.best) > 1), default=None)
    return [] if agreed is None else [f"copies agree up to offset {agreed - 1}"]


def _compacted(choices: list[Choice]) -> list[str]:
    until = max((c.compacted_until for c in choices if c.lost and c.compacted_until is not None), default=None)
    return [] if until is None else [f"compaction removed records up to offset {until} that another copy still holds"]


def _cut_short(choices: list[Choice]) -> list[Problem]:
    cut_before = [choice.cut_before for choice in choices if choice.cut_before is not None]
    if not cut_before:
        return []
    reason = f"an earlier capture reaches up to offset {cut_before[-1]}, this one ends before"
    return [Problem(TO_THE_END, ProblemKind.ENDS_BEFORE_EARLIER_CAPTURE, reason)]


def _doubtful_tails(segments: list[Segment], chosen: list[Part]) -> Iterable[Problem]:
    """Where an earlier capture ends and a newer one goes on under a new leader, who may have truncated that end."""
    for before, after in pairwise(chosen):
        rank = before.segment.capture_rank
        if after.segment.capture_rank >= rank or not before.pieces or not after.pieces:
            continue
        epoch = before.leader_epoch
        last_offset, next_epoch = before.pieces[-1].last_offset, after.pieces[0].first_leader_epoch
        is_its_end = last_offset + 1 == max(s.end_offset for s in segments if s.capture_rank == rank)
        if is_its_end and epoch is not None and next_epoch is not None and next_epoch > epoch:
            tail = f"an earlier capture's tail before offset {last_offset + 1}"
            doubt = f"{tail} may have been truncated by leader epoch {next_epoch}"
            yield Problem(last_offset, ProblemKind.TAIL_IN_DOUBT, doubt)


def _problems_of(segment: Segment, used: list[LogPiece], newest: int) -> Iterable[Problem]:
    """Of a file that lies behind the judged capture, nothing spoils what begins above its part of the log."""
    found = segment.problems(used)
    if segment.capture_rank == newest or not used:
        return found
    last_offset = used[-1].last_offset
    return [p._replace(offset=min(p.offset, last_offset)) for p in found]
