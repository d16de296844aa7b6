"""What was read and what was asked: `inputs` and `runs`, and `rejects`, the spans that were not understood.

No text of a span is ever kept.
"""

from __future__ import annotations

import json
import os
from typing import Annotated, Any, NamedTuple

from txn_analysis.columns.records import Counts, Int32
from txn_analysis.kafka.names import BINARY_GRAMMARS, LOG, STATE_TOPIC
from txn_analysis.tables.readings import FIRST_READING, doubt_of, is_read_otherwise
from txn_analysis.tables.schema import STRING, Col, Table, adds_up, at_least, columns_of, not_negative, one_of


class ReadSection(NamedTuple):
    """One `Dumping …` section of a text, or one file or statement of a log directory."""

    section_index: Int32
    kind: str
    dump_path: str
    topic: str
    partition: Int32
    file_base_offset: int
    first_offset: int | None
    end_offset: int | None
    text_start_bytes: int
    text_end_bytes: int
    torn_bytes: int
    is_start_proven: bool
    grammar: str
    stated: str | None = None
    rival_positions: tuple[int, ...] | None = None
    leader_epoch: Int32 | None = None


def log_dir(path: str, place: str, grammar: str | None) -> str | None:
    """The log directory that a broker's own file lies in; None for a dump, and where its path does not say.

    Args:
        path: where it was found.
        place: its name within the log directory, as `dump_path`.
        grammar: of its section.
    """
    is_inside = grammar in BINARY_GRAMMARS and path.endswith(place)
    return os.path.normpath(path.removesuffix(place) or os.curdir) if is_inside else None


class AskedPartition(NamedTuple):
    """One partition that a capture was asked for; all of the topic where `partition` is None."""

    topic: str
    partition: Int32 | None = None

    def __str__(self) -> str:
        """As people write it."""
        return f"all of {self.topic}" if self.partition is None else f"{self.topic}-{self.partition}"


Asked = tuple[AskedPartition, ...]
"""The partitions that a capture was asked for; None, in place of it, is all that was given."""


def is_asked(asked: Asked | None, topic: str, partition: int) -> bool:
    """A partition is among those that were asked for; `__transaction_state`, and what is of no topic, always is."""
    if asked is None or not topic or topic == STATE_TOPIC:
        return True
    return any(one.topic == topic and one.partition in {None, partition} for one in asked)


class CopiedFile(NamedTuple):
    """What a manifest says of the copying of one file; None is unknown, and proves nothing.

    `input_id` is the content that was read of it, None where none was; `is_given` says that the file was among those
    that were given. Times are of the manifest's clock, `began_monotonic_ms` of one that is never set.
    """

    input_id: str | None
    path: str
    is_given: bool
    sequence: int | None = None
    topic: str | None = None
    topic_id: str | None = None
    partition: Int32 | None = None
    leader_id: Int32 | None = None
    leader_epoch: Int32 | None = None
    is_leader_confirmed: bool | None = None
    is_end_confirmed: bool | None = None
    began_ms: int | None = None
    ended_ms: int | None = None
    began_monotonic_ms: int | None = None
    first_offset: int | None = None
    end_offset: int | None = None
    is_folder_whole: bool | None = None


class Manifest(NamedTuple):
    """What one `txn-capture.json` says of a copy; `is_complete` is False of a copy that was cut short.

    `clock` is `broker` or `collector`: whose times these are. `path` is where the manifest lies.
    """

    path: str
    clock: str
    cluster_id: str | None
    broker_id: Int32 | None
    is_complete: bool
    files: tuple[CopiedFile, ...]


class InputSection(NamedTuple):
    """One `ReadSection` as evidence of a run, with what is known of its input.

    `capture_rank` is 0 for the judged capture, 1 for the one before it, and so on; `file_base_offset` the offset in a
    file's name, or the one that a checkpoint states. `first_offset`, `end_offset`, `rival_positions` and the highest
    `leader_epoch` are found from its batches: None without any. Text, tears and proofs are of files of batches alone.
    `input_problem` says what is wrong with its end, `log_dir` which log directory it lies in: None for a dump. `path`
    is where its file was found. `doubt` says what an earlier reading believed of it that today's does not.
    `cluster_id` is what the `meta.properties` of its folder states.
    """

    input_id: str
    section_index: int
    kind: str
    topic: str
    partition: int
    capture_rank: int
    file_base_offset: int
    first_offset: int | None
    end_offset: int | None
    text_start_bytes: int
    text_end_bytes: int
    torn_bytes: int
    is_start_proven: bool
    is_end_proven: bool
    grammar: str | None
    stated: str | None
    rival_positions: tuple[int, ...] | None
    input_problem: str | None
    log_dir: str | None
    path: str | None = None
    leader_epoch: int | None = None
    doubt: str | None = None
    cluster_id: str | None = None

    @property
    def shown_path(self) -> str:
        """Where its file was found; the fingerprint of its content where no path is known."""
        return self.input_id if self.path is None else self.path

    @property
    def key(self) -> tuple[str, int]:
        """Which one it is."""
        return self.input_id, self.section_index


