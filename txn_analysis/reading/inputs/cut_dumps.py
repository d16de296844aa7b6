"""Deep dumps that were cut at the end of a line: their last batch has fewer record lines than it counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from txn_analysis.kafka.names import LOG
from txn_analysis.reading.dump.scan import scan_range
from txn_analysis.reading.grammar.batch_lines import read_batch_line
from txn_analysis.reading.grammar.forms import BATCH_LINE_START, INVALID_BYTES, RECORD_LINE_START
from txn_analysis.reading.text.section import ScanRange, Section

if TYPE_CHECKING:
    from txn_analysis.kafka.batch_headers import Read

_TAILS_BYTES = (1 << 12, 1 << 16, 1 << 20)
_PROVING_BYTES = 8 << 20  # what can be text of a record's header keys is told by the batches before it
_BATCH, _RECORD, _TORN = b"\n" + BATCH_LINE_START, b"\n" + RECORD_LINE_START, b"\n" + INVALID_BYTES.fields[0].before
_ANY_TOPIC = "orders"  # of clients: their records may have header keys


class Cut(NamedTuple):
    """Where the line of a dump's last batch begins, and how many of its records are there."""

    start: int
    seen_count: int
    record_count: int

    def __str__(self) -> str:
        """Say it, without a full stop."""
        return (
            f"the dump ends inside this batch, behind {self.seen_count} of its {self.record_count} records: it was cut"
        )


def cut_before(read: Read, since: int, end: int) -> Cut | None:
    """How the section of a dump was cut that ends at a byte; None where it was not, or a client can have written that.

    A dump without record lines shows no cut.

    Args:
        read: the text from one byte to another.
        since: where the section's batches begin, or a part of them that is long enough.
        end: the byte behind its last line.
    """
    for tail_bytes in _TAILS_BYTES:
        start = max(since - 1, end - tail_bytes, 0)
        tail = read(start, end)
        at = tail.rfind(_BATCH)
        before = tail.rfind(_BATCH, 0, max(at, 0))
        if before >= 0 or start == since - 1:
            break
    if at < 0:
        return None
    line_end = tail.find(b"\n", at + 1)
    line = read_batch_line(tail[at + 1 : line_end]) if line_end >= 0 else None
    if line is None or tail.count(_RECORD, line_end) >= line["record_count"]:
        return None
    if tail.find(_RECORD, max(before, 0)) < 0 or tail.find(_TORN, line_end) >= 0:
        return None
    return _proven(_Part(read, since, end), start + at + 1, line["record_count"])


class _Part(NamedTuple):
    read: Read
    since: int
    end: int


def _proven(part: _Part, at: int, record_count: int) -> Cut | None:
    """The cut, where the batches before it show that its line is the tool's."""
    start = max(part.since - 1, part.end - _PROVING_BYTES, 0)
    first = start + part.read(start, part.end).find(_BATCH) + 1
    body = Section(LOG, _ANY_TOPIC, 0, 0, first, part.end, "")
    batches = scan_range(part, ScanRange("", None, "", body, first, part.end))  # type: ignore[arg-type]
    if batches is None:
        return None
    last = {name: values[-1] for name, values in batches.columns.items()}
    is_tools = last["text_start_bytes"] == at and not (last["is_contested"] or last["may_be_header_keys"])
    is_cut = is_tools and 0 <= last["record_line_count"] < record_count
    return Cut(at, int(last["record_line_count"]), record_count) if is_cut else None
