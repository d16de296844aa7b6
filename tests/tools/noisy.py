"""What a text says, read as an ingest reads it; and the same text with lines of noise in it."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.tools.bodies import plain_rows
from tests.tools.dump_texts import plan
from tests.tools.inputs import READERS
from tests.tools.log_evidence import MemoryText
from txn_analysis.kafka.names import LOG
from txn_analysis.reading.dump.scan import scan_range
from txn_analysis.reading.text.section import ScanRange, Section
from txn_analysis.reading.text.window import Reject

KINDS = {
    "blank": b"\n",
    "slf4j": b'SLF4J: Failed to load class "org.slf4j.impl.StaticLoggerBinder".\n',
    "launcher": b"Picked up JAVA_TOOL_OPTIONS: -Xmx1g\n",
    "log4j": b"[2026-11-28 05:00:00,000] WARN it is old (kafka.utils.Old)\n",
    "not-consecutive": b"Non-consecutive offsets in /data/orders-0/00000000000000000000.log\n  -1 is followed by 12\n",
}
# Where a row stands in the text.
PLACE = {"ordinal", "text_start_bytes", "text_bytes", "input_id", "ingest_id"}


class Said(NamedTuple):
    """What a text says: of each section its place and its rows; and what of it was not understood, as spans."""

    problem: str | None
    sections: list[tuple[Any, ...]]
    unread: list[tuple[int, int]]


def said(text: bytes) -> Said:
    planned = plan(text)
    sections, unread = [], []
    for section in planned.sections:
        rows, spans = _read(text, section)
        unread += spans
        place = section.kind, section.topic, section.partition, section.file_base_offset, section.torn_bytes
        sections.append((*place, section.is_start_proven, section.grammar, rows))
    return Said(planned.problem, sections, unread)


def _read(text: bytes, section: Section) -> tuple[list[Any], list[tuple[int, int]]]:
    spans: list[tuple[int, int]] = []
    rows: list[Any]
    if section.kind == LOG:
        part = ScanRange("path", None, "input", section, section.text_start_bytes, section.text_end_bytes)
        found = scan_range(MemoryText(text), part)
        rows = [] if found is None else found.rows().to_pylist()
        spans = list(_between(rows, section))
    else:
        reader, _ = READERS[section.kind]
        items = list(reader(MemoryText(text), section))
        spans = [(item.offset_bytes, item.end_bytes) for item in items if isinstance(item, Reject)]
        rows = plain_rows(items)
    return [{name: value for name, value in row.items() if name not in PLACE} for row in rows], spans


def _between(rows: list[Any], section: Section) -> Iterator[tuple[int, int]]:
    at = section.text_start_bytes
    for row in rows:
        if row["text_start_bytes"] > at:
            yield at, row["text_start_bytes"]
        at = row["text_start_bytes"] + row["text_bytes"]
    if at < section.text_end_bytes:
        yield at, section.text_end_bytes
