"""Batch lines that stand inside a record: text of a client, even where it continues the position chain.

A client can know where its batch will end in the segment, and print the batch line that would follow. What it cannot
change is that its record line states the size of its text. (Header keys have no printed size; a shallow dump prints
none of them.)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from txn_analysis.read.dump.proof.record_walk import BatchRange, Measured, measure_records

if TYPE_CHECKING:
    from txn_analysis.columns.arrays import Array
    from txn_analysis.read.dump.batch_lines import Candidates
    from txn_analysis.read.dump.lines import Lines
    from txn_analysis.read.dump.proof.record_lines import OwnRecords
    from txn_analysis.read.dump.regions import Regions


@dataclass(frozen=True)
class Standing:
    """Candidates that can be batch lines, and what speaks against them; the arrays are parallel.

    `is_doubtful`: it stands inside the records of another one, and either could be the client's, as the slice begins in
    the middle of a segment, or behind records whose text cannot be measured. `is_unsure`: it may stand inside the
    records of another one; a batch that follows it in the chain would show that it does not.
    """

    batches: Candidates
    is_doubtful: Array
    is_unsure: Array

    def is_contested(self, chosen: Array, *, ends_segment: bool) -> Array:
        """Which of the chosen ones are not proven to be batch lines."""
        unsure = self.is_unsure[chosen]
        is_at_end = np.logical_and.accumulate(unsure[::-1])[::-1]
        contested: Array = self.is_doubtful[chosen] | (is_at_end if ends_segment else np.zeros_like(unsure))
        return contested


def all_outside(found: Candidates) -> Standing:
    """Where no line can stand inside a record."""
    none = np.zeros(len(found), bool)
    return Standing(found, none, none)


def outside_records(
    lines: Lines,
    found: Candidates,
    own: OwnRecords,
    *,
    starts_segment: bool,
    ends_segment: bool,
    has_header_keys: bool = True,
) -> Standing:
    """Leaves out the lines inside records of proven batch lines, and names the doubtful ones.

    Args:
        lines: the slice.
        found: its candidates.
        own: what is known of the text under each of them; only where it is not whole, records are walked.
        starts_segment: the slice begins where the segment's body does.
        ends_segment: the slice ends where the segment's body does.
        has_header_keys: its records may have some; those that brokers write have none.
    """
    regions = own.regions
    is_kept, is_doubtful, is_unsure = (np.full(len(found), value) for value in (True, False, False))
    # Up to the first one whose records are not measured to their end, each line is proven by the one before it.
    is_proven = starts_segment
    for k in np.flatnonzero(~own.is_whole & (regions.record_count > 0)).tolist():
        if not is_kept[k]:
            continue
        start, batch = int(regions.start[k]), BatchRange.of(found, k)
        measured = measure_records(lines.data, start, len(lines.data), batch, has_header_keys=has_header_keys)
        if has_header_keys and measured.record_count < batch.record_count:
            measured = _hidden(measured, lines.data, start, batch, found, k, regions)
        is_measured = measured.record_count == batch.record_count
        end = int(np.searchsorted(regions.line_start, start + measured.length))
        reach = int(np.searchsorted(regions.line_start, start + measured.reach))
        if is_proven:
            is_kept[k + 1 : end] = False
        else:
            is_doubtful[k + 1 : end] = True
        is_unsure[max(k + 1, end) : reach] = True
        is_doubtful[k] |= start + measured.reach > len(lines.data) and not ends_segment
        is_proven = is_proven and is_measured
    return Standing(found.take(np.flatnonzero(is_kept)), is_doubtful[is_kept], is_unsure[is_kept])


def _hidden(
    measured: Measured, data: bytes, start: int, batch: BatchRange, found: Candidates, k: int, regions: Regions
) -> Measured:
    """The records of batch line `k`, which can only be read with batch lines in their header keys, if at all.

    That is believed if the line behind them is the one that follows in the chain; else it is only how far they reach.
    """
    hiding = measure_records(data, start, len(data), batch, hides_in_headers=True)
    if hiding.record_count < batch.record_count:
        return measured
    after, c = int(np.searchsorted(regions.line_start, start + hiding.length)), found.columns
    if after < len(found) and c["position"][after] == c["position"][k] + c["size"][k]:
        return hiding
    return replace(measured, reach=max(measured.reach, hiding.reach))
