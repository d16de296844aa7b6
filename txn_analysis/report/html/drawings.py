"""The pictures of a page, each a function from a series to a chart; None where it has nothing to show."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import accumulate, takewhile

import numpy as np

from txn_analysis.judge.outcome import Answer
from txn_analysis.kafka.transactions import COMPLETE_ABORT, COMPLETE_COMMIT, ONGOING, PREPARED
from txn_analysis.report.figures import judged_idle_ms
from txn_analysis.report.html.charts import (
    CROSS,
    LETTER,
    SQUARE,
    Chart,
    Frame,
    Mark,
    Section,
    Table,
    counts,
    disc,
    durations,
    named,
    times,
)
from txn_analysis.report.model import AuditReport
from txn_analysis.report.pictures import (
    EndedSlice,
    IdTimeline,
    LogPoint,
    NightPoint,
    PartitionTimeline,
    Pictures,
    RunPoint,
)
from txn_analysis.tables import PartitionHealth
from txn_analysis.text import clip, count, duration, escape, iso_utc
from txn_analysis.verdict import Verdict


def sections(report: AuditReport, pictures: Pictures, stats_command: str | None) -> list[Section]:
    """All pictures of a report, those of one kind together; without a command in an anonymized one."""
    start_ms = min((t.points[0].time_ms for t in pictures.partitions if t.points), default=None)
    overview = (ages(report), runs(pictures.runs))
    logs = (chart for one in pictures.partitions for chart in (log(report, one), nights(one)))
    ids = [states(timeline, start_ms, report.run.as_of_ms) for timeline in pictures.ids]
    places = sum(item.open_transaction_count > 0 for item in report.partitions)
    names = len(report.findings.column("transactional_id").drop_null().unique())
    of_places = _drawn(
        sum(bool(one.points) for one in pictures.partitions), places, "partitions with open transactions"
    )
    of_names = _drawn(len(ids), names, "ids with open transactions")
    every = [
        Section("overview", "How old, and how it went on", _some(overview)),
        Section("ended", "What ended", _some([ended(pictures.ended, stats_command)]), _ENDED_LEGEND),
        Section("log", "Offsets against time", _some(logs), _LOG_LEGEND, of_places),
        Section("id", "Transactional ids over time", ids, note=f"{_ID_NOTE} {of_names}".strip()),
    ]
    return [one for one in every if one.charts]


def _some(charts: Iterable[Chart | None]) -> list[Chart]:
    return [one for one in charts if one is not None]


def _drawn(number: int, of: int, what: str) -> str:
    return f"{number} of {of} {what} are drawn, the worst ones." if number < of else ""


_HEIGHT = 240
_MOST_OPEN = 12
_LINE_HEIGHT = 14
_BROKER_TIME = "Time by the brokers' clocks."
_CLIENT_TIME = "Time by the clients' timestamps: no broker's clock speaks."
_LOG_LEGEND = (
    (Mark("log", "M1 9L25 3"), "end of the log"),
    (Mark("stable", "M1 6H25"), "last stable offset"),
    (Mark("shade hanging", "M0 0h26v12h-26Z"), "hidden from read_committed"),
    (Mark("dash hanging", "M4 6H25"), "open transaction, from its start"),
    (Mark("ring", f"M13 6{disc(3)}"), "COMMIT marker"),
    (Mark("cross", f"M13 6{CROSS}"), "ABORT marker"),
)


def log(report: AuditReport, timeline: PartitionTimeline) -> Chart | None:
    """Offsets of one partition against time: end of the log, last stable offset, open transactions, end markers."""
    item = report.partitions_by_place.get((timeline.topic, timeline.partition))
    points = [*timeline.points]
    if item is None or not points:
        return None
    first, moments = points[0].end_offset, [point.time_ms for point in points]
    behind = [point.end_offset - first for point in points]  # an offset of 64 bits would lose some as a double
    at_ms = partial(np.interp, xp=behind, fp=moments)
    end_ms = max(report.run.as_of_ms or 0, points[-1].time_ms)
    # The last batches may carry no broker's time: they came before the copy.
    points.append(LogPoint(end_ms, item.end_offset or points[-1].end_offset, points[-1].last_stable_offset))
    low = min(points[0].last_stable_offset, points[0].end_offset)
    frame = Frame.of(_HEIGHT, times(points[0].time_ms, end_ms), counts(low, points[-1].end_offset))
    end = [(point.time_ms, point.end_offset) for point in points]
    stable = [(point.time_ms, point.last_stable_offset) for point in points]
    here = report.findings_on(item.topic, item.partition)
    holder = next((finding.verdict.value for finding in here if finding.blocks_partition), "unknown")
    marks = [frame.line(f"shade {holder}", [*end, *reversed(stable)], end="Z")]
    marks += [frame.line("log", end), frame.line("stable", stable)]
    for marker in timeline.markers:
        look, shape = ("cross", CROSS) if marker.outcome == "ABORT" else ("ring", disc(2.5))
        more = "" if marker.marker_count == 1 else f", the last of {marker.marker_count} close together"
        title = f"{marker.outcome} at offset {marker.offset}, {iso_utc(marker.time_ms)}{more}"
        marks.append(frame.at(look, at_ms(marker.offset + 1 - first), marker.offset + 1, shape, title))
    for one in here[:_MOST_OPEN]:
        begin = at_ms(one.txn_start_offset - first), one.txn_start_offset
        since = f"open from offset {one.txn_start_offset}, idle {duration(one.idle_ms)}"
        title = f"{one.verdict.value}: producer id {one.producer_id} has been {since}"
        marks.append(frame.line(f"dash {one.verdict.value}", [begin, (end_ms, one.txn_start_offset)], title))
        marks.append(frame.at(f"fill {one.verdict.value}", *begin, SQUARE, title))
    (_, end_offset), (_, stable_offset) = end[-1], stable[-1]
    # The names of the two lines, where there is room between them.
    if frame.y(stable_offset) - frame.y(end_offset) >= 3 * _LINE_HEIGHT:
        name = partial(frame.word, "name", x=end_ms, anchor="end")
        marks.append(name(text=f"end of the log {end_offset:,}", y=end_offset, below=_LINE_HEIGHT))
        marks.append(name(text=f"last stable offset {stable_offset:,}", y=stable_offset, below=-_LINE_HEIGHT / 2))
    return Chart(
        f"{escape(item.topic_partition)}: offsets against time",
        _log_in_words(item, points[0].time_ms, end_ms),
        frame,
        marks,
        _BROKER_TIME if timeline.is_broker_time else _CLIENT_TIME,
        partition=escape(item.topic_partition),
    )


def _log_in_words(item: PartitionHealth, start_ms: int, end_ms: int) -> str:
    hidden = item.hidden_record_count
    records = "an unknown number of records is" if hidden is None else f"{count(hidden, 'record')} hidden:"
    return (
        f"From {iso_utc(start_ms)} to {iso_utc(end_ms)} the log grows to offset {item.end_offset}, while the last "
        f"stable offset stays at {item.last_stable_offset}; {records} read_committed consumers do not see what lies "
        f"between. {count(item.open_transaction_count, 'open transaction')}."
    )


_ID_HEIGHT = 72
_MOST_RECORDS = 10
_STATE_LOOKS = {ONGOING: "ongoing", COMPLETE_COMMIT: "commit", COMPLETE_ABORT: "abort", "PrepareEpochFence": "prepare"}
_STATE_LOOKS |= dict.fromkeys(PREPARED, "prepare")
_ID_NOTE = "What the coordinator recorded of each, in its own time (UTC)."


def states(timeline: IdTimeline, start_ms: int | None, as_of_ms: int | None) -> Chart:
    """One transactional id's states over time, from `start_ms` on if that is known; its last records as a table."""
    changes = sorted(timeline.changes, key=lambda change: change.time_ms)
    low = changes[0].time_ms if start_ms is None else min(start_ms, changes[-1].time_ms)
    high = max(as_of_ms or 0, changes[-1].time_ms)
    frame = Frame.of(_ID_HEIGHT, times(low, high), named(1, {}))
    marks = []
    for change, end_ms in zip(changes, [*(one.time_ms for one in changes[1:]), high], strict=True):
        if end_ms >= low:
            title = f"{clip(change.state, 24)} from {iso_utc(change.time_ms)}, epoch {change.producer_epoch}"
            look = f"state {_STATE_LOOKS.get(change.state, 'other')}"
            marks.append(frame.bar(look, (change.time_ms, end_ms), (0.2, 1), title))
            if frame.x(end_ms) - frame.x(change.time_ms) > LETTER * len(change.state) + 8:
                marks.append(frame.word("state-name", escape(change.state), change.time_ms, 0.6, 4))
    name, last = clip(timeline.transactional_id, 80), changes[-1]
    rows = (
        (iso_utc(one.time_ms), clip(one.state, 24), *("" if n is None else n for n in one[2:]))
        for one in reversed(changes[-_MOST_RECORDS:])
    )
    return Chart(
        f"{name}: states over time",
        f"{clip(last.state, 24)} since {iso_utc(last.time_ms)}; {count(len(changes), 'record')} of the coordinator.",
        frame,
        marks,
        table=Table("Last records", ("Time", "State", "Producer id", "Epoch", "Partitions"), tuple(rows)),
    )


