"""What transactions did, as a person reads it, and as rows for a table."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from txn_analysis.questions.stats_answer import By, Group
from txn_analysis.questions.stats_columns import CAUSES
from txn_analysis.report.formats import csv_table
from txn_analysis.report.terminal import labelled
from txn_analysis.text.escape import clip, escape
from txn_analysis.text.words import count, duration, iso_utc, size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from txn_analysis.questions.stats_answer import LongTransaction, StatsAnswer

WIDTH = 110
_TEXT_FROM = 12
_NAME_WIDTH = 32
_ID_WIDTH = 60
_TITLES = {By.APPLICATION: "APPLICATION", By.ID: "TRANSACTIONAL ID", By.TOPIC: "TOPIC"}
_COLUMNS = ("COMMITTED", "ABORTED", "EMPTY", "OPEN", "RECORDS", "SIZE", "MEAN", "LONGEST", "MARKER AFTER")
_WORDS = {
    "client_abort": "by their client",
    "coordinator_timeout": "by a timeout",
    "fenced_by_new_instance": "by a new instance",
    "administrator_marker": "by an administrator",
}


def stats_text(answer: StatsAnswer) -> str:
    """The answer as text of bounded length: the rows that it holds, and how many more there are."""
    lines = [_title(answer), "", *_table(answer), ""]
    for label, text in _below(answer):
        lines += (line.text for line in labelled(label, text, WIDTH, _TEXT_FROM))
    return "".join(f"{line}\n" for line in lines)


def _title(answer: StatsAnswer) -> str:
    bounds = [("from", answer.since_ms), ("to before", answer.until_ms)]
    when = "".join(f" {word} {iso_utc(ms)}" for word, ms in bounds if ms is not None)
    ended = f"{count(answer.total.ended_count, 'transaction')} ended{when}"
    return f"{ended}, {count(answer.total.open_count, 'open one')} at the end, each on one partition"


def _table(answer: StatsAnswer) -> Iterator[str]:
    total = [("all", answer.total)] if len(answer.groups) != 1 else []
    rows = [*((_name(one), one) for one in answer.groups), *total]
    table = [(_TITLES[answer.by], *_COLUMNS), *((name, *_cells(one)) for name, one in rows)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for name, *cells in table:
        numbers = (cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True))
        yield "  ".join((name.ljust(widths[0]), *numbers)).rstrip()


def _name(one: Group) -> str:
    return "(id not known)" if one.name is None else clip(one.name, _NAME_WIDTH)


def _cells(one: Group) -> tuple[str, ...]:
    waited = "-" if one.max_marker_wait_ms is None else f"{one.max_marker_wait_ms} ms"
    took = (one.mean_duration_ms, one.max_duration_ms)
    return (
        str(one.committed_count),
        str(one.aborted_count),
        str(one.empty_count),
        str(one.open_count),
        str(one.record_count),
        size(one.size_bytes),
        *("-" if ms is None else _span(ms) for ms in took),
        waited,
    )


def _span(duration_ms: int) -> str:
    return f"{duration_ms} ms" if duration_ms < 1000 else duration(duration_ms)


def _below(answer: StatsAnswer) -> Iterator[tuple[str, str]]:
    """What stands below the table, as label and text."""
    if answer.left_out_count:
        yield "not shown", f"{answer.left_out_count} more; --limit shows more of them, and the last row has all"
    total = answer.total
    if total.aborted_count:
        known = [f"{number} {_WORDS[name]}" for name, column in CAUSES.items() if (number := getattr(total, column))]
        unknown = [f"{total.unexplained_abort_count} not known"] if total.unexplained_abort_count else []
        yield "aborted", ", ".join((*known, *unknown))
    yield from _each("longest", [_long(one) for one in answer.longest[:3]])
    yield (
        "durations",
        (
            "from the timestamp of the first batch, a client's clock unless the topic has LogAppendTime, to the end "
            "marker; MARKER AFTER is the longest wait from the coordinator's decision to its marker, by two brokers' "
            "clocks"
        ),
    )
    yield from _each("cannot say", list(answer.cannot_say))


def _each(label: str, texts: list[str]) -> Iterator[tuple[str, str]]:
    return ((label if not place else "", text) for place, text in enumerate(texts))


def _long(one: LongTransaction) -> str:
    whose = f"producer id {one.producer_id}" if one.transactional_id is None else clip(one.transactional_id, _ID_WIDTH)
    where = f"{escape(one.topic)}-{one.partition} from offset {one.txn_start_offset} to {one.end_offset}"
    return f"{_span(one.duration_ms)}: {where}, {whose}, {one.outcome}"


def stats_csv(answer: StatsAnswer) -> str:
    """One line a group under a header; see `csv_table`."""
    return csv_table(Group._fields, answer.groups)


def stats_ndjson(answer: StatsAnswer) -> str:
    """One line a group, as `groups` of the JSON form holds it."""
    return "".join(json.dumps(one._asdict(), ensure_ascii=True) + "\n" for one in answer.groups)
