"""The report at 3 a.m.: the answer, what is new, what is blocked; each finding; the rest; what was read; what to do."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from txn_analysis.judge.settling import missing_partitions, not_understood
from txn_analysis.judge.words import words_named
from txn_analysis.report import figures, headline, nights
from txn_analysis.report.alike import folded, of_one_id
from txn_analysis.report.finding_text import ends_sentence, report_command, scene_of, telling, what, why_line
from txn_analysis.report.steps import next_steps
from txn_analysis.report.terminal import WIDTH, Line, Paragraph, Weight, lines_of, paragraph, rule_line
from txn_analysis.report.upcoming import upcoming_lines
from txn_analysis.settings import EngineName
from txn_analysis.text import clip, count, duration, escape, iso_utc, listed, ranges, size
from txn_analysis.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from txn_analysis.report.alike import Alike
    from txn_analysis.report.figures import Reader
    from txn_analysis.report.model import AuditReport
    from txn_analysis.tables import Finding, PartitionHealth, Problem
    from txn_analysis.tables.finding_rows import FindingRows

_NARROW = 100
_MOST_BLOCKS = 20
_MOST_ROWS = 50
_ID_WIDTH = 200
_MOST_TOPICS = 5
_VERDICT_STYLES = {
    Verdict.HANGING: "bold red",
    Verdict.SUSPECT: "yellow",
    Verdict.INCONCLUSIVE: "magenta",
}


_TEXT_FROM = 18
_MOST_LINES = 20
_MOST_PROBLEMS = 3
# Of ProblemKind, which reading a report does not need: between two files a hole may be a file that was not copied.
_COMPACTIONS_HOLES = frozenset({"hole_in_file", "empty_batch"})
_BASES = {
    "given": "given with --as-of",
    "newest_broker_timestamp": "the newest timestamp of a broker's clock in the capture",
}


def text_report(report: AuditReport, width: int = WIDTH, reader: Reader = figures.ANYBODY) -> str:
    """The whole report as plain text, without any escape sequence; see `report_lines`."""
    return "".join(line.text + "\n" for line in report_lines(report, width, reader))


def report_lines(report: AuditReport, width: int = WIDTH, reader: Reader = figures.ANYBODY) -> Iterator[Line]:
    """The lines of the report, of at most `width` columns, with the styles that a terminal may give them."""
    yield from _lead(report, width, reader)
    ordered = figures.by_damage(report, report.unaccepted)
    repeated = folded(ordered) if _is_long(ordered) else of_one_id(ordered)
    groups = {group.findings[0].finding_id: group for group in repeated}
    alike = {name for group in groups.values() for name in _ids(group.findings)[1:]}
    single = ordered.where([name not in alike for name in _ids(ordered)])
    hanging = single.of_verdict(Verdict.HANGING)
    others = single.of_verdict(*(verdict for verdict in Verdict if verdict is not Verdict.HANGING))
    for number, finding in enumerate(hanging[:_MOST_BLOCKS], start=1):
        yield Line("")
        yield from _block(report, finding, number, width, reader, groups.get(finding.finding_id))
    # Thousands that hang leave room for what must not be aborted.
    more = hanging[_MOST_BLOCKS : _MOST_BLOCKS + _MOST_ROWS // 2]
    rows = others[: _MOST_ROWS - len(more)]
    yield from _table(report, [*more, *rows], width, groups)
    seen = {*_ids(hanging[: _MOST_BLOCKS + len(more)]), *_ids(rows)}
    yield from _left_out(report, ordered.where([name not in seen for name in _ids(ordered)]), width, reader)
    yield from _since(report, width, reader)
    yield from upcoming_lines(report, width)
    yield Line("")
    yield rule_line("What was read", width)
    yield from lines_of(statements(report, reader.now_ms), width, _TEXT_FROM, "")
    yield from _next(report, width, reader)
    yield from _warnings(report, width, reader)


def _ids(findings: FindingRows) -> list[str]:
    ids: list[str] = findings.column("finding_id").to_pylist()
    return ids


def _is_long(findings: FindingRows) -> bool:
    """Not each of them has room: then what repeats gives room to others."""
    hanging = findings.verdict_counts[Verdict.HANGING]
    return hanging > _MOST_BLOCKS or len(findings) - hanging > _MOST_ROWS


def _next(report: AuditReport, width: int, reader: Reader) -> Iterator[Line]:
    """What to do now; nothing in an anonymized report."""
    steps = next_steps(report, reader)
    if not steps:
        return
    yield Line("")
    yield rule_line("Next", width)
    for number, step in enumerate(steps, start=1):
        yield from paragraph(step.text, width, f"{number}. ", "   ")
        if step.command is not None:
            yield Line(f"   {step.command}", "bold")


def _lead(report: AuditReport, width: int, reader: Reader) -> Iterator[Line]:
    first, *others = headline.lead(report, reader)
    style = "green" if first.verdict is None else _VERDICT_STYLES.get(first.verdict, "yellow")
    yield Line(first.text, style if style.startswith("bold") else f"bold {style}")
    for _, text, verdict in others:
        yield from paragraph(text, width, style="" if verdict is None else _VERDICT_STYLES[verdict])


def _block(
    report: AuditReport, finding: Finding, number: int, width: int, reader: Reader, group: Alike | None
) -> Iterator[Line]:
    """The block of one finding: its first line says which transaction it is, its last one which others are alike."""
    yield Line(f"{number}. {what(finding)}", "bold red")
    shown = [one for one in telling(scene_of(report, finding), finding, reader) if one.weight is not Weight.EVIDENCE]
    if group is not None:
        shown.append(Paragraph("alike", f"{group.summary(report)}: {group.others}"))
    yield from lines_of(shown, width, has_facts=False)


def _table(report: AuditReport, rows: Sequence[Finding], width: int, groups: Mapping[str, Alike]) -> Iterator[Line]:
    """Two lines each: the columns of the transaction, and why it has its verdict or what is missing."""
    if not rows:
        return
    yield Line("")
    yield rule_line("Other open transactions" if report.hanging else "Open transactions", width)
    table = [_COLUMNS, *(_cells(report, finding) for finding in rows)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    if width < _NARROW and sum(widths) + 2 * (len(widths) - 1) > width:
        yield from _stacked(report, rows, width, groups)
        return
    header, *lines = ("  ".join(map(str.ljust, cells, widths)).rstrip() for cells in table)
    yield Line(header, "bold")
    for finding, line in zip(rows, lines, strict=True):
        yield Line(line, _VERDICT_STYLES.get(finding.verdict, ""))
        for reason in _reasons(report, finding, groups.get(finding.finding_id)):
            yield from paragraph(reason, width, "    ", "      ", "dim")


def _left_out(report: AuditReport, rows: FindingRows, width: int, reader: Reader) -> Iterator[Line]:
    """How many findings are not shown, of which topics, and where they are."""
    if not rows:
        return
    topics = Counter(rows.column("topic").to_pylist()).most_common()
    named = [f"{number} of {clip(topic, 40)}" for topic, number in topics[:_MOST_TOPICS]]
    if rest := len(topics) - len(named):
        named.append(f"the rest of {count(rest, 'other topic')}")
    said = ", ".join(f"{number} {verdict.value}" for verdict, number in rows.verdict_counts.most_common())
    yield Line("")
    yield from paragraph(f"{count(len(rows), 'more open transaction')} not shown: {said}; {', '.join(named)}.", width)
    if report.anonymized is None:
        yield Line(f"   {report_command(report, reader)} --format ndjson", "bold")


def _stacked(report: AuditReport, rows: Sequence[Finding], width: int, groups: Mapping[str, Alike]) -> Iterator[Line]:
    """Findings one below the other, where the page is too narrow for columns, as in a mail."""
    for finding in rows:
        yield Line(f"{finding.verdict.value}: {finding.rule}", _VERDICT_STYLES.get(finding.verdict, ""))
        name = "-" if finding.transactional_id is None else clip(finding.transactional_id, _ID_WIDTH)
        idle = duration(figures.judged_idle_ms(report.run, finding))
        where = f"{escape(finding.topic_partition)} from {finding.txn_start_offset}, idle {idle}"
        reasons = _reasons(report, finding, groups.get(finding.finding_id))
        for text in (where, f"producer id {finding.producer_id}, transactional id {name}", *reasons):
            yield from paragraph(text, width, "  ", "    ")


def _reasons(report: AuditReport, finding: Finding, group: Alike | None) -> Iterator[str]:
    if finding.verdict is Verdict.SUSPECT and (words := words_named(finding.rule)) is not None:
        yield f"why: {words.meaning}"
    yield why_line(finding)
    if clocks := figures.clock_line(report.run, finding):
        yield f"clocks: {clocks}"
    cause = finding.cause
    if cause is not None and cause.name != "transaction_in_progress":
        yield f"cause: {cause.name} ({cause.confidence}): {figures.cause_meaning(cause)}"
    if (ends := ends_sentence(report.run, finding)) is not None:
        yield f"ends: {ends}"
    if group is not None:
        yield f"alike: {group.summary(report)}: {group.others}"


_COLUMNS = ("VERDICT", "RULE", "PARTITION", "START", "PRODUCER ID", "IDLE", "TRANSACTIONAL ID")


def _cells(report: AuditReport, finding: Finding) -> tuple[str, ...]:
    return (
        finding.verdict.value,
        clip(finding.rule, 30),
        clip(finding.topic_partition, 24),
        str(finding.txn_start_offset),
        str(finding.producer_id),
        duration(figures.judged_idle_ms(report.run, finding)),
        "-" if finding.transactional_id is None else clip(finding.transactional_id, 24),
    )


def _since(report: AuditReport, width: int, reader: Reader) -> Iterator[Line]:
    """What is new, gone and still there, and the command that tells how it went on."""
    rows = list(nights.night_rows(report, shows_accepted=reader.shows_accepted))
    if not rows:
        return
    yield Line("")
    yield rule_line(nights.title(report), width)
    kinds = dict.fromkeys(row.kind for row in rows)
    shown = [one for kind in kinds for one in _capped(kind, [row.text for row in rows if row.kind == kind])]
    if report.since is not None and report.anonymized is None:
        shown.append(Paragraph("history", command=nights.history_command(reader)))
    yield from lines_of(shown, width, _TEXT_FROM, "")


def _warnings(report: AuditReport, width: int, reader: Reader) -> Iterator[Line]:
    """What does not hang yet and will, one line an application: a few, and how many more there are."""
    if not report.warnings:
        return
    yield Line("")
    yield rule_line("Early warning", width)
    for item in figures.soonest_warnings(report):
        text = f"{item.kind}: {figures.warning_subject(item)}: {escape(item.text)}"
        yield from paragraph(text, width, rest="    ")
    if (left_out := figures.warnings_left_out(report)) is not None:
        yield from paragraph(left_out, width)
        yield Line(f"   {report_command(report, reader)} --format json", "bold")


def statements(report: AuditReport, now_ms: int | None = None) -> Iterator[Paragraph]:
    """What the answer rests on, escaped; a label stands before each of its texts.

    Args:
        report: what was found.
        now_ms: the time at which it is read, which says how old the files are; None where nobody says.
    """
    yield from _inputs(report)
    yield from _partitions(report)
    yield from _transaction_state(report)
    yield from _copying(report)
    yield from _time(report, now_ms)


def _inputs(report: AuditReport) -> Iterator[Paragraph]:
    coverage = report.coverage
    total = sum(item.size_bytes for item in report.inputs)
    text = f"{size(coverage.parsed_bytes)} of text parsed, {size(coverage.rejected_bytes)} rejected"
    yield Paragraph("inputs", f"{count(len(report.inputs), 'file')}, {size(total)}; {text}")
    yield from _capped("not understood", [f"{clip(s.path, 200)}: {escape(s.problem)}" for s in coverage.skipped_inputs])
    partly = [item for item in report.inputs if item.rejected_bytes and item.problem is None]
    yield from _capped("rejected", [f"{clip(item.path, 200)}: {size(item.rejected_bytes)}" for item in partly])


def _partitions(report: AuditReport) -> Iterator[Paragraph]:
    coverage = report.coverage
    yield Paragraph("partitions", f"{coverage.partitions_seen} in this capture")
    if coverage.partitions_missing:
        missing = [escape(name) for name in coverage.partitions_missing]
        yield Paragraph("partitions", f"missing here, but in an earlier capture: {listed(missing, _MOST_LINES)}")
    is_ordinary = _holes_by_compaction(report)
    # Of two clusters each partition would say the same.
    is_said = {"copies_differ"} if report.coverage.clusters else set[str]()
    broken = _told(report, lambda item, problem: problem.kind not in is_said and not is_ordinary(item, problem))
    yield from _capped("not whole", broken)
    compacted = _told(report, is_ordinary)
    yield from _capped("compacted", [f"{holes}, as compaction leaves it; nothing open is older" for holes in compacted])
    if agreed := sum(bool(item.witnesses) for item in report.partitions):
        text = f"copies or producer snapshots agree with the log of {count(agreed, 'partition')}"
        yield Paragraph("second witness", text)
    remarked = [item for item in report.partitions if item.remarks]
    yield from _capped("remarks", [f"{escape(i.topic_partition)}: {escape('; '.join(i.remarks))}" for i in remarked])


class _Opened(NamedTuple):
    topic: str
    partition: int
    txn_start_offset: int


def _holes_by_compaction(report: AuditReport) -> Callable[[PartitionHealth, Problem], bool]:
    """Says of a problem whether it is a hole before all that is open, as compaction leaves it: ordinary, no damage."""
    first_open: dict[tuple[str, int], int] = {}
    for topic, partition, start in report.findings.told(_Opened):
        first_open[topic, partition] = min(start, first_open.get((topic, partition), start))

    def is_ordinary(item: PartitionHealth, problem: Problem) -> bool:
        start = first_open.get((item.topic, item.partition))
        is_hole = problem.kind in _COMPACTIONS_HOLES and problem.offset is not None
        return is_hole and (start is None or problem.offset is None or start > problem.offset)

    return is_ordinary


def _told(report: AuditReport, is_wanted: Callable[[PartitionHealth, Problem], bool]) -> list[str]:
    """A line for each partition that has such problems."""
    found = [(item, [p for p in item.problems if is_wanted(item, p)]) for item in report.partitions]
    return [f"{escape(item.topic_partition)}: {_problems(problems)}" for item, problems in found if problems]


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
    yield from _capped(_STATE, [escape(str(problem)) for problem in state.get("problems") or []])
    if newer := state.get("newer"):
        yield Paragraph(_STATE, _NEWER.format(count(newer, "record"), "has" if newer == 1 else "have"))


def _copying(report: AuditReport) -> Iterator[Paragraph]:
    """What manifests prove of the copying, and what not, an assurance a line."""
    said = report.coverage.transaction_state.get("copied")
    if not said:
        return
    by = count(said["manifest_count"], "manifest")
    if said["is_state_last"]:
        yield Paragraph("copying", f"by {by} __transaction_state was copied after every log, whole, from its leaders")
    else:
        yield Paragraph("copying", f"{by}; not proven: that __transaction_state was copied last (Order, Leader, End)")
        reasons = [said["disproof"]] if said["disproof"] else said["doubts"]
        yield from _capped("copying", [escape(str(reason)) for reason in reasons])
    reached = count(said["reached_count"], "partition")
    yield Paragraph("copying", f"proven to be whole at a moment: the logs of {reached} (Reach)")
    unproven = sorted(said["unproven"].items())
    yield from _capped(
        "copying", [f"not of {count(number, 'partition')}: {escape(reason)}" for reason, number in unproven]
    )


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
    if (remark := figures.clock_remark(report)) is not None:
        yield Paragraph("clocks", remark)
    captures = f"capture {escape(run.capture)} of cluster {escape(run.cluster)}"
    earlier = (
        f", judged together with {count(len(run.earlier_captures), 'earlier capture')}" if run.earlier_captures else ""
    )
    yield Paragraph("run", f"{escape(run.run_id)}: {captures}{earlier}")
    settings = ", ".join(f"{name} {value}" for name, value in sorted(run.parameters.items()) if value is not None)
    yield Paragraph("judged with", escape(settings))
    if run.engine is not None:
        yield Paragraph("judged by", _ENGINES[run.engine])


def _capped(label: str, texts: list[str]) -> Iterator[Paragraph]:
    yield from (Paragraph(label, text) for text in texts[:_MOST_LINES])
    if len(texts) > _MOST_LINES:
        yield Paragraph(label, f"and {len(texts) - _MOST_LINES} more; `--format json` lists them all")
