"""The tables as one finished run left them: what every question about a run is asked of."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from txn_analysis.judge.outcome import has_logs
from txn_analysis.plan.plan_versions import stored_record
from txn_analysis.runs.asked_states import current_states, placed
from txn_analysis.runs.past_run import finished_run
from txn_analysis.runs.wanted_run import wanted_run
from txn_analysis.tables import ABORT_PLAN, FINDINGS, PARTITION_HEALTH

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    import pyarrow as pa

    from txn_analysis.plan.abort_plan import AbortRecord
    from txn_analysis.runs.past_run import PastRun
    from txn_analysis.storage.stored import Stored
    from txn_analysis.tables import Table

Row = dict[str, Any]

_ASKED = (
    *("finding_id", "verdict", "rule", "late_by_ms", "topic", "partition", "producer_id", "producer_epoch"),
    *("coordinator_epoch", "txn_start_offset", "last_timestamp_ms", "idle_ms", "transactional_id", "state_partition"),
    "coordinator_state",
)
"""The columns of `findings` that a question is about."""


@dataclass(frozen=True)
class RunTables:
    """The tables as one finished run left them."""

    warehouse: Stored
    run: Row

    @property
    def as_of_ms(self) -> int | None:
        """The moment at which the files were copied."""
        as_of_ms: int | None = self.run["as_of_ms"]
        return as_of_ms

    @property
    def has_state(self) -> bool:
        """At least one partition of `__transaction_state` was given."""
        return bool(json.loads(self.run["state_coverage"]).get("seen"))

    @property
    def has_logs(self) -> bool:
        """The log of at least one partition is in the capture."""
        seen = self.listed(PARTITION_HEALTH, "topic", "is_in_capture")
        return has_logs((row["topic"], row["is_in_capture"]) for row in seen)

    def of(self, run_id: str) -> RunTables:
        """The tables of another run of the same cluster.

        Raises:
            WarehouseError: there is no such run.
        """
        return run_tables(self.warehouse, self.run["cluster"], run_id)

    def finished(self) -> PastRun:
        """The run itself, with the settings and the evidence that it had."""
        return self._finished

    @cached_property
    def _finished(self) -> PastRun:
        return finished_run(self.warehouse, self.run)

    def listed(self, table: Table, *names: str, **one_of: Collection[Any]) -> list[Row]:
        """The run's rows of a result table as plain data, where there are few; see `Stored.listed`."""
        return self.warehouse.listed(table, *names, run_id=[self.run["run_id"]], **one_of)

    def batches(self, table: Table, *names: str, **one_of: Collection[Any]) -> Iterator[pa.RecordBatch]:
        """The same of a table of any size, one batch after another."""
        return self.warehouse.batches(table, *names, run_id=[self.run["run_id"]], **one_of)

    def findings(self) -> list[Row]:
        """The run's rows of `findings`, as far as they are asked about."""
        return self.listed(FINDINGS, *_ASKED)

    def producers(self, topic: str, partition: int) -> list[Row]:
        """The health of one partition with its producers: one row, or none where the run saw nothing of it."""
        return self.listed(PARTITION_HEALTH, "topic", "partition", "producers", topic=[topic], partition=[partition])

    def places(self, *, of_coordinator: bool = False) -> set[tuple[str, int]]:
        """The partitions that the run saw; with those that the coordinator's transactions list, if they are wanted."""
        seen = {(row["topic"], row["partition"]) for row in self.listed(PARTITION_HEALTH, "topic", "partition")}
        if of_coordinator:
            seen |= {
                (p["topic"], p["partition"]) for row in self.current_states() for p in row["topic_partitions"] or ()
            }
        return seen

    def abort_plan(self) -> list[AbortRecord]:
        """The run's abort plan, in its order.

        Raises:
            WarehouseError: another version made it, and this one cannot tell whether it may be sent.
        """
        order = itemgetter("topic", "partition", "producer_id", "txn_start_offset")
        return [stored_record(row) for row in sorted(self.listed(ABORT_PLAN), key=order)]

    def current_states(self, *transactional_ids: str) -> Iterator[Row]:
        """The last record of some transactional ids, or of every one, as far as the run could see."""
        wanted = {"transactional_id": transactional_ids} if transactional_ids else {}
        states = current_states(self.finished(), **wanted) if wanted else self._current_states
        return placed(states, self.finished())

    @cached_property
    def _current_states(self) -> pa.Table:
        return current_states(self.finished())


def run_tables(warehouse: Stored, cluster: str, run_id: str | None = None) -> RunTables:
    """The tables of a run; of the cluster's last one where none is named.

    Raises:
        WarehouseError: there is no such run.
    """
    return RunTables(warehouse, wanted_run(warehouse, cluster, run_id))
