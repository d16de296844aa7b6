"""Sections of which a partition's log is made, as typed rows: its files, its producer snapshots, its checkpoints.

Here rows of sections end: behind `log_sections` no column is looked up by name.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

from txn_analysis.kafka.sections import HIGH_WATERMARK, LOG_KINDS, NODE_ID, SNAPSHOT, STATED_OF_PARTITION
from txn_analysis.kafka.transactions import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

SectionKey = tuple[str, int]  # an input, and the index of the section in it
_KINDS = frozenset({*LOG_KINDS, SNAPSHOT, *STATED_OF_PARTITION})
_OF_REPLICAS = frozenset({*LOG_KINDS, HIGH_WATERMARK})


class LogSection(NamedTuple):
    """One `Dumping …` section of one partition, one file of a log directory, or one statement of a checkpoint.

    `capture_rank` is 0 for the judged capture, 1 for the one before it, and so on; `file_base_offset` the offset in a
    file's name, or the one that a checkpoint states. `first_offset`, `end_offset` and `rival_positions` are found from
    its batches: None without any. Text, tears and proofs are of files of batches alone. `input_problem` says what is
    wrong with its end, `log_dir` which log directory it lies in: None for a dump. `path` is where its file was found.
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

    @property
    def shown_path(self) -> str:
        """Where its file was found; where nobody says it, the fingerprint of its content."""
        return self.input_id if self.path is None else self.path

    @property
    def key(self) -> SectionKey:
        """Which one it is."""
        return self.input_id, self.section_index


def log_sections(rows: Iterable[Mapping[str, Any]]) -> list[LogSection]:
    """The sections of logs, of rows of `Evidence.section_rows` or of `inputs.sections` with their `input_id`."""
    return [LogSection._make(map(row.get, LogSection._fields)) for row in rows if row["kind"] in _KINDS]


def brokers_of(
    rows: Collection[Mapping[str, Any]], places: Collection[TopicPartition]
) -> dict[TopicPartition, set[str | None]]:
    """By partition, the node ids of the brokers that hold its log, of the same rows; None is one that is not known.

    Equal files of several brokers are one input, so a folder that holds a log is not all that do: a broker's own
    `replication-offset-checkpoint` lists its replicas. Empty where a broker of the judged capture has none of its own.
    """
    own = [(row, row.get("log_dir")) for row in rows if not row["capture_rank"]]
    nodes = {log_dir: row["stated"] for row, log_dir in own if row["kind"] == NODE_ID and log_dir is not None}
    if not nodes.keys() <= {log_dir for row, log_dir in own if row["kind"] == HIGH_WATERMARK}:
        return {}
    found: defaultdict[TopicPartition, set[str | None]] = defaultdict(set)
    for row, log_dir in own:
        where = TopicPartition(row["topic"], row["partition"])
        if where in places and row["kind"] in _OF_REPLICAS:
            found[where].add(nodes.get(log_dir))
    return dict(found)
