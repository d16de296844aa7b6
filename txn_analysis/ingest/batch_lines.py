"""Batch lines of one slice of a dump, as columns.

The fast way reads all batch lines at once as space-separated columns and then holds every label against the grammar;
whatever does not fit exactly is read line by line with the same grammar's regular expression. Both give the same rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from txn_analysis.ingest.columns import are_all, are_timestamp_types, different, read_columns
from txn_analysis.ingest.grammar import (
    ABSENT,
    BATCH_GRAMMARS,
    LEGACY_BATCH,
    BatchGrammar,
)

if TYPE_CHECKING:
    from txn_analysis.ingest.lines import Array, Lines

_RANGES = {
    "base_offset": 2**63,
    "last_offset": 2**63,
    "record_count": 2**31,
    "base_sequence": 2**31,
    "last_sequence": 2**31,
    "producer_id": 2**63,
    "producer_epoch": 2**15,
    "leader_epoch": 2**31,
    "position": 2**63,
    "max_timestamp": 2**63,
    "size": 2**31,
    "crc": 2**32,
    "delete_horizon": 2**63,
}
_NUMBERS = (*_RANGES,)
_FLAGS = ("is_transactional", "is_control", "is_valid")


@dataclass(frozen=True)
class Candidates:
    """Lines that read as batch lines, in file order: `line` is the index in `Lines`, `columns` one array per field."""

    line: Array
    columns: dict[str, Array]

    def __len__(self) -> int:
        return len(self.line)

    def take(self, index: Array) -> Candidates:
        """The rows at `index`."""
        return Candidates(self.line[index], {name: values[index] for name, values in self.columns.items()})


def read_batch_lines(lines: Lines) -> Candidates:
    """Every line of the slice that is a batch line of some tool version, by whole-line grammar.

    Lines that only begin like one are left out; the caller sees them as bytes that nothing accounts for.
    """
    index, legacy = lines.batch_lines, lines.legacy_batch_lines
    columns = _read_columns(lines, index) if len(index) and not len(legacy) else None
    if columns is None:
        return _read_one_by_one(lines, np.sort(np.concatenate([index, legacy])))
    return _plausible(Candidates(index, columns))


def _read_columns(lines: Lines, index: Array) -> dict[str, Array] | None:
    """All lines at once, or None where a single one of them does not fit the first one's grammar."""
    first = lines.text(int(index[0]))
    grammar = next((g for g in BATCH_GRAMMARS if g.pattern.fullmatch(first)), None)
    if grammar is None:
        return None
    read = read_columns(lines.joined(index), _types(grammar), len(index))
    if read is None or not _has_labels(read, grammar):
        return None
    columns = _columns_of(read)
    crc = columns["crc"]
    is_known = (columns["magic"] == 2).all() and ((crc >= 0) & (crc < _RANGES["crc"])).all()
    return columns if is_known else None


def _types(grammar: BatchGrammar) -> dict[str, pa.DataType]:
    types: dict[str, pa.DataType] = {}
    for token in grammar.tokens:
        is_time = token.field == "max_timestamp"
        label_type = pa.dictionary(pa.int32(), pa.string()) if is_time else pa.binary(len(token.label) + 1)
        types |= {"label of " + token.field: label_type, token.field: token.arrow_type}
    return types


def _has_labels(read: pa.Table, grammar: BatchGrammar) -> bool:
    for token in grammar.tokens:
        labels = read["label of " + token.field]
        if token.field == "max_timestamp":
            if not are_timestamp_types(labels):
                return False
        elif not are_all(labels, token.label.encode() + b":"):
            return False
    words = {"codec": _codec_words(), "delete_horizon": None}
    return all(_are_words(read, name, allowed) for name, allowed in words.items())


def _codec_words() -> frozenset[str]:
    names = ("none", "gzip", "snappy", "lz4", "zstd")
    return frozenset([*names, *(name.upper() for name in names)])


def _are_words(read: pa.Table, name: str, allowed: frozenset[str] | None) -> bool:
    if name not in read.column_names:
        return True
    words = different(read[name])
    return all(w in allowed if allowed is not None else _optional_long(w) is not False for w in words)


def _optional_long(word: str) -> int | bool | None:
    """`OptionalLong.empty` is None, `OptionalLong[5]` is 5, anything else False."""
    if word == "OptionalLong.empty":
        return None
    digits = word.removeprefix("OptionalLong[").removesuffix("]")
    is_whole = word == f"OptionalLong[{digits}]" and digits.isascii() and digits.isdigit()
    return int(digits) if is_whole and int(digits) < 2**63 else False


