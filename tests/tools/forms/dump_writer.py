"""Renders histories as the text of `kafka-dump-log`, in the grammar of any tool from 2.1 to 4.3."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from tests.tools.forms.broker import EndedTransaction, ProducerEntry
from tests.tools.forms.model import SEQUENCE_RANGE, Batch, History, Record, Segment
from tests.tools.forms.state_writer import decoded_text

NEWEST = (4, 2)
CONTROL_TYPES = {"ABORT": 0, "COMMIT": 1, "LEADER_CHANGE": 2, "SNAPSHOT_HEADER": 3, "SNAPSHOT_FOOTER": 4}


@dataclass(frozen=True)
class Tool:
    """One version of the tool with its flags: `--deep-iteration`, `--print-data-log` (which implies deep)."""

    version: tuple[int, int] = NEWEST
    deep: bool = False
    payload: bool = False

    @property
    def prints_records(self) -> bool:
        """Whether record lines appear."""
        return self.deep or self.payload

    @property
    def replaces_batches(self) -> bool:
        """Whether record lines stand instead of batch lines."""
        return self.prints_records and self.version < (2, 2)

    def codec(self, name: str) -> str:
        """The codec as this version spells it."""
        return name.upper() if self.version < (3, 0) else name


def file_name(offset: int, suffix: str) -> str:
    """Kafka's name of a segment's file."""
    return f"{offset:020d}.{suffix}"


def number(value: int | None) -> int:
    """Absent numbers are printed as -1."""
    return -1 if value is None else value


def flag(value: bool) -> str:
    """A boolean as Java prints it."""
    return "true" if value else "false"


def optional(name: str, value: int | None, version: tuple[int, int]) -> str:
    """A token with an optional offset, in Scala's words before 3.5 and in Java's after."""
    absent, left, right = ("None", "Some(", ")") if version < (3, 5) else ("OptionalLong.empty", "OptionalLong[", "]")
    return f"{name}: {absent if value is None else f'{left}{value}{right}'}"


def batch_line(batch: Batch, position: int, tool: Tool) -> str:
    """One batch line, without its newline."""
    valid = f"isvalid: {flag(batch.is_valid)}"
    size = f"size: {batch.size_bytes}"
    codec = f"magic: 2 compresscodec: {tool.codec(batch.codec)} crc: {batch.crc}"
    horizon = ""
    if tool.version >= (3, 2):
        value = "OptionalLong.empty" if batch.delete_horizon_ms is None else f"OptionalLong[{batch.delete_horizon_ms}]"
        horizon = f" deleteHorizonMs: {value}"
    tail = f"{valid} {size} {codec}" if tool.version < (2, 2) else f"{size} {codec} {valid}"
    return (
        f"baseOffset: {batch.base_offset} lastOffset: {batch.last_offset} count: {batch.record_count} "
        f"baseSequence: {number(batch.base_sequence)} lastSequence: {number(batch.last_sequence)} "
        f"producerId: {number(batch.producer_id)} producerEpoch: {number(batch.producer_epoch)} "
        f"partitionLeaderEpoch: {batch.leader_epoch} isTransactional: {flag(batch.is_transactional)} "
        f"isControl: {flag(batch.is_control)}{horizon} position: {position} "
        f"{batch.timestamp_type}: {number(batch.max_timestamp_ms)} {tail}"
    )


def record_line(record: Record, batch: Batch, position: int, tool: Tool) -> str:
    """One record line, without its newline (its content may hold others)."""
    size = "size" if tool.version < (2, 8) else "Size"
    sizes = f"key{size}: {number(record.key_bytes)} value{size}: {number(record.value_bytes)}"
    time = f"{batch.timestamp_type}: {number(record.timestamp_ms)}"
    sequence = (
        -1
        if batch.base_sequence is None
        else (batch.base_sequence + record.offset - batch.base_offset) % SEQUENCE_RANGE
    )
    headers = f"headerKeys: [{record.header_keys}]"
    if tool.version < (2, 2):
        line = (
            f"offset: {record.offset} position: {position} {time} isvalid: true {sizes} magic: 2 "
            f"compresscodec: {tool.codec(batch.codec)} producerId: {number(batch.producer_id)} "
            f"producerEpoch: {number(batch.producer_epoch)} sequence: {sequence} "
            f"isTransactional: {flag(batch.is_transactional)} {headers}"
        )
    elif tool.version == (2, 8):
        line = (
            f"| offset: {record.offset} isValid: true crc: null {sizes} {time} baseOffset: {batch.base_offset} "
            f"lastOffset: {batch.last_offset} baseSequence: {number(batch.base_sequence)} "
            f"lastSequence: {number(batch.last_sequence)} producerEpoch: {number(batch.producer_epoch)} "
            f"partitionLeaderEpoch: {batch.leader_epoch} batchSize: {batch.size_bytes} magic: 2 "
            f"compressType: {tool.codec(batch.codec)} position: {position} sequence: {sequence} {headers}"
        )
    else:
        line = f"| offset: {record.offset} {time} {sizes} sequence: {sequence} {headers}"
    return line + _content(record, batch, tool)


def _content(record: Record, batch: Batch, tool: Tool) -> str:
    if batch.is_control:
        if batch.marker in {"COMMIT", "ABORT"}:
            return f" endTxnMarker: {batch.marker} coordinatorEpoch: {number(batch.coordinator_epoch)}"
        return f" controlType: {batch.marker}({CONTROL_TYPES.get(str(batch.marker), -1)})"
    if not tool.payload:
        return ""
    key, payload = (record.key, record.payload) if record.state is None else decoded_text(record.state, tool.version)
    if payload is None and tool.version < (2, 4):
        return ""
    return (f" key: {key}" if key is not None else "") + (f" payload: {payload}" if payload is not None else "")


def segment_lines(segment: Segment, tool: Tool) -> Iterator[str]:
    """The batch and record lines of one segment."""
    for position, batch in segment.with_positions():
        if not tool.replaces_batches:
            yield batch_line(batch, position, tool)
        if tool.prints_records:
            for record in batch.all_records():
                yield record_line(record, batch, position, tool)


def log_section(folder: str, segment: Segment, tool: Tool) -> str:
    """The whole `Dumping …` section of one segment. `folder` is the partition's, `<topic>-<partition>`."""
    name = file_name(segment.base_offset, "log")
    header = "Starting offset" if tool.version < (3, 3) else "Log starting offset"
    lines = [f"Dumping {folder}/{name}", f"{header}: {segment.base_offset}", *segment_lines(segment, tool)]
    if segment.torn_bytes:
        lines.append(f"Found {segment.torn_bytes} invalid bytes at the end of {name}")
    return "".join(f"{line}\n" for line in lines)


