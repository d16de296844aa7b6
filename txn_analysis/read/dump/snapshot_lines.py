"""Producer snapshots and transaction indexes: one line of kafka-dump-log is one entry of the file."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from txn_analysis.columns.arrays import ABSENT
from txn_analysis.kafka.batch_format import LAST_TIME_MS
from txn_analysis.read.inputs.window import Reject, Row, Window, merged

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from txn_analysis.read.inputs.window import Readable, Span

_INT16_MAX, _INT32_MAX, _INT64_MAX = 2**15 - 1, 2**31 - 1, 2**63 - 1

# kafka-formats.md, 2.1: 1.1 to 3.0, 3.1 to 3.4 (lastTimestamp), 3.5 on (OptionalLong). A producer without a cached data
# batch has no last part, and its line ends with the space before it, which 4.3 leaves out.
_SNAPSHOT_LINE = re.compile(
    rb"producerId: (?P<producer_id>\d{1,19}) producerEpoch: (?P<producer_epoch>\d{1,5})"
    rb" coordinatorEpoch: (?P<coordinator_epoch>-?\d{1,10}) currentTxnFirstOffset: "
    rb"(?:None|Some\((?P<scala_offset>\d{1,19})\)|OptionalLong\.empty|OptionalLong\[(?P<java_offset>\d{1,19})\]) "
    rb"(?:lastTimestamp: (?P<last_timestamp>-?\d{1,19})(?: |(?=\n)))?"
    rb"(?:firstSequence: (?P<first_sequence>-?\d{1,10}) lastSequence: (?P<last_sequence>-?\d{1,10})"
    rb" lastOffset: (?P<last_offset>-?\d{1,19}) offsetDelta: (?P<offset_delta>-?\d{1,10})"
    rb" timestamp: (?P<timestamp>-?\d{1,19}))?\n"
)
_TXNINDEX_LINE = re.compile(
    rb"version: 0 producerId: (?P<producer_id>\d{1,19}) firstOffset: (?P<first_offset>\d{1,19})"
    rb" lastOffset: (?P<last_offset>\d{1,19}) lastStableOffset: (?P<last_stable_offset>\d{1,19})\n"
)
_MAX = {
    "producer_epoch": _INT16_MAX,
    "coordinator_epoch": _INT32_MAX,
    "first_sequence": _INT32_MAX,
    "last_sequence": _INT32_MAX,
    "offset_delta": _INT32_MAX,
}


def read_snapshot_section(text: Readable, section: Span) -> Iterator[Row | Reject]:
    """Rows of `producer_snapshots`, in file order, from the body of a `.snapshot` section, tools 1.1 to 4.3.

    A row lacks only what says which input it is of. A line that is not wholly an entry becomes a `Reject`; every other
    byte of the body is parsed.
    """
    place = {"topic": section.topic, "partition": section.partition, "snapshot_offset": section.file_base_offset}
    return merged(_read_lines(text, section, lambda line: _snapshot_row(line, place), "not an entry of a snapshot"))


def read_txnindex_section(text: Readable, section: Span) -> Iterator[Row | Reject]:
    """Rows of `aborted_transactions`, in file order, from the body of a `.txnindex` section; else as for snapshots."""
    place = {"topic": section.topic, "partition": section.partition}
    return merged(_read_lines(text, section, lambda line: _txnindex_row(line, place), "not an entry of a txnindex"))


def _read_lines(
    text: Readable, section: Span, read: Callable[[bytes], Row | None], reason: str
) -> Iterator[Row | Reject]:
    window = Window(text, section.text_start_bytes, section.text_end_bytes)
    while window.remaining > 0:
        length = window.line_end()
        row = read(window.peek(0, length)) if length else None
        if row is None:
            yield window.reject_line(reason)
        else:
            window.advance(length)
            yield row


def _numbers(match: re.Match[bytes]) -> dict[str, int] | None:
    """The numbers of a line, -1 where one is not printed; None where one is outside its field's range in Kafka."""
    values = {name: ABSENT if word is None else int(word) for name, word in match.groupdict().items()}
    in_range = all(ABSENT <= value <= _MAX.get(name, _INT64_MAX) for name, value in values.items())
    return values if in_range else None


def _known(value: int) -> int | None:
    return None if value == ABSENT else value


def _snapshot_row(line: bytes, place: Row) -> Row | None:
    match = _SNAPSHOT_LINE.fullmatch(line)
    n = _numbers(match) if match else None
    if n is None:
        return None
    times = {n["last_timestamp"], n["timestamp"]} - {ABSENT}
    if len(times) > 1:  # both print the same stored field
        return None
    return place | {
        "producer_id": n["producer_id"],
        "producer_epoch": n["producer_epoch"],
        "coordinator_epoch": _known(n["coordinator_epoch"]),
        "current_txn_start_offset": _known(max(n["scala_offset"], n["java_offset"])),
        "last_timestamp_ms": next((time for time in times if time <= LAST_TIME_MS), None),
        "last_sequence": _known(n["last_sequence"]),
        "last_offset": _known(n["last_offset"]),
    }


def _txnindex_row(line: bytes, place: Row) -> Row | None:
    match = _TXNINDEX_LINE.fullmatch(line)
    n = _numbers(match) if match else None
    return None if n is None or n["last_offset"] < n["first_offset"] else place | n
