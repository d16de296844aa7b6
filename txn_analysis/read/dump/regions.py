"""The text between batch lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from txn_analysis.columns.arrays import Array
    from txn_analysis.read.dump.batch_lines import Candidates
    from txn_analysis.read.dump.lines import Lines


@dataclass(frozen=True)
class Regions:
    """The text from each batch line to the next one: its bytes, and the lines in it that begin like a record's."""

    line_start: Array  # of the batch lines themselves
    start: Array
    stop: Array
    records: Array  # the lines of all regions that begin like a record's
    first_record: Array  # of each region, as an index in `records`
    record_count: Array
    is_only_records: Array  # nothing else stands there

    @classmethod
    def of(cls, lines: Lines, batches: Candidates) -> Regions:
        """The regions of some batch lines, each up to the next of them."""
        start = lines.stops[batches.line]
        stop = np.append(lines.starts[batches.line[1:]], len(lines.data))
        records = lines.record_lines
        first = np.searchsorted(lines.starts[records], start)
        end = np.searchsorted(lines.starts[records], stop)
        total = np.append(0, np.cumsum(lines.stops[records] - lines.starts[records]))
        is_only_records = total[end] - total[first] == stop - start
        return cls(lines.starts[batches.line], start, stop, records, first, end - first, is_only_records)

    @property
    def length(self) -> Array:
        """Bytes of each region."""
        length: Array = self.stop - self.start
        return length

    def is_plain(self, count: Array) -> Array:
        """Whether each region is exactly as many record lines as its batch counts, one line each."""
        is_plain: Array = self.is_only_records & (self.record_count == count)
        return is_plain
