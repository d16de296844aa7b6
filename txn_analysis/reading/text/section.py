"""The parts of an input that are read by themselves: its sections, and byte ranges of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from txn_analysis.tables.batches import BatchPlace

if TYPE_CHECKING:
    from txn_analysis.files.store import Version

NO_PARTITION = -1  # a console export does not say which partitions of __transaction_state it covers


@dataclass(frozen=True)
class Section:
    """One `Dumping …` section of an input, the whole text of a console export, or what a broker's own file holds.

    `kind` is log, state (a segment of __transaction_state with decoded records), snapshot, txnindex, console_text or
    console_json. [text_start_bytes, text_end_bytes) is the body, without the lines before it and the trailer after it;
    `torn_bytes` is what the trailer says of an incomplete last batch. Where `is_start_proven` is False, the section can
    be text inside a record of the section before. A broker's own segment can be cut at `cuts`, where batches begin; a
    statement of a checkpoint has the offset in `file_base_offset`, or the word in `stated`.
    """

    kind: str
    topic: str
    partition: int
    file_base_offset: int
    text_start_bytes: int
    text_end_bytes: int
    grammar: str
    dump_path: str = ""
    index: int = 0
    torn_bytes: int = 0
    is_start_proven: bool = True
    stated: str | None = None
    cuts: tuple[int, ...] = ()


@dataclass(frozen=True)
class ScanRange:
    """Bytes [start, end) of one section's body, for one task to parse, in some ingest."""

    path: str
    compression: str | None
    input_id: str
    section: Section
    start: int
    end: int
    version: Version | None = None
    ingest_id: str = ""

    @property
    def place(self) -> BatchPlace:
        """Where batches of it are read."""
        section = self.section
        return BatchPlace(self.ingest_id, self.input_id, section.index, section.topic, section.partition)
