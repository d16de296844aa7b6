"""Which records the text under a batch line shows, and what is left of one behind its header keys."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from txn_analysis.kafka.batch_format import TIMES
from txn_analysis.read.dump.forms import RECORD
from txn_analysis.read.dump.line_form import word
from txn_analysis.read.dump.proof.record_sizes import KEY, PAYLOAD, REPLACED, is_encoded_otherwise
from txn_analysis.read.dump.proof.record_walk import BatchRange, measure_records, stated_sizes
from txn_analysis.read.dump.record_expressions import RECORD_PREFIX

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from txn_analysis.read.dump.batch_lines import Candidates
    from txn_analysis.read.dump.lines import Lines
    from txn_analysis.read.dump.proof.record_lines import OwnRecords

Sizes = tuple[int, int]
"""Bytes of a record's key and value; -1 for none."""

_NO_CONTENT: Sizes = (-1, -1)
_TIME = RECORD.part("timestamp_type", "timestamp")
_TIMESTAMP = re.compile(_TIME.bounded("timestamp", timestamp_type=word(*TIMES).bounded, timestamp=rb"\d+"))
_MOST_SIZES = 64  # a text that shows so many is not looked at further: it can end as one of them
_CONTINUATIONS = bytes(range(0x80, 0xC0))  # in UTF-8, of a character that began before
_MOST_QUESTION_BYTES = 4  # of a character that a terminal's charset replaced by `?`


class Hiding(NamedTuple):
    """Records that may hide what follows: the `sizes` of any of them, and the least `bytes_taken` of their batch.

    What is taken is without header keys.
    """

    sizes: tuple[Sizes, ...]
    bytes_taken: int


@dataclass(frozen=True)
class Shown:
    """The records that the text under a batch line shows, as far as one of them may go on behind it.

    `at_end`: as the last record of the batch. Where the text shows exactly as many records as the batch counts, this is
    the last one; else any of them, of which only the first is surely one: header keys can imitate the others.
    `before_others`: with true records of the batch behind it.
    """

    batch: BatchRange
    at_end: Hiding
    before_others: Hiding


def shown_records(lines: Lines, batch: BatchRange, own: OwnRecords, row: int) -> Shown:
    """The records under the batch line `row` of those that `own` is about."""
    regions = own.regions
    first, count = int(regions.first_record[row]), int(regions.record_count[row])
    starts = lines.starts[regions.records[first : first + count]].tolist()
    heads = [head for at in starts if (head := RECORD_PREFIX.match(lines.data, at))]
    is_sure = bool(own.is_credible[row]) and len(heads) == count
    if not is_sure:
        walked = _walked(lines.data, int(regions.start[row]), int(regions.stop[row]), batch)
        heads, is_sure = (walked, True) if walked else (heads, False)
    unsure = Hiding(_sizes(heads), _record_bytes(heads[:1]))
    return Shown(batch, Hiding(_sizes(heads[-1:]), _record_bytes(heads)) if is_sure else unsure, unsure)


def _sizes(heads: Iterable[re.Match[bytes]]) -> tuple[Sizes, ...]:
    return tuple(dict.fromkeys(stated_sizes(head) for head in heads)) or (_NO_CONTENT,)


def _walked(data: bytes, start: int, stop: int, batch: BatchRange) -> list[re.Match[bytes]]:
    """The heads of exactly as many records as the batch counts, by their sizes; none where the text is not these."""
    heads: list[re.Match[bytes]] = []
    at, base_offset = start, batch.base_offset
    while at < stop and len(heads) < batch.record_count:
        head = RECORD_PREFIX.match(data, at, stop)
        measured = measure_records(data, at, stop, BatchRange(base_offset, batch.last_offset, 1))
        if head is None or not measured.record_count:
            return []
        heads.append(head)
        at, base_offset = at + measured.length, int(head["offset"]) + 1
    return heads if at == stop and len(heads) == batch.record_count else []


