"""The small text files of a log directory: checkpoints, `meta.properties`, `partition.metadata`.

Each statement becomes a section of its own kind, so that it reaches the partition that it is about.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from txn_analysis.kafka.sections import CLUSTER_ID, HIGH_WATERMARK, LEADER_EPOCH, LOG_START, NODE_ID, TOPIC_ID
from txn_analysis.read.inputs.sections import OFFSET_MAX

if TYPE_CHECKING:
    from collections.abc import Callable

    from txn_analysis.read.log_dir.files import BrokerFile

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
_INT32_MAX = 2**31 - 1


class Statement(NamedTuple):
    """What bytes [start, end) of such a file say: an offset of a partition, or a word of an id."""

    kind: str
    topic: str
    partition: int
    offset: int
    word: str | None
    start: int
    end: int


def statements(file: BrokerFile, data: bytes) -> list[Statement] | None:
    """All that a file says; None where it is not of the kind that its name promises."""
    readers: dict[str, Callable[[BrokerFile, bytes], list[Statement] | None]] = {
        HIGH_WATERMARK: _offsets,
        LOG_START: _offsets,
        LEADER_EPOCH: _newest_epoch,
        CLUSTER_ID: _ids_of_broker,
        TOPIC_ID: _topic_id,
    }
    return readers[file.kind](file, data)


def _lines(data: bytes) -> tuple[int, list[bytes]] | None:
    """Where the entries of a checkpoint begin, and the entries; None where it does not hold as many as it says."""
    found = _CHECKPOINT.fullmatch(data)
    lines = found[2].splitlines(keepends=True) if found else []
    return (found.start(2), lines) if found and len(lines) == int(found[1]) else None


def _offsets(file: BrokerFile, data: bytes) -> list[Statement] | None:
    entries = _lines(data)
    if entries is None:
        return None
    at, found = entries[0], []
    for line in entries[1]:
        entry = _PARTITION_LINE.fullmatch(line)
        if entry is None or int(entry[2]) > _INT32_MAX or int(entry[3]) > OFFSET_MAX:
            return None
        found.append(
            Statement(file.kind, entry[1].decode(), int(entry[2]), int(entry[3]), file.word, at, at + len(line))
        )
        at += len(line)
    return found


def _newest_epoch(file: BrokerFile, data: bytes) -> list[Statement] | None:
    entries = _lines(data)
    matched = [_EPOCH_LINE.fullmatch(line) for line in entries[1]] if entries else []
    if entries is None or None in matched:
        return None
    newest = max(((int(m[1]), int(m[2])) for m in matched if m), default=None)
    if newest is None:
        return []
    epoch, offset = newest
    if epoch > _INT32_MAX or offset > OFFSET_MAX:
        return None
    return [Statement(file.kind, file.topic, file.partition, offset, str(epoch), 0, len(data))]


def _ids_of_broker(file: BrokerFile, data: bytes) -> list[Statement] | None:
    if not _PROPERTIES.fullmatch(data):
        return None
    matched = ((kind, pattern.search(data)) for kind, pattern in _OF_BROKER.items())
    return [
        Statement(kind, file.topic, file.partition, 0, said[1].decode(), said.start(), said.end())
        for kind, said in matched
        if said is not None
    ]


def _topic_id(file: BrokerFile, data: bytes) -> list[Statement] | None:
    found = _TOPIC_ID.fullmatch(data)
    return [Statement(file.kind, file.topic, file.partition, 0, found[1].decode(), 0, len(data))] if found else None
