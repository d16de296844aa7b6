"""Taking a capture out of a warehouse: neither its files nor the runs that judged it count any more.

Rows count by the writes that come last (decision 0005), and cease to count by taking those away: first its rows of
`runs`, then those of `inputs`. Whoever is killed between the two has a capture that nobody judged, and takes it away by
the same call again. No other row is touched: an audit that runs meanwhile may have found content of the capture, and
go on to name it.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from txn_analysis.errors import WarehouseError
from txn_analysis.runs.run_tables import captures
from txn_analysis.tables import ABORT_PLAN, INPUTS, RUNS
from txn_analysis.tables.inputs import RunRecord
from txn_analysis.text.escape import escape, shell_option
from txn_analysis.text.words import listed

if TYPE_CHECKING:
    from txn_analysis.storage.warehouse import Warehouse

_MOST_NAMED = 5


class Forgotten(NamedTuple):
    """What was taken away, and what stays.

    `runs` judged the capture, and are gone; they recommended `abort_count` aborts. `resting_runs` had it behind them,
    and stay: they say so wherever they are asked. Both in the order of their completion.
    """

    cluster: str
    capture: str
    input_count: int
    runs: tuple[str, ...]
    abort_count: int
    resting_runs: tuple[str, ...]


def forget(warehouse: Warehouse, cluster: str, capture: str) -> Forgotten:
    """Take one capture of one cluster out of a warehouse, with the runs that judged it.

    Gaps that it filled are open again in what is audited from now on.

    Raises:
        WarehouseError: there is no such capture, or the warehouse cannot be written.
    """
    found = {each.name: each for each in captures(warehouse, cluster)}
    if capture not in found:
        there = listed([escape(name) for name in found], _MOST_NAMED) or "none"
        raise WarehouseError(
            f"{warehouse.root}: cluster {escape(cluster)} has no capture {escape(capture)}; it has {there}. "
            f"`txn-analysis captures {shell_option('--warehouse', str(warehouse.root))}` lists those of all clusters"
        )
    runs = sorted(warehouse.records(RunRecord, RUNS, cluster=[cluster]), key=attrgetter("run_number"))
    judged = tuple(run.run_id for run in runs if run.capture == capture)
    abort_count = len(warehouse.held(ABORT_PLAN, "finding_id", run_id=judged)["finding_id"].unique()) if judged else 0
    warehouse.replace([], RUNS, cluster=cluster, capture=capture)
    warehouse.replace([], INPUTS, cluster=cluster, capture=capture)
    return Forgotten(
        cluster,
        capture,
        found[capture].input_count,
        judged,
        abort_count,
        tuple(run.run_id for run in runs if capture in (run.earlier_captures or ())),
    )
