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
from pyspark.sql import functions as F

from txn_analysis.errors import WarehouseError
from txn_analysis.frames import is_at_hand
from txn_analysis.reading.sections import BINARY_GRAMMARS
from txn_analysis.reconstruct.copies import cuts_of
from txn_analysis.tables import INPUTS, LOG_PIECES, PRODUCER_SNAPSHOTS, TRANSACTION_STATES
from txn_analysis.tables._schema import BIGINT, BOOLEAN, INT, STRING
from txn_analysis.tables.inputs import SECTION
from txn_analysis.tables.spark_types import spark_struct

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from txn_analysis.reconstruct.rivals import Cuts
    from txn_analysis.reconstruct.segments import SectionKey
    from txn_analysis.tables import Table
    from txn_analysis.warehouse import Warehouse

Row = dict[str, Any]

# Folds cannot be cut where a later capture's copy or snapshot ends.
_UNCUT = "read with --depth quick, so that {place} cannot be looked at. Audit it again with --depth full"

_RANKED = spark_struct(input_id=STRING, ingest_id=STRING, capture_rank=INT, input_moment_ms=BIGINT)
_SECTIONS = spark_struct(
    input_id=STRING,
    capture_rank=INT,
    **{field.name: field.type for field in SECTION},
    is_end_proven=BOOLEAN,
    input_problem=STRING,
    log_dir=STRING,
)


@dataclass(frozen=True)
class Evidence:
    """The captures of one run and their inputs.

    `captures[0]` is judged, the others lie behind it, newest first. `inputs` are rows of the inputs table, as many as
    there are files, each with its `capture_rank`: 0 for the judged capture, 1 for the one before it, and so on.
    """

    warehouse: Warehouse
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
        """Where the pieces of a section must end, by section; those without batches cannot be cut."""
        return cuts_of(self._listed_sections)

    @cached_property
    def section_rows(self) -> list[Row]:
        """One row per section: its fields, its input and rank, and what is known of its end."""
        return [self._with_missing_cut(row) for row in self._listed_sections]

    @cached_property
    def _listed_sections(self) -> list[Row]:
        return [row for item in self.inputs if item["kind"] is not None for row in _section_rows(item)]

    def _with_missing_cut(self, row: Row) -> Row:
        cut = self.cuts.get((row["input_id"], row["section_index"]))
        if not cut or row["has_batches"] or row["input_problem"]:
            return row
        return row | {"input_problem": _UNCUT.format(place=cut.first)}

    @cached_property
    def sections(self) -> DataFrame:
        """The section rows as a frame."""
        rows = [tuple(row[name] for name in _SECTIONS.names) for row in self.section_rows]
        return self.warehouse.spark.createDataFrame(rows, _SECTIONS)

    def of(self, table: Table) -> DataFrame:
        """The rows of a content table that are evidence.

        Each with its `capture_rank` (the newest capture's) and the newest moment of its input, 0 if there is none.
        """
        ranked = [(*key, *known.values()) for key, known in self._ranked.items()]
        known = self.warehouse.spark.createDataFrame(ranked, _RANKED)
        rows = self.warehouse.read_uncommitted(table).where(F.col("ingest_id").isin(self._ingests))
        return rows.join(F.broadcast(known), ["input_id", "ingest_id"])

    def listed(self, table: Table) -> list[Row]:
        """The same rows as plain data, where there are few; see `Warehouse.listed`."""
        rows, ranked = self.warehouse.listed(table, ingest_id=self._ingests), self._ranked
        return [row | ranked[key] for row in rows if (key := (row["input_id"], row["ingest_id"])) in ranked]

    def held(self, table: Table, *names: str) -> pa.Table:
        """Some columns of the same rows as Arrow, where there are few; without rank and moment.

        `names` has `input_id` and `ingest_id`.
        """
        found = self.warehouse.held(table, *names, ingest_id=self._ingests)
        keys = zip(*(found[name].to_pylist() for name in ("input_id", "ingest_id")), strict=True)
        return found.filter(pa.array((key in self._ranked for key in keys), pa.bool_()))

    @cached_property
    def _ranked(self) -> dict[tuple[str, str], Row]:
        """By input and the ingest that read it, what its rows are given."""
        newest = {i["input_id"]: i for i in sorted(self.inputs, key=lambda i: -int(i["capture_rank"]))}
        return {
            (n, i["ingest_id"]): {"capture_rank": i["capture_rank"], "input_moment_ms": i["newest_moment_ms"] or 0}
            for n, i in newest.items()
        }

    @property
    def _ingests(self) -> list[str]:
        return sorted({ingest_id for _, ingest_id in self._ranked})

    @property
    def pieces(self) -> DataFrame:
        """Rows of `log_pieces`."""
        return self.of(LOG_PIECES)

    @property
    def snapshots(self) -> DataFrame:
        """Rows of `producer_snapshots`."""
        return self.of(PRODUCER_SNAPSHOTS)

    def states(self, partition_count: int) -> DataFrame:
        """Rows of `transaction_states`; console records get the partition that their id hashes to.

        `record_order` sorts the records of one id: dumped ones by offset, whichever capture they are from; console
        exports, which have no offsets, by capture, then by the newest moment of each export, then by arrival. Within
        one capture a dump counts after an export.
        """
        dumps = [i["capture_rank"] for i in self.inputs for s in i["sections"] or () if s["kind"] == "state"]
        is_console = F.col("state_partition").isNull()
        age = F.when(is_console, F.col("capture_rank")).otherwise(F.lit(min(dumps, default=0)))
        exported_in = F.when(is_console, F.col("input_id")).otherwise("")
        # The offset alone says which dumped record it is: another copy has it at another place of its text.
        arrival = F.when(is_console, F.col("ordinal")).otherwise(0).alias("arrival")
        hashed = state_partition_of(F.col("transactional_id_hash"), partition_count)
        return (
            self.of(TRANSACTION_STATES)
            .withColumn("is_console", is_console)
            .withColumn(
                "record_order",
                F.struct(-age, ~F.col("is_console"), F.coalesce("offset", "input_moment_ms"), exported_in, arrival),
            )
            .withColumn("hashed_partition", hashed)
            .withColumn("state_partition", F.coalesce("state_partition", "hashed_partition"))
        )


