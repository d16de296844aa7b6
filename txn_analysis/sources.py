"""Files of Kafka as frames, without a warehouse and an audit: data sources, by Spark's Python API.

| format | one row is | read of |
|---|---|---|
| `kafka_dump` | one record batch, as in `log_batches` | texts of `kafka-dump-log`, decoded state too |
| `kafka_log_dir` | one record batch, as in `log_batches` | segments of copied log directories |
| `kafka_transaction_state` | one record, as in `transaction_states` | dumps, exports and segments of the state |
| `kafka_producer_snapshot` | one producer in one snapshot, as in `producer_snapshots` | dumps, `.snapshot` files |

`path` and `section_index` stand in place of the ids that a warehouse gives. No key, value or header of a record is a
column. A path is a file, a folder or a glob, on a disk that every task sees, or in a store.
"""

from __future__ import annotations

import glob
import json
import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StringType, StructField, StructType

from txn_analysis.columns.arrays import together
from txn_analysis.columns.records import batch_of
from txn_analysis.errors import ConfigError, InputError
from txn_analysis.kafka.names import DESCRIBED, LOG_KINDS, SNAPSHOT, STATE_KINDS
from txn_analysis.pipeline.ingest import Content
from txn_analysis.pipeline.ingest_tasks import read_tasks
from txn_analysis.reading.inputs.accounting import rejected_outside
from txn_analysis.reading.inputs.find_files import SourceFile, find_files
from txn_analysis.reading.inputs.manifest import split_manifests
from txn_analysis.reading.inputs.planned_input import PlannedInput
from txn_analysis.reading.inputs.planning import split_ranges
from txn_analysis.reading.inputs.survey_files import survey_files
from txn_analysis.reading.log_dir.producer_files import CHANGED
from txn_analysis.reading.rows import READ_KINDS, REJECTED, read_ranges
from txn_analysis.reading.text.section import NO_PARTITION, Section
from txn_analysis.settings import Settings
from txn_analysis.spark.workers import prepare_worker
from txn_analysis.tables import LOG_BATCHES, PRODUCER_SNAPSHOTS, REJECTS, TRANSACTION_STATES, Table
from txn_analysis.tables.batches import Batches, rows_of
from txn_analysis.tables.inputs import AskedPartition, RejectedSpan
from txn_analysis.warehouse.rows import BatchesByName, tables_of
from txn_analysis.warehouse.spark_tasks import spark_schema

_SHARE_BYTES, _FILE_BYTES = 32 << 20, 64 << 10  # of one task; to open a file takes as long as to read so much
_BATCHES_AT_ONCE = 20_000
_RANGE_BYTES = Settings.model_fields["range_bytes"].default
_PROVES_ITS_FOLDER = re.compile(r"\d{20}\.log|partition\.metadata")  # a log directory's, by which others are known
_MOST_NEIGHBOURS = 2
_OPTION_NAMES = ("path", "paths", "rejects", "topic", "partition")


def register(spark: SparkSession) -> None:
    """Make the formats of this module known to a session, one of Spark Connect as well, as long as it lives.

    `spark.read.format("kafka_dump").load(path)` reads then. Options, as text:

    * `rejects`: `true` for the spans that were not understood (path, section_index, offset_bytes, length_bytes,
      reason) in place of rows.
    * `topic`, `partition`: only sections of these are read. A filter of the frame reads all, and drops rows.

    `.schema("topic STRING, base_offset BIGINT")` reads these columns alone; Spark tells no source in Python what a
    query needs. Whatever is not understood as a whole fails the query with path, byte and remedy; spans inside of what
    is understood are left out. A content that is given twice is read twice.
    """
    for name in _FORMATS:
        spark.dataSource.register(source_of(name))


class _Format(NamedTuple):
    """What a format gives.

    Attributes:
        table: whose rows they are, with `path` in place of ids.
        kinds: of the sections that it reads.
        is_of_brokers: it reads files of log directories alone, or none of them; None for both.
    """

    table: Table
    kinds: frozenset[str]
    is_of_brokers: bool | None = None

    def reads(self, plan: PlannedInput, section: Section) -> bool:
        """Sections of this kind, in this kind of file, have rows of the format."""
        return self.is_of_brokers in {None, plan.is_broker_file} and section.kind in self.kinds


_FORMATS = {
    "kafka_dump": _Format(LOG_BATCHES, LOG_KINDS, is_of_brokers=False),
    "kafka_log_dir": _Format(LOG_BATCHES, LOG_KINDS, is_of_brokers=True),
    "kafka_transaction_state": _Format(TRANSACTION_STATES, STATE_KINDS),
    "kafka_producer_snapshot": _Format(PRODUCER_SNAPSHOTS, frozenset({SNAPSHOT, DESCRIBED})),
}


def source_of(name: str) -> type[_Files]:
    """The data source of a format: Spark makes it anew in each process, by its class alone."""
    return type(name, (_Files,), {"named": name})