_ROW_HEIGHT = 34
_DOT_WIDTH = 8


def ages(report: AuditReport) -> Chart | None:
    """All open transactions by the age that lateness is judged by, a row for each verdict."""
    bound_ms = report.run.late_after_ms
    judged = [(one.verdict, judged_idle_ms(report.run, one)) for one in report.findings.records(Answer)]
    aged = [(verdict, age) for verdict, age in judged if age is not None]
    if not aged:
        return None
    verdicts = [verdict for verdict in reversed(Verdict) if any(verdict is known for known, _ in aged)]
    oldest_ms, late = max(age for _, age in aged), sum(age > bound_ms for _, age in aged)
    level = {verdict: len(verdicts) - place - 0.5 for place, verdict in enumerate(verdicts)}
    labels = named(len(verdicts), {at: verdict.value for verdict, at in level.items()})
    frame = Frame.of(_ROW_HEIGHT * (len(verdicts) + 1), durations(max(oldest_ms, bound_ms) * 2), labels, margin=8)
    top = (bound_ms, len(verdicts))
    marks = [frame.line("bound", [top, (bound_ms, 0)], "the bound: older ones are late")]
    marks.append(frame.word("name", f"late after {duration(bound_ms)}", *top, below=1, anchor="end"))
    for verdict in verdicts:
        # One dot for what lies close together; its area tells how many that are.
        slices: dict[int, list[int]] = {}
        for age in (age for known, age in aged if known is verdict):
            slices.setdefault(round(frame.x(age) / _DOT_WIDTH), []).append(age)
        for near in slices.values():
            span = " to ".join(dict.fromkeys((duration(min(near)), duration(max(near)))))
            r = round(min(4 + 1.5 * math.sqrt(len(near) - 1), 15), 1)
            title = f"{len(near)} {verdict.value}, idle {span}"
            marks.append(frame.at(f"fill {verdict.value}", sum(near) / len(near), level[verdict], disc(r), title))
    return Chart(
        "Open transactions by the time since their last write, against the bound",
        f"{late} of {len(aged)} are idle for more than {duration(bound_ms)}, the oldest for {duration(oldest_ms)}, by "
        "the clock that lateness is judged by: the client's, if it is credible.",
        frame,
        marks,
        "The dashed line is transaction.max.timeout.ms + 5 min.",
    )


