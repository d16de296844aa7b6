"""A run that is made: one judgement of one capture, and where its rows are read and written."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from hashlib import blake2b
from operator import methodcaller
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import JsonValue

from txn_analysis.columns.arrays import matching
from txn_analysis.columns.values import BatchFunction
from txn_analysis.coordinator.state_records import StateFiles
from txn_analysis.engine.buckets import bucket_count
from txn_analysis.engine.engine import Engine, is_on_spark
from txn_analysis.engine.in_process import InProcess
from txn_analysis.errors import ConfigError
from txn_analysis.judge.case import Moments
from txn_analysis.judge.judgement import TESTED_BY_ALL_LOGS
from txn_analysis.kafka.names import BINARY_GRAMMARS, STATE
from txn_analysis.log.copies import cuts_of, overlapping
from txn_analysis.log.segments import Cuts, SectionKey, log_sections
from txn_analysis.runs.asked_places import asked_for
from txn_analysis.runs.past_run import GIVEN, KEY, Evidence, PastRun, columns_with_key
from txn_analysis.runs.prunes import check_order, unpruned_name
from txn_analysis.settings import Decides, Settings, deciding
from txn_analysis.tables import Table
from txn_analysis.tables.inputs import InputSection, Manifest, ReadInput
from txn_analysis.tables.schema import ONLY, given_schema, with_audit
from txn_analysis.warehouse.delta_tables import Warehouse

Made = tuple["BatchFunction", pa.Schema]
"""A function of rows that leaves out none of their `KEY`, and the columns that are wanted of what it makes."""

_in_order = json.JSONEncoder(sort_keys=True).encode
_PRINTED_BYTES_PER_STATE_BYTE = 5  # a record of the state has some 140 bytes; kafka-dump-log prints 750 of it
_LEAST_OF_TASKS = 4  # so that the cores of a small machine have some each


@dataclass(frozen=True)
class Run(PastRun):
    """A run that is made, or made anew: what the steps of one audit are given, and where its rows are written."""

    @cached_property
    def engine(self) -> Engine[Any]:
        """What runs the steps.

        Raises:
            ConfigError: this process is asked for, and would hold more than it may.
        """
        text_bytes = sum(item.text_bytes for item in self.evidence.inputs)
        printed_bytes = sum(_printed_bytes(item) for item in self.evidence.inputs)
        if is_on_spark(self.settings, text_bytes):
            from txn_analysis.engine.on_spark import OnSpark  # noqa: PLC0415 else no audit needs PySpark, which takes long

            return OnSpark(self.warehouse.spark, bucket_count(printed_bytes, _LEAST_OF_TASKS), self.warehouse)
        return InProcess(self.warehouse, bucket_count(printed_bytes))

    @cached_property
    def audits(self) -> Mapping[int, Audit]:
        """As of `Given`."""
        evidence = self.evidence
        is_partial = evidence.asked is not None
        return {ONLY: Audit(self.settings, self.moments, evidence.sections, evidence.manifests, is_partial)}

    def rows(self, table: Table, *names: str, made: Made | None = None, **one_of: Collection[Any]) -> Any:
        """As of `Given`."""
        function, schema = made or (iter, given_schema(table, *names))
        known = self.evidence.known.select([*KEY, *(name for name in GIVEN if name in schema.names)])
        rows = self.candidates(table, *columns_with_key(*(name for name in names if name not in GIVEN)), **one_of)
        if "input_id" in one_of:  # so few inputs that each task takes them along
            known = known.filter(pc.is_in(known["input_id"], pa.array([*one_of["input_id"]], pa.string())))
            match = matching(known, KEY, schema.names)
            return self.engine.mapped(rows, lambda batches: map(match, function(batches)), schema)
        key = [given_schema(table, name).field(name) for name in KEY if name not in schema.names]
        keyed = pa.schema([*(field for field in schema if field.name not in GIVEN), *key])
        select = methodcaller("select", keyed.names)
        rows = self.engine.mapped(rows, lambda batches: map(select, function(batches)), keyed)
        return self.engine.matched(rows, known, KEY, schema)

    def candidates(self, table: Table, *names: str, **one_of: Collection[Any]) -> Any:
        """As of `Given`."""
        schema = given_schema(table, *names)
        rows = self.engine.table(table, *names, ingest_id=self.evidence.ingests, **one_of)
        return self.engine.mapped(rows, partial(map, with_audit(schema)), schema)

    def replace(self, rows: Iterable[pa.RecordBatch], table: Table) -> None:
        """Make rows of the driver the run's rows of a table; each batch may be dropped once it is taken."""
        self.warehouse.replace(rows, table, **dict.fromkeys(table.partition_by, self.run_id))


