"""The tables as finished runs left them: what every question about a run is asked of, and taking a capture out.

Rows count by the writes that come last (decision 0005), and cease to count by taking those away: first its rows of
`runs`, then those of `inputs`. Whoever is killed between the two has a capture that nobody judged, and takes it away by
the same call again. No other row is touched: an audit that runs meanwhile may have found content of the capture, and
go on to name it.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from operator import attrgetter
from typing import Any, NamedTuple

import pyarrow as pa

from txn_analysis.columns.records import batch_of, records_of
from txn_analysis.errors import WarehouseError
from txn_analysis.judge.applications import ConnectGroups
from txn_analysis.judge.outcome import LogCoverage
from txn_analysis.kafka.transactions import StateRecord
from txn_analysis.runs.ask import ask
from txn_analysis.runs.asked_states import current_states
from txn_analysis.runs.past_run import PastRun, RunRows, finished_run
from txn_analysis.runs.prunes import prunes_of
from txn_analysis.tables import (
    ABORT_PLAN,
    ENDED_TRANSACTIONS,
    FINDINGS,
    INPUTS,
    PARTITION_HEALTH,
    RUNS,
    AbortRecord,
    Finding,
    Prune,
    Table,
)
from txn_analysis.tables.findings import SINGLE_VALUES
from txn_analysis.tables.inputs import RunRecord
from txn_analysis.tables.readings import READING_VERSION
from txn_analysis.text import clip, escape, listed, shell_option, shell_word
from txn_analysis.warehouse.delta_tables import Warehouse


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


def captures(warehouse: Warehouse, cluster: str | None = None) -> list[Capture]:
    """The captures of a cluster, or of all; by cluster, oldest first as runs order them.

    Raises:
        WarehouseError: there is no such warehouse, or it is damaged.
    """
    of_cluster = {} if cluster is None else {"cluster": [cluster]}
    files = warehouse.rows(INPUTS, "cluster", "capture", "newest_moment_ms", "size_bytes", **of_cluster)
    sums: list[Any] = [("newest_moment_ms", "max"), ([], "count_all"), ("size_bytes", "sum")]
    rows = files.group_by(["cluster", "capture"], use_threads=False).aggregate(sums)
    runs = defaultdict[tuple[str, str], list[str]](list)
    for run in sorted(warehouse.records(RunRecord, RUNS, **of_cluster), key=attrgetter("run_number")):
        runs[run.cluster, run.capture].append(run.run_id)
    unordered = [
        Capture(cluster, name, newest_ms, number, size_bytes, tuple(runs[cluster, name]))
        for cluster, name, newest_ms, number, size_bytes in zip(*rows.to_pydict().values(), strict=True)
    ]
    return sorted(unordered, key=_order)


def _order(capture: Capture) -> tuple[str, bool, int, str]:
    moment_ms = capture.newest_moment_ms
    return capture.cluster, moment_ms is not None, moment_ms or 0, capture.name


def newest_run(runs: Iterable[RunRecord], known: Sequence[Capture]) -> RunRecord | None:
    """The last of some runs of the newest capture that one of them judged; None where none judged a known one.

    Args:
        runs: of one cluster.
        known: its captures, oldest first.
    """
    last = {run.capture: run for run in sorted(runs, key=attrgetter("run_number"))}
    return next((last[one.name] for one in reversed(known) if one.name in last), None)


_MOST_NAMED = 3
_WIDTH = 80
_NOTHING = "''"  # as a shell would have it


def latest_run(warehouse: Warehouse, cluster: str) -> str:
    """The run that was completed last for a cluster.

    Raises:
        WarehouseError: nothing was run for this cluster yet.
    """
    runs = warehouse.records(RunRecord, RUNS, cluster=[cluster])
    if not runs:
        others = sorted({run.cluster for run in warehouse.records(RunRecord, RUNS)})
        there = f"give --cluster {' or '.join(map(shell_word, others))}" if others else "audit its files first"
        raise WarehouseError(f"{warehouse.root}: no run of cluster {cluster} yet: {there}")
    return max(runs, key=attrgetter("run_number")).run_id


@dataclass(frozen=True)
class RunTables(RunRows):
    """The tables as one finished run left them."""

    run: RunRecord

    @property
    def as_of_ms(self) -> int | None:
        """The moment at which the files were copied."""
        return self.run.as_of_ms

    @property
    def max_timeout_ms(self) -> int:
        """The brokers' transaction.max.timeout.ms, as the run was told it."""
        return int(json.loads(self.run.parameters)["transaction_max_timeout_ms"])

    @property
    def has_state(self) -> bool:
        """At least one partition of `__transaction_state` was given."""
        return bool(self.run.coverage.get("seen"))

    @property
    def connect_groups(self) -> ConnectGroups:
        """The groups of Kafka Connect that the state names."""
        return ConnectGroups.in_coverage(self.run.coverage)

    @property
    def log_coverage(self) -> LogCoverage:
        """Whether all was looked at that could hang."""
        return LogCoverage.of(self.health())

    def of(self, run_id: str) -> RunTables:
        """The tables of another run of the same cluster.

        Raises:
            WarehouseError: there is no such run.
        """
        return run_tables(self.warehouse, self.run.cluster, run_id)

    @cached_property
    def finished(self) -> PastRun:
        """The run itself, with the settings and the evidence that it had."""
        return finished_run(self.warehouse, self.run)

    def rows(self, table: Table) -> pa.Table:
        """Of any table the rows that the run wrote, or else those that it rests on, in memory."""
        if (row_filter := self.finished.row_filter(table)) is not None:
            return self.warehouse.rows(table, **row_filter)
        if table is ENDED_TRANSACTIONS:
            return ask(self.finished, f"SELECT * FROM {table.name}").select([*table.names]).cast(table.arrow_schema)  # noqa: S608 ours
        batches = [b.select([*table.names]) for b in self.finished.evidence.batches(table, *table.names)]
        return pa.Table.from_batches(batches) if batches else table.arrow_schema.empty_table()

    def findings(self) -> list[Finding]:
        """The run's findings, without their sentences and causes."""
        return records_of(Finding, self.result_rows(FINDINGS, *SINGLE_VALUES))

    @cached_property
    def forgotten_captures(self) -> tuple[str, ...]:
        """Of the captures behind the run those that somebody took out of the warehouse since, oldest first.

        Other files may have come under the same name. Age takes captures as well: nobody doubts those.
        """
        if not self.run.earlier_captures:
            return ()
        gone = {*self.run.earlier_captures} - {one.name for one in self.captures}  # 1.0 marked no run
        pruned = {name for prune in self.prunes for name in prune.captures} if gone else set()
        forgotten = (gone - pruned).union(self.run.forgotten_captures or ())
        return tuple(name for name in self.run.earlier_captures if name in forgotten)

    @cached_property
    def newer_run(self) -> RunRecord | None:
        """The last run of the newest capture that was judged whole, where that is newer than the run's own.

        Where none was judged whole, those that were judged in part count.
        """
        runs = self.warehouse.records(RunRecord, RUNS, cluster=[self.run.cluster])
        newest = newest_run([run for run in runs if run.asked is None] or runs, self.captures)
        known = [one.name for one in self.captures]
        is_newest = newest is None or (self.run.capture in known[known.index(newest.capture) :])
        return None if is_newest else newest

    @cached_property
    def captures(self) -> list[Capture]:
        """Those of the run's cluster, oldest first."""
        return captures(self.warehouse, self.run.cluster)

    @cached_property
    def believed_inputs(self) -> dict[str, str]:
        """The files of the run of which its version believed what today's does not, by path; each with what it does.

        Another reading of them may be in the warehouse since: the run does not rest on that one.
        """
        version = self.run.reading_version
        if version == READING_VERSION:
            return {}
        doubts = (
            (item.path, item.doubt_of(section, version))
            for item in self.finished.evidence.inputs
            for section in item.sections
        )
        return {path: doubt for path, doubt in doubts if doubt is not None}

    @cached_property
    def prunes(self) -> tuple[Prune, ...]:
        """What was pruned of the run's cluster, oldest first."""
        return tuple(prunes_of(self.warehouse, self.run.cluster))

    def places(self, *, of_coordinator: bool = False) -> set[tuple[str, int]]:
        """The partitions that the run saw; with those that the coordinator's transactions list, if they are wanted."""
        rows = self.result_rows(PARTITION_HEALTH, "topic", "partition")
        seen = set(zip(rows["topic"].to_pylist(), rows["partition"].to_pylist(), strict=True))
        if of_coordinator:
            seen.update(place for record in self.current_states() for place in record.topic_partitions)
        return seen

    def abort_plan(self) -> list[AbortRecord]:
        """The run's abort plan, in its order."""
        records = map(AbortRecord.model_validate, self.result_rows(ABORT_PLAN).to_pylist())
        return sorted(records, key=attrgetter("topic", "partition", "producer_id", "txn_start_offset"))

    def current_states(self, *transactional_ids: str) -> list[StateRecord]:
        """The newest record of some transactional ids, or of every one, as far as the run could see."""
        if not transactional_ids:
            return self._current_states
        return records_of(StateRecord, current_states(self.finished, transactional_id=transactional_ids))

    @cached_property
    def _current_states(self) -> list[StateRecord]:
        return records_of(StateRecord, current_states(self.finished))