class _Files(DataSource):
    named: ClassVar[str]

    @classmethod
    def name(cls) -> str:
        """As of `DataSource`."""
        return cls.named

    def schema(self) -> StructType:
        """Columns of the table with its comments; each may be NULL, as Spark 4.2 takes no others."""
        options = _Options.of(self.name(), self.options)
        declared = spark_schema(REJECTS if options.is_of_rejects else _FORMATS[self.name()].table)
        path = StructField("path", StringType(), True, {"comment": "the file, by its absolute path or URI"})
        fields = (StructField(field.name, field.dataType, True, field.metadata) for field in declared)
        return StructType(
            [path if field.name == "input_id" else field for field in fields if field.name != "ingest_id"]
        )

    def reader(self, schema: StructType) -> DataSourceReader:
        """As of `DataSource`; a schema that the user gave names the columns that are wanted.

        Raises:
            ConfigError: there is no such column, or it is of another type: of milliseconds Spark would make no time.
        """
        types = {field.name: field.dataType.simpleString() for field in self.schema()}
        for field in schema:
            asked, declared = field.dataType.simpleString(), types.get(field.name)
            if declared is None:
                raise ConfigError(f"{self.name()}: there is no column {field.name}; there are {', '.join(types)}")
            if asked != declared:
                remedy = f"Name it as {declared}, and convert it in the query"
                raise ConfigError(f"{self.name()}: column {field.name} is {declared}, not {asked}. {remedy}")
        return _Reader(self.name(), _Options.of(self.name(), self.options), schema)


class _Options(NamedTuple):
    """The options of a read."""

    paths: tuple[str, ...]
    is_of_rejects: bool
    topic: str | None
    partition: int | None

    @classmethod
    def of(cls, name: str, options: Mapping[str, str]) -> _Options:
        """Options as Spark gives them.

        Raises:
            ConfigError: one is not known, or has no such value.
        """
        texts = {key.lower(): value for key, value in options.items()}
        if unknown := sorted(texts.keys() - {*_OPTION_NAMES}):
            raise ConfigError(f"{name}: there is no option {unknown[0]}; there are rejects, topic and partition")
        rejects, partition = texts.get("rejects", "false").lower(), texts.get("partition")
        if rejects not in {"true", "false"}:
            raise ConfigError(f"{name}: option rejects is true or false")
        if partition is not None and not partition.isdecimal():
            raise ConfigError(f"{name}: option partition is the number of one partition")
        paths = [texts["path"]] if "path" in texts else json.loads(texts.get("paths", "[]"))
        if not paths:
            raise ConfigError(f"{name}: name files: .load(path)")
        return cls(tuple(paths), rejects == "true", texts.get("topic"), None if partition is None else int(partition))


@dataclass(frozen=True)
class _Share(InputPartition):
    """The files that one task reads, and those beside them that say what they are."""

    files: tuple[SourceFile, ...]
    beside: tuple[SourceFile, ...]
    is_first: bool