class ReadInput(NamedTuple):
    """One file of the capture; `problem` says why it, or its end, was not understood."""

    cluster: Annotated[str, "the cluster's name, as given with --cluster"]
    capture: Annotated[str, "the capture's name: --capture, or derived from the fingerprints"]
    input_id: Annotated[str, "fingerprint of the content; the same content is the same input"]
    ingest_id: Annotated[str, "the ingest that read the content; rows of other ingests are not evidence"]
    path: Annotated[str, "where the file was found"]
    kind: Annotated[str | None, "kinds of its sections, joined by '+'; NULL where it was not recognised"]
    grammar: Annotated[str | None, "which tool versions print such text"]
    compression: Annotated[str | None, "gzip or zstd; NULL for plain text"]
    size_bytes: Annotated[int, "size of the file as stored"]
    text_bytes: Annotated[int, "size of its text, decompressed"]
    parsed_bytes: Annotated[int, "bytes that became rows, or are structure of the dump"]
    rejected_bytes: Annotated[int, "bytes in `rejects`; parsed + rejected = text"]
    newest_moment_ms: Annotated[int | None, "newest timestamp that a broker's clock wrote in it; NULL if none"]
    problem: Annotated[str | None, "why the file, or its end, was not understood; NULL where it was"]
    sections: Annotated[
        tuple[ReadSection, ...],
        "the `Dumping …` sections in file order, with the offsets of their batches; from rival_positions on two parts "
        "of the text claim the same batches. A file of a log directory is one section; a checkpoint one for each "
        "statement, whose offset is file_base_offset",
    ]
    manifest: Annotated[
        Manifest | None, "of a txn-capture.json what it says of the copying of each file; NULL of any other file"
    ] = None
    asked: Annotated[
        Asked | None,
        "the partitions that the capture was asked for, all of a topic where partition is NULL: of others nothing of "
        "the file is evidence. NULL: all that was given",
    ] = None
    reading_version: Annotated[
        Int32 | None,
        "number of the reading that found this: another one says something else of the same bytes. NULL: that of 1.0.0",
    ] = None
    cluster_id: Annotated[
        str | None, "the cluster.id that a meta.properties beside it, or in its log directory, states; NULL without one"
    ] = None
    capture_rank: int = 0  # as evidence of a run: 0 for the judged capture, 1 for the one before it, and so on
    lacking_sections: frozenset[int] = frozenset()  # of an earlier reading: those with a batch that lacks record lines

    @property
    def content(self) -> tuple[str, str | None]:
        """The input's content, and what it was recognised as: what was not understood may be by a newer version."""
        return self.input_id, self.kind

    @property
    def is_read_otherwise(self) -> bool:
        """Today's reading may say something else of it than the one that found this."""
        version, is_all = self.reading_version, self.is_understood
        return any(
            is_read_otherwise(
                s.kind, s.grammar, version, is_understood=is_all, is_lacking=s.section_index in self.lacking_sections
            )
            for s in self.sections
        )

    def doubt_of(self, section: ReadSection, version: int | None) -> str | None:
        """What the reading of a number believed of one of its sections that today's does not; None where nothing."""
        is_lacking = section.section_index in self.lacking_sections
        kind, grammar = section.kind, section.grammar
        return doubt_of(kind, grammar, version, is_understood=self.is_understood, is_lacking=is_lacking)

    @property
    def has_dumped_logs(self) -> bool:
        """Some of it is a dump of a log."""
        return any(section.kind == LOG and section.grammar not in BINARY_GRAMMARS for section in self.sections)

    @property
    def is_understood(self) -> bool:
        """Nothing of it was rejected, nor is wrong with it."""
        return not self.rejected_bytes and self.problem is None

    def is_newer_than(self, other: ReadInput) -> bool:
        """It is of a newer reading than another input."""
        return (self.reading_version or FIRST_READING) > (other.reading_version or FIRST_READING)

    def as_read_by(self, other: ReadInput) -> ReadInput:
        """The input with what reading found out of another one with the same content."""
        return self._replace(**{name: getattr(other, name) for name in FOUND_BY_READING})


