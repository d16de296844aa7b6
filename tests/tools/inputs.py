"""One input read by the product's own functions for bytes, without Spark: survey, plan, scan, records, accounting.

What was read is kept by its content: a mutation changes few of a capture's files, and only those are read again.
"""

from __future__ import annotations

import os
import tempfile
from collections import OrderedDict, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from tests.tools.bodies import plain_rows, read_state_section, read_state_slices
from tests.tools.sessions import no_session
from txn_analysis.kafka.names import LOG_KINDS
from txn_analysis.log.segments import UNCUT, Cuts, SectionKey
from txn_analysis.log.summarize import summarize_parts
from txn_analysis.reading.dump.scan import scan_range
from txn_analysis.reading.grammar.noise import NOISE_LINE
from txn_analysis.reading.inputs.accounting import ReadPiece, rejected_in_log, rejected_outside
from txn_analysis.reading.inputs.find_files import SourceFile
from txn_analysis.reading.inputs.planned_input import PlannedInput
from txn_analysis.reading.inputs.planning import split_ranges
from txn_analysis.reading.inputs.survey_files import survey_files
from txn_analysis.reading.log_dir.producer_files import read_snapshot_section, read_txnindex_section
from txn_analysis.reading.state.console_export import read_console_json, read_console_text
from txn_analysis.reading.text.section import Section
from txn_analysis.reading.text.text import Text
from txn_analysis.reading.text.window import Reject
from txn_analysis.tables import ABORTED_TRANSACTIONS, PRODUCER_SNAPSHOTS, TRANSACTION_STATES
from txn_analysis.tables.batches import Batches
from txn_analysis.tables.inputs import RejectedSpan
from txn_analysis.tables.logs import TextGap

Row = dict[str, Any]

RANGE_BYTES = 33_554_432
READERS = {
    "state": (read_state_section, TRANSACTION_STATES),
    "console_text": (read_console_text, TRANSACTION_STATES),
    "console_json": (read_console_json, TRANSACTION_STATES),
    "snapshot": (read_snapshot_section, PRODUCER_SNAPSHOTS),
    "txnindex": (read_txnindex_section, ABORTED_TRANSACTIONS),
}
"""By the kind of a section what reads it whole, and the table of its rows."""
_STRUCTURE = (b"Dumping ", b"Starting offset: ", b"Log starting offset: ", b"Found ", b"kafka.serializer.")
_KEPT_INPUTS = 512
_KEPT_FOLDS = 8


class ReadInput:
    """One content: its plan, its batches, its records and what was rejected of it.

    `unaccounted_bytes` are bytes that are neither parsed nor in exactly one rejected span.
    """

    def __init__(self, planned: PlannedInput, batches: list[Batches], records: list[Row]) -> None:
        """Hold what was read; batches are of one range each, records are rows of all small tables."""
        self.planned, self.batches, self.records = planned, batches, records
        self.rejects: list[RejectedSpan] = []
        self.unaccounted_bytes = 0
        self._folds: OrderedDict[tuple[Any, ...], list[Row]] = OrderedDict()
        self.moment_ms = self._newest_moment()

    def pieces(self, cuts: Mapping[SectionKey, Cuts]) -> list[Row]:
        """Its rows of `log_pieces`, cut at the given offsets of its sections."""
        own = {key: cut for key, cut in cuts.items() if key[0] == self.planned.input_id}
        known = tuple((key, tuple(cut.offsets), tuple(cut.positions)) for key, cut in sorted(own.items()))
        if known not in self._folds:
            bounds = [own.get(batches.section, UNCUT) for batches in self.batches]
            self._folds[known] = summarize_parts(self.batches, bounds).pieces.to_pylist() if bounds else []
            if len(self._folds) > _KEPT_FOLDS:
                self._folds.popitem(last=False)
        return self._folds[known]

    def offsets(self, section_index: int) -> tuple[int | None, int | None]:
        """First offset of a section's batches, and the one after its last; None where it has none."""
        found = [piece for piece in self.pieces({}) if piece["section_index"] == section_index]
        if not found:
            return None, None
        return min(p["first_offset"] for p in found), max(p["last_offset"] for p in found) + 1

    def _newest_moment(self) -> int | None:
        moments = [row.get(name) for row in self.records for name in ("last_update_ms", "recorded_ms")]
        moments += [piece["max_moment_ms"] for piece in self.pieces({})]
        return max((ms for ms in moments if ms is not None), default=None)


