"""A run whose rows are asked for, and its evidence: which rows of the input tables it rests on.

A run is one judgement of one capture, with the captures before it (by their brokers' clocks) behind it. Nothing of a
later capture is ever seen, whatever order they were fed in.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.columns.arrays import matching
from txn_analysis.columns.records import Record, records_of
from txn_analysis.coordinator.partition_count import IdSums, sums_of_columns
from txn_analysis.coordinator.state_records import Placing, StateFiles
from txn_analysis.errors import WarehouseError
from txn_analysis.judge.case import Moments
from txn_analysis.settings import Settings
from txn_analysis.tables import (
    CURRENT_STATES,
    INPUTS,
    PARTITION_HEALTH,
    TRANSACTION_STATES,
    PartitionHealth,
    Table,
)
from txn_analysis.tables.inputs import (
    Asked,
    InputSection,
    Manifest,
    ReadInput,
    ReadSection,
    RunRecord,
    is_asked,
    log_dir,
)
from txn_analysis.tables.readings import doubt_in_words
from txn_analysis.warehouse.commits import inputs_of
from txn_analysis.warehouse.delta_tables import Warehouse

KEY = ("ingest_id", "input_id")
"""The columns that say which input a row of a content table is of."""
GIVEN = ("capture_rank", "input_moment_ms")
"""What rows of evidence are given beside their own columns; see `Evidence.batches`."""


def columns_with_key(*names: str) -> tuple[str, ...]:
    """Columns of a content table, with those that say which rows are evidence."""
    return tuple(dict.fromkeys((*names, *KEY)))


@dataclass(frozen=True)
class Evidence:
    """The captures of one run and their inputs.

    `captures[0]` is judged, the others lie behind it, newest first. `inputs` are as many as there are files, each
    with its `capture_rank`: 0 for the judged capture, 1 for the one before it, and so on.
    """

    warehouse: Warehouse
    captures: tuple[str, ...]
    newest_moment_ms: int | None
    inputs: tuple[ReadInput, ...]

    @property
    def capture(self) -> str:
        """The capture that is judged."""
        return self.captures[0]

    @cached_property
    def sections(self) -> list[InputSection]:
        """The sections of what was recognised, as far as this capture and their own is asked for their partitions."""
        sections = ((item, section) for item in self.inputs if item.kind is not None for section in sections_of(item))
        return [
            s
            for item, s in sections
            if is_asked(self.asked, s.topic, s.partition) and is_asked(item.asked, s.topic, s.partition)
        ]

    @cached_property
    def asked(self) -> Asked | None:
        """The partitions that the judged capture is asked for; None where it is asked for all that was given."""
        return next((item.asked for item in self.inputs if not item.capture_rank), None)

    @cached_property
    def manifests(self) -> list[Manifest]:
        """Those of the judged capture."""
        return [item.manifest for item in self.inputs if not item.capture_rank and item.manifest is not None]

    @classmethod
    def of_capture(cls, warehouse: Warehouse, cluster: str, capture: str | None = None) -> Self:
        """The evidence for judging one capture: itself, and every capture of the cluster that is older.

        A capture's moment is the newest timestamp that a broker's clock wrote in it. Without a name the newest capture
        is judged.

        Raises:
            WarehouseError: the cluster has no such capture.
        """
        inputs = _inputs_of(warehouse, cluster)
        moments = _moments(inputs)
        names = sorted(moments, key=lambda name: (moments[name] is not None, moments[name] or 0, name))
        if not names or (capture is not None and capture not in moments):
            wanted = f"no capture {capture}" if capture else "no capture"
            raise WarehouseError(f"{warehouse.root}: cluster {cluster} has {wanted} yet: audit its files first")
        judged = capture or names[-1]
        return cls._of(warehouse, tuple(reversed(names[: names.index(judged) + 1])), inputs)

    @classmethod
    def of_capture_alone(cls, warehouse: Warehouse, cluster: str, capture: str) -> Self:
        """The files of one capture, without those that lie behind it.

        Raises:
            WarehouseError: the cluster has no such capture.
        """
        whole = cls.of_capture(warehouse, cluster, capture)
        return replace(whole, captures=(capture,), inputs=tuple(i for i in whole.inputs if i.capture == capture))

    @classmethod
    def of_run(cls, warehouse: Warehouse, run: RunRecord) -> Self:
        """The evidence that a run had; captures that were fed later are not among it."""
        captures = (run.capture, *reversed(run.earlier_captures or ()))
        return cls._of(warehouse, captures, _inputs_of(warehouse, run.cluster))

    @classmethod
    def _of(cls, warehouse: Warehouse, captures: tuple[str, ...], inputs: list[ReadInput]) -> Self:
        ranked = tuple(i._replace(capture_rank=captures.index(i.capture)) for i in inputs if i.capture in captures)
        return cls(warehouse, captures, _moments(inputs).get(captures[0]), ranked)

    def batches(self, table: Table, *names: str, **one_of: Collection[Any]) -> Iterator[pa.RecordBatch]:
        """Some columns of the rows of a content table that are evidence, one batch after another; see `Warehouse`.

        Behind them each row has its `capture_rank` (the newest capture's) and as `input_moment_ms` the newest moment of
        its input, 0 if there is none.
        """
        rows = self.warehouse.batches(table, *columns_with_key(*names), ingest_id=self.ingests, **one_of)
        return filter(len, map(matching(self.known, KEY, (*names, *GIVEN)), rows))

    @cached_property
    def known(self) -> pa.Table:
        """One row is one input of which rows are evidence: its `KEY`, and `GIVEN`."""
        inputs = self._newest_inputs
        key = [pa.array([getattr(item, name) for item in inputs], pa.string()) for name in KEY]
        numbers = [item.capture_rank for item in inputs], [item.newest_moment_ms or 0 for item in inputs]
        return pa.table([*key, *(pa.array(values, pa.int64()) for values in numbers)], [*KEY, *GIVEN])

    @cached_property
    def _newest_inputs(self) -> list[ReadInput]:
        """Of each content the input in the newest capture that has it."""
        return [*{i.input_id: i for i in sorted(self.inputs, key=lambda i: -i.capture_rank)}.values()]

    @property
    def read_inputs(self) -> list[tuple[str, str]]:
        """The ingest and the input that each row of a content table that is evidence is of."""
        return sorted({(item.ingest_id, item.input_id) for item in self._newest_inputs})

    @property
    def ingests(self) -> list[str]:
        """Which ingests its rows are of."""
        return sorted({item.ingest_id for item in self._newest_inputs})


def _inputs_of(warehouse: Warehouse, cluster: str) -> list[ReadInput]:
    return inputs_of(warehouse, cluster=[cluster])


def sections_of(item: ReadInput) -> list[InputSection]:
    """A section's end is proven where the next one really begins; what is wrong with a file is wrong at its end.

    What an earlier reading believed too much of is wrong with each of its sections.
    """
    if not item.sections:  # a manifest is none of the evidence, and says things about it
        return []
    starts_proven = [s.is_start_proven for s in item.sections[1:]] + [True]
    problems = [None] * (len(item.sections) - 1) + [item.problem]
    return [
        InputSection(
            **{name: getattr(section, name) for name in InputSection._fields if name in ReadSection._fields},
            input_id=item.input_id,
            capture_rank=item.capture_rank,
            is_end_proven=is_end_proven,
            input_problem=problem if doubt is None or problem is not None else doubt_in_words(doubt),
            log_dir=log_dir(item.path, section.dump_path, section.grammar),
            path=item.path,
            doubt=doubt,
            cluster_id=item.cluster_id,
        )
        for section, is_end_proven, problem in zip(item.sections, starts_proven, problems, strict=True)
        for doubt in (item.doubt_of(section, item.reading_version),)
    ]


def _moments(inputs: list[ReadInput]) -> dict[str, int | None]:
    moments: dict[str, int | None] = {}
    for item in inputs:
        both_ms = [ms for ms in (moments.get(item.capture), item.newest_moment_ms) if ms is not None]
        moments[item.capture] = max(both_ms, default=None)
    return moments


_MANY = frozenset({"run_id", "producers", "bare_markers", "linked_pieces"})
JUDGED_BY = tuple(name for name in PARTITION_HEALTH.names if name not in _MANY)
"""The columns of `partition_health` that a run is judged and reported by."""


@dataclass(frozen=True)
class RunRows:
    """The rows of one run in the result tables of its warehouse."""

    warehouse: Warehouse
    run_id: str

    def records(self, kind: type[Record], table: Table, **one_of: Collection[Any]) -> list[Record]:
        """The run's own rows of a result table as records, where there are few; see `Warehouse.records`."""
        return self.warehouse.records(kind, table, run_id=[self.run_id], **one_of)

    def result_rows(self, table: Table, *names: str, **one_of: Collection[Any]) -> pa.Table:
        """The run's own rows of a result table as Arrow, where there are few; see `Warehouse.rows`."""
        return self.warehouse.rows(table, *names, run_id=[self.run_id], **one_of)

    def batches(self, table: Table, *names: str, **one_of: Collection[Any]) -> Iterator[pa.RecordBatch]:
        """The run's own rows of a result table of any size, one batch after another; see `Warehouse.batches`."""
        return self.warehouse.batches(table, *names, run_id=[self.run_id], **one_of)

    def health(self) -> list[PartitionHealth]:
        """What is known of each partition, without its producers, to judge by."""
        return records_of(PartitionHealth, self.result_rows(PARTITION_HEALTH, *JUDGED_BY))


@dataclass(frozen=True)
class PastRun(RunRows):
    """One judgement of one capture; `run_id` digests its evidence and parameters, so a repeat is the same run."""

    evidence: Evidence
    settings: Settings
    as_of_ms: int | None

    def row_filter(self, table: Table) -> dict[str, Collection[Any]] | None:
        """The columns, each with its values, that say which rows are the run's; None where its files say it."""
        if "run_id" in table.names:
            return {"run_id": [self.run_id]}
        if table is INPUTS:
            return {"cluster": [self.settings.cluster], "capture": self.evidence.captures}
        return None if "input_id" in table.names else {"cluster": [self.settings.cluster]}

    @property
    def moments(self) -> Moments:
        """When its files were copied."""
        return Moments(self.as_of_ms, self.evidence.newest_moment_ms)

    @cached_property
    def linked_pieces(self) -> pa.Table:
        """Ingest, input, section and first position of each piece that its logs were linked from.

        As many as there are ranges of text.
        """
        lists = self.result_rows(PARTITION_HEALTH, "linked_pieces")["linked_pieces"].combine_chunks()
        return pa.Table.from_struct_array(lists.flatten())

    @cached_property
    def has_current_states(self) -> bool:
        """It wrote the newest record of each id: runs of 1.0.0 did not."""
        is_there = self.warehouse.has(CURRENT_STATES)
        return is_there and any(map(len, self.batches(CURRENT_STATES, "transactional_id")))

    @cached_property
    def state_files(self) -> StateFiles:
        """The files of the evidence, as far as the coordinator's side asks."""
        return StateFiles.of(self.evidence.sections)

    @cached_property
    def placing(self) -> Placing:
        """Where the records of the coordinator belong; a finished run says how many partitions they have.

        Else all of them are looked at: they may say it themselves.
        """
        ids = IdSums()
        if self.settings.transaction_state_partitions is None and self.state_files.partitions:
            for batch in self.evidence.batches(TRANSACTION_STATES, "transactional_id_hash", "state_partition"):
                placed = pc.drop_null(batch)
                hashes, partitions = (column.to_numpy(zero_copy_only=False) for column in placed.columns[:2])
                ids = ids.plus(sums_of_columns(hashes, partitions))
        return Placing.of(self.settings, self.state_files, ids)


def finished_run(warehouse: Warehouse, run: RunRecord) -> PastRun:
    """A run that was completed before, with the settings and the evidence that it had."""
    parameters = {name: value for name, value in json.loads(run.parameters).items() if name in Settings.model_fields}
    place = {"warehouse": str(warehouse.root), "cluster": run.cluster, "capture": run.capture}
    evidence, settings = Evidence.of_run(warehouse, run), Settings.model_validate(parameters | place)
    return PastRun(warehouse, run.run_id, evidence, settings, run.as_of_ms)
