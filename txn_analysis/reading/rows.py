"""Which reader reads which section: byte ranges of files become rows of tables, and batches of logs.

One range is in memory at a time. Batches are given as they were read: whoever wants them sums them up.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from itertools import groupby, islice, zip_longest
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.columns.records import batch_of, fields_of
from txn_analysis.errors import InputError
from txn_analysis.files.remote_file import ahead
from txn_analysis.files.store import ChangedError, StoreError
from txn_analysis.kafka.names import (
    BINARY_GRAMMARS,
    CONSOLE_JSON,
    CONSOLE_TEXT,
    DESCRIBED,
    LOG,
    SNAPSHOT,
    STATE,
    STATE_KINDS,
    TXNINDEX,
)
from txn_analysis.reading.dump.scan import places_of, read_slice, scan_range, scan_slice
from txn_analysis.reading.dump.small_sections import SmallSections
from txn_analysis.reading.log_dir.producer_files import (
    CHANGED,
    read_described_file,
    read_snapshot_file,
    read_snapshot_section,
    read_txnindex_file,
    read_txnindex_section,
)
from txn_analysis.reading.log_dir.segment import headers_of, is_small_segment, scan_headers, scan_segment
from txn_analysis.reading.state.console_export import read_console_json, read_console_text
from txn_analysis.reading.state.decoded_dump import StateDumpReader
from txn_analysis.reading.state.segment import StateSegmentReader
from txn_analysis.reading.state.values import ReadStateRecord
from txn_analysis.reading.text.section import ScanRange, Section, schema_read
from txn_analysis.reading.text.text import Text
from txn_analysis.reading.text.window import Reject
from txn_analysis.tables import ABORTED_TRANSACTIONS, PRODUCER_SNAPSHOTS, TRANSACTION_STATES
from txn_analysis.tables.batches import Batches
from txn_analysis.tables.inputs import RejectedSpan
from txn_analysis.warehouse.rows import NamedRows

Items = Iterable[ReadStateRecord | Reject | pa.RecordBatch]

# Besides rows of tables:
MOMENTS = "moments"  # the newest broker clock in some records: `Moment`
REJECTED = "rejected"  # spans that were not understood: `RejectedSpan`

_ROWS_PER_BATCH = 50_000
_MOST_HELD_BYTES = 24 << 20
_REJECTED_SCHEMA = pa.schema([(name, field.type) for name, field in fields_of(RejectedSpan).items()])
READ_KINDS = frozenset({LOG, *STATE_KINDS, SNAPSHOT, DESCRIBED, TXNINDEX})
_TABLES_OF_PRODUCERS = {
    SNAPSHOT: PRODUCER_SNAPSHOTS,
    DESCRIBED: PRODUCER_SNAPSHOTS,
    TXNINDEX: ABORTED_TRANSACTIONS,
}
_TEXT_READERS: Mapping[str, Callable[[Text, Section], Items]] = {
    SNAPSHOT: read_snapshot_section,
    TXNINDEX: read_txnindex_section,
    CONSOLE_TEXT: read_console_text,
    CONSOLE_JSON: read_console_json,
}
_BROKER_READERS: Mapping[str, Callable[[Text, Section], Items]] = {
    SNAPSHOT: read_snapshot_file,
    DESCRIBED: read_described_file,
    TXNINDEX: read_txnindex_file,
}


class Moment(NamedTuple):
    """A broker's clock in some records of an input."""

    input_id: str
    moment_ms: int


def read_ranges(ranges: list[ScanRange], ingest_id: str) -> Iterator[NamedRows | Batches]:
    """What some ranges hold, all ranges of one section of `__transaction_state` among them in order.

    Returns:
        Batches of logs; rows of the tables of other sections; MOMENTS and REJECTED.
    """
    small = SmallSections()
    yield from _read_files([replace(part, ingest_id=ingest_id) for part in ranges], small)
    yield from small.batches(is_end=True)
    yield from _read_files(small.left)


def _read_files(ranges: list[ScanRange], small: SmallSections | None = None) -> Iterator[NamedRows | Batches]:
    """Reads ranges file by file; small sections of logs with others, where they are given."""
    for of_unit, begun in ahead(_begun, _units(ranges), is_object=_is_object, size_of=_held_bytes):
        try:
            with begun() as text:
                if isinstance(text, list):
                    yield from text
                    continue
                # What is compressed is read once, from its front to its end.
                is_whole = of_unit[0].compression is None or len(of_unit) == 1
                others = [part for part in of_unit if not (small and is_whole and small.takes(text, part))]
                for _, parts in groupby(others, key=lambda part: part.section.index):
                    yield from _read_section(text, list(parts))
        except ChangedError:  # in neither version: what was read of the first one does not count either
            for part in of_unit:
                yield REJECTED, _rejected([Reject(part.start, part.end - part.start, CHANGED)], part)
        except StoreError as error:
            raise InputError([f"{of_unit[0].path}: {error}"]) from error
        if small:
            yield from small.batches()


def _units(ranges: Iterable[ScanRange]) -> Iterator[list[ScanRange]]:
    """The ranges of each file; of a large segment in a store each by itself, as they are read side by side."""
    for _, of_file in groupby(ranges, key=lambda part: (part.path, part.compression)):
        ranges_of = list(of_file)
        if _is_read_ahead(ranges_of):
            yield from ([part] for part in ranges_of)
        else:
            yield ranges_of


