"""From a random history to a rebuilt partition, by the product's functions: dump text, plan, scan, summaries."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tests.tools.forms.broker import ProducerEntry, replay
from tests.tools.forms.dump_writer import Tool, log_section
from tests.tools.forms.model import History
from tests.tools.records import sections_of
from txn_analysis.columns.arrays import Array, known_of, names_in, numbers_of
from txn_analysis.columns.records import records_of
from txn_analysis.log.copies import compare, cuts_of, pairs_to_compare
from txn_analysis.log.rebuild import PartitionEvidence, rebuild_producer_state
from txn_analysis.log.segments import UNCUT, Cuts, log_sections, rival_positions, segments_of
from txn_analysis.log.snapshots import STATED
from txn_analysis.log.summarize import summarize_parts
from txn_analysis.log.transactions import ended_in_linking, open_in_linking
from txn_analysis.reading.dump.scan import scan_range
from txn_analysis.reading.text.section import ScanRange, Section
from txn_analysis.reading.text.text import Text
from txn_analysis.tables import BatchRangeSummary, PartitionHealth, ProducerState, Transaction, UsedBatchRange
from txn_analysis.tables.batches import Batches

Row = dict[str, Any]
INPUT = "input"
NO_CUTS: dict[tuple[str, int], Cuts] = {}


class LinkedPartition(NamedTuple):
    """What linking found of one partition; a transaction is open, or ended with the lead of a batch range."""

    health: PartitionHealth
    transactions: list[Transaction]
    used: list[UsedBatchRange]


class MemoryText(Text):
    """A text in memory, read by byte offsets."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def read(self, start: int, end: int) -> bytes:
        return self.data[start:end]


def sections_and_text(history: History, tool: Tool) -> tuple[list[Section], bytes]:
    """The dump of all segments as one text, and its sections as the planner would find them."""
    text, sections = b"", []
    for index, segment in enumerate(history.segments):
        part = log_section(f"{history.topic}-{history.partition}", segment, tool).encode()
        body = part.index(b"\n", part.index(b"tarting offset: ")) + 1
        path = f"{history.topic}-{history.partition}/{segment.base_offset:020}.log"
        start, end = len(text) + body, len(text) + len(part)
        place = history.topic, history.partition, segment.base_offset
        sections.append(Section("log", *place, start, end, "3.2+", path, index))
        text += part
    return sections, text


def section_row(section: Section, *, rank: int = 0, input_id: str = INPUT) -> Row:
    """A section as reconstruction gets it from `inputs`."""
    names = (
        "kind",
        "topic",
        "partition",
        "file_base_offset",
        "text_start_bytes",
        "text_end_bytes",
        "torn_bytes",
        "is_start_proven",
        "grammar",
    )
    row = {name: getattr(section, name) for name in names}
    return row | {
        "input_id": input_id,
        "section_index": section.index,
        "capture_rank": rank,
        "is_end_proven": True,
        "input_problem": None,
    }


def batches_of(sections: Sequence[Section], text: bytes, *, range_bytes: int, input_id: str = INPUT) -> list[Batches]:
    """The batches of each range, scanned by itself."""
    found = []
    for section in sections:
        for start in range(section.text_start_bytes, section.text_end_bytes, range_bytes):
            end = min(start + range_bytes, section.text_end_bytes)
            found.append(scan_range(MemoryText(text), ScanRange("path", None, input_id, section, start, end)))
    return [batches for batches in found if batches]


def summarized(scanned: Sequence[Batches], cuts: Mapping[tuple[str, int], Cuts] = NO_CUTS) -> list[BatchRangeSummary]:
    """The batch ranges of each scanned range of text."""
    if not scanned:
        return []
    found = summarize_parts(scanned, [cuts.get(part.section, UNCUT) for part in scanned])
    return records_of(BatchRangeSummary, found.pieces)


def with_offsets(rows: list[Row], pieces: list[BatchRangeSummary]) -> list[Row]:
    """The sections with the first and the end offset of their batches, as `inputs` has them."""
    found = []
    for row in rows:
        own = [p for p in pieces if p.section == (row["input_id"], row["section_index"])]
        first = min((p.first_offset for p in own), default=None)
        end = max((p.last_offset + 1 for p in own), default=None)
        rivals = rival_positions((p.first_position, p.end_position) for p in own)
        found.append(row | {"first_offset": first, "end_offset": end, "rival_positions": rivals})
    return found


def linked(rows: list[Row], scanned: Sequence[Batches], snapshot_rows: Sequence[Row] = ()) -> LinkedPartition:
    """Cut where the evidence asks for it, compare the copies that differ, and link."""
    return link(evidence_of(rows, scanned, snapshot_rows))


