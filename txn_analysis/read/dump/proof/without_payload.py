"""Record lines of dumps without payloads, where there are many: the usual case, and by far the fastest to read.

Such a line ends with its header keys, so that there is nothing whose size could be wrong. Lines that are not all like
this are left to `record_sizes`, whose regular expression is the reference; both say the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from txn_analysis.read.dump.field_reader import read_alike
from txn_analysis.read.dump.forms import BARE_RECORD_FORMS, MARKER_FORMS

if TYPE_CHECKING:
    from txn_analysis.columns.arrays import Array
    from txn_analysis.read.dump.lines import Lines


@dataclass(frozen=True)
class RecordHeads:
    """What each of some record lines says: its offset, -1 where the line is none.

    `is_filled`: key and value fill their sizes. `is_credible`: they do, or replaced characters, another charset or a
    decoder explain why not.
    """

    offset: Array
    is_filled: Array
    is_credible: Array


def read_bare_heads(lines: Lines, index: Array, *, are_control: bool = False) -> RecordHeads | None:
    """The heads of the lines at `index`, of tools 2.2 to 2.7 and 3.0 on; None where one does not end with its head,
    or where the compiled reader is not worth it.

    Of control batches they are end markers, whose line goes on behind the head; in any other batch a client wrote that.
    """
    forms = MARKER_FORMS if are_control else BARE_RECORD_FORMS
    found = read_alike(lines.data, lines.starts[index], lines.ends[index], forms)
    if found is None:
        return None
    read, fits = found
    for k in np.flatnonzero(~fits).tolist():
        one = next(filter(None, (form.read(lines.text(int(index[k]))) for form in forms)), None)
        if one is None:
            return None
        read["offset"][k] = one["offset"]
    is_bare = np.ones(len(index), bool)
    return RecordHeads(read["offset"], is_bare, is_bare)