def _columns_of(read: pa.Table) -> dict[str, Array]:
    out = {name: read[name].to_numpy() for name in read.column_names if name in (*_NUMBERS, *_FLAGS)}
    out["magic"] = read["magic"].to_numpy()
    out["codec"] = _decoded(read["codec"], lambda word: word.lower())
    out["timestamp_type"] = _decoded(read["label of max_timestamp"], lambda word: word.removesuffix(":"))
    if "delete_horizon" in read.column_names:
        horizon = _decoded(read["delete_horizon"], _optional_long)
        out["delete_horizon"] = (
            np.array([ABSENT if h is None else h for h in horizon], np.int64)
            if any(h is not None for h in set(horizon))
            else np.full(len(horizon), ABSENT, np.int64)
        )
    else:
        out["delete_horizon"] = np.full(read.num_rows, ABSENT, np.int64)
    return out


def _decoded(column: pa.ChunkedArray, decode: Any) -> Array:
    words = column.combine_chunks()
    values: Array = np.empty(len(words.dictionary), object)
    values[:] = [decode(word) for word in words.dictionary.to_pylist()]
    decoded: Array = values[words.indices.to_numpy()]
    return decoded


def _read_one_by_one(lines: Lines, index: Array) -> Candidates:
    rows = [(line, row) for line in index.tolist() if (row := read_batch_line(lines.text(line))) is not None]
    names = (*_NUMBERS, *_FLAGS, "magic", "codec", "timestamp_type")
    dtypes = dict.fromkeys(_NUMBERS, np.int64) | dict.fromkeys(_FLAGS, np.bool_) | {"magic": np.int8}
    columns = {n: np.array([row[n] for _, row in rows], dtypes.get(n, object)) for n in names}
    return _plausible(Candidates(np.array([line for line, _ in rows], np.int64), columns))


def read_batch_line(text: bytes) -> dict[str, Any] | None:
    """One line as a batch, or None where it is none; the reference for the vectorised reader."""
    for grammar in BATCH_GRAMMARS:
        match = grammar.pattern.fullmatch(text)
        if match:
            return _row(grammar, match.groups())
    legacy = LEGACY_BATCH.fullmatch(text)
    return _legacy_row(legacy.groupdict(), legacy.group(4)) if legacy else None


def _row(grammar: BatchGrammar, groups: tuple[bytes | None, ...]) -> dict[str, Any] | None:
    row: dict[str, Any] = {"delete_horizon": ABSENT, "magic": 2}
    values = iter(groups)
    for token in grammar.tokens:
        word = next(values)
        if token.field == "max_timestamp":
            row["timestamp_type"], word = (word or b"").decode(), next(values)
        if token.field in _FLAGS:
            row[token.field] = word == b"true"
        elif token.field == "codec":
            row["codec"] = (word or b"").decode().lower()
        elif token.field in _RANGES:
            row[token.field] = ABSENT if word is None else int(word)
    in_range = all(-bound <= row[name] < bound for name, bound in _RANGES.items())
    return row if in_range else None


def _legacy_row(groups: dict[str, bytes | None], codec: bytes | None) -> dict[str, Any] | None:
    numbers = {n: int(groups[n] or 0) for n in ("last_offset", "position", "max_timestamp", "size", "crc")}
    row: dict[str, Any] = dict.fromkeys(_NUMBERS, ABSENT) | dict.fromkeys(_FLAGS, False) | numbers
    row |= {"base_offset": numbers["last_offset"], "record_count": ABSENT, "magic": 1}
    row["codec"] = (codec or b"none").decode().lower() if isinstance(codec, bytes) else "none"
    row["timestamp_type"] = (groups["timestamp_type"] or b"").decode()
    row["is_valid"] = (groups["valid_late"] or groups["valid_early"]) == b"true"
    in_range = all(-bound <= row[name] < bound for name, bound in _RANGES.items())
    return row if in_range else None


def _plausible(found: Candidates) -> Candidates:
    """Leave out lines whose numbers no broker writes: offsets and sizes that run backwards, fields below -1.

    The largest offset is left out too: an offset after it would have no number.
    """
    c = found.columns
    good = (c["base_offset"] >= 0) & (c["last_offset"] >= c["base_offset"]) & (c["position"] >= 0) & (c["size"] > 0)
    good &= c["last_offset"] < np.iinfo(np.int64).max
    good &= c["record_count"].astype(np.int64) <= c["last_offset"] - c["base_offset"] + 1
    good &= c["position"] <= np.iinfo(np.int64).max - c["size"].astype(np.int64)
    for name in ("record_count", "producer_id", "producer_epoch", "base_sequence", "last_sequence", "leader_epoch"):
        good &= c[name] >= ABSENT
    good &= (c["record_count"] >= 0) | (c["magic"] < 2)
    return found if good.all() else found.take(np.flatnonzero(good))
