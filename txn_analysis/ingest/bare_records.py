"""Record lines of dumps without payloads, read as columns: the usual case, and by far the fastest to read.

Such a line ends with its header keys, so that there is nothing whose size could be wrong. Lines that are not all like
this are left to `record_sizes`, whose regular expression is the reference; both say the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from txn_analysis.ingest.columns import are_all, are_timestamp_types, different, read_columns
from txn_analysis.ingest.lines import bytes_of

if TYPE_CHECKING:
    from txn_analysis.ingest.lines import Array

_KEY_SIZES, _VALUE_SIZES = (b"keySize:", b"keysize:"), (b"valueSize:", b"valuesize:")
_LABELS = {
    "bar": (b"|",),
    "offset label": (b"offset:",),
    "key size label": _KEY_SIZES,
    "value size label": _VALUE_SIZES,
    "sequence label": (b"sequence:",),
    "header keys label": (b"headerKeys:",),
}
_NUMBERS = ("offset", "timestamp", "key size", "value size", "sequence")
_COLUMNS = (
    *("bar", "offset label", "offset", "timestamp label", "timestamp", "key size label", "key size"),
    *("value size label", "value size", "sequence label", "sequence", "header keys label", "header keys"),
)
_KINDS: dict[str, pa.DataType] = (
    dict.fromkeys(_NUMBERS, pa.int64())
    | dict.fromkeys(("timestamp label", "header keys"), pa.dictionary(pa.int32(), pa.string()))
    | {name: pa.binary(len(words[0])) for name, words in _LABELS.items()}
)
_TYPES = {name: _KINDS[name] for name in _COLUMNS}
_MOST_HEADER_KEYS = 10_000  # different lists of them; more are not worth the look at each
_TEN_DIGITS = 10**10


@dataclass(frozen=True)
class RecordHeads:
    """What each of some record lines says: its offset, -1 where the line is none.

    `is_filled`: key and value fill their sizes. `is_credible`: they do, or replaced characters, another charset or a
    decoder explain why not.
    """

    offset: Array
    is_filled: Array
    is_credible: Array


def read_bare_heads(records: pa.LargeBinaryArray) -> RecordHeads | None:
    """The heads of record lines of tools 2.2 to 2.7 and 3.0 on; None where one of them does not end with its head."""
    read = read_columns(bytes_of(records), _TYPES, len(records))
    if read is None or not (_has_labels(read) and _has_numbers(read) and _has_header_keys(read)):
        return None
    is_bare = np.ones(len(records), bool)
    return RecordHeads(read["offset"].to_numpy(), is_bare, is_bare)


def _has_labels(read: pa.Table) -> bool:
    return are_timestamp_types(read["timestamp label"]) and all(
        any(are_all(read[name], word) for word in words) for name, words in _LABELS.items()
    )


def _has_numbers(read: pa.Table) -> bool:
    short = (read[name].to_numpy() for name in ("key size", "value size", "sequence"))
    is_short = all(bool(((numbers > -_TEN_DIGITS) & (numbers < _TEN_DIGITS)).all()) for numbers in short)
    return is_short and bool((read["offset"].to_numpy() >= 0).all())


def _has_header_keys(read: pa.Table) -> bool:
    """Each list of header keys is closed once, at the end of its line."""
    words = different(read["header keys"])
    return len(words) <= _MOST_HEADER_KEYS and all(
        word.startswith("[") and word.find("]") == len(word) - 1 for word in words
    )
