"""Which batches of a slice a client's text could have made, as kafka-dump-log prints payloads and keys raw.

What a batch can hide is bounded by its size: keys and values have printed sizes, and the rest is all that its header
keys have. (A key can begin with `]`, so that a record line never shows that it has none.)
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from txn_analysis.columns.arrays import Array
from txn_analysis.kafka.batch_headers import HEADER_BYTES, Held
from txn_analysis.kafka.names import BROKER_WRITTEN_TOPICS, CODECS
from txn_analysis.reading.dump.records import (
    REPLACED,
    BatchRange,
    BatchText,
    Record,
    is_encoded_otherwise,
    least_bytes,
    walk_records,
)
from txn_analysis.reading.grammar.forms import KEY, PAYLOAD
from txn_analysis.reading.grammar.lines import Candidates, Lines
from txn_analysis.reading.grammar.noise import noise_end, says_stop
from txn_analysis.reading.text.section import Section
from txn_analysis.reading.text.text import Text

_PLAIN = CODECS.index("none")
# A client's compression is taken to be at most twice as good as zlib's: that no batch is too small to hide anything
# behind it would keep every deep dump of a compressed topic inconclusive. Of eleven real captures one lost a true hang.
_THAN_ZLIB = 0.5
_LONGEST_BYTES = 1 << 22
_CONTINUATIONS = bytes(range(0x80, 0xC0))  # in UTF-8, of a character that began before


def may_be_in_records(lines: Lines, under: BatchText, *, ends_segment: bool) -> Array:
    """Lines that may stand inside a record of another one, and that no line behind them shows to be the tool's."""
    line_start, rows = lines.starts[under.batches.line], np.flatnonzero(under.reach > under.end)
    unsure = np.zeros(len(under.batches) + 1, np.int64)
    for bound, change in ((under.end, 1), (under.reach, -1)):
        np.add.at(unsure, np.maximum(np.searchsorted(line_start, bound[rows]), rows + 1), change)
    is_unsure = np.cumsum(unsure[:-1]) > 0
    is_at_end = np.logical_and.accumulate(is_unsure[::-1])[::-1]
    contested: Array = under.is_inside | is_at_end if ends_segment else under.is_inside
    return contested


@dataclass(frozen=True)
class Chain:
    """The batches of a slice of a section, and what stands under its lines that look like batch lines."""

    text: Text | Held
    section: Section
    start: int  # of the slice in the text
    lines: Lines
    under: BatchText
    rows: Array  # those of these lines that are batches
    batches: Candidates  # their lines
    stop: Array  # where the line behind each of them begins, in the slice


def may_be_header_keys(chain: Chain) -> Array:
    """Which of the batches of a slice may stand inside the header keys of a record before them.

    Where that record is in the slice's last batch, and the section goes on, that batch stands for those behind it. What
    contradicts the text from outside of this file is asked where files are linked.
    """
    section, start, lines, under, batches = chain.section, chain.start, chain.lines, chain.under, chain.batches
    begin, stop = lines.stops[batches.line], chain.stop
    room = batches.columns["size"] - HEADER_BYTES
    is_plain = batches.columns["codec"] == _PLAIN
    may_hide = ~np.asarray(batches.columns["is_control"], bool) & (stop > begin)
    doubtful = np.zeros(len(batches), bool)
    # Record lines that are left over may be true ones, behind header keys that print all before them.
    has_more = np.flatnonzero(under.has_more[chain.rows])
    if len(has_more):
        hidden = begin[has_more[-1]] - stop
        can_hide = np.flatnonzero(may_hide & (hidden > 0) & (~is_plain | (hidden < len(REPLACED) * room)))
        doubtful[int(can_hide[0]) + 1 if len(can_hide) else len(doubtful) :] = True
        doubtful |= not len(can_hide) and section.text_start_bytes < start
    left = section.text_end_bytes - start - stop  # text behind each batch
    may_hide &= (left > 0) & (~is_plain | (left < len(REPLACED) * room))
    if not may_hide.any():
        return doubtful
    end = _end_of(chain.text, section)
    packed = np.flatnonzero(may_hide & ~is_plain)
    may_hide[packed] = end.fits(left[packed], room[packed])
    for row in np.flatnonzero(may_hide).tolist():
        batch = BatchRange.of(batches, row)
        walk = walk_records(lines.data, int(begin[row]), int(stop[row]), batch)
        is_whole = noise_end(lines.data, walk.end, int(stop[row])) == stop[row]
        is_whole &= len(walk.records) == batch.record_count
        behind = int(left[row] + stop[row] - walk.end)  # noise is header keys first
        has_room = not is_plain[row] or end.least_bytes(behind) < room[row] - least_bytes(walk.records)
        if not is_whole or (has_room and end.can_end(behind, walk.records[-1])):
            doubtful[row if row == len(batches) - 1 else row + 1 :] = True
            break
    return doubtful


