"""The physical lines of one slice of a dump, its batch lines and end markers as columns, and the heads of record lines.

Where there are many, the compiled reader takes those that fit a form exactly; the others are read line by line with a
form's regular expression. Both give the same rows. Formats: kafka-formats.md, 1.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from txn_analysis.columns.arrays import ABSENT, Array, rows_at
from txn_analysis.kafka.names import (
    CODECS,
    CONTROL_KEY_BYTES,
    END_MARKERS,
    INT32_MAX,
    MARKER_VALUE_BYTES,
)
from txn_analysis.reading.grammar.field_reader import NO_FORM, index_lines, read_every_line, read_lines, read_run
from txn_analysis.reading.grammar.forms import (
    ANY_BATCH,
    CONTROL_NAMES,
    END_MARKER,
    LINE_STARTS,
    MARKER_FORMS,
    NAMED_CONTROL,
    OLD_RECORD,
    OTHER_CONTROL,
    RECORD,
    RECORD_2_8,
)
from txn_analysis.reading.grammar.line_form import either
from txn_analysis.reading.grammar.noise import noise_end

COLUMNS = ANY_BATCH.names
_FLAGS = ("is_transactional", "is_control", "is_valid")
_MAGIC_2, _MAGIC_BEFORE = 2, 1
_BATCH, _RECORD, _ = range(3)
_KEPT = re.compile(rb"(?m)^" + LINE_STARTS.fields[0].value.pattern + rb"[^\n]*")


@dataclass(frozen=True)
class Lines:
    """The physical lines of a slice that begin like a batch or record line, in file order.

    `starts` and `ends` are byte offsets in `data`, newline excluded; `kinds` tell which it is. `run` are the batch
    lines that the slice begins with, as far as the compiled reader read them: all, in a shallow dump. Other lines
    are not kept, so that a slice of nothing but newlines costs no memory beyond its own bytes.
    """

    data: bytes
    starts: Array
    ends: Array
    kinds: Array
    run: Candidates

    @classmethod
    def of(cls, data: bytes) -> Lines:
        """Split at newlines only; the last line may lack one."""
        run, ends = read_run_of_batches(data)
        stops = np.append(0, ends + 1)
        indexed, at = index_lines(data, int(stops[-1]), LINE_STARTS) or ([], int(stops[-1]))
        parts = ((stops[:-1], ends, np.full(len(run), _BATCH, np.int8)), *indexed, _index_by_pattern(data, at))
        starts, line_ends, kinds = (np.concatenate(column) for column in zip(*parts, strict=True))
        return cls(data, starts, line_ends, kinds, run)

    @cached_property
    def stops(self) -> Array:
        """The byte after each line, its newline included."""
        stops: Array = np.minimum(self.ends + 1, len(self.data))
        return stops

    @cached_property
    def record_lines(self) -> Array:
        """Indexes of the lines that begin like a record line."""
        return np.flatnonzero(self.kinds == _RECORD)

    def is_record_line(self, index: Array) -> Array:
        """Whether the lines at `index` begin like record lines."""
        is_record: Array = self.kinds[index] == _RECORD
        return is_record

    def text(self, line: int) -> bytes:
        """One line without its newline."""
        return self.data[self.starts[line] : self.ends[line]]


def _index_by_pattern(data: bytes, at: int) -> tuple[Array, Array, Array]:
    """The lines from `at` on, which is where one begins."""
    words = LINE_STARTS.fields[0].value.words
    lines_of = [(*line.span(), words.index(line[1].decode())) for line in _KEPT.finditer(data, at)]
    starts, ends, kinds = np.array(lines_of or np.empty((0, 3)), np.int64).T
    return starts, ends, kinds.astype(np.int8)


@dataclass(frozen=True)
class Candidates:
    """Lines that read as batch lines, in file order.

    `line` is the index in `Lines`; `columns` has one array for each of COLUMNS: -1 is Kafka's "none", `codec` is a
    place in CODECS, `timestamp_type` one in TIMESTAMP_TYPES, and `magic` is 1 for every format before 2.
    """

    line: Array
    columns: Mapping[str, Array]

    def __len__(self) -> int:
        return len(self.line)

    def take(self, index: Array) -> Candidates:
        """The rows at `index`, which ascends."""
        if len(index) == len(self):
            return self
        first, last = (int(index[0]), int(index[-1])) if len(index) else (0, -1)
        if last - first + 1 == len(index):
            return self._rows(slice(first, last + 1))
        return self._rows(index)

    def _rows(self, index: Array | slice) -> Candidates:
        return Candidates(self.line[index], rows_at(self.columns, index))


def read_batch_lines(lines: Lines) -> Candidates:
    """Every line of the slice that is a batch line of some tool version, by whole-line grammar.

    Lines that only begin like one are left out; the caller sees them as bytes that nothing accounts for.
    """
    if len(lines.run) == len(lines.kinds):  # as in most shallow dumps
        return plausible(lines.run)
    index = np.flatnonzero(lines.kinds != _RECORD)[len(lines.run) :]
    read, is_read = read_every_line(lines.data, lines.starts[index], lines.ends[index], ANY_BATCH)
    others = _candidates(index, read).take(np.flatnonzero(is_read))
    if not len(lines.run):
        return plausible(others)
    columns = {name: np.concatenate([lines.run.columns[name], others.columns[name]]) for name in COLUMNS}
    return plausible(Candidates(np.concatenate([lines.run.line, others.line]), columns))


def read_run_of_batches(data: bytes) -> tuple[Candidates, Array]:
    """The batch lines that a text begins with, and where each ends."""
    read, ends = read_run(data, ANY_BATCH) or ({}, np.empty(0, np.int64))
    return _candidates(np.arange(len(ends)), read), ends


def _candidates(line: Array, read: Mapping[str, Array]) -> Candidates:
    """Lines by the fields of their forms; those of formats 0 and 1 print neither a base offset nor a producer."""
    columns = {name: np.full(len(line), ABSENT) for name in COLUMNS if name not in read} | dict(read)
    is_legacy = columns["base_offset"] == ABSENT
    columns |= {
        "base_offset": np.where(is_legacy, columns["last_offset"], columns["base_offset"]),
        "magic": np.where(is_legacy, _MAGIC_BEFORE, _MAGIC_2),
        "codec": columns["codec"] % len(CODECS),
    }
    return Candidates(line, columns | {name: columns[name] > 0 for name in _FLAGS})


def read_batch_line(text: bytes) -> dict[str, int] | None:
    """The COLUMNS of one line, or None where it is no batch line."""
    read = ANY_BATCH.read(text)
    if read is None:
        return None
    absent = dict.fromkeys(COLUMNS, ABSENT) | dict.fromkeys(_FLAGS, 0) | {"base_offset": read["last_offset"]}
    magic = _MAGIC_2 if "base_offset" in read else _MAGIC_BEFORE
    return absent | read | {"magic": magic, "codec": read["codec"] % len(CODECS)}


def plausible(candidates: Candidates) -> Candidates:
    """Leave out lines whose numbers no broker writes: offsets and sizes that run backwards, fields below -1.

    The largest offset is left out too: an offset after it would have no number.
    """
    c = candidates.columns
    good = (c["base_offset"] >= 0) & (c["last_offset"] >= c["base_offset"]) & (c["position"] >= 0) & (c["size"] > 0)
    good &= c["last_offset"] < np.iinfo(np.int64).max
    good &= c["record_count"] <= c["last_offset"] - c["base_offset"] + 1
    good &= c["position"] <= np.iinfo(np.int64).max - c["size"]
    for name in ("record_count", "producer_id", "producer_epoch", "base_sequence", "last_sequence", "leader_epoch"):
        good &= c[name] >= ABSENT
    good &= (c["record_count"] >= 0) | (c["magic"] < _MAGIC_2)
    return candidates if good.all() else candidates.take(np.flatnonzero(good))


_OF_RECORD = ("offset", "timestamp", "key_bytes", "value_bytes")
_NEW, _OF_2_8, _OLD = (
    re.compile(form.bounded(*_OF_RECORD, "is_valid", header_keys=rb"\[")) for form in (RECORD, RECORD_2_8, OLD_RECORD)
)


class RecordHead(NamedTuple):
    """The numbers of a record's line, -1 for null and for no time; `end` is behind the bracket of its header keys."""

    offset: int
    timestamp_ms: int
    key_bytes: int
    value_bytes: int
    is_valid: bool
    end: int


