"""Record lines of dumps without payloads, where there are many: the usual case, and by far the fastest to read.

Such a line ends with its header keys, so that there is nothing whose size could be wrong. Lines that are not all like
this are left to `record_sizes`, whose regular expression is the reference; both say the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from txn_analysis.ingest.field_reader import read_fields
from txn_analysis.ingest.grammar import BARE_RECORD_FORMS

if TYPE_CHECKING:
    from txn_analysis.ingest.line_form import Array
    from txn_analysis.ingest.lines import Lines


@dataclass(frozen=True)
class RecordHeads:
    """What each of some record lines says: its offset, -1 where the line is none.

    `is_filled`: key and value fill their sizes. `is_credible`: they do, or replaced characters, another charset or a
    decoder explain why not.
    """

    offset: Array
    is_filled: Array
    is_credible: Array


def read_bare_heads(lines: Lines, index: Array) -> RecordHeads | None:
    """The heads of the lines at `index`, of tools 2.2 to 2.7 and 3.0 on; None where one does not end with its head,
    or where the compiled reader is not worth it.
    """
    first = lines.text(int(index[0]))
    form = next((form for form in BARE_RECORD_FORMS if form.read(first) is not None), None)
    if form is None:
        return None
    found = read_fields(lines.data, lines.starts[index], lines.ends[index], form)
    if found is None:
        return None
    read, fits = found
    for k in np.flatnonzero(~fits).tolist():
        one = form.read(lines.text(int(index[k])))
        if one is None:
            return None
        read["offset"][k] = one["offset"]
    is_bare = np.ones(len(index), bool)
    return RecordHeads(read["offset"], is_bare, is_bare)
