"""Which of the given files are a broker's own: segments and what lies beside them in a log directory.

A file is one by its content. Its place (partition, first offset) stands only in its path, as `topic-N/0….log`; a name
alone decides for files without content, and for files that are never evidence, and only beside segments. Each statement
of a checkpoint, or another small text, becomes a section of its own kind, so that it reaches the partition that it is
about.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import NamedTuple

import numpy as np

from txn_analysis.kafka.batch_headers import HEADER_BYTES, PEEK_BYTES, UP_TO_MAGIC_BYTES, Headers, is_plausible
from txn_analysis.kafka.names import (
    BINARY,
    CLUSTER_ID,
    COORDINATORS_FILE,
    DESCRIBED,
    DESCRIBED_FILE,
    HIGH_WATERMARK,
    INT32_MAX,
    LEADER_EPOCH,
    LOG,
    LOG_START,
    NODE_ID,
    OFFSET_MAX,
    SNAPSHOT,
    STATE,
    STATE_TOPIC,
    TOPIC_ID,
)
from txn_analysis.reading.inputs.find_files import SourceFile
from txn_analysis.reading.inputs.refusals import Refusal
from txn_analysis.reading.inputs.sections import DumpedFile, is_partition_folder, parse_dump_path, set_aside
from txn_analysis.reading.log_dir.producer_files import stated_answer
from txn_analysis.reading.text.section import NO_PARTITION, Section

_METADATA_TOPIC = "__cluster_metadata"

_SEGMENT_NAME = re.compile(r"\d{20}\.log")
_META = "meta.properties"
_OF_LOG_DIR = {
    "replication-offset-checkpoint": HIGH_WATERMARK,
    "log-start-offset-checkpoint": LOG_START,
    _META: CLUSTER_ID,
}
_OF_PARTITION = {
    "leader-epoch-checkpoint": LEADER_EPOCH,
    "partition.metadata": TOPIC_ID,
    DESCRIBED_FILE: DESCRIBED,
}
# What a broker keeps for itself; nothing in it says anything about transactions.
_NO_EVIDENCE = re.compile(
    r"\d+\.(?:index|timeindex)|.*\.(?:deleted|cleaned|swap|tmp)|recovery-point-offset-checkpoint|cleaner-offset-checkpoint"
    r"|bootstrap\.checkpoint|\d+-\d+\.checkpoint|quorum-state|\.lock|\.kafka_cleanshutdown"
)
_SNAPSHOT_DUMP = re.compile(r"\.snapshot(?:\.|$)")
_TOPIC_ID_HEAD = b"version: 0\ntopic_id: "
_REMOTE_CACHE = "remote-log-index-cache"
_BINARY_STARTS = {b"\0", b""}  # versions begin with it, and offsets below 2^56; no text does


@dataclass(frozen=True)
class PassedOver:
    """A file of a log directory that is never evidence; `what` says in the plural which kind of file."""

    what: str


Sorted = Section | PassedOver | Refusal | None
"""What a file is: the section that all of it becomes, or nothing that is read."""


def whole_file(
    kind: str, place: str, size_bytes: int, topic: str = "", partition: int = NO_PARTITION, base_offset: int = 0
) -> Section:
    """A file as one section; `place` is its folder and name. Files of a whole log directory have no topic."""
    return Section(kind, topic, partition, base_offset, 0, size_bytes, BINARY, place)


class _Seen(NamedTuple):
    """A file, its first bytes, and whether it can be a segment; paths are words, as there can be a million of them."""

    folder: str
    name: str
    size_bytes: int
    head: bytes
    is_segment: bool

    @property
    def place(self) -> str:
        """The name of its folder, and its own."""
        return f"{_split(self.folder)[1]}/{self.name}"


def _split(path: str) -> tuple[str, str]:
    folder, _, name = path.rpartition(os.sep)
    return folder, name


def sort_out(files: Sequence[SourceFile], heads: Sequence[bytes]) -> list[Sorted]:
    """For each file what it is in its log directory; None for one that is no broker's, as far as can be seen.

    Args:
        files: all files of a call: a file's neighbours say whether its folder is a partition's.
        heads: the first PEEK_BYTES of each.
    """
    places = (_split(os.path.abspath(file.path)) for file in files)  # noqa: PTH100 links stay as they are
    sizes = [file.size_bytes for file in files]
    described = zip(places, sizes, heads, _are_segments(heads, sizes), strict=True)
    seen = [_Seen(*place, size_bytes, head, is_segment) for place, size_bytes, head, is_segment in described]
    partitions = {
        each.folder: partition for each in seen if each.is_segment and (partition := _partition_of(each)) is not None
    }
    log_dirs = {_split(folder)[0] for folder in partitions}
    empty = {f for f, name, _, head, _ in seen if name == "partition.metadata" and head.startswith(_TOPIC_ID_HEAD)}
    log_dirs |= {log_dir for log_dir, folder in map(_split, empty) if is_partition_folder(folder)}
    return [
        _in_partition(each, partitions[each.folder]) if each.folder in partitions else _outside(each, log_dirs)
        for each in seen
    ]


def _are_segments(heads: Sequence[bytes], sizes: Sequence[int]) -> list[bool]:
    """Which files can be segments: of batches, or of none yet (also preallocated, or cut within the first header)."""
    first = np.frombuffer(b"".join(head.ljust(PEEK_BYTES, b"\0") for head in heads), f"V{PEEK_BYTES}")
    are_plausible = is_plausible(Headers(np.zeros(len(heads), np.int64), first)).tolist()
    return [
        not head.strip(b"\0")
        or (size < HEADER_BYTES and head[:1] == b"\0")
        or (len(head) >= UP_TO_MAGIC_BYTES and is_begun)
        for head, size, is_begun in zip(heads, sizes, are_plausible, strict=True)
    ]


def _partition_of(seen: _Seen) -> DumpedFile | None:
    """The partition of the folder that a segment is in, which proves that it is one."""
    file = parse_dump_path(seen.place) if _SEGMENT_NAME.fullmatch(seen.name) else None
    return file if isinstance(file, DumpedFile) else None


def _in_partition(seen: _Seen, partition: DumpedFile) -> Sorted:
    name, size_bytes = seen.name, seen.size_bytes
    if partition.topic == _METADATA_TOPIC:
        return PassedOver("files of the cluster's metadata")
    if _NO_EVIDENCE.fullmatch(name):
        return PassedOver(f"{PurePath(name).suffix} files")
    if name in _OF_PARTITION:
        of_partition = whole_file(_OF_PARTITION[name], seen.place, size_bytes, partition.topic, partition.partition)
        return of_partition if size_bytes else PassedOver("checkpoints without evidence")  # made, and not written yet
    file = parse_dump_path(seen.place)
    is_log = isinstance(file, DumpedFile) and file.kind == LOG
    if not isinstance(file, DumpedFile) or not (seen.is_segment if is_log else seen.head[:1] in _BINARY_STARTS):
        return None
    if file.kind == SNAPSHOT and not size_bytes:
        return PassedOver("empty .snapshot files")
    kind = STATE if is_log and file.topic == STATE_TOPIC else file.kind
    return whole_file(kind, seen.place, size_bytes, file.topic, file.partition, file.base_offset)


def _outside(seen: _Seen, log_dirs: set[str]) -> Sorted:
    """A file that is in no partition's folder: of a whole log directory, or of a folder that is set aside in one."""
    above, folder = _split(seen.folder)
    if not seen.size_bytes and _SNAPSHOT_DUMP.search(seen.name):
        return PassedOver("empty dumps of .snapshot files")  # the tool found no producer, or failed: it proves nothing
    if seen.folder in log_dirs or seen.name == _META:  # which may lie beside dumps as well
        return _in_log_dir(seen)
    is_inside = above in log_dirs
    if is_inside and folder == _REMOTE_CACHE:
        return PassedOver("cached indexes of remote storage")
    is_beside_segments = seen.name in _OF_PARTITION or _NO_EVIDENCE.fullmatch(seen.name)
    if is_inside and is_beside_segments and is_partition_folder(folder):
        return PassedOver("files of partitions without a segment")
    aside = set_aside(folder)
    if aside is not None and is_inside:
        return PassedOver("files of deleted, future or stray logs")
    return aside if seen.head[:1] in _BINARY_STARTS else None


