"""The tables as one finished run left them: what every question about a run is asked of."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from txn_analysis.judge.finding import SINGLE_VALUES, Finding
from txn_analysis.judge.outcome import SEEN_COLUMNS, SeenLog, Sight
from txn_analysis.plan.abort_plan import AbortRecord
from txn_analysis.runs.asked_states import current_states, placed
from txn_analysis.runs.captures import forgotten
from txn_analysis.runs.past_run import finished_run
from txn_analysis.runs.wanted_run import wanted_run
from txn_analysis.tables import ABORT_PLAN, FINDINGS, PARTITION_HEALTH

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    import pyarrow as pa

    from txn_analysis.kafka.transactions import StateRecord
    from txn_analysis.runs.past_run import PastRun
    from txn_analysis.runs.run_record import RunRecord
    from txn_analysis.storage.stored import Stored
    from txn_analysis.tables import Table


class ProducerState(NamedTuple):
    """One producer at the end of a partition's log, as Kafka's class of this name; None where the files do not say."""

    producer_id: int
    producer_epoch: int | None
    coordinator_epoch: int | None
    last_sequence: int | None
    last_timestamp_ms: int | None
    txn_start_offset: int | None


@dataclass(frozen=True)
class RunTables:
    """The tables as one finished run left them."""

    warehouse: Stored
    run: RunRecord

    @property
    def as_of_ms(self) -> int | None:
        """The moment at which the files were copied."""
        return self.run.as_of_ms

    @property
    def has_state(self) -> bool:
        """At least one partition of `__transaction_state` was given."""
        return bool(self.run.coverage.get("seen"))

    @property
    def sight(self) -> Sight:
        """Whether all was looked at that could hang."""
        return Sight.of(map(SeenLog.of, self.listed(PARTITION_HEALTH, *SEEN_COLUMNS)))

    def of(self, run_id: str) -> RunTables:
        """The tables of another run of the same cluster.

        Raises:
            WarehouseError: there is no such run.
        """
        return run_tables(self.warehouse, self.run.cluster, run_id)

    def finished(self) -> PastRun:
        """The run itself, with the settings and the evidence that it had."""
        return self._finished

    @cached_property
    def _finished(self) -> PastRun:
        return finished_run(self.warehouse, self.run)

    def listed(self, table: Table, *names: str, **one_of: Collection[Any]) -> list[dict[str, Any]]:
        """The run's rows of a result table as plain data, where there are few; see `Stored.listed`."""
        return self.warehouse.listed(table, *names, run_id=[self.run.run_id], **one_of)

    def batches(self, table: Table, *names: str, **one_of: Collection[Any]) -> Iterator[pa.RecordBatch]:
        """The run's rows of a result table of any size, one batch after another; see `Stored.batches`."""
        return self.warehouse.batches(table, *names, run_id=[self.run.run_id], **one_of)

    def findings(self) -> list[Finding]:
        """The run's findings, without their sentences and causes."""
        return [Finding.of_some(row) for row in self.listed(FINDINGS, *SINGLE_VALUES)]

    def producers(self, topic: str, partition: int) -> list[ProducerState] | None:
        """The producers of one partition; None where the run saw nothing of it."""
        rows = self.listed(PARTITION_HEALTH, "producers", topic=[topic], partition=[partition])
        return [ProducerState(**found) for found in rows[0]["producers"] or ()] if rows else None

    @cached_property
    def forgotten_captures(self) -> tuple[str, ...]:
        """The captures behind the run that were taken out of the warehouse since."""
        return forgotten(self.warehouse, self.run.cluster, self.run.earlier_captures)

    def places(self, *, of_coordinator: bool = False) -> set[tuple[str, int]]:
        """The partitions that the run saw; with those that the coordinator's transactions list, if they are wanted."""
        seen = {(row["topic"], row["partition"]) for row in self.listed(PARTITION_HEALTH, "topic", "partition")}
        if of_coordinator:
            seen.update(place for record in self.current_states() for place in record.topic_partitions)
        return seen

    def abort_plan(self) -> list[AbortRecord]:
        """The run's abort plan, in its order."""
        order = itemgetter("topic", "partition", "producer_id", "txn_start_offset")
        return [AbortRecord.model_validate(row) for row in sorted(self.listed(ABORT_PLAN), key=order)]

    def current_states(self, *transactional_ids: str) -> Iterator[StateRecord]:
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