def evidence_of(rows: list[Row], scanned: Sequence[Batches], snapshot_rows: Sequence[Row]) -> PartitionEvidence:
    """What linking gets of one partition, where no moment of the copy is known."""
    sections = log_sections(sections_of(with_offsets(rows, summarized(scanned))))
    pieces = summarized(scanned, cuts_of(sections))
    segments = segments_of([section for section in sections if section.kind != "snapshot"], pieces)
    table = pa.Table.from_batches([part.rows() for part in scanned]) if scanned else None
    comparisons = {
        pair: compare(*[_side(table, key, pair.start, pair.stop) for key in (pair.a, pair.b)])
        for pair in pairs_to_compare(segments)
    }
    stated = {key: [row for row in snapshot_rows if key_of(row) == key] for key in map(key_of, snapshot_rows)}
    return PartitionEvidence(sections, pieces, {k: stated_by(own) for k, own in stated.items()}, comparisons, None)


def stated_by(rows: Sequence[Row]) -> Array:
    """What rows of `producer_snapshots` state, as the step has it."""
    stated = np.empty(len(rows), STATED)
    for name in names_in(STATED):
        stated[name] = numbers_of(row[name] for row in rows)
    return stated


def link(given: PartitionEvidence) -> LinkedPartition:
    """What linking finds of one partition."""
    found = rebuild_producer_state(given)
    place, gaps = {"topic": found.health.topic, "partition": found.health.partition}, found.evidence_gaps

    def lie(count: int) -> dict[str, pa.Array]:
        return {name: pa.repeat(value, count) for name, value in place.items()}

    rows = [
        *([open_in_linking(lie(len(gaps)), found.opened, gaps)] if found.opened else []),
        *([ended_in_linking(lie(len(found.ended["end_offset"])), found.ended)] if found.ended else []),
    ]
    producers = zip(*(known_of(found.producers[name]) for name in ProducerState._fields), strict=True)
    health = found.health._replace(producers=tuple(map(ProducerState._make, producers)))
    return LinkedPartition(health, [t for part in rows for t in records_of(Transaction, part)], found.used)


def key_of(row: Row) -> tuple[str, int]:
    """The section that a row is of."""
    return row["input_id"], row["section_index"]


def _side(table: pa.Table, key: tuple[str, int], start: int, stop: int) -> pa.Table:
    is_own = pc.and_(pc.equal(table["input_id"], key[0]), pc.equal(table["section_index"], key[1]))
    is_inside = pc.and_(pc.greater_equal(table["base_offset"], start), pc.less(table["base_offset"], stop))
    return table.filter(pc.and_(is_own, is_inside))


def snapshot_evidence(history: History, offset: int) -> tuple[Row, list[Row]]:
    """A producer snapshot at `offset`, as its section and its rows."""
    section = {
        "input_id": f"snapshot-{offset}",
        "section_index": 0,
        "kind": "snapshot",
        "topic": history.topic,
        "partition": history.partition,
        "file_base_offset": offset,
        "capture_rank": 0,
        "is_start_proven": True,
        "is_end_proven": True,
        "input_problem": None,
    }
    entries = replay(history.batches, below=offset, from_offset=history.segments[0].base_offset).snapshot()
    return section, [snapshot_row(section, producer_id, entry) for producer_id, entry in entries.items()]


def snapshot_row(section: Row, producer_id: int, entry: ProducerEntry) -> Row:
    """One producer of a snapshot."""
    return {
        "input_id": section["input_id"],
        "section_index": 0,
        "snapshot_offset": section["file_base_offset"],
        "producer_id": producer_id,
        "producer_epoch": entry.producer_epoch,
        "coordinator_epoch": entry.coordinator_epoch,
        "current_txn_start_offset": entry.txn_start_offset,
        "last_timestamp_ms": entry.last_timestamp_ms,
        "last_sequence": entry.last_sequence,
        "last_offset": entry.last_offset,
    }


def link_history(
    history: History, tool: Tool, *, range_bytes: int, snapshots: Sequence[int] = (), from_segment: int = 0
) -> LinkedPartition:
    """The whole path for one partition, with snapshots at some offsets and the first segments left out."""
    return link(
        history_evidence(history, tool, range_bytes=range_bytes, snapshots=snapshots, from_segment=from_segment)
    )


def history_evidence(
    history: History,
    tool: Tool,
    *,
    range_bytes: int,
    snapshots: Sequence[int] = (),
    from_segment: int = 0,
    lost: Collection[int] = (),
) -> PartitionEvidence:
    """What linking gets of it; without segments that are `lost` behind the first one.

    What could be text in a record's header keys is a matter of its own: here no line is.
    """
    sections, text = sections_and_text(history, tool)
    kept = [section for section in sections[from_segment:] if section.index not in lost]
    taken = [snapshot_evidence(history, offset) for offset in snapshots]
    rows = [section_row(s) for s in kept] + [section for section, _ in taken]
    scanned = [certain(part) for part in batches_of(kept, text, range_bytes=range_bytes)]
    return evidence_of(rows, scanned, [row for _, found in taken for row in found])


def certain(part: Batches) -> Batches:
    """Batches none of which could be text in a record's header keys."""
    return replace(part, columns={**part.columns, "may_be_header_keys": np.zeros(len(part), bool)})
