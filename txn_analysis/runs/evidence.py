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
from txn_analysis.kafka.sections import BINARY_GRAMMARS
from txn_analysis.log.copies import cuts_of
from txn_analysis.log.sections import LogSection, SectionKey, log_sections
from txn_analysis.storage.frames import is_at_hand
from txn_analysis.tables import INPUTS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping
    from typing import Self

    from txn_analysis.log.rivals import Cuts
    from txn_analysis.storage.stored import Stored
    from txn_analysis.tables import Table

Row = dict[str, Any]

GIVEN = ("capture_rank", "input_moment_ms")
"""What rows of evidence are given beside their own columns."""


def own_columns(*names: str) -> tuple[str, ...]:
    """Columns of a content table, with those that say which rows are evidence."""
    return tuple(dict.fromkeys((*names, "input_id", "ingest_id")))


@dataclass(frozen=True)
class Evidence:
    """The captures of one run and their inputs.

    `captures[0]` is judged, the others lie behind it, newest first. `inputs` are rows of the inputs table, as many as
    there are files, each with its `capture_rank`: 0 for the judged capture, 1 for the one before it, and so on.
    """

    warehouse: Stored
    cluster: str
    captures: tuple[str, ...]
    newest_moment_ms: int | None
    inputs: tuple[Row, ...]

    @property
    def capture(self) -> str:
        """The capture that is judged."""
        return self.captures[0]

    @property
    def is_at_hand(self) -> bool:
        """All of it is so little that it is read into memory, past Spark."""
        return is_at_hand(sum(item["text_bytes"] for item in self.inputs))

    @cached_property
    def cuts(self) -> dict[SectionKey, Cuts]:
        """Where the pieces of a section must end, by section."""
        return cuts_of(self.log_sections)

    @cached_property
    def section_rows(self) -> list[Row]:
        """One row per section: its fields, its input and rank, and what is known of its end."""
        return [row for item in self.inputs if item["kind"] is not None for row in _section_rows(item)]

    @cached_property
    def log_sections(self) -> list[LogSection]:
        """The sections of logs among them."""
        return log_sections(self.section_rows)

    @classmethod
    def of_capture(cls, warehouse: Stored, cluster: str, capture: str | None = None) -> Self:
        """The evidence for judging one capture: itself, and every capture of the cluster that is older.

        A capture's moment is the newest timestamp that a broker's clock wrote in it. Without a name the newest capture
        is judged.

        Raises:
            WarehouseError: the cluster has no such capture.
        """
        inputs = warehouse.listed(INPUTS, cluster=[cluster])
        moments = _moments(inputs)
        names = sorted(moments, key=lambda name: (moments[name] is not None, moments[name] or 0, name))
        if not names or (capture is not None and capture not in moments):
            wanted = f"no capture {capture}" if capture else "no capture"
            raise WarehouseError(f"{warehouse.root}: cluster {cluster} has {wanted} yet: audit its files first")
        judged = capture or names[-1]
        return cls._of(warehouse, cluster, tuple(reversed(names[: names.index(judged) + 1])), inputs)

    @classmethod
    def of_run(cls, warehouse: Stored, run: Mapping[str, Any]) -> Self:
        """The evidence that a run had, from its row of `runs`; captures that were fed later are not among it."""
        captures = (run["capture"], *reversed(run["earlier_captures"] or []))
        return cls._of(warehouse, run["cluster"], captures, warehouse.listed(INPUTS, cluster=[run["cluster"]]))

    @classmethod
    def _of(cls, warehouse: Stored, cluster: str, captures: tuple[str, ...], inputs: list[Row]) -> Self:
        ranked = tuple(i | {"capture_rank": captures.index(i["capture"])} for i in inputs if i["capture"] in captures)
        return cls(warehouse, cluster, captures, _moments(inputs)[captures[0]], ranked)

    def batches(self, table: Table, *names: str, **one_of: Collection[Any]) -> Iterator[pa.RecordBatch]:
        """Some columns of the rows of a content table that are evidence, one batch after another; see `Stored`.

        Behind them each row has its `capture_rank` (the newest capture's) and as `input_moment_ms` the newest moment of
        its input, 0 if there is none.
        """
        rows = self.warehouse.batches(table, *own_columns(*names), ingest_id=self.ingests, **one_of)
        return (batch for batch in self.given(*names)(rows) if len(batch))

    def given(self, *names: str) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
        """Of rows that have `own_columns` those that are evidence, as `batches` gives them."""
        keys = pa.array([f"{ingest_id} {input_id}" for input_id, ingest_id in self.ranked], pa.string())
        given = [pa.array([known[name] for known in self.ranked.values()], pa.int64()) for name in GIVEN]

        def own(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                key = pc.binary_join_element_wise(batch["ingest_id"], batch["input_id"], " ")
                place = pc.index_in(key, keys)
                kept, place = batch.select([*names]).filter(pc.is_valid(place)), place.drop_null()
                columns = [*kept.columns, *(values.take(place) for values in given)]
                yield pa.RecordBatch.from_arrays(columns, [*names, *GIVEN])

        return own

    def listed(self, table: Table) -> list[Row]:
        """All of the same rows as plain data, where there are few."""
        rows, ranked = self.warehouse.listed(table, ingest_id=self.ingests), self.ranked
        return [row | ranked[key] for row in rows if (key := (row["input_id"], row["ingest_id"])) in ranked]

    def held(self, table: Table, *names: str) -> pa.Table:
        """Some columns of the same rows as Arrow, where there are few; without rank and moment.

        `names` has `input_id` and `ingest_id`.
        """
        found = self.warehouse.held(table, *names, ingest_id=self.ingests)
        keys = zip(*(found[name].to_pylist() for name in ("input_id", "ingest_id")), strict=True)
        return found.filter(pa.array((key in self.ranked for key in keys), pa.bool_()))

    @cached_property
    def ranked(self) -> dict[tuple[str, str], Row]:
        """By input and the ingest that read it, what its rows are given."""
        newest = {i["input_id"]: i for i in sorted(self.inputs, key=lambda i: -int(i["capture_rank"]))}
        return {
            (n, i["ingest_id"]): {"capture_rank": i["capture_rank"], "input_moment_ms": i["newest_moment_ms"] or 0}
            for n, i in newest.items()
        }

    @cached_property
    def ingest_of(self) -> dict[str, str]:
        """The ingest that read each input."""
        return dict(self.ranked.keys())

    @property
    def ingests(self) -> list[str]:
        """Which ingests its rows are of."""
        return sorted({ingest_id for _, ingest_id in self.ranked})


def _section_rows(item: Row) -> list[Row]:
    """A section's end is proven where the next one really begins; what is wrong with a file is wrong at its end."""
    sections = item["sections"]
    starts_proven = [s["is_start_proven"] for s in sections[1:]] + [True]
    problems = [None] * (len(sections) - 1) + [item["problem"]]
    return [
        {"input_id": item["input_id"], "capture_rank": item["capture_rank"], **section}
        | {"is_end_proven": is_end_proven, "input_problem": problem, "log_dir": _log_dir(item["path"], section)}
        | {"path": item["path"]}
        for section, is_end_proven, problem in zip(sections, starts_proven, problems, strict=True)
    ]


def _log_dir(path: str, section: Row) -> str | None:
    """The log directory that a broker's own file lies in; None for a dump, and where its path does not say."""
    place = section["dump_path"]
    is_inside = section["grammar"] in BINARY_GRAMMARS and path.endswith(place)
    return os.path.normpath(path.removesuffix(place) or os.curdir) if is_inside else None


def _moments(inputs: list[Row]) -> dict[str, int | None]:
    moments: dict[str, int | None] = {}
    for item in inputs:
        known = [ms for ms in (moments.get(item["capture"]), item["newest_moment_ms"]) if ms is not None]
        moments[item["capture"]] = max(known, default=None)
    return moments