def _printed_bytes(item: ReadInput) -> int:
    """How much text says as much; of all files of brokers those of the state alone have more rows for their bytes."""
    is_binary_state = any(s.kind == STATE and s.grammar in BINARY_GRAMMARS for s in item.sections)
    return item.text_bytes * (_PRINTED_BYTES_PER_STATE_BYTE if is_binary_state else 1)


def start_run(warehouse: Warehouse, settings: Settings) -> Run:
    """The run for a capture: the named one, or else the cluster's newest by its brokers' clocks.

    Whoever writes its rows prepares the tables before (`Warehouse.create`).

    Raises:
        ConfigError: some partitions are asked for, and the capture was filled with others.
    """
    known = Evidence.of_capture(warehouse, settings.cluster, settings.capture)
    if settings.topic and asked_for(settings) != known.asked:
        raise ConfigError(f"--topic: capture {known.capture} was filled with other partitions: leave the option out")
    if known.asked is not None:  # what would disprove a word may lie in a partition that was not asked for
        settings = settings.model_copy(update=dict.fromkeys(TESTED_BY_ALL_LOGS, False))
    check_order(warehouse, settings.cluster, known.capture, known.newest_moment_ms)
    warehouse.note = note_of(settings.cluster, known.capture, parameters(settings))
    as_of_ms = settings.as_of_ms if settings.as_of_ms is not None else known.newest_moment_ms
    return Run(warehouse, unpruned_name(warehouse, _run_id(known, settings)), known, settings, as_of_ms)


def _run_id(known: Evidence, settings: Settings) -> str:
    inputs = sorted((item.capture, item.input_id, *map(str, item.asked or ())) for item in known.inputs)
    return "run-" + digest((settings.cluster, known.captures, inputs, parameters(settings)))


def parameters(settings: Settings) -> dict[str, JsonValue]:
    """The effective settings that a run depends on, as plain data; of a topic configuration its content counts."""
    judging = settings.model_dump(mode="json", include=set(deciding(Decides.VERDICTS)))
    more_settings = settings.model_dump(mode="json", include=set(deciding(Decides.MORE)), exclude_defaults=True)
    if settings.topic_config is not None:
        content = Path(settings.topic_config).read_bytes() if Path(settings.topic_config).is_file() else b""
        more_settings["topic_config_digest"] = blake2b(content, digest_size=8).hexdigest()
    return judging | more_settings


def note_of(cluster: str, capture: str, effective_settings: Mapping[str, JsonValue]) -> str:
    """What the commits of a run say: which capture it is of, and its settings."""
    return _in_order({"cluster": cluster, "capture": capture, "parameters": effective_settings})


def digest(basis: object) -> str:
    """A short name for plain data; the same data has the same one."""
    return blake2b(_in_order(basis).encode(), digest_size=8).hexdigest()


@dataclass(frozen=True)
class Audit:
    """What is known of one audit before its rows are looked at.

    Attributes:
        settings: what the operator says.
        moments: when the files were copied.
        sections: all of the evidence.
        manifests: those of the judged capture.
        is_partial: it is asked for some partitions alone.
    """

    settings: Settings
    moments: Moments
    sections: Sequence[InputSection]
    manifests: Sequence[Manifest] = ()
    is_partial: bool = False

    @cached_property
    def log_sections(self) -> list[InputSection]:
        """The sections of logs."""
        return log_sections(self.sections)

    @cached_property
    def cuts(self) -> dict[SectionKey, Cuts]:
        """Where the pieces of a section must end, by section."""
        return cuts_of(self.log_sections)

    @cached_property
    def overlapping(self) -> set[tuple[str, int]]:
        """The partitions of which some offset is in two files."""
        return overlapping(self.log_sections)

    @cached_property
    def state_files(self) -> StateFiles:
        """The files that hold the coordinator's side."""
        files = StateFiles.of(self.sections)
        stated = {m.cluster_id for m in self.manifests if m.cluster_id is not None}
        return replace(files, cluster_ids=files.cluster_ids | stated)


class Given(Protocol):
    """Some audits, and the rows that are their evidence, for one engine."""

    @property
    def engine(self) -> Engine[Any]:
        """What runs the steps."""

    @property
    def audits(self) -> Mapping[int, Audit]:
        """The audits, by number."""

    def rows(self, table: Table, *names: str, made: Made | None = None, **one_of: Collection[Any]) -> Any:
        """Rows of a content table that are evidence, with `audit` and some columns.

        Args:
            table: of which rows are wanted.
            names: of its columns, and of `GIVEN`.
            made: what else becomes of each row, in the pass that reads it, before `GIVEN` is known.
            one_of: what some columns may hold, to read less: other rows may be given as well.
        """

    def candidates(self, table: Table, *names: str, **one_of: Collection[Any]) -> Any:
        """As `rows`, of all ingests that read any of the evidence; not all of these rows are evidence."""
