"""Evidence: which rows of the input tables one run rests on.

A run judges one capture, with the captures before it (by their brokers' clocks) behind it. Nothing of a later capture
is ever seen, whatever order they were fed in.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.errors import WarehouseError
from txn_analysis.kafka.names import BINARY_GRAMMARS
from txn_analysis.tables import INPUTS
from txn_analysis.tables.inputs import InputSection, ReadInput, ReadSection, is_asked

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from typing import Self

    from txn_analysis.columns.values import BatchFunction
    from txn_analysis.storage.warehouse import Warehouse
    from txn_analysis.tables import Table
    from txn_analysis.tables.inputs import Asked, Manifest, RunRecord


GIVEN = ("capture_rank", "input_moment_ms")
"""What rows of evidence are given beside their own columns; see `Evidence.batches`."""


def own_columns(*names: str) -> tuple[str, ...]:
    """Columns of a content table, with those that say which rows are evidence."""
    return tuple(dict.fromkeys((*names, "input_id", "ingest_id")))


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
        found = ((item, section) for item in self.inputs if item.kind is not None for section in sections_of(item))
        return [
            s
            for item, s in found
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
    def of_run(cls, warehouse: Warehouse, run: RunRecord) -> Self:
        """The evidence that a run had; captures that were fed later are not among it."""
        captures = (run.capture, *reversed(run.earlier_captures or ()))
        return cls._of(warehouse, captures, _inputs_of(warehouse, run.cluster))

    @classmethod
    def _of(cls, warehouse: Warehouse, captures: tuple[str, ...], inputs: list[ReadInput]) -> Self:
        ranked = tuple(i._replace(capture_rank=captures.index(i.capture)) for i in inputs if i.capture in captures)
        return cls(warehouse, captures, _moments(inputs)[captures[0]], ranked)

    def batches(self, table: Table, *names: str, **one_of: Collection[Any]) -> Iterator[pa.RecordBatch]:
        """Some columns of the rows of a content table that are evidence, one batch after another; see `Warehouse`.

        Behind them each row has its `capture_rank` (the newest capture's) and as `input_moment_ms` the newest moment of
        its input, 0 if there is none.
        """
        rows = self.warehouse.batches(table, *own_columns(*names), ingest_id=self.ingests, **one_of)
        return (batch for batch in self.given(*names)(rows) if len(batch))

    def given(self, *names: str) -> BatchFunction:
        """Of rows that have `own_columns` those that are evidence, as `batches` gives them."""
        inputs = self._newest_inputs
        keys = pa.array([f"{item.ingest_id} {item.input_id}" for item in inputs], pa.string())
        ranks = pa.array([item.capture_rank for item in inputs], pa.int64())
        moments = pa.array([item.newest_moment_ms or 0 for item in inputs], pa.int64())

        def own(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                key = pc.binary_join_element_wise(batch["ingest_id"], batch["input_id"], " ")
                place = pc.index_in(key, keys)
                kept, place = batch.select([*names]).filter(pc.is_valid(place)), place.drop_null()
                columns = [*kept.columns, ranks.take(place), moments.take(place)]
                yield pa.RecordBatch.from_arrays(columns, [*names, *GIVEN])

        return own

    @cached_property
    def _newest_inputs(self) -> list[ReadInput]:
        """Of each content the input in the newest capture that has it."""
        return [*{i.input_id: i for i in sorted(self.inputs, key=lambda i: -i.capture_rank)}.values()]

    @property
    def ingests(self) -> list[str]:
        """Which ingests its rows are of."""
        return sorted({item.ingest_id for item in self._newest_inputs})


def _inputs_of(warehouse: Warehouse, cluster: str) -> list[ReadInput]:
    return warehouse.records(ReadInput, INPUTS, cluster=[cluster])


def sections_of(item: ReadInput) -> list[InputSection]:
    """A section's end is proven where the next one really begins; what is wrong with a file is wrong at its end."""
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
            input_problem=problem,
            log_dir=_log_dir(item.path, section),
            path=item.path,
        )
        for section, is_end_proven, problem in zip(item.sections, starts_proven, problems, strict=True)
    ]


def _log_dir(path: str, section: ReadSection) -> str | None:
    """The log directory that a broker's own file lies in; None for a dump, and where its path does not say."""
    place = section.dump_path
    is_inside = section.grammar in BINARY_GRAMMARS and path.endswith(place)
    return os.path.normpath(path.removesuffix(place) or os.curdir) if is_inside else None


def _moments(inputs: list[ReadInput]) -> dict[str, int | None]:
    moments: dict[str, int | None] = {}
    for item in inputs:
        known = [ms for ms in (moments.get(item.capture), item.newest_moment_ms) if ms is not None]
        moments[item.capture] = max(known, default=None)
    return moments
