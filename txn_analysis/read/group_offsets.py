"""Which consumer groups have offsets in a part of `__consumer_offsets`, and of which producers, as rows.

They name readers in the report, and decide nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from txn_analysis.columns.arrays import ABSENT
from txn_analysis.tables import GROUP_OFFSETS

if TYPE_CHECKING:
    from txn_analysis.kafka.batches import Batches, GroupNames


def group_rows(batches: Batches, groups: GroupNames) -> pa.RecordBatch:
    """Rows of `group_offsets` of one scanned range; none where it was not read whole, and so proves nothing.

    Args:
        batches: of the range, a part of `__consumer_offsets`.
        groups: what their records commit offsets of.
    """
    schema = GROUP_OFFSETS.arrow_schema
    if not _is_whole(batches):
        return pa.RecordBatch.from_pylist([], schema)
    columns = batches.columns
    start, last = columns["text_start_bytes"], columns["last_offset"]
    place = batches.place._asdict() | {
        "text_start_bytes": int(start[0]),
        "text_end_bytes": int(start[-1] + columns["text_bytes"][-1]),
    }
    found = [(None, None, int(last[-1])), *_commits(batches, groups)]
    named = [dict(zip(("group_id", "producer_id", "last_offset"), values, strict=True)) for values in found]
    return pa.RecordBatch.from_pylist([place | row for row in named], schema)


def _is_whole(batches: Batches) -> bool:
    """Nothing stands between the batches, and nothing speaks against one of them."""
    columns = batches.columns
    start = columns["text_start_bytes"]
    is_joined = start[1:] == (start + columns["text_bytes"])[:-1]
    return bool(is_joined.all() and not columns["is_contested"].any() and (columns["is_valid"] != 0).all())


def _commits(batches: Batches, groups: GroupNames) -> list[tuple[str, int | None, int]]:
    """Each group and producer once, with the last offset of the last batch in which they meet."""
    names = groups.name.dictionary_encode()
    met = pa.table(
        {
            "name": names.indices,
            "producer_id": batches.columns["producer_id"][groups.batch],
            "last_offset": batches.columns["last_offset"][groups.batch],
        }
    )
    last = met.group_by(["name", "producer_id"], use_threads=False).aggregate([("last_offset", "max")]).to_pydict()
    known = [name.decode(errors="replace") for name in names.dictionary.to_pylist()]
    return [
        (known[name], None if producer_id == ABSENT else producer_id, offset)
        for name, producer_id, offset in zip(last["name"], last["producer_id"], last["last_offset_max"], strict=True)
    ]
