"""Reads files of a log directory by the product's own path, without Spark."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.tools.bodies import plain_rows
from tests.tools.compiling import NEVER, NOTHING, loading_takes
from txn_analysis.kafka.batch_headers import PEEK_BYTES
from txn_analysis.kafka.names import BINARY_VERIFIED, LOG, LOG_KINDS, SNAPSHOT, STATE, TXNINDEX
from txn_analysis.reading.inputs.broker_files import Sorted, sort_out, whole_file
from txn_analysis.reading.inputs.broker_survey import survey_broker_file, survey_content
from txn_analysis.reading.inputs.find_files import SourceFile, find_files
from txn_analysis.reading.inputs.planned_input import PlannedInput
from txn_analysis.reading.inputs.planning import split_ranges
from txn_analysis.reading.log_dir.producer_files import read_snapshot_file, read_txnindex_file
from txn_analysis.reading.log_dir.segment import headers_of, scan_segment
from txn_analysis.reading.state.segment import StateSegmentReader
from txn_analysis.reading.text.section import ScanRange, Section
from txn_analysis.reading.text.text import Text
from txn_analysis.reading.text.window import Reject
from txn_analysis.tables import LOG_BATCHES
from txn_analysis.tables.batches import Batches

Row = dict[str, Any]


def read_state_segment(text: Text, section: Section) -> list[Any]:
    """The records of a segment of `__transaction_state` as rows, the same in machine code and as Python runs it."""
    with loading_takes(NEVER):
        interpreted = _states(text, section)
    with loading_takes(NOTHING):
        assert _states(text, section) == interpreted
    return interpreted


def _states(text: Text, section: Section) -> list[Any]:
    reader, found = StateSegmentReader(text, section.partition), list[Any]()
    for start, end in pairwise((section.text_start_bytes, *section.cuts, section.text_end_bytes)):
        for rows in reader.read(headers_of(text, ScanRange("", None, "input", section, start, end))):
            found += rows.to_pylist()
    return found


_READERS = {STATE: read_state_segment, SNAPSHOT: read_snapshot_file, TXNINDEX: read_txnindex_file}


def sorted_files(*paths: Path) -> dict[SourceFile, Sorted]:
    """What each file under some paths is."""
    files = find_files([str(path) for path in paths])
    heads = []
    for file in files:
        with Text(file.path, None) as text:
            heads.append(text.read(0, PEEK_BYTES))
    return dict(zip(files, sort_out(files, heads), strict=True))


def plans(*paths: Path) -> list[PlannedInput]:
    """The plans of brokers' own files; what is none, or is never evidence, is left out."""
    found = []
    for file, what in sorted_files(*paths).items():
        if isinstance(what, Section):
            plan = survey_broker_file(what, file.path)
            found.append(replace(plan, path=file.path))
    return found


@dataclass
class CountedText(Text):
    """A file in memory that counts what is read of it."""

    data: bytes
    read_bytes: int = 0
    places: list[tuple[int, int]] = field(default_factory=list)

    def read(self, start: int, end: int) -> bytes:
        found = self.data[start:end]
        self.read_bytes += len(found)
        self.places.append((start, end))
        return found


@dataclass(frozen=True)
class Segment:
    """A segment file in memory with its plan."""

    text: CountedText
    plan: PlannedInput

    @classmethod
    def of(cls, data: bytes, *, base_offset: int = 0, kind: str = LOG, is_verified: bool = False) -> Segment:
        text = CountedText(data)
        topic = "__transaction_state" if kind == STATE else "orders"
        file = whole_file(kind, f"{topic}-0/{base_offset:020}.log", len(data), topic, 0, base_offset)
        return cls(text, survey_content(replace(file, grammar=BINARY_VERIFIED) if is_verified else file, text))

    def batches(self) -> list[Row]:
        """Rows of `log_batches`."""
        return [row for batches in self.scanned() for row in batches.rows().to_pylist()]

    def scanned(self) -> list[Batches]:
        """The batches of each range."""
        return _scanned(self.text, self.plan)

    def states(self) -> list[Row]:
        """Rows of `transaction_states`."""
        return plain_rows(read_state_segment(self.text, self.plan.sections[0]))


def batches_of(plan: PlannedInput) -> pa.Table:
    """Rows of `log_batches` of a planned segment."""
    with Text(plan.path, None) as text:
        return pa.Table.from_batches([part.rows() for part in _scanned(text, plan)], LOG_BATCHES.arrow_schema)


def _scanned(text: Text, plan: PlannedInput) -> list[Batches]:
    ranges = [part for task in split_ranges([plan], LOG_KINDS, 1 << 25, 2) for part in task]
    return [found for part in ranges if (found := scan_segment(text, part))]


def scans_of(plan: PlannedInput) -> list[Batches]:
    """The batches of each range of a planned segment."""
    with Text(plan.path, None) as text:
        return _scanned(text, plan)


def rows_of(plan: PlannedInput) -> list[Row]:
    """Rows of the small table that a planned file is of; nothing in it is rejected."""
    (section,) = plan.sections
    with Text(plan.path, None) as text:
        items = list(_READERS[section.kind](text, section))
    assert not any(isinstance(item, Reject) for item in items)
    return plain_rows(items)
