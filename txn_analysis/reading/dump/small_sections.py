"""Small sections of logs, read many at once.

There may be thousands, and what an array operation costs by itself is more than what the batches of one cost: many
texts, or segments, are read as one set of columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from txn_analysis.columns.arrays import ABSENT, Array, rows_at, together
from txn_analysis.kafka.names import BINARY_GRAMMARS, GROUP_TOPIC, LOG
from txn_analysis.reading.dump.scan import are_linked, as_printed
from txn_analysis.reading.grammar.forms import RECORD_LINE_START
from txn_analysis.reading.grammar.lines import Candidates, plausible, read_run_of_batches
from txn_analysis.reading.log_dir.segment import is_small_segment, scan_small_segments
from txn_analysis.reading.text.section import ScanRange
from txn_analysis.reading.text.text import Text
from txn_analysis.tables.batches import Batches

ReadTogether = Callable[[Sequence[tuple[ScanRange, bytes]]], Iterator[Batches | ScanRange]]

_SMALL_BYTES = 256 << 10
TOGETHER_BYTES = 1 << 20


class SmallSections:
    """Those of one task, as they come.

    Attributes:
        left: sections that are to be read one by one, as something about them is unusual.
    """

    def __init__(self) -> None:
        self.left: list[ScanRange] = []
        self._waiting: dict[ReadTogether, list[tuple[ScanRange, bytes]]] = {
            _scan_small_dumps: [],
            scan_small_segments: [],
        }
        self._waiting_bytes = 0

    def takes(self, text: Text, part: ScanRange) -> bool:
        """Whether a range of a section of a log is all of a small one, which is read now and understood later."""
        is_broker_file = part.section.grammar in BINARY_GRAMMARS
        if not (is_small_segment(part) if is_broker_file else _is_small_dump(part)):
            return False
        data = text.read(part.start, part.end)
        if len(data) < part.end - part.start or not (is_broker_file or _is_shallow(data)):
            return False
        self._waiting[scan_small_segments if is_broker_file else _scan_small_dumps].append((part, data))
        self._waiting_bytes += len(data)
        return True

    def batches(self, *, is_end: bool = False) -> Iterator[Batches]:
        """The batches of sections that were taken, once there are enough of them; of all at the end."""
        if self._waiting_bytes <= TOGETHER_BYTES and not is_end:
            return
        for read_together, waiting in self._waiting.items():
            for group in together(waiting, lambda each: len(each[1]), TOGETHER_BYTES):
                for batches in read_together(group):
                    if isinstance(batches, Batches):
                        yield batches
                    else:
                        self.left.append(batches)
            waiting.clear()
        self._waiting_bytes = 0


def _is_small_dump(part: ScanRange) -> bool:
    """Whether a range is all of a small section, as `_scan_small_dumps` reads it."""
    section = part.section
    is_whole = part.start == section.text_start_bytes and part.end == section.text_end_bytes
    return is_whole and part.end - part.start <= _SMALL_BYTES and section.kind == LOG and section.topic != GROUP_TOPIC


def _is_shallow(text: bytes) -> bool:
    """Whether no record line follows the first line of a section's body."""
    return not text.startswith(RECORD_LINE_START, text.find(b"\n") + 1)


def _scan_small_dumps(read: Sequence[tuple[ScanRange, bytes]]) -> Iterator[Batches | ScanRange]:
    """The batches of some small sections, as `scan_range` finds them in each; one with more than batch lines is left.

    Where a section is nothing but lines of batches that follow each other, no line of it can be a client's.

    Args:
        read: each section with the text of its body; all together no more than a megabyte.
    """
    while read:
        run, ends = read_run_of_batches(b"".join(text for _, text in read))
        line_start = np.append(0, ends + 1)
        starts = np.append(0, np.cumsum([len(text) for _, text in read]))
        first = np.searchsorted(line_start, starts)
        is_read = (starts[1:] <= line_start[-1]) & (line_start[first[:-1] - len(line_start)] == starts[:-1])
        count = 0 if len(plausible(run)) < len(run) else int(np.argmin(np.append(is_read, False)))
        yield from _of_small(read[:count], run, line_start, first.tolist())
        # What is left begins with something else; where nothing was read, few lines are read sooner one by one.
        stop = count + 1 if count else len(read)
        yield from (part for part, _ in read[count:stop])
        read = read[stop:]


def _of_small(
    read: Sequence[tuple[ScanRange, bytes]], run: Candidates, line_start: Array, first: Sequence[int]
) -> Iterator[Batches | ScanRange]:
    """The batches of sections whose texts are nothing but lines of a run; a section whose batches are no chain is left.

    Args:
        read: the sections.
        run: the lines.
        line_start: where each begins in all texts together, and behind the last one where it ends.
        first: the first line of each section, and of what follows.
    """
    is_other, nothing = ~are_linked(run), np.zeros(len(run), bool)
    columns = as_printed(run.columns) | {
        "is_contested": nothing,
        "may_be_header_keys": nothing,
        "text_bytes": np.diff(line_start),
        "record_line_count": np.full(len(run), ABSENT),
        "marker": np.full(len(run), None, object),
        "coordinator_epoch": np.full(len(run), ABSENT, np.int64),
    }
    for (part, _), start, stop in zip(read, first, first[1:], strict=False):
        if start == stop or is_other[start : stop - 1].any():
            yield part
            continue
        rows = slice(start, stop)
        in_text = line_start[rows] - line_start[start] + part.start
        columns_of_range = rows_at(columns, rows) | {"text_start_bytes": in_text}
        yield Batches(part.place, columns_of_range)
