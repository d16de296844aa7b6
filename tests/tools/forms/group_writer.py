"""Renders records of `__consumer_offsets`: the keys that brokers write, and how each version's decoder prints them."""

import json
import struct
from dataclasses import replace

from tests.tools.forms.model import Batch, Record, batch_bytes

GROUP_TOPIC = "__consumer_offsets"
VALUE_BYTES = 24  # of an offset without metadata
FIRST_JSON = (3, 8)


def commit_key(group: str, topic: str, partition: int, version: int = 1) -> bytes:
    """OffsetCommitKey, versions 0 and 1."""
    names = b"".join(struct.pack(">H", len(name)) + name for name in (group.encode(), topic.encode()))
    return struct.pack(">h", version) + names + struct.pack(">i", partition)


def commit(
    offset: int, group: str, *, tool: tuple[int, int], topic: str = "t", version: int = 1, metadata: str = ""
) -> Record:
    """A group's offset in one partition, as `--offsets-decoder` of a tool's version prints it."""
    if tool >= FIRST_JSON:
        key = _dumps({"type": str(version), "data": {"group": group, "topic": topic, "partition": 0}})
        payload = _dumps({"version": "4", "data": {"offset": 5, "leaderEpoch": -1, "metadata": metadata}})
    else:
        key = f"offset_commit::group={group},partition={topic}-0"
        payload = f"offset=5,metadata={metadata}" if metadata else "offset=5"
    raw = commit_key(group, topic, 0, version)
    return Record(offset, 0, len(raw), VALUE_BYTES + len(metadata.encode()), key=key, payload=payload, raw_key=raw)


def group_metadata(offset: int, group: str, *, tool: tuple[int, int]) -> Record:
    """A group's members: what else stands in the topic."""
    name = group.encode()
    raw = struct.pack(">hH", 2, len(name)) + name
    if tool >= FIRST_JSON:
        key = _dumps({"type": "2", "data": {"group": group}})
        return Record(offset, 0, len(raw), VALUE_BYTES, key=key, payload=_dumps({"version": "3"}), raw_key=raw)
    key = f"group_metadata::group={group}"
    return Record(offset, 0, len(raw), VALUE_BYTES, key=key, payload="{}", raw_key=raw)


def batch_of(*records: Record, producer_id: int | None = None, codec: str = "none") -> Batch:
    """A batch of these records, in a transaction where there is a producer."""
    first, last = records[0].offset, records[-1].offset
    batch = Batch(first, last, len(records), records=records, codec=codec)
    batch = replace(batch, size_bytes=batch_bytes([(r.key_bytes, r.value_bytes) for r in records]))
    if producer_id is None:
        return batch
    return replace(batch, producer_id=producer_id, producer_epoch=0, base_sequence=0, is_transactional=True)


def marker(offset: int, producer_id: int) -> Batch:
    """The end of a producer's transaction."""
    ended = Batch(offset, offset, 1, producer_id, 0, is_transactional=True, is_control=True)
    return replace(ended, marker="COMMIT", coordinator_epoch=0)


def _dumps(value: object) -> str:
    """As Jackson prints it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