def _in_log_dir(seen: _Seen) -> Sorted:
    if seen.name == COORDINATORS_FILE:
        return PassedOver("answers of coordinators, which are for people")
    if seen.name in _OF_LOG_DIR and seen.size_bytes:
        return whole_file(_OF_LOG_DIR[seen.name], seen.name, seen.size_bytes)
    is_known = seen.name in _OF_LOG_DIR or _NO_EVIDENCE.fullmatch(seen.name)
    return PassedOver("checkpoints without evidence") if is_known else None


# kafka.server.checkpoints.CheckpointFile: version, number of entries, then one entry a line.
_CHECKPOINT = re.compile(rb"0\n(\d{1,9})\n((?:[^\n]+\n)*)")
_PARTITION_LINE = re.compile(rb"([a-zA-Z0-9._-]{1,249}) (\d{1,10}) (\d{1,19})\n")
_EPOCH_LINE = re.compile(rb"(\d{1,10}) (\d{1,19})\n")
# The node is `broker.id` with ZooKeeper (version 0), `node.id` with KRaft (version 1).
_OF_BROKER = {
    CLUSTER_ID: re.compile(rb"(?m)^cluster\.id=([\w-]{1,64})$"),
    NODE_ID: re.compile(rb"(?m)^(?:node|broker)\.id=(\d{1,10})$"),
}
_PROPERTIES = re.compile(rb"(?:#[^\n]*\n|[\w.]+=[^\n]*\n)+")
_TOPIC_ID = re.compile(rb"version: 0\ntopic_id: ([\w-]{22})\n?")


