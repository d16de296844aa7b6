"""The end of the text report: what was read, what was not, and how the moment of the copy was found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from txn_analysis.report.figures import clock_remark
from txn_analysis.report.sending import age
from txn_analysis.report.terminal import Line, rule_line, wrapped
from txn_analysis.text.escape import clip, escape
from txn_analysis.text.words import count, iso_utc, listed, ranges, size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from txn_analysis.report.model import AuditReport, PartitionItem, PartitionProblem

_LABEL_WIDTH = 18
_MOST_LINES = 20
_MOST_PROBLEMS = 3
# Of ProblemKind, which reading a report does not need: between two files a hole may be a file that was not copied.
_COMPACTIONS_HOLES = frozenset({"hole_in_file", "empty_batch"})
_BASES = {
    "given": "given with --as-of",
    "newest_broker_timestamp": "the newest timestamp of a broker's clock in the capture",
}


def coverage_lines(report: AuditReport, width: int, now_ms: int | None = None) -> Iterator[Line]:
    """What the answer rests on."""
    yield rule_line("What was read", width)
    for label, text in statements(report, now_ms):
        yield from _labelled(label, text, width)


def statements(report: AuditReport, now_ms: int | None = None) -> Iterator[tuple[str, str]]:
    """What the answer rests on, as label and text, escaped; the label is empty where the one before goes on.

    Args:
        report: what was found.
        now_ms: the time at which it is read, which says how old the files are; None where nobody says.
    """
    yield from _inputs(report)
    yield from _partitions(report)
    yield from _transaction_state(report)
    yield from _time(report, now_ms)


def _inputs(report: AuditReport) -> Iterator[tuple[str, str]]:
    coverage = report.coverage
    total = sum(item.size_bytes for item in report.inputs)
    text = f"{size(coverage.parsed_bytes)} of text parsed, {size(coverage.rejected_bytes)} rejected"
    yield "inputs", f"{count(len(report.inputs), 'file')}, {size(total)}; {text}"
    yield from _capped("not understood", [f"{clip(s.path, 200)}: {escape(s.problem)}" for s in coverage.skipped_inputs])
    partly = [item for item in report.inputs if item.rejected_bytes and item.problem is None]
    yield from _capped("rejected", [f"{clip(item.path, 200)}: {size(item.rejected_bytes)}" for item in partly])


def _partitions(report: AuditReport) -> Iterator[tuple[str, str]]:
    coverage = report.coverage
    yield "partitions", f"{coverage.partitions_seen} in this capture"
    if coverage.partitions_missing:
        missing = [escape(name) for name in coverage.partitions_missing]
        yield "", f"not in it, though an earlier capture has them: {listed(missing, _MOST_LINES)}"
    is_ordinary = _holes_by_compaction(report)
    # Of two clusters each partition would say the same.
    is_said = {"copies_differ"} if report.coverage.clusters else set[str]()
    broken = _told(report, lambda item, problem: problem.kind not in is_said and not is_ordinary(item, problem))
    yield from _capped("not whole", broken)
    compacted = _told(report, is_ordinary)
    yield from _capped("compacted", [f"{holes}, as compaction leaves it; nothing open is older" for holes in compacted])
    if agreed := sum(bool(item.witnesses) for item in report.partitions):
        yield "second witness", f"copies or producer snapshots agree with the log of {count(agreed, 'partition')}"
    remarked = [item for item in report.partitions if item.remarks]
    yield from _capped("remarks", [f"{escape(i.topic_partition)}: {escape('; '.join(i.remarks))}" for i in remarked])


def _holes_by_compaction(report: AuditReport) -> Callable[[PartitionItem, PartitionProblem], bool]:
    """Says of a problem whether it is a hole before all that is open, as compaction leaves it: ordinary, no damage."""
    first_open: dict[tuple[str, int], int] = {}
    for found in report.findings:
        place = found.topic, found.partition
        first_open[place] = min(found.txn_start_offset, first_open.get(place, found.txn_start_offset))

    def is_ordinary(item: PartitionItem, problem: PartitionProblem) -> bool:
        start = first_open.get((item.topic, item.partition))
        is_hole = problem.kind in _COMPACTIONS_HOLES and problem.offset is not None
        return is_hole and (start is None or problem.offset is None or start > problem.offset)

    return is_ordinary


def _told(report: AuditReport, is_wanted: Callable[[PartitionItem, PartitionProblem], bool]) -> list[str]:
    """A line for each partition that has such problems."""
    found = [(item, [p for p in item.problems if is_wanted(item, p)]) for item in report.partitions]
    return [f"{escape(item.topic_partition)}: {_problems(problems)}" for item, problems in found if problems]


def _problems(problems: list[PartitionProblem]) -> str:
    places = ["" if p.offset is None else f"offset {p.offset}: " for p in problems]
    reasons = [place + escape(p.reason) for place, p in zip(places, problems, strict=True)]
    more = len(reasons) - _MOST_PROBLEMS
    return "; ".join(reasons[:_MOST_PROBLEMS]) + (f"; and {more} more" if more > 0 else "")


def _transaction_state(report: AuditReport) -> Iterator[tuple[str, str]]:
    state = report.coverage.transaction_state
    if not report.coverage.has_state:
        yield "transaction state", "no partition of __transaction_state was given"
        return
    seen, expected = state.get("seen", 0), state.get("expected", "?")
    yield "transaction state", f"{seen} of {expected} partitions of __transaction_state{_why_so_many(state)}"
    missing = state.get("missing") or []
    if missing:
        yield "", f"missing: {ranges(missing)}"
    partial = [p["partition"] for p in state.get("partitions") or [] if p["is_seen"] and not p["is_complete"]]
    if partial:
        yield "", f"not complete: {ranges(partial)}"
    yield from _capped("", [escape(str(problem)) for problem in state.get("problems") or []])
    if newer := state.get("newer"):
        yield "", _NEWER.format(count(newer, "record"), "has" if newer == 1 else "have")


_NEWER = (
    "the files are of a newer Kafka than this version knows: {} of __transaction_state {} fields that it does not "
    "know; what they may hold is never taken for absent"
)
_COUNT_BASES = {
    "given": "",
    "derived": "; no other count fits the ids in them",
    "default": "; nobody said how many there are, and Kafka's default is 50",
}


def _why_so_many(state: Mapping[str, Any]) -> str:
    count = state.get("count") or {}
    basis, fitting = count.get("basis", "given"), count.get("fitting")
    is_named = fitting is not None and (basis == "default" or str(count["used"]) != fitting)
    only = "only " if count.get("fitting_count") == 1 else ""
    return _COUNT_BASES.get(basis, "") + (f"; {only}{fitting} would fit the ids that were read" if is_named else "")


def _time(report: AuditReport, now_ms: int | None) -> Iterator[tuple[str, str]]:
    run = report.run
    basis = "no broker's clock speaks in the capture: give --as-of" if run.as_of_ms is None else ""
    ago = age(report, now_ms)
    basis = basis or _BASES.get(run.as_of_basis or "", "origin unknown")
    yield "copied at", f"{iso_utc(run.as_of_ms)}, {f'{ago}: ' if ago else ''}{basis}"
    if (remark := clock_remark(report)) is not None:
        yield "clocks", remark
    captures = f"capture {escape(run.capture)} of cluster {escape(run.cluster)}"
    earlier = f", with {count(len(run.earlier_captures), 'earlier capture')} behind it" if run.earlier_captures else ""
    yield "run", f"{escape(run.run_id)}: {captures}{earlier}"
    settings = ", ".join(f"{name} {value}" for name, value in sorted(run.parameters.items()) if value is not None)
    yield "judged with", escape(settings)


def _capped(label: str, texts: list[str]) -> Iterator[tuple[str, str]]:
    for index, text in enumerate(texts[:_MOST_LINES]):
        yield (label if index == 0 else ""), text
    if len(texts) > _MOST_LINES:
        yield "", f"and {len(texts) - _MOST_LINES} more; `--format json` lists them all"


def _labelled(label: str, text: str, width: int) -> Iterator[Line]:
    first, indent = label.ljust(_LABEL_WIDTH), " " * _LABEL_WIDTH
    return (Line(part) for part in wrapped(text, width, first, indent))
