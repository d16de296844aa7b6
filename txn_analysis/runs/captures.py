"""The captures of a warehouse: what was read into it, when it was copied, and which runs judged it."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from txn_analysis.tables import INPUTS, RUNS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from txn_analysis.storage.stored import Stored


class Capture(NamedTuple):
    """One capture of one cluster.

    `newest_moment_ms` is the newest timestamp of a broker's clock in it, by which captures are ordered (decision 0003);
    None without any. `runs` judged it, in the order of their completion.
    """

    cluster: str
    name: str
    newest_moment_ms: int | None
    input_count: int
    size_bytes: int
    runs: tuple[str, ...]


def captures(warehouse: Stored, cluster: str | None = None) -> list[Capture]:
    """The captures of a cluster, or of all; by cluster, oldest first as runs order them.

    Raises:
        WarehouseError: there is no such warehouse, or it is damaged.
    """
    of_cluster = {} if cluster is None else {"cluster": [cluster]}
    inputs = defaultdict(list)
    for row in warehouse.listed(INPUTS, "cluster", "capture", "newest_moment_ms", "size_bytes", **of_cluster):
        inputs[row["cluster"], row["capture"]].append(row)
    runs = defaultdict(list)
    for row in warehouse.listed(RUNS, "cluster", "capture", "run_number", "run_id", **of_cluster):
        runs[row["cluster"], row["capture"]].append((int(row["run_number"]), str(row["run_id"])))
    found = [
        Capture(
            *place,
            max((row["newest_moment_ms"] for row in rows if row["newest_moment_ms"] is not None), default=None),
            len(rows),
            sum(row["size_bytes"] for row in rows),
            tuple(run_id for _, run_id in sorted(runs[place])),
        )
        for place, rows in inputs.items()
    ]
    return sorted(found, key=_order)


def _order(capture: Capture) -> tuple[str, bool, int, str]:
    moment_ms = capture.newest_moment_ms
    return capture.cluster, moment_ms is not None, moment_ms or 0, capture.name


def forgotten(warehouse: Stored, cluster: str, earlier_captures: Sequence[str]) -> tuple[str, ...]:
    """Of the captures that lay behind a run those that the warehouse does not hold any more, oldest first."""
    if not earlier_captures:
        return ()
    held = {row["capture"] for row in warehouse.listed(INPUTS, "capture", cluster=[cluster])}
    return tuple(name for name in earlier_captures if name not in held)
