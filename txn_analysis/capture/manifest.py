"""`txn-capture.json`: what was captured, in which order, from which leaders and to which end.

Its format, and what each field proves, stands in docs/capture.md. Times are of this machine's clock alone
(`"clock": "collector"`): they order the files among themselves, and are never compared with a broker's time.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from txn_analysis.kafka.names import MANIFEST_FORMAT, MANIFEST_VERSION

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class FileEntry:
    """One file of a capture. What is unknown, or has no meaning for the file, is None and proves nothing.

    Attributes:
        path: relative to the manifest.
        topic, topic_id, partition: what it is of; None for files of several partitions.
        leader_id, leader_epoch: who led the partition when the first byte was asked for.
        is_leader_confirmed: the same leader under the same epoch was answered after the last byte.
        is_end_confirmed: reading went on to the end that was asked for after the last byte.
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