def read_head(data: bytes, at: int, stop: int) -> RecordHead | None:
    """The head of the record line that begins at a byte, of tools 2.2 on; None where none does that ends by `stop`."""
    if printed := _NEW.match(data, at, stop):  # as nearly all are, so that nothing is looked up by name
        offset, timestamp_ms, key_bytes, value_bytes = map(int, printed.groups())
        return RecordHead(offset, timestamp_ms, key_bytes, value_bytes, True, printed.end())
    return _head(_OF_2_8.match(data, at, stop))


def read_old_head(data: bytes, at: int, stop: int) -> RecordHead | None:
    """The same of tools up to 2.1, whose records stand alone, without batch lines."""
    return _head(_OLD.match(data, at, stop))


def _head(printed: re.Match[bytes] | None) -> RecordHead | None:
    if printed is None:
        return None
    offset, timestamp_ms, key_bytes, value_bytes = map(int, printed.group(*_OF_RECORD))
    return RecordHead(offset, timestamp_ms, key_bytes, value_bytes, printed["is_valid"] == b"true", printed.end())


_MARKER = re.compile(
    rb"\]"
    + either(
        END_MARKER.bounded("marker", "coordinator_epoch", coordinator_epoch=rb"-1|\d{1,10}"),
        OTHER_CONTROL.bounded("control_type"),
        NAMED_CONTROL.bounded("control_name"),
    )
)
"""What stands behind the header keys of a control record, which has none."""


