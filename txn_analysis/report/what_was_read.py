"""What an answer rests on: what was read, and what of that is not whole; by which settings and when it was judged."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any

from txn_analysis.columns.arrays import by_key
from txn_analysis.judge.settling import missing_partitions, not_understood
from txn_analysis.kafka.names import STATE_TOPIC
from txn_analysis.report import figures, headline
from txn_analysis.report.model import AuditReport
from txn_analysis.report.terminal import Paragraph
from txn_analysis.settings import EngineName, Settings
from txn_analysis.tables import PartitionHealth, Problem
from txn_analysis.text import clip, count, escape, iso_utc, listed, ranges, size

_MOST_LINES = 20
_MOST_PROBLEMS = 3
_MOST_PLACES = 5
# Of ProblemKind, which reading a report does not need: between two files a hole may be a file that was not copied.
_COMPACTIONS_HOLES = frozenset({"hole_in_file", "empty_batch"})
_BASES = {
    "given": "given with --as-of",
    "newest_broker_timestamp": "the newest moment of a broker's clock",
}


def statements(report: AuditReport, now_ms: int | None = None) -> Iterator[Paragraph]:
    """What the answer rests on, escaped; a label stands before each of its texts.

    Args:
        report: what was found.
        now_ms: the time at which it is read, which says how old the files are; None where nobody says.
    """
    if report.hanging:
        sure = "nobody can end what hangs: its log is whole, and the coordinator's state reaches past it"
        yield Paragraph("sure", sure)
    yield from (Paragraph("left out", text) for text in headline.left_out(report))
    yield from _inputs(report)
    yield from _partitions(report)
    yield from _transaction_state(report)
    yield from _copying(report)
    yield from _time(report, now_ms)


def _inputs(report: AuditReport) -> Iterator[Paragraph]:
    coverage = report.coverage
    total = sum(item.size_bytes for item in report.inputs)
    text = f"{size(coverage.parsed_bytes)} of text parsed, {size(coverage.rejected_bytes)} rejected"
    seen = count(coverage.partitions_seen, "partition")
    yield Paragraph("inputs", f"{count(len(report.inputs), 'file')}, {size(total)}, {seen}; {text}")
    yield from capped("not understood", [f"{clip(s.path, 200)}: {escape(s.problem)}" for s in coverage.skipped_inputs])
    partly = [item for item in report.inputs if item.rejected_bytes and item.problem is None]
    yield from capped("rejected", [f"{clip(item.path, 200)}: {size(item.rejected_bytes)}" for item in partly])


def _partitions(report: AuditReport) -> Iterator[Paragraph]:
    coverage = report.coverage
    if coverage.partitions_missing:
        missing = [escape(name) for name in coverage.partitions_missing]
        yield Paragraph("partitions", f"missing here, but in an earlier capture: {listed(missing, _MOST_LINES)}")
    is_ordinary = _holes_by_compaction(report)
    # Of two clusters each partition would say the same.
    is_said = {"copies_differ"} if report.coverage.clusters else set[str]()
    broken = _lines_of(report, lambda item, problem: problem.kind not in is_said and not is_ordinary(item, problem))
    yield from capped("not whole", broken)
    compacted = _lines_of(report, is_ordinary)
    yield from capped("compacted", [f"{holes}, as compaction leaves it; nothing open is older" for holes in compacted])
    if agreed := sum(bool(item.witnesses) for item in report.partitions):
        text = f"copies or producer snapshots agree with the log of {count(agreed, 'partition')}"
        yield Paragraph("second witness", text)
    alike = by_key((item for item in report.partitions if item.remarks), attrgetter("remarks"))
    places = {remarks: [escape(item.topic_partition) for item in items] for remarks, items in alike.items()}
    lines = [f"{listed(names, _MOST_PLACES)}: {escape('; '.join(remarks))}" for remarks, names in places.items()]
    yield from capped("remarks", lines)


def _holes_by_compaction(report: AuditReport) -> Callable[[PartitionHealth, Problem], bool]:
    """Says of a problem whether it is a hole before all that is open, as compaction leaves it: ordinary, no damage."""
    first_open: dict[tuple[str, int], int] = {}
    columns = (report.findings.column(name).to_pylist() for name in ("topic", "partition", "txn_start_offset"))
    for topic, partition, start in zip(*columns, strict=True):
        first_open[topic, partition] = min(start, first_open.get((topic, partition), start))

    def is_ordinary(item: PartitionHealth, problem: Problem) -> bool:
        start = first_open.get((item.topic, item.partition))
        is_hole = problem.kind in _COMPACTIONS_HOLES and problem.offset is not None
        return is_hole and (start is None or problem.offset is None or start > problem.offset)

    return is_ordinary


def _lines_of(report: AuditReport, is_wanted: Callable[[PartitionHealth, Problem], bool]) -> list[str]:
    """A line for each partition that has such problems."""
    by_partition = [(item, [p for p in item.problems if is_wanted(item, p)]) for item in report.partitions]
    return [f"{escape(item.topic_partition)}: {_problems(problems)}" for item, problems in by_partition if problems]


def _problems(problems: list[Problem]) -> str:
    places = ["" if p.offset is None else f"offset {p.offset}: " for p in problems]
    reasons = [place + escape(p.reason) for place, p in zip(places, problems, strict=True)]
    more = len(reasons) - _MOST_PROBLEMS
    return "; ".join(reasons[:_MOST_PROBLEMS]) + (f"; and {more} more" if more > 0 else "")


def _transaction_state(report: AuditReport) -> Iterator[Paragraph]:
    state = report.coverage.transaction_state
    if not report.coverage.has_state:
        given = not_understood(state)
        what = "no partition of __transaction_state was given" if given is None else given.missing.replace("`", "")
        yield Paragraph(_STATE, what)
        return
    seen, expected = state.get("seen", 0), state.get("expected", "?")
    yield Paragraph(_STATE, f"{seen} of {expected} partitions of __transaction_state{_why_so_many(state)}")
    yield from (Paragraph(_STATE, f"{what}: {ranges(numbers)}") for what, numbers in missing_partitions(state))
    partial = [p["partition"] for p in state.get("partitions") or [] if p["is_seen"] and not p["is_complete"]]
    if partial:
        yield Paragraph(_STATE, f"not complete: {ranges(partial)}")
    yield from capped(_STATE, [escape(str(problem)) for problem in state.get("problems") or []])
    if newer := state.get("newer"):
        yield Paragraph(_STATE, _NEWER.format(count(newer, "record"), "has" if newer == 1 else "have"))


def _copying(report: AuditReport) -> Iterator[Paragraph]:
    """What manifests prove of the copying, and what not, an assurance a line."""
    copying = report.coverage.transaction_state.get("copied")
    if not copying:
        return
    by = count(copying["manifest_count"], "manifest")
    if copying["is_state_last"]:
        yield Paragraph("copying", f"by {by} __transaction_state was copied after every log, whole, from its leaders")
    else:
        yield Paragraph("copying", f"{by}; not proven: that __transaction_state was copied last, from its leaders")
        reasons = [copying["disproof"]] if copying["disproof"] else list(_grouped(copying["doubts"]))
        yield from capped("copying", [escape(str(reason)) for reason in reasons])
    reached = count(copying["reached_count"], "partition")
    yield Paragraph("copying", f"proven to be whole at a moment: the logs of {reached}")
    unproven = sorted(copying["unproven"].items())
    yield from capped(
        "copying", [f"not of {count(number, 'partition')}: {escape(reason)}" for reason, number in unproven]
    )


def _grouped(doubts: Sequence[str]) -> Iterator[str]:
    """Doubts about the copying, each reason once; a doubt about one partition of the state begins with its name."""
    by_reason: dict[str, list[str]] = {}
    for doubt in doubts:
        reason = doubt.partition(": ")[2] if doubt.startswith(f"{STATE_TOPIC}-") else doubt
        by_reason.setdefault(reason, []).append(doubt)
    for reason, alike in by_reason.items():
        yield alike[0] if len(alike) == 1 else f"of {len(alike)} partitions of {STATE_TOPIC}: {reason}"


_STATE = "transaction state"
_NEWER = (
    "the files are of a newer Kafka than this version knows: {} of __transaction_state {} fields that it does not "
    "know; what they may hold is never taken for absent"
)
_COUNT_BASES = {
    "given": "",
    "derived": "; no other count fits the ids in them",
    "default": "; no count was given, and Kafka's default is 50",
}


_USUAL = {"transaction_state_partitions_basis": "given"}
_ENGINES = {EngineName.LOCAL: "this process", EngineName.SPARK: "Spark's tasks"}


def _why_so_many(state: Mapping[str, Any]) -> str:
    count = state.get("count") or {}
    basis, fitting = count.get("basis", "given"), count.get("fitting")
    is_named = fitting is not None and (basis == "default" or str(count["used"]) != fitting)
    only = "only " if count.get("fitting_count") == 1 else ""
    return _COUNT_BASES.get(basis, "") + (f"; {only}{fitting} would fit the ids that were read" if is_named else "")


def _time(report: AuditReport, now_ms: int | None) -> Iterator[Paragraph]:
    run = report.run
    basis = "no timestamp of a broker's clock is in the capture: give --as-of" if run.as_of_ms is None else ""
    ago = figures.age(report, now_ms)
    basis = basis or _BASES.get(run.as_of_basis or "", "origin unknown")
    yield Paragraph("copied at", f"{iso_utc(run.as_of_ms)}, {f'{ago}: ' if ago else ''}{basis}")
    if (clocks := figures.clock_sentence(report)) is not None:
        yield Paragraph("clocks", clocks)
    captures = f"capture {escape(run.capture)} of cluster {escape(run.cluster)}"
    earlier = (
        f", judged together with {count(len(run.earlier_captures), 'earlier capture')}" if run.earlier_captures else ""
    )
    yield Paragraph("run", f"{escape(run.run_id)}: {captures}{earlier}")
    usual = {name: field.default for name, field in Settings.model_fields.items()} | _USUAL
    given = [f"{name} {value}" for name, value in sorted(run.parameters.items()) if value != usual.get(name)]
    yield Paragraph("judged with", escape(", ".join([*given, "all else by default"])))
    if run.engine is not None:
        yield Paragraph("judged by", _ENGINES[run.engine])


def capped(label: str, texts: list[str]) -> Iterator[Paragraph]:
    """Texts of one label, as many as there is room for."""
    yield from (Paragraph(label, text) for text in texts[:_MOST_LINES])
    if len(texts) > _MOST_LINES:
        yield Paragraph(label, f"and {len(texts) - _MOST_LINES} more; `--format json` lists them all")