_WIDEST_BAR = 48


def runs(points: Sequence[RunPoint]) -> Chart | None:
    """Hidden records over the last runs."""
    unknown = (f"; unknown on {count(one.unknown_count, 'partition')}" if one.unknown_count else "" for one in points)
    more = [f"{doubt}, {one.hanging_count} hanging" for doubt, one in zip(unknown, points, strict=True)]
    return _bars("Hidden records over the last runs", "run", 200, points, more)


def nights(timeline: PartitionTimeline) -> Chart | None:
    """Hidden records of one partition over the last nights."""
    stable = ["unknown" if at is None else at for at in (one.last_stable_offset for one in timeline.nights)]
    title = f"{escape(f'{timeline.topic}-{timeline.partition}')}: hidden records over the last nights"
    more = [f", last stable offset {at}" for at in stable]
    return _bars(title, "night", 110, timeline.nights, more, f" {_stands(timeline.nights)}")


def _stands(points: Sequence[NightPoint]) -> str:
    """Since which night the last stable offset has been the one of the last night."""
    last = [*takewhile(lambda one: one.last_stable_offset == points[-1].last_stable_offset, reversed(points))]
    if not last or last[0].last_stable_offset is None:
        return ""
    if len(last) == 1:
        return "The last stable offset was another one in the night before."
    shown = " or before, as it was in all that are shown" if len(last) == len(points) else ""
    return f"The last stable offset has been {last[0].last_stable_offset} since {iso_utc(last[-1].as_of_ms)}{shown}."