class Regions(NamedTuple):
    """The text under each batch line, up to the next one; the arrays are parallel.

    `first_record` is the first of its record lines among all of the slice. `is_plain`: it is exactly as many record
    lines as its batch counts, one line each.
    """

    line_start: Array  # of the batch line itself
    start: Array
    stop: Array
    first_record: Array
    is_plain: Array

    @classmethod
    def of(cls, lines: Lines, candidates: Candidates) -> Regions:
        """The regions of some batch lines."""
        line_start, start = lines.starts[candidates.line], lines.stops[candidates.line]
        stop = np.append(line_start[1:], len(lines.data))
        record_start = lines.starts[lines.record_lines]
        first, behind = np.searchsorted(record_start, start), np.searchsorted(record_start, stop)
        total = np.append(0, np.cumsum(lines.stops[lines.record_lines] - record_start))
        is_plain = (total[behind] - total[first] == stop - start) & (
            behind - first == candidates.columns["record_count"]
        )
        return cls(line_start, start, stop, first, is_plain)


def read_markers(lines: Lines, batches: Candidates) -> tuple[Array, Array, Array]:
    """The end markers in some batches: what each says, its coordinator epoch, and which of the batches have one.

    A marker is believed only in a control batch of one record, with that batch's offset, a key of 4 bytes and, for an
    end marker, a value of 6 (kafka-formats.md, 1.5, rule 6).
    """
    words = np.full(len(batches), None, object)
    epochs = np.full(len(batches), ABSENT, np.int64)
    is_read = np.zeros(len(batches), bool)
    rows = np.flatnonzero(batches.columns["is_control"] & (batches.columns["record_count"] == 1))
    rows = rows[batches.line[rows] + 1 < len(lines.starts)]
    index = batches.line[rows] + 1
    is_next = lines.is_record_line(index) & are_only(noise_end, lines.data, lines.stops[index - 1], lines.starts[index])
    rows, index = rows[is_next], index[is_next]
    offsets = batches.columns["base_offset"][rows]
    fits = np.zeros(len(rows), bool)
    if many := read_lines(lines.data, lines.starts[index], lines.ends[index], MARKER_FORMS):
        read, fits = many[0], many[1] != NO_FORM
        kept = fits & (read["offset"] == offsets)
        words[rows[kept]] = np.array(END_MARKERS, object)[read["marker"][kept]]
        epochs[rows[kept]] = read["coordinator_epoch"][kept]
        is_read[rows[kept]] = True
    for k in np.flatnonzero(~fits).tolist():
        if (one := _read_marker(lines.text(int(index[k])), int(offsets[k]))) is not None:
            words[rows[k]], epochs[rows[k]], is_read[rows[k]] = *one, True
    return words, epochs, is_read


def _read_marker(line: bytes, offset: int) -> tuple[str, int] | None:
    head = read_head(line, 0, len(line))
    printed = _MARKER.fullmatch(line, head.end) if head else None
    if head is None or printed is None or head.offset != offset:
        return None
    if head.key_bytes != CONTROL_KEY_BYTES or head.value_bytes < 0 or b" sequence: -1 headerKeys: []" not in line:
        return None
    if printed["marker"] is None:
        return CONTROL_NAMES.get(printed["control_name"]) or printed["control_type"].decode(), ABSENT
    epoch = int(printed["coordinator_epoch"])
    return (
        (printed["marker"].decode(), epoch) if head.value_bytes == MARKER_VALUE_BYTES and epoch <= INT32_MAX else None
    )


def are_only(end_of: Callable[[bytes, int, int], int], data: bytes, start: Array, stop: Array) -> Array:
    """Which stretches of whole lines are nothing but what `end_of` goes over; an empty one is."""
    is_nothing_else: Array = start == stop
    for k in np.flatnonzero(~is_nothing_else).tolist():
        is_nothing_else[k] = end_of(data, int(start[k]), int(stop[k])) == stop[k]
    return is_nothing_else