def _section_rows(item: Row) -> list[Row]:
    """A section's end is proven where the next one really begins; what is wrong with a file is wrong at its end."""
    sections = item["sections"]
    starts_proven = [s["is_start_proven"] for s in sections[1:]] + [True]
    problems = [None] * (len(sections) - 1) + [item["problem"]]
    return [
        {"input_id": item["input_id"], "capture_rank": item["capture_rank"], **section}
        | {"is_end_proven": is_end_proven, "input_problem": problem, "log_dir": _log_dir(item["path"], section)}
        for section, is_end_proven, problem in zip(sections, starts_proven, problems, strict=True)
    ]


def _log_dir(path: str, section: Row) -> str | None:
    """The log directory that a broker's own file lies in; None for a dump, and where its path does not say."""
    place = section["dump_path"]
    is_inside = section["grammar"] in BINARY_GRAMMARS and path.endswith(place)
    return os.path.normpath(path.removesuffix(place) or os.curdir) if is_inside else None


def state_partition_of(hashed: Column, partition_count: int) -> Column:
    """The partition of `__transaction_state` for a Java string hash; `abs(MIN_VALUE)` is 0 (Kafka's `Utils.abs`)."""
    positive = F.when(hashed == F.lit(-(2**31)), F.lit(0)).otherwise(F.abs(hashed))
    return (positive % F.lit(partition_count)).cast("int")


def evidence_of(warehouse: Warehouse, cluster: str, capture: str | None = None) -> Evidence:
    """The evidence for judging one capture: itself, and every capture of the cluster that is older.

    A capture's moment is the newest timestamp that a broker's clock wrote in it. Without a name the newest capture is
    judged.

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
    return _evidence(warehouse, cluster, tuple(reversed(names[: names.index(judged) + 1])), inputs)


def evidence_of_run(warehouse: Warehouse, run: Row) -> Evidence:
    """The evidence that a run had, from its row of `runs`; captures that were fed later are not among it."""
    captures = (run["capture"], *reversed(run["earlier_captures"] or []))
    return _evidence(warehouse, run["cluster"], captures, warehouse.listed(INPUTS, cluster=[run["cluster"]]))


def _moments(inputs: list[Row]) -> dict[str, int | None]:
    moments: dict[str, int | None] = {}
    for item in inputs:
        known = [ms for ms in (moments.get(item["capture"]), item["newest_moment_ms"]) if ms is not None]
        moments[item["capture"]] = max(known, default=None)
    return moments


def _evidence(warehouse: Warehouse, cluster: str, captures: tuple[str, ...], inputs: list[Row]) -> Evidence:
    ranked = tuple(i | {"capture_rank": captures.index(i["capture"])} for i in inputs if i["capture"] in captures)
    return Evidence(warehouse, cluster, captures, _moments(inputs)[captures[0]], ranked)