def _bars(
    title: str, each: str, height: int, points: Sequence[RunPoint | NightPoint], more: Sequence[str], note: str = ""
) -> Chart | None:
    """A bar for each moment of its hidden records; grey where the files did not say how many.

    None of one alone, which has nothing to be compared with.
    """
    if len(points) < 2:
        return None
    known = [point.hidden_record_count for point in points]
    hidden = ["an unknown number of hidden records" if n is None else count(n, "hidden record") for n in known]
    words = f"{count(len(points), each)}; the last one found {hidden[-1]}, the one before {hidden[-2]}.{note}"
    ends = {at + 0.5: iso_utc(points[at].as_of_ms)[5:16].replace("T", " ") for at in (0, len(points) - 1)}
    most = max(1, *(n or 0 for n in known))
    frame = Frame.of(height, named(len(points), ends), counts(0, most, 2 if height < _HEIGHT / 2 else 5))
    marks = []
    for at, (point, number) in enumerate(zip(points, known, strict=True)):
        # A night that could not tell has its whole height.
        look, upto = ("night unknown", most) if number is None else ("night", number)
        title_of_bar = f"{iso_utc(point.as_of_ms)}: {hidden[at]}{more[at]}"
        marks.append(frame.bar(look, (at + 0.15, at + 0.85), (0, upto), title_of_bar, most=_WIDEST_BAR))
    grey = " Grey: the files did not say how many." if None in known else ""
    return Chart(title, words + grey, frame, marks)


_ENDED_HEIGHT = 150
_SIGN = "M7 0h12v12h-12Z"
_ENDED_LEGEND = (
    (Mark("fill in_progress", _SIGN), "committed"),
    (Mark("fill inconclusive", _SIGN), "aborted"),
    (Mark("fill suspect", _SIGN), "ended, and the dump does not print how"),
)


def ended(slices: Sequence[EndedSlice], stats_command: str | None) -> Chart | None:
    """What ended when, by its outcome; nothing where nothing did."""
    if not slices:
        return None
    most = max(one.ended_count for one in slices)
    frame = Frame.of(_ENDED_HEIGHT, times(slices[0].from_ms, slices[-1].to_ms), counts(0, most))
    marks = []
    for one in slices:
        tops = accumulate(one[2:])
        for (sign, _), word, number, top in zip(_ENDED_LEGEND, _ENDED_WORDS, one[2:], tops, strict=True):
            if number:
                title = f"{iso_utc(one.from_ms)}: {count(number, 'transaction')} {word}"
                marks.append(frame.bar(sign.look, (one.from_ms, one.to_ms), (top - number, top), title))
    committed, aborted, unknown = (sum(column) for column in zip(*(one[2:] for one in slices), strict=True))
    not_printed = f", {unknown} of which the dump does not print how they ended" if unknown else ""
    span = f"from {iso_utc(slices[0].from_ms)} to {iso_utc(slices[-1].to_ms)}"
    step_ms = slices[0].to_ms - slices[0].from_ms
    step = f"{step_ms} ms" if step_ms < 1000 else duration(step_ms)
    rows = tuple((iso_utc(one.from_ms), *one[2:]) for one in slices if one.ended_count)
    more = f" By which application, and why, says: `{stats_command}`" if stats_command else ""
    return Chart(
        "Ended transactions by time",
        f"{committed} committed, {aborted} aborted{not_printed}, {span}; a bar is {step}.",
        frame,
        marks,
        f"Each transaction once on each partition. Time by the brokers' clocks.{more}",
        Table("As a table, oldest first", ("From", "Committed", "Aborted", "Not printed"), rows),
    )


_ENDED_WORDS = ("committed", "aborted", "not printed how")
