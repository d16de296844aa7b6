"""What the oracle, the dump writer and the simulator speak of. Absent is None; -1 exists only in dump text."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

SEQUENCE_RANGE = 1 << 31
BATCH_HEADER_BYTES = 61
MARKER_KEY_BYTES = 4
MARKER_VALUE_BYTES = 6

TopicPartition = tuple[str, int]


@dataclass(frozen=True)
class StateValue:
    """The value of one record of `__transaction_state`; `version` is the schema version of the value."""

    producer_id: int
    producer_epoch: int
    state: str
    partitions: tuple[TopicPartition, ...]
    last_update_ms: int
    timeout_ms: int
    start_ms: int | None
    version: int = 0
    client_transaction_version: int = 0


@dataclass(frozen=True)
class StateRecord:
    """One record of `__transaction_state`; a None value is a tombstone."""

    transactional_id: str
    value: StateValue | None


@dataclass(frozen=True)
class Record:
    """One record line of a deep dump. Sizes are the record's bytes in the log, which a decoder's text does not have.

    `raw_key` is the key in the log, where its bytes matter.
    """

    offset: int
    timestamp_ms: int | None
    key_bytes: int | None = None
    value_bytes: int | None = None
    header_keys: str = ""
    key: str | None = None
    payload: str | None = None
    state: StateRecord | None = None
    raw_key: bytes | None = None


@dataclass(frozen=True)
class Batch:
    """One record batch of message format 2; `records` None lets the dump writer make them up."""

    base_offset: int
    last_offset: int
    record_count: int
    producer_id: int | None = None
    producer_epoch: int | None = None
    base_sequence: int | None = None
    is_transactional: bool = False
    is_control: bool = False
    marker: str | None = None
    coordinator_epoch: int | None = None
    max_timestamp_ms: int | None = 0
    timestamp_type: str = "CreateTime"
    size_bytes: int = 78
    leader_epoch: int = 0
    codec: str = "none"
    crc: int = 0
    is_valid: bool = True
    delete_horizon_ms: int | None = None
    records: tuple[Record, ...] | None = None

    @property
    def last_sequence(self) -> int | None:
        """Sequence of the last record; wraps at 2^31 as the broker's does."""
        if self.base_sequence is None:
            return None
        return (self.base_sequence + self.last_offset - self.base_offset) % SEQUENCE_RANGE

    @property
    def is_end_marker(self) -> bool:
        """Whether it ends its producer's transaction; a control batch that lost its record ends nothing."""
        return self.is_control and self.marker in {"COMMIT", "ABORT"} and self.record_count > 0

    def all_records(self) -> tuple[Record, ...]:
        """Its records, made up without content where none were given: half at its head, the rest at its tail."""
        if self.records is not None:
            return self.records
        head = (self.record_count + 1) // 2
        tail = self.record_count - head
        offsets = [
            *range(self.base_offset, self.base_offset + head),
            *range(self.last_offset + 1 - tail, self.last_offset + 1),
        ]
        key, value = (MARKER_KEY_BYTES, MARKER_VALUE_BYTES) if self.is_control else (None, 100)
        return tuple(Record(offset, self.max_timestamp_ms, key, value) for offset in offsets)


@dataclass(frozen=True)
class Segment:
    """One `.log` file; `torn_bytes` is the size of an incomplete batch at its end."""

    base_offset: int
    batches: tuple[Batch, ...]
    torn_bytes: int = 0

    def with_positions(self) -> Iterator[tuple[int, Batch]]:
        """Each batch with its byte position in the file."""
        position = 0
        for batch in self.batches:
            yield position, batch
            position += batch.size_bytes


@dataclass(frozen=True)
class History:
    """One partition's log."""

    topic: str
    partition: int
    segments: tuple[Segment, ...] = field(default=())

    @property
    def batches(self) -> tuple[Batch, ...]:
        """All batches, in offset order."""
        return tuple(batch for segment in self.segments for batch in segment.batches)

    @property
    def end_offset(self) -> int:
        """The offset that the next record would get."""
        last = self.segments[-1]
        return last.batches[-1].last_offset + 1 if last.batches else last.base_offset


def varint_bytes(value: int) -> int:
    """Bytes of a zigzag varint, as the record format writes lengths."""
    zigzag = (value << 1) ^ (value >> 63)
    return max(1, (zigzag.bit_length() + 6) // 7)


def batch_bytes(records: Iterable[tuple[int | None, int | None]]) -> int:
    """Size of an uncompressed batch of small deltas and no headers, from (key bytes, value bytes) of its records."""
    total = BATCH_HEADER_BYTES
    for delta, (key, value) in enumerate(records):
        body = 2 + varint_bytes(delta) + 1
        for size in (key, value):
            body += varint_bytes(-1 if size is None else size) + (size or 0)
        total += varint_bytes(body) + body
    return total


def java_hash(text: str) -> int:
    """Java's `String.hashCode`: 31 * h + c over UTF-16 code units in signed 32 bits."""
    units = text.encode("utf-16-be", "surrogatepass")
    result = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        result = (31 * result + high * 256 + low) % (1 << 32)
    return result - (1 << 32) if result >= 1 << 31 else result


def state_partition(transactional_id: str, partitions: int) -> int:
    """The partition of `__transaction_state` that holds an id; Kafka's `Utils.abs` makes 0 of the smallest integer."""
    hashed = java_hash(transactional_id)
    return 0 if hashed == -(1 << 31) else abs(hashed) % partitions
