"""The files of a capture, as a broker's log directory has them, and the manifest that names them: `txn-capture.json`.

The manifest says what was captured, in which order, from which leaders and to which end; each file has its size and
checksum in it. Its format, and what each field proves, stands in docs/capture.md. Times are of this machine's clock
alone (`"clock": "collector"`): they order the files among themselves, and are never compared with a broker's time.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING

from txn_analysis.capture.answers import CaptureError, Clock, Leadership, ProducerAnswer
from txn_analysis.kafka.names import DESCRIBED_FORMAT, MANIFEST_FILE, MANIFEST_FORMAT, MANIFEST_VERSION
from txn_analysis.kafka.transactions import TopicPartition

if TYPE_CHECKING:
    from txn_analysis.capture.triage import Ends, RawBatches


@dataclass(frozen=True)
class FileEntry:
    """One file of a capture. What is unknown, or has no meaning for the file, is None and proves nothing.

    Attributes:
        path: relative to the manifest.
        topic, topic_id, partition: what it is of; None for files of several partitions.
        leader_id, leader_epoch: who led the partition when the first byte was asked for.
        is_leader_confirmed: the same leader under the same epoch was answered after the last byte.
        is_end_confirmed: reading went on to the end that was asked for after the last byte.
        is_folder_whole: unknown, as no folder of a broker is seen. What was fetched follows each other without a hole.
        began_ms, ended_ms: before the first byte was asked for, and after the last one.
        began_monotonic_ms: by a clock that nobody sets.
        first_offset, end_offset: the offset of the first record, and the offset after the last one.
    """

    path: str
    topic: str | None
    topic_id: str | None
    partition: int | None
    leader_id: int | None
    leader_epoch: int | None
    is_leader_confirmed: bool | None
    is_end_confirmed: bool | None
    began_ms: int
    ended_ms: int
    began_monotonic_ms: int
    first_offset: int | None
    end_offset: int | None
    size_bytes: int
    sha256: str
    is_folder_whole: None = None


@dataclass(frozen=True)
class Manifest:
    """All of a capture; `files` in the order in which they were begun."""

    made_by: str
    cluster_id: str | None
    began_ms: int
    ended_ms: int
    is_complete: bool
    files: Sequence[FileEntry]

    def to_json(self) -> str:
        """The file's text."""
        head = {"format": MANIFEST_FORMAT, "version": MANIFEST_VERSION, "made_by": self.made_by, "clock": "collector"}
        head |= {"cluster_id": self.cluster_id, "broker_id": None, "began_ms": self.began_ms, "ended_ms": self.ended_ms}
        files = [_with_sequence(number, entry) for number, entry in enumerate(self.files)]
        return json.dumps(head | {"is_complete": self.is_complete, "files": files}, indent=1) + "\n"


def _with_sequence(number: int, entry: FileEntry) -> dict[str, object]:
    values = asdict(entry)
    return {"path": values.pop("path"), "sequence": number} | values


def confirmed(entries: Sequence[FileEntry], *, is_leader: bool, is_end: bool) -> list[FileEntry]:
    """The entries of one partition's files, once its leader and its end were asked for again."""
    return [
        replace(
            entry,
            is_leader_confirmed=is_leader,
            is_end_confirmed=None if entry.end_offset is None else is_end,
        )
        for entry in entries
    ]


SEGMENT_BYTES = 1 << 30  # Kafka's default of `segment.bytes`