class _Reader(DataSourceReader):
    def __init__(self, name: str, options: _Options, schema: StructType) -> None:
        self._name, self._options, self._schema = name, options, schema
        self._folder = str(Path.cwd())  # of the driver, where the reader is made; tasks run in other folders

    @property
    def _format(self) -> _Format:
        return _FORMATS[self._name]  # of the task's own module: its table is compared with others

    def partitions(self) -> Sequence[_Share]:
        """Shares of the files by their sizes; nothing of them is read, as Spark asks at each planning of a query."""
        files = find_files([_from(self._folder, path) for path in self._options.paths])
        neighbours, shares = _neighbours(files), list[_Share]()
        for share in together(files, lambda file: file.size_bytes + _FILE_BYTES, _SHARE_BYTES):
            folders = {file.path.rpartition("/")[0] for file in share}
            beside = {near for folder in folders for near in neighbours(folder)}.difference(share)
            shares.append(_Share(tuple(share), tuple(sorted(beside)), is_first=not shares))
        return shares

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a share, in batches of exactly the types that were declared."""
        prepare_worker()
        assert isinstance(partition, _Share)
        arrow = to_arrow_schema(self._schema)
        plans = self._planned(partition)
        for rows in self._rejects(plans) if self._options.is_of_rejects else self._rows(plans):
            named = rows.rename_columns(["path" if name == "input_id" else name for name in rows.schema.names])
            yield named.select(arrow.names).cast(arrow)

    def _planned(self, share: _Share) -> list[PlannedInput]:
        """What each file is that may have rows of this format.

        Raises:
            InputError: no file of any share is of such a kind.
        """
        read, other = self._of_this_format(share)
        if share.is_first and self._options.topic is None and not _has_some(read):
            for behind in self.partitions()[:0:-1]:  # the last one first: the state is listed last
                its, another = self._of_this_format(behind)
                if _has_some(its):
                    return read
                other = other or another
            if other is not None:
                raise InputError([f"{other.path}: {other.kind}, of which {self._name} reads nothing{_by(other)}"])
        return read

    def _of_this_format(self, share: _Share) -> tuple[list[PlannedInput], PlannedInput | None]:
        """What each file of a share is that may have rows of this format, and one that is of another kind."""
        asked = None if self._options.topic is None else (AskedPartition(self._options.topic, self._options.partition),)
        _, files = split_manifests(share.files)
        plans, _, _ = survey_files(_no_session, files, beside=share.beside, asked=asked)
        plans = [replace(plan, input_id=_as_text(plan.path)) for plan in plans if not plan.is_gone]
        read = [plan for plan in plans if not plan.sections or any(self._is_read(plan, s) for s in plan.sections)]
        return read, next((plan for plan in plans if plan.sections), None)

    def _is_read(self, plan: PlannedInput, section: Section) -> bool:
        if not self._format.reads(plan, section):
            return False
        if self._options.partition is not None and section.partition == NO_PARTITION:
            raise InputError([f"{plan.path}: an export names no partition. Leave out the option partition"])
        of_topic = self._options.topic in {None, section.topic}
        return of_topic and self._options.partition in {None, section.partition}

    def _rows(self, plans: Sequence[PlannedInput]) -> Iterator[pa.RecordBatch]:
        if problems := [f"{plan.path}: {plan.problem}" for plan in plans if plan.problem is not None]:
            remedy = f'Or load the other files alone: .option("rejects", "true") lists what {self._name} cannot read'
            raise InputError(problems, remedy)
        ranges = [part for task in split_ranges(plans, self._format.kinds, _RANGE_BYTES, 1) for part in task]
        read_sections = {(plan.input_id, s.index) for plan in plans for s in plan.sections if self._is_read(plan, s)}
        read = read_ranges([part for part in ranges if (part.input_id, part.section.index) in read_sections], "")
        if self._format.table is LOG_BATCHES:
            batches = (output for output in _unchanged(read) if isinstance(output, Batches))
            yield from map(rows_of, together(batches, len, _BATCHES_AT_ONCE))
        else:
            named = (output for output in _unchanged(read) if not isinstance(output, Batches))
            yield from (rows for name, rows in named if name == self._format.table.name)

    def _rejects(self, plans: Sequence[PlannedInput]) -> Iterator[pa.RecordBatch]:
        content, batches = Content("", [reject for plan in plans for reject in rejected_outside(plan)]), BatchesByName()
        tasks = read_tasks(split_ranges(plans, READ_KINDS, _RANGE_BYTES, 1), "", is_on_spark=False)
        for _ in tasks.of_tables(tasks.work, batches):
            pass  # rows of tables, which nobody asked for
        content.learn(tables_of(batches))
        content.account(plans)
        # Of an empty file, or one that cannot be unpacked, there is no span: the row says why.
        with_span = content.rejects_by_input()
        without = [plan for plan in plans if plan.problem is not None and plan.input_id not in with_span]
        content.rejects += [RejectedSpan(p.input_id, None, p.text_bytes, 0, p.problem or "") for p in without]
        yield batch_of(RejectedSpan, content.rejects, REJECTS.arrow_schema, ingest_id="")


def _by(plan: PlannedInput) -> str:
    """Which formats read a file."""
    names = [name for name, one in _FORMATS.items() if any(one.reads(plan, section) for section in plan.sections)]
    return f". Read it by {' or '.join(names)}" if names else ""


def _has_some(plans: Iterable[PlannedInput]) -> bool:
    return any(plan.sections or plan.problem for plan in plans)


def _unchanged(read: Iterable[Any]) -> Iterator[Any]:
    """What was read of some files, unless one of them became another one meanwhile.

    Raises:
        InputError: one did: it has rows of both.
    """
    for output in read:
        if not isinstance(output, Batches) and output[0] == REJECTED:
            changed = output[1].filter(pc.equal(output[1]["reason"], CHANGED))
            if len(changed):
                raise InputError([f"{changed['input_id'][0].as_py()}: {CHANGED}. Read it again"])
        yield output


def _neighbours(files: Sequence[SourceFile]) -> Callable[[str], list[SourceFile]]:
    """Of a folder the files of it, of those in it and beside it, that show which files are a log directory's."""
    of_folder, of_log_dir = defaultdict[str, list[SourceFile]](list), defaultdict[str, list[SourceFile]](list)
    for file in files:
        folder, _, name = file.path.rpartition("/")
        if _PROVES_ITS_FOLDER.fullmatch(name):
            for near in (of_folder[folder], of_log_dir[folder.rpartition("/")[0]]):
                if len(near) < _MOST_NEIGHBOURS:
                    near.append(file)

    def neighbours(folder: str) -> list[SourceFile]:
        return of_folder.get(folder) or [*of_log_dir.get(folder, ()), *of_log_dir.get(folder.rpartition("/")[0], ())]

    return neighbours


def _from(folder: str, path: str) -> str:
    """A path that leads to the same files from every folder; a URI does."""
    if path.startswith(os.sep) or path.partition("/")[0].endswith(":"):
        return path
    named = os.path.join(folder, path)
    return named if os.path.lexists(named) else os.path.join(glob.escape(folder), path)


def _as_text(path: str) -> str:
    """A name is bytes, and a column holds UTF-8."""
    return os.fsencode(path).decode(errors="backslashreplace")


def _no_session() -> SparkSession:
    raise AssertionError("a task has no session")