def _is_object(ranges: list[ScanRange]) -> bool:
    return ranges[0].version is not None


def _is_read_ahead(ranges: list[ScanRange]) -> bool:
    """Segments of logs in a store are; no ranges of states, which go on in each other, and no texts."""
    section = ranges[0].section
    is_segment = section.kind == LOG and section.grammar in BINARY_GRAMMARS
    return _is_object(ranges) and is_segment and not is_small_segment(ranges[0])


def _held_bytes(ranges: list[ScanRange]) -> int:
    """A range is read in windows of 4 MiB, of which the last two are kept; its columns are few bytes.

    So much comes ahead beside them; of a text as well, before it is its turn.
    """
    return min(ranges[0].end - ranges[0].start, _MOST_HELD_BYTES)


def _begun(ranges: list[ScanRange]) -> AbstractContextManager[Text | list[Batches]]:
    """A file that is open, and fetched if it is a small object; or what was read of a range of a large one."""
    text = _open(ranges[0])
    if not _is_read_ahead(ranges):
        _announce(text, ranges[0])
        return text
    with text:
        batches = scan_segment(text, ranges[0])
    return nullcontext([batches] if batches else [])


def _announce(text: Text, part: ScanRange) -> None:
    """A range is read next; of a segment, whoever follows its batches says what they will read."""
    text.will_read([] if part.section.grammar in BINARY_GRAMMARS else places_of(part))


def _in_turn(text: Text, parts: Sequence[ScanRange]) -> Iterator[ScanRange]:
    """Ranges of one section; while one is worked on, the next one comes."""
    for part, following in zip_longest(parts, parts[1:]):
        if following is not None:
            _announce(text, following)
        yield part


def _open(part: ScanRange) -> Text:
    try:
        return Text(part.path, part.compression, part.version)
    except FileNotFoundError:
        if part.section.grammar in BINARY_GRAMMARS:  # deleted since it was planned, as happens on a broker that runs
            return Text(os.devnull, None)
        raise


def _read_section(text: Text, parts: list[ScanRange]) -> Iterator[NamedRows | Batches]:
    """Batches of some ranges of one section of a log, rows of other kinds."""
    section, is_broker_file = parts[0].section, parts[0].section.grammar in BINARY_GRAMMARS
    if section.kind == STATE:
        read_state = _read_state_segment if is_broker_file else _read_state_dump
        yield from read_state(text, parts)
    elif section.kind == LOG:
        scan = scan_segment if is_broker_file else scan_range
        yield from filter(None, (scan(text, part) for part in _in_turn(text, parts)))
    else:
        readers = _BROKER_READERS if is_broker_file else _TEXT_READERS
        yield from _record_rows(readers[section.kind](text, section), parts[0])


def _read_state_dump(text: Text, parts: list[ScanRange]) -> Iterator[NamedRows | Batches]:
    """A section of `__transaction_state` as a log and as records, range by range."""
    reader = StateDumpReader(text, parts[0].section)
    for part in _in_turn(text, parts):
        text_slice = read_slice(text, part)
        if text_slice is not None:
            yield scan_slice(text, part, text_slice)
        stop = part.end if text_slice is None or part.end == part.section.text_end_bytes else text_slice.end
        yield from _record_rows(reader.read(stop, text_slice), part)


def _read_state_segment(text: Text, parts: list[ScanRange]) -> Iterator[NamedRows | Batches]:
    """The same for a segment, whose headers are read once."""
    reader = StateSegmentReader(text, parts[0].section.partition)
    for part in parts:
        headers = headers_of(text, part)
        yield from _record_rows(reader.read(headers), part)
        batches = scan_headers(text, part, headers, reader.is_right)
        if batches:
            yield batches


def _record_rows(items: Items, part: ScanRange) -> Iterator[NamedRows]:
    """Rows of a table, also of records that come one by one; and what was not understood."""
    table = TRANSACTION_STATES if part.section.kind in STATE_KINDS else _TABLES_OF_PRODUCERS[part.section.kind]
    for are_rows, alike in groupby(items, key=lambda item: isinstance(item, pa.RecordBatch)):
        while chunk := list(islice(alike, 1 if are_rows else _ROWS_PER_BATCH)):
            rejects = [item for item in chunk if isinstance(item, Reject)]
            if rejects:
                yield REJECTED, _rejected(rejects, part)
            records: list[Any] = [item for item in chunk if not isinstance(item, Reject)]
            if records and not are_rows:
                records = [batch_of(ReadStateRecord, records, schema_read(table))]
            for rows in records:
                yield table.name, part.placed(rows, table)
                if table is TRANSACTION_STATES:
                    yield from _moments(rows, part)


def _moments(rows: pa.RecordBatch, part: ScanRange) -> Iterator[NamedRows]:
    """The newest broker clock in states."""
    moments = [
        ms for clock in ("last_update_ms", "recorded_ms") if (ms := pc.max(rows.column(clock)).as_py()) is not None
    ]
    if moments:
        yield MOMENTS, pa.RecordBatch.from_pylist([{"input_id": part.input_id, "moment_ms": max(moments)}])


def _rejected(rejects: list[Reject], part: ScanRange) -> pa.RecordBatch:
    place = part.input_id, part.section.index
    spans = [RejectedSpan(*place, each.offset_bytes, each.length_bytes, each.reason) for each in rejects]
    return batch_of(RejectedSpan, spans, _REJECTED_SCHEMA)