def run_tables(warehouse: Warehouse, cluster: str, run_id: str | None = None) -> RunTables:
    """The tables of a run that was finished; of the cluster's last one where none is named.

    Raises:
        WarehouseError: there is no such run; it names the last ones that there are.
    """
    wanted = latest_run(warehouse, cluster) if run_id is None else run_id
    for run in warehouse.records(RunRecord, RUNS, run_id=[wanted]):
        return RunTables(warehouse, run.run_id, run)
    newest_first = sorted(warehouse.records(RunRecord, RUNS), key=attrgetter("run_number"), reverse=True)
    last = [f"{escape(run.run_id)} of cluster {escape(run.cluster)}" for run in newest_first[:_MOST_NAMED]]
    there = f"the last ones are {', '.join(last)}" if last else "audit first"
    raise WarehouseError(f"{warehouse.root}: no run {clip(wanted, _WIDTH) or _NOTHING} here: {there}")


_MOST_CAPTURES = 5


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
    by_name = {each.name: each.input_count for each in captures(warehouse, cluster)}
    runs = sorted(warehouse.records(RunRecord, RUNS, cluster=[cluster]), key=attrgetter("run_number"))
    # Age leaves runs without the files of their captures, and those that rest on them.
    known = by_name.keys() | {name for run in runs for name in (run.capture, *(run.earlier_captures or ()))}
    if capture not in known:
        there = listed([escape(name) for name in by_name], _MOST_CAPTURES) or "none"
        raise WarehouseError(
            f"{warehouse.root}: cluster {escape(cluster)} has no capture {escape(capture)}; it has {there}. "
            f"`txn-analysis captures {shell_option('--warehouse', str(warehouse.root))}` lists those of all clusters"
        )
    judged = tuple(run.run_id for run in runs if run.capture == capture)
    abort_count = len(warehouse.rows(ABORT_PLAN, "finding_id", run_id=judged)["finding_id"].unique()) if judged else 0
    warehouse.revise(RUNS, partial(_without, cluster=cluster, capture=capture))
    warehouse.replace([], INPUTS, cluster=cluster, capture=capture)
    return Forgotten(
        cluster,
        capture,
        by_name.get(capture, 0),
        judged,
        abort_count,
        tuple(run.run_id for run in runs if capture in (run.earlier_captures or ())),
    )


def _without(rows: pa.Table, cluster: str, capture: str) -> pa.Table:
    """Rows of `runs` without those that judged a capture; those that had it behind them say so."""
    stay = [run for run in records_of(RunRecord, rows) if (run.cluster, run.capture) != (cluster, capture)]
    marked = [_resting(run, capture) if run.cluster == cluster else run for run in stay]
    return pa.Table.from_batches([batch_of(RunRecord, marked, RUNS.arrow_schema)])


def _resting(run: RunRecord, capture: str) -> RunRecord:
    forgotten = {*(run.forgotten_captures or ()), capture}
    return run._replace(
        forgotten_captures=tuple(name for name in run.earlier_captures or () if name in forgotten) or None
    )
