"""Which run is asked about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from txn_analysis.errors import WarehouseError
from txn_analysis.runs.run_record import RunRecord
from txn_analysis.tables import RUNS
from txn_analysis.text.escape import clip, escape, shell_word

if TYPE_CHECKING:
    from txn_analysis.storage.stored import Stored

_MOST_NAMED = 3
_WIDTH = 80
_NOTHING = "''"  # as a shell would have it


def wanted_run(warehouse: Stored, cluster: str, run_id: str | None = None) -> RunRecord:
    """A run that was finished; the cluster's last one where none is named.

    Raises:
        WarehouseError: there is no such run; it names the last ones that there are.
    """
    wanted = latest_run(warehouse, cluster) if run_id is None else run_id
    found = warehouse.listed(RUNS, run_id=[wanted])
    if found:
        return RunRecord.of(found[0])
    every = sorted(warehouse.listed(RUNS, "run_id", "run_number", "cluster"), key=lambda run: int(run["run_number"]))
    last = [f"{escape(run['run_id'])} of cluster {escape(run['cluster'])}" for run in every[: -_MOST_NAMED - 1 : -1]]
    there = f"the last ones are {', '.join(last)}" if last else "audit first"
    raise WarehouseError(f"{warehouse.root}: no run {clip(wanted, _WIDTH) or _NOTHING} here: {there}")


def latest_run(warehouse: Stored, cluster: str) -> str:
    """The run that was completed last for a cluster.

    Raises:
        WarehouseError: nothing was run for this cluster yet.
    """
    runs = warehouse.listed(RUNS, "run_id", "run_number", cluster=[cluster])
    if not runs:
        others = sorted({str(run["cluster"]) for run in warehouse.listed(RUNS, "cluster")})
        there = f"give --cluster {' or '.join(map(shell_word, others))}" if others else "audit its files first"
        raise WarehouseError(f"{warehouse.root}: no run of cluster {cluster} yet: {there}")
    return str(max(runs, key=lambda run: int(run["run_number"]))["run_id"])