def noise_ends(chain: Chain, is_doubted: Array) -> tuple[Array, Array]:
    """Where the text of each of the batches ends with the noise behind it, and which stand behind a line that says that
    the tool stopped; `is_doubted` says which can be text of a client.

    Noise is taken away where no header key can go on: in a text without records, behind a broker's own records, behind
    those of a batch without room for it, or where the text does not end as a record must.
    """
    lines, stop, end = chain.lines, chain.stop, chain.under.end[chain.rows].copy()
    has_stopped = np.zeros(len(end), bool)
    for row in np.flatnonzero((end < stop) & ~is_doubted).tolist():
        at = noise_end(lines.data, int(end[row]), int(stop[row]))
        is_stop = says_stop(lines.data, at, int(stop[row]))
        if not (at > end[row] or is_stop):
            continue
        # Between a line of a batch and its first record no client's text stands.
        has_no_record = is_stop and end[row] == lines.stops[chain.batches.line[row]]
        if not (has_no_record or _is_closed(chain, row, int(stop[row]) if is_stop else at)):
            continue
        end[row] = at
        if is_stop and chain.start + stop[row] < chain.section.text_end_bytes:
            has_stopped[row if row == len(end) - 1 else row + 1 :] = True
    return end, has_stopped


def _is_closed(chain: Chain, row: int, at: int) -> bool:
    """Whether a batch has all of its records, and what stands behind them, up to `at`, can be none of their keys."""
    lines, under, columns = chain.lines, chain.under, chain.batches.columns
    if not under.prints_records:
        return True
    batch, number = BatchRange.of(chain.batches, row), int(chain.rows[row])
    if under.record_count[number] < batch.record_count:
        return False
    if columns["is_control"][row] or chain.section.topic in BROKER_WRITTEN_TOPICS:
        return True
    own_end = int(under.end[number])
    records = walk_records(lines.data, int(lines.stops[chain.batches.line[row]]), own_end, batch).records
    if len(records) < batch.record_count:
        return False
    room = int(columns["size"][row]) - HEADER_BYTES - least_bytes(records)
    if columns["codec"][row] == _PLAIN and at - own_end > len(REPLACED) * room:
        return True
    end = _end_of(chain.text, chain.section)
    return not end.can_end(chain.section.text_end_bytes - chain.start - own_end, records[-1])


class _End:
    """The end of a section's text: what a record could leave there, and how few bytes of it could print that much."""

    def __init__(self, data: bytes, *, ends_torn: bool) -> None:
        self._data = data
        self._ends_torn = ends_torn
        self._zlib_bytes: dict[int, int] = {}

    def can_end(self, left: int, record: Record) -> bool:
        """Whether the last `left` bytes can be header keys of a record, and what is printed of it behind them."""
        text = self._data[-left:].removesuffix(b"\n")
        sizes = zip((KEY, PAYLOAD), (record.key_bytes, record.value_bytes), strict=True)
        labels = [(label, size) for label, size in sizes if size >= 0]
        if text.endswith(b"]") or not labels:
            return text.endswith(b"]")
        printed = sum(len(label) + size for label, size in labels)
        (first, _), (last, last_size) = labels[0], labels[-1]
        at = len(text) - printed - 1
        if at < 0 or (text.startswith(b"]" + first, at) and text.endswith(last, at, len(text) - last_size)):
            return True
        end = text[-len(REPLACED) * printed :].lstrip(_CONTINUATIONS)
        # The tool prints a line of its own behind a torn end, and so can a value, whose end is not seen then.
        return is_encoded_otherwise(end) or (self._ends_torn and last in end)

    def least_bytes(self, left: int) -> int:
        """The fewest bytes that are printed as the last `left` ones: U+FFFD stands for one or more."""
        seen = self._data[-left:]
        unseen = left - len(seen)
        return len(seen) - (len(REPLACED) - 1) * seen.count(REPLACED) + unseen // len(REPLACED)

    def fits(self, left: Array, room: Array) -> Array:
        """Whether the last `left` bytes could be compressed into less than `room`, as far as a part of them says."""
        powers = np.log2(np.clip(left, 1, _LONGEST_BYTES)).astype(np.int64).tolist()
        fits: Array = np.array([self._compressed_bytes(power) for power in powers]) * _THAN_ZLIB < room
        return fits

    def _compressed_bytes(self, power: int) -> int:
        if power not in self._zlib_bytes:
            self._zlib_bytes[power] = len(zlib.compress(self._data[-(1 << power) :]))
        return self._zlib_bytes[power]


# A task reads the ranges of a section one after another; to read the end of a compressed input is to read all of it.
@lru_cache(maxsize=1)
def _end_of(text: Text | Held, section: Section) -> _End:
    start = max(section.text_start_bytes, section.text_end_bytes - _LONGEST_BYTES)
    return _End(text.read(start, section.text_end_bytes), ends_torn=bool(section.torn_bytes))