def snapshot_line(producer_id: int, entry: ProducerEntry, tool: Tool) -> str:
    """One producer of a snapshot dump; without cached batch the line ends with a blank, before 4.3."""
    line = (
        f"producerId: {producer_id} producerEpoch: {entry.producer_epoch} "
        f"coordinatorEpoch: {number(entry.coordinator_epoch)} "
        f"{optional('currentTxnFirstOffset', entry.txn_start_offset, tool.version)} "
    )
    if tool.version >= (3, 1):
        line += f"lastTimestamp: {number(entry.last_timestamp_ms)} "
    if entry.last_offset is None:
        return line if tool.version < (4, 3) else line.rstrip()
    last_sequence = number(entry.last_sequence)
    first_sequence = (last_sequence - entry.offset_delta) % SEQUENCE_RANGE
    return (
        f"{line}firstSequence: {first_sequence} lastSequence: {last_sequence} "
        f"lastOffset: {entry.last_offset} "
        f"offsetDelta: {entry.offset_delta} timestamp: {number(entry.last_timestamp_ms)}"
    )


def snapshot_section(folder: str, offset: int, producers: Mapping[int, ProducerEntry], tool: Tool) -> str:
    """The section of one producer snapshot, which stands for everything below `offset`."""
    lines = [f"Dumping {folder}/{file_name(offset, 'snapshot')}"]
    lines += [snapshot_line(producer, entry, tool) for producer, entry in producers.items()]
    return "".join(f"{line}\n" for line in lines)


def txnindex_section(folder: str, base_offset: int, ended: Iterable[EndedTransaction]) -> str:
    """The section of one transaction index: the aborted transactions, the same in every version."""
    lines = [f"Dumping {folder}/{file_name(base_offset, 'txnindex')}"]
    lines += [
        f"version: 0 producerId: {txn.producer_id} firstOffset: {txn.start_offset} lastOffset: {txn.end_offset} "
        f"lastStableOffset: {txn.last_stable_offset}"
        for txn in ended
        if txn.outcome == "ABORT"
    ]
    return "".join(f"{line}\n" for line in lines)


def partition_folder(history: History) -> str:
    """The partition's folder on a broker."""
    return f"{history.topic}-{history.partition}"


def log_text(history: History, tool: Tool) -> str:
    """All segments of a partition in one dump."""
    return "".join(log_section(partition_folder(history), segment, tool) for segment in history.segments)


def log_files(histories: Iterable[History], tool: Tool, *, per_segment: bool = False) -> dict[str, bytes]:
    """Dump files by name: one a partition, or one a segment."""
    files: dict[str, bytes] = {}
    for history in histories:
        folder = partition_folder(history)
        if per_segment:
            for segment in history.segments:
                name = f"{folder}.{file_name(segment.base_offset, 'log')}.txt"
                files[name] = log_section(folder, segment, tool).encode("utf-8", "surrogatepass")
        else:
            files[f"{folder}.txt"] = log_text(history, tool).encode("utf-8", "surrogatepass")
    return files