@dataclass(frozen=True)
class InputReader:
    """Reads contents through files in `folder`, which hold nothing between two calls."""

    folder: Path
    kept: OrderedDict[tuple[bytes, int], ReadInput]

    @classmethod
    def in_memory(cls) -> InputReader:
        """A reader whose files are in memory where the system has such a folder."""
        shared = Path("/dev/shm")
        folder = tempfile.mkdtemp(prefix="txn-torture-", dir=shared if os.access(shared, os.W_OK) else None)
        return cls(Path(folder), OrderedDict())

    def close(self) -> None:
        """Remove the folder."""
        self.folder.rmdir()

    def read(self, data: bytes, range_bytes: int = RANGE_BYTES) -> ReadInput:
        """What the product makes of a file with this content."""
        key = blake2b(data, digest_size=16).digest(), range_bytes
        if key not in self.kept:
            path = self.folder / "input"
            path.write_bytes(data)
            try:
                self.kept[key] = _read(SourceFile(str(path), len(data)), range_bytes)
            finally:
                path.unlink()
            if len(self.kept) > _KEPT_INPUTS:
                self.kept.popitem(last=False)
        self.kept.move_to_end(key)
        return self.kept[key]


def _read(file: SourceFile, range_bytes: int) -> ReadInput:
    (planned,), _, _ = survey_files(no_session, [file])
    batches: list[Batches] = []
    records: list[Row] = []
    rejects = rejected_outside(planned)
    with Text(planned.path, planned.compression) as text:
        for group in split_ranges([planned], LOG_KINDS, range_bytes, 1):
            batches += [scanned for part in group if (scanned := scan_range(text, part))]
        for section in planned.sections:
            for item in _records(text, planned.input_id, section, range_bytes):
                if isinstance(item, RejectedSpan):
                    rejects.append(item)
                else:
                    records.append(item)
    found = ReadInput(planned, batches, records)
    found.rejects = rejects + _rejected_in_logs(planned, found.pieces({}))
    found.unaccounted_bytes = _unaccounted_bytes(found, file)
    return found


def _records(text: Text, input_id: str, section: Section, range_bytes: int) -> list[Row | RejectedSpan]:
    if section.kind not in READERS or section.text_end_bytes <= section.text_start_bytes:
        return []
    reader, table = READERS[section.kind]
    place = {"input_id": input_id, "section_index": section.index}
    absent = dict.fromkeys(table.names)
    if section.kind == "state":
        cuts = range(section.text_start_bytes + range_bytes, section.text_end_bytes, range_bytes)
        items = list(read_state_slices(text, section, cuts))
    else:
        items = list(reader(text, section))
    rejects = [item for item in items if isinstance(item, Reject)]
    return [
        *(RejectedSpan(input_id, section.index, r.offset_bytes, r.length_bytes, r.reason) for r in rejects),
        *(absent | row | place for row in plain_rows(items)),
    ]


def _rejected_in_logs(planned: PlannedInput, pieces: list[Row]) -> list[RejectedSpan]:
    by_section = defaultdict(list)
    for piece in pieces:
        gaps = tuple(TextGap(**gap) for gap in piece["text_gaps"])
        read = {name: piece[name] for name in ReadPiece._fields} | {"text_gaps": gaps}
        by_section[piece["section_index"]].append(ReadPiece(**read))
    logs = [section for section in planned.sections if section.kind == "log"]
    return [r for s in logs for r in rejected_in_log(planned, s, by_section[s.index])]


def _unaccounted_bytes(found: ReadInput, file: SourceFile) -> int:
    """Bytes that are rejected twice, outside of the text, or neither rejected nor anything that can be parsed."""
    planned = found.planned
    at = wrong = 0
    for reject in sorted(found.rejects, key=lambda r: r.offset_bytes):
        end = reject.offset_bytes + reject.length_bytes
        wrong += max(0, at - reject.offset_bytes) + max(0, end - planned.text_bytes) + (reject.length_bytes <= 0)
        at = max(at, end)
    parsed: defaultdict[int, int] = defaultdict(int)
    for batches in found.batches:
        parsed[batches.place.section_index] += int(batches.columns["text_bytes"].sum())
    for section in planned.sections:
        if section.kind == "log":
            rejected = sum(r.length_bytes for r in found.rejects if r.section_index == section.index)
            wrong += abs(section.text_end_bytes - section.text_start_bytes - rejected - parsed[section.index])
    return wrong + _unexplained_outside(found, file)


def _unexplained_outside(found: ReadInput, file: SourceFile) -> int:
    """Bytes outside of all sections that are not rejected, though no line of kafka-dump-log begins there."""
    planned = found.planned
    at = wrong = 0
    taken = [(s.text_start_bytes, s.text_end_bytes) for s in planned.sections]
    taken += [(r.offset_bytes, r.offset_bytes + r.length_bytes) for r in found.rejects]
    with Text(file.path, planned.compression) as text:
        for start, end in [*sorted(taken), (planned.text_bytes, planned.text_bytes)]:
            if start > at:
                lines = text.read(at, start).removesuffix(b"\n").split(b"\n")
                other = [line for line in lines if not line.startswith(_STRUCTURE)]
                wrong += sum(len(line) + 1 for line in other if not NOISE_LINE.match(line + b"\n"))
            at = max(at, end)
    return wrong
