"""Small sections of logs, of which there may be thousands: many texts, or segments, are read as one set of columns.

What an array operation costs by itself is more than what the batches of a small section cost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txn_analysis.kafka.names import BINARY_GRAMMARS
from txn_analysis.reading.dump.scan import is_shallow, is_small_dump, scan_small_dumps
from txn_analysis.reading.log_dir.segment import is_small_segment, scan_small_segments
from txn_analysis.tables.batches import Batches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from txn_analysis.reading.inputs.planned_input import ScanRange
    from txn_analysis.reading.inputs.text import Text

    ReadTogether = Callable[[Sequence[tuple[ScanRange, bytes]], str], Iterator[Batches | ScanRange]]

TOGETHER_BYTES = 1 << 20


class SmallSections:
    """Those of one task, as they come.

    Attributes:
        left: sections that are to be read one by one, as something about them is unusual.
    """

    def __init__(self, ingest_id: str) -> None:
        self.left: list[ScanRange] = []
        self._ingest_id = ingest_id
        self._dumps, self._segments = _Held(scan_small_dumps), _Held(scan_small_segments)

    def takes(self, text: Text, part: ScanRange) -> bool:
        """Whether a range of a section of a log is all of a small one, which is read now and understood later."""
        is_broker_file = part.section.grammar in BINARY_GRAMMARS
        if not (is_small_segment(part) if is_broker_file else is_small_dump(part)):
            return False
        data = text.read(part.start, part.end)
        if len(data) < part.end - part.start or not (is_broker_file or is_shallow(data)):
            return False
        (self._segments if is_broker_file else self._dumps).add(part, data)
        return True

    def batches(self, *, is_end: bool = False) -> Iterator[Batches]:
        """The batches of sections that were taken, once there are enough of them; of all at the end."""
        for held in (self._dumps, self._segments):
            for found in held.batches(self._ingest_id, is_end=is_end):
                if isinstance(found, Batches):
                    yield found
                else:
                    self.left.append(found)


class _Held:
    """Sections of one kind, with what is in them: groups of which none but the last is added to."""

    def __init__(self, read_together: ReadTogether) -> None:
        self._read_together = read_together
        self._groups: list[list[tuple[ScanRange, bytes]]] = [[]]
        self._last_bytes = 0

    def add(self, part: ScanRange, data: bytes) -> None:
        if self._last_bytes + len(data) > TOGETHER_BYTES:
            self._groups.append([])
            self._last_bytes = 0
        self._groups[-1].append((part, data))
        self._last_bytes += len(data)

    def batches(self, ingest_id: str, *, is_end: bool) -> Iterator[Batches | ScanRange]:
        while len(self._groups) > 1:
            yield from self._read_together(self._groups.pop(0), ingest_id)
        if is_end and self._groups[0]:
            yield from self._read_together(self._groups.pop(), ingest_id)
            self._groups.append([])