@contextmanager
def _saying_which(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise CaptureError(f"{path}: {error.strerror or error}. Free space, or give another folder") from error


def new_folder(folder: Path) -> None:
    """Make the folder of a capture, readable by its owner alone.

    Raises:
        CaptureError: something is in it.
    """
    with _saying_which(folder):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise CaptureError(f"{folder}: the folder is not empty. Give a new one: a capture is of one moment")


@dataclass
class CaptureFiles:
    """Writes files under one folder, and says what the manifest needs of each."""

    folder: Path
    clock: Clock

    def write(self, path: str, content: str, led: Leadership | None = None) -> FileEntry:
        """One small file; of one partition where that is given."""
        target, data = self.folder / path, content.encode()
        with _saying_which(target):
            target.parent.mkdir(mode=0o700, exist_ok=True)
            target.write_bytes(data)
        return self.entry(path, led, data)

    def entry(self, path: str, led: Leadership | None, data: bytes) -> FileEntry:
        """The entry of a file with some content that is begun and ended now."""
        now_ms = self.clock.wall_ms()
        return FileEntry(
            path=path,
            topic=led.place.topic if led else None,
            topic_id=led.topic_id if led else None,
            partition=led.place.partition if led else None,
            leader_id=led.leader_id if led else None,
            leader_epoch=led.leader_epoch if led else None,
            is_leader_confirmed=None,
            is_end_confirmed=None,
            began_ms=now_ms,
            ended_ms=now_ms,
            began_monotonic_ms=self.clock.monotonic_ms(),
            first_offset=None,
            end_offset=None,
            size_bytes=len(data),
            sha256=hashlib.sha256(data).hexdigest(),
        )

    def segments(self, led: Leadership, name_offset: int) -> SegmentWriter:
        """The writer of one partition's segments, the first of which is named by an offset."""
        return SegmentWriter(self, led, name_offset)

    def forget(self, place: TopicPartition) -> None:
        """Remove what was written of a partition."""
        shutil.rmtree(self.folder / str(place), ignore_errors=True)

    def write_manifest(self, text: str) -> None:
        """The manifest, which appears whole or not at all."""
        arriving = self.folder / f".{MANIFEST_FILE}"
        with _saying_which(arriving):
            arriving.write_text(text, encoding="utf-8")
            arriving.replace(self.folder / MANIFEST_FILE)


class SegmentWriter:
    """Writes batches one behind the other, and begins a new file where a broker would.

    A file is named as a broker names it, by the offset from which on it holds all that is left: the one that was asked
    for, or the first batch's own where that batch begins before.

    Attributes:
        first_offset: of the first batch; without one, what was asked for.
        entries: of the files that were ended.
    """

    def __init__(self, files: CaptureFiles, led: Leadership, name_offset: int) -> None:
        self._files, self._led = files, led
        self._next = self.first_offset = name_offset
        self._began = files.entry("", led, b"")  # before the first byte is asked for
        self._is_written = False
        self._file: IO[bytes] | None = None
        self._entry: FileEntry | None = None
        self._sum = hashlib.sha256()
        self.entries: list[FileEntry] = []

    def append(self, batches: RawBatches) -> None:
        """Write some batches, which follow those before."""
        written_bytes = self._entry.size_bytes if self._entry else 0
        if written_bytes and written_bytes + len(batches.data) > SEGMENT_BYTES:
            self.end()
        entry, file = self._opened(min(self._next, batches.first_offset))
        with _saying_which(self._files.folder / entry.path):
            file.write(batches.data)
        self._sum.update(batches.data)
        if not self._is_written:
            self._is_written, self.first_offset = True, batches.first_offset
        first = batches.first_offset if entry.first_offset is None else entry.first_offset
        size_bytes = entry.size_bytes + len(batches.data)
        self._entry = replace(entry, first_offset=first, end_offset=batches.next_offset, size_bytes=size_bytes)
        self._next = batches.next_offset

    def _opened(self, name_offset: int) -> tuple[FileEntry, IO[bytes]]:
        if self._entry is None or self._file is None:
            path = f"{self._led.place}/{name_offset:020d}.log"
            with _saying_which(self._files.folder / path):
                (self._files.folder / path).parent.mkdir(mode=0o700, exist_ok=True)
                self._file = open(self._files.folder / path, "wb")  # noqa: SIM115 it stays open between batches
            self._sum = hashlib.sha256()
            self._entry = replace(self._began, path=path, end_offset=name_offset)
        return self._entry, self._file

    def end(self) -> None:
        """Close the file that is being written, and keep its entry; an empty one where nothing was written."""
        entry, file = self._opened(self._next)
        with _saying_which(self._files.folder / entry.path), file:
            file.flush()
            os.fsync(file.fileno())
        self._file = self._entry = None
        self._began = self._files.entry("", self._led, b"")
        self.entries.append(replace(entry, ended_ms=self._files.clock.wall_ms(), sha256=self._sum.hexdigest()))

    def abandon(self) -> None:
        """Close a file that was not ended; what was written of it is of no use."""
        if self._file is not None:
            self._file.close()
        self._file = self._entry = None


def described_producers(led: Leadership, answer: Sequence[ProducerAnswer], first_offset: int, ends: Ends) -> str:
    """The text of `described-producers.json`: one answer to DescribeProducers, and where the log begins beside it.

    Args:
        led: the partition and its leader.
        answer: its producers.
        first_offset: of the first batch: the answer stands for what lies below.
        ends: the high watermark as it was asked for before, so that the answer counts all that lies below; the last
            stable offset as it was asked for behind.
    """
    head = {
        "format": DESCRIBED_FORMAT,
        "version": 1,
        "topic": led.place.topic,
        "partition": led.place.partition,
        "leader_id": led.leader_id,
        "leader_epoch": led.leader_epoch,
        "first_offset": first_offset,
        "high_watermark": ends.high_watermark,
        "last_stable_offset": ends.last_stable_offset,
    }
    return json.dumps(head | {"producers": [producer._asdict() for producer in answer]}, indent=1) + "\n"


def small_files(led: Leadership, epoch_start: int | None) -> dict[str, str]:
    """What Kafka itself keeps beside segments, by name: the topic's id, and where the newest leader epoch begins."""
    texts = {}
    if led.topic_id is not None:
        texts["partition.metadata"] = f"version: 0\ntopic_id: {led.topic_id}\n"
    if led.leader_epoch is not None and epoch_start is not None:
        texts["leader-epoch-checkpoint"] = f"0\n1\n{led.leader_epoch} {epoch_start}\n"
    return texts


def checkpoint(offsets: Mapping[TopicPartition, int]) -> str:
    """The text of one of Kafka's checkpoints of all partitions (`OffsetCheckpointFile`)."""
    lines = [f"{place.topic} {place.partition} {offset}\n" for place, offset in sorted(offsets.items())]
    return f"0\n{len(lines)}\n{''.join(lines)}"