def statements(whole: Section, data: bytes) -> list[Section] | None:
    """All that a file says, each as a section of its own; None where it is not of the kind that its name promises.

    Args:
        whole: the file as one section.
        data: all of its bytes.
    """
    readers: dict[str, Callable[[Section, bytes], list[Section] | None]] = {
        HIGH_WATERMARK: _offsets,
        LOG_START: _offsets,
        LEADER_EPOCH: _newest_epoch,
        CLUSTER_ID: _ids_of_broker,
        TOPIC_ID: _topic_id,
        DESCRIBED: stated_answer,
    }
    stated = readers[whole.kind](whole, data)
    return None if stated is None else [replace(section, index=number) for number, section in enumerate(stated)]


def _lines(data: bytes) -> tuple[int, list[bytes]] | None:
    """Where the entries of a checkpoint begin, and the entries; None where it does not hold as many as it says."""
    printed = _CHECKPOINT.fullmatch(data)
    lines = printed[2].splitlines(keepends=True) if printed else []
    return (printed.start(2), lines) if printed and len(lines) == int(printed[1]) else None


def _offsets(whole: Section, data: bytes) -> list[Section] | None:
    entries = _lines(data)
    if entries is None:
        return None
    at, entries_of = entries[0], []
    for line in entries[1]:
        entry = _PARTITION_LINE.fullmatch(line)
        if entry is None or int(entry[2]) > INT32_MAX or int(entry[3]) > OFFSET_MAX:
            return None
        about = replace(whole, topic=entry[1].decode(), partition=int(entry[2]), file_base_offset=int(entry[3]))
        entries_of.append(replace(about, text_start_bytes=at, text_end_bytes=at + len(line)))
        at += len(line)
    return entries_of


def _newest_epoch(whole: Section, data: bytes) -> list[Section] | None:
    entries = _lines(data)
    if entries is None:
        return None
    lines = entries[1]
    epochs = [(int(entry[1]), int(entry[2])) for line in lines if (entry := _EPOCH_LINE.fullmatch(line))]
    if not epochs or len(epochs) < len(lines):
        return None if lines else []
    epoch, offset = max(epochs)
    if epoch > INT32_MAX or offset > OFFSET_MAX:
        return None
    return [replace(whole, file_base_offset=offset, stated=str(epoch))]


def _ids_of_broker(whole: Section, data: bytes) -> list[Section] | None:
    if not _PROPERTIES.fullmatch(data):
        return None
    matched = ((kind, pattern.search(data)) for kind, pattern in _OF_BROKER.items())
    return [
        replace(
            whole, kind=kind, stated=stated[1].decode(), text_start_bytes=stated.start(), text_end_bytes=stated.end()
        )
        for kind, stated in matched
        if stated is not None
    ]


def _topic_id(whole: Section, data: bytes) -> list[Section] | None:
    printed = _TOPIC_ID.fullmatch(data)
    return [replace(whole, stated=printed[1].decode())] if printed else None