def content_proof(lines: Lines, batches: Candidates, own: OwnRecords) -> tuple[int, bool] | None:
    """The first batch that proves whether the dump prints keys and values, and what it proves; None without one.

    A line that ends with the first `]` of its header keys leaves out a value that it has. One that fills its sizes with
    text behind them, and ends otherwise, prints it: header keys end with `]`.
    """
    regions = own.regions
    is_data = own.is_whole & (regions.record_count > 0) & ~np.asarray(batches.columns["is_control"], bool)
    for row in np.flatnonzero(is_data).tolist():
        line = lines.text(int(regions.records[regions.first_record[row]]))
        head = RECORD_PREFIX.match(line)
        if head is None or stated_sizes(head)[1] < 0:
            continue
        if line.find(b"]", head.end()) == len(line) - 1:
            return row, False
        if not line.endswith(b"]"):
            return row, True
    return None


@dataclass(frozen=True)
class Form:
    """What a dump prints: keys and values (None where that is not known), and whether its segment ends torn.

    The tool prints a line of its own behind a torn end, and so can a value: then its end is not seen.
    """

    prints_content: bool | None
    ends_torn: bool

    def can_end(self, text: bytes, sizes: Collection[Sizes], *, is_whole: bool) -> bool:
        """Whether a text ends as a record with key and value of one of these sizes does, behind its header keys.

        Args:
            text: ends before the newline behind the record.
            sizes: what the line of the record states; up to 2.3 tools leave out the key of a null value.
            is_whole: the record's header keys begin in the text; else its beginning was left out.
        """
        is_bare = not self.prints_content or any(value < 0 for _, value in sizes)
        if text.endswith(b"]") and is_bare:
            return True
        if self.prints_content is False:
            return False
        return self.ends_torn or len(sizes) > _MOST_SIZES or any(_is_rest(text, s, is_whole=is_whole) for s in sizes)


def _is_rest(text: bytes, sizes: Sizes, *, is_whole: bool) -> bool:
    labels = [(label, size) for label, size in zip((KEY, PAYLOAD), sizes, strict=True) if size >= 0]
    if not labels:
        return False
    printed = sum(len(label) + size for label, size in labels)
    at = len(text) - printed - 1
    if at < 0 and not is_whole:
        return True
    last_label = len(text) - labels[-1][1] - len(labels[-1][0])
    if at >= 0 and text.startswith(b"]" + labels[0][0], at) and text.startswith(labels[-1][0], last_label):
        return True
    end = text[-len(REPLACED) * printed :].lstrip(_CONTINUATIONS)
    return is_encoded_otherwise(end) and (_is_no_utf8(end) or _is_explained(text, labels[0][0], printed))


def _is_explained(text: bytes, label: bytes, printed: int) -> bool:
    """Whether replaced characters explain that the rest of the record is longer or shorter than `printed`."""
    stop, replaced, questions = len(text), 0, 0
    at = text.rfind(b"]" + label)
    while at >= 0:
        replaced += text.count(REPLACED, at, stop)
        questions += text.count(b"?", at, stop)
        surplus = len(text) - at - 1 - printed
        if -(_MOST_QUESTION_BYTES - 1) * questions <= surplus <= (len(REPLACED) - 1) * replaced:
            return True
        stop, at = at, text.rfind(b"]" + label, 0, at)
    return False


def _is_no_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return True
    return False


def _record_bytes(heads: Iterable[re.Match[bytes]]) -> int:
    """Bytes of records in their batch, without header keys (`DefaultRecord.sizeInBytes`)."""
    first: tuple[int, int] | None = None
    total = 0
    for head in heads:
        key, value = stated_sizes(head)
        time = _TIMESTAMP.search(head[0])
        place = (int(time[1]) if time else 0, int(head["offset"]))
        first = first or place
        deltas = (place[0] - first[0], place[1] - first[1])
        # Attributes and the number of headers take a byte each.
        body = 2 + sum(map(_varint_bytes, (*deltas, key, value))) + max(key, 0) + max(value, 0)
        total += body + _varint_bytes(body)
    return total


def _varint_bytes(value: int) -> int:
    """Length of Kafka's zig-zag variable-length integer (`ByteUtils.sizeOfVarlong`)."""
    zigzag = (value << 1) ^ (value >> 63)
    return max(1, -(-zigzag.bit_length() // 7))