FOUND_BY_READING = ("ingest_id", "parsed_bytes", "rejected_bytes", "newest_moment_ms", "sections", "reading_version")
"""What reading an input found out; content that was read before keeps what was found then."""

INPUTS = Table(
    name="inputs",
    grain="one file that was read into one capture of one cluster",
    key=("cluster", "capture", "input_id"),
    columns=columns_of(ReadInput),
    checks={
        "every_byte_accounted": adds_up("parsed_bytes", "rejected_bytes", total="text_bytes"),
        "sizes_not_negative": not_negative("size_bytes", "parsed_bytes", "rejected_bytes"),
    },
)


class RejectedSpan(NamedTuple):
    """A stretch of an input's text that was not understood."""

    input_id: Annotated[str, "fingerprint of the input"]
    section_index: Annotated[Int32 | None, "section of the input; NULL outside any section"]
    offset_bytes: Annotated[int, "where the span begins in the text"]
    length_bytes: Annotated[int, "how long it is"]
    reason: Annotated[str, "why it was not understood"]


REJECTS = Table(
    name="rejects",
    grain="one span of one input that was not understood",
    key=("input_id", "offset_bytes"),
    columns=(Col("ingest_id", STRING, "the ingest that read the content", nullable=False), *columns_of(RejectedSpan)),
    partition_by=("ingest_id",),
    checks={"span_not_empty": at_least("length_bytes", 1)},
)


MOST_PLANNED = 1_000
"""Of a plan of more aborts `runs` does not name them."""


class RunRecord(NamedTuple):
    """One finished run. `run_number` is 0 before it is written; `parameters` are its settings."""

    run_id: Annotated[str, "digest of the evidence and the parameters"]
    run_number: Annotated[int, "order of first completion in this warehouse"]
    cluster: Annotated[str, "the cluster's name"]
    capture: Annotated[str, "the capture that was judged"]
    earlier_captures: Annotated[tuple[str, ...] | None, "captures behind it, oldest first"]
    as_of_ms: Annotated[int | None, "moment at which the files were copied; NULL without any broker's clock"]
    as_of_basis: Annotated[str | None, "given, or newest_broker_timestamp"]
    parameters: Annotated[str, "the effective settings, as JSON"]
    input_count: Annotated[Int32, "inputs of the capture"]
    table_versions: Annotated[Counts | None, "Delta version of each table that was read"]
    verdict_counts: Annotated[Counts | None, "findings by verdict"]
    state_coverage: Annotated[str, "what was seen of `__transaction_state`, as JSON"]
    warnings: Annotated[str, "what does not hang yet and will, as JSON; of each kind the worst applications"]
    outcome: Annotated[str, "findings where something hangs, clean, or could_not_tell"]
    planned: Annotated[
        tuple[str, ...] | None,
        "finding_id of each abort that its plan recommends: the last plan of each is found without reading all; NULL "
        "of a plan of more than 1000",
    ] = None
    reading_version: Annotated[
        Int32 | None,
        "number of the newest reading that its version knew: what it read too trustingly is known since. NULL: that of "
        "1.0.0",
    ] = None
    forgotten_captures: Annotated[tuple[str, ...] | None, "of those behind it the ones forgotten since"] = None

    @property
    def coverage(self) -> dict[str, Any]:
        """What was seen of `__transaction_state`, as `coordinator.coverage.StateEvidence.coverage` said it."""
        coverage: dict[str, Any] = json.loads(self.state_coverage)
        return coverage

    @property
    def asked(self) -> Asked | None:
        """The partitions that its capture was asked for; None where it was asked for all that was given."""
        asked = self.coverage.get("asked")
        return None if asked is None else tuple(AskedPartition(**one) for one in asked)


RUNS = Table(
    name="runs",
    grain="one run",
    key=("run_id",),
    columns=columns_of(RunRecord),
    checks={
        "numbered_from_one": at_least("run_number", 1),
        "known_outcome": one_of("outcome", ("clean", "findings", "could_not_tell")),
        "known_basis": one_of("as_of_basis", ("given", "newest_broker_timestamp")),
    },
)
