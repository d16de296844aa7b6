"""A history as files: dumps or log directories, and `__transaction_state` in each form in which it can be copied."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from benchmarks.batches import COORDINATOR_EPOCH, HEADER_BYTES, Ints
from benchmarks.dumps import TOPIC, Words, append, batch_lines, either, joined
from benchmarks.log_dirs import segment_bytes
from benchmarks.wide_history import (
    COMPLETE_COMMIT,
    ONGOING,
    PREPARE_COMMIT,
    RETIRED_PARTITIONS,
    TOMBSTONE,
    History,
    States,
)
from tests.tools.log_dirs.encoder import framed, record

_RETIRED_TOPIC = "bench.retired"
_TIMEOUT_MS = 900_000
_WORDS = {0: "Empty", 1: "Ongoing", 2: "PrepareCommit", 4: "CompleteCommit", TOMBSTONE: ""}
_VALUE_BYTES = 33  # of a record of the state, without its partitions
_RECORDS_AT_ONCE = 200_000


class StateForm(StrEnum):
    """How `__transaction_state` was copied."""

    DUMP_TEXT = "dump-text"
    DUMP_JSON = "dump-json"
    CONSOLE_JSON = "console-json"
    BINARY = "binary"


class Written(NamedTuple):
    """How much was written of the logs and of the state."""

    log_bytes: int
    state_bytes: int


def write_capture(history: History, folder: Path, form: StateForm) -> Written:
    """Write the files of a capture; with a binary state the logs are log directories as well, else dumps."""
    is_binary = form is StateForm.BINARY
    log_bytes = 0
    for partition, made in history.logs():
        name, first_offset = f"{TOPIC}-{partition}", history.width.first_offset
        file = _file(folder, name, first_offset, is_binary=is_binary)
        with open(file, "wb") as out:
            if is_binary:
                out.write(segment_bytes(made).data)
            else:
                out.write(_head(name, first_offset))
                append(out, batch_lines(made, checksums(len(made))))
        log_bytes += file.stat().st_size
    return Written(log_bytes, _write_states(history, history.states(), folder, form))


def _write_states(history: History, states: States, folder: Path, form: StateForm) -> int:
    texts = _States(history)
    if form is StateForm.CONSOLE_JSON:
        file = folder / "transaction-state/console.json"
        file.parent.mkdir(parents=True)
        with open(file, "wb") as out:
            for start in range(0, len(states), _RECORDS_AT_ONCE):
                append(out, texts.console(states.taken(slice(start, start + _RECORDS_AT_ONCE))))
        return file.stat().st_size
    size_bytes = 0
    edges = np.searchsorted(states.partition, np.arange(history.width.state_partitions + 1)).tolist()
    for place in range(history.width.state_partitions):
        own, name = states.taken(slice(edges[place], edges[place + 1])), f"__transaction_state-{place}"
        file = _file(folder, name, 0, is_binary=form is StateForm.BINARY)
        with open(file, "wb") as out:
            if form is StateForm.BINARY:
                out.writelines(texts.segment(own))
            else:
                out.write(_head(name, 0))
                append(out, texts.dump(own, is_json=form is StateForm.DUMP_JSON))
        size_bytes += file.stat().st_size
    return size_bytes


def _file(folder: Path, name: str, first_offset: int, *, is_binary: bool) -> Path:
    if is_binary:
        file = folder / "log-dirs" / name / f"{first_offset:020d}.log"
    else:
        file = folder / ("transaction-state" if name.startswith("__") else "segments") / f"{name}.txt"
    file.parent.mkdir(parents=True, exist_ok=True)
    return file


def _head(name: str, first_offset: int) -> bytes:
    return f"Dumping /kafka/{name}/{first_offset:020d}.log\nLog starting offset: {first_offset}\n".encode()


def checksums(count: int) -> Ints:
    """Invented ones."""
    return np.arange(count) * 2654435761 % 2**32


@dataclass(frozen=True)
class _Lists:
    """Lists of partitions, and which one each record has."""

    lists: list[_List]
    of: Ints

    def words(self, written: Callable[[_List], str]) -> Words:
        """Of each record its list, as it is written."""
        return pa.array(map(written, self.lists), pa.large_string()).take(pa.array(self.of))

    def binary(self) -> list[bytes]:
        """Of each record its list, as it lies in a segment."""
        written = [each.binary() for each in self.lists]
        return [written[number] for number in self.of.tolist()]


class _List(NamedTuple):
    """Partitions of one transaction; `numbers` is None where there is no transaction, and empty once it has ended."""

    topic: str
    numbers: tuple[int, ...] | None

    def json(self) -> str:
        if not self.numbers:
            return "null" if self.numbers is None else "[]"
        return f'[{{"topic":"{self.topic}","partitionIds":[{",".join(map(str, self.numbers))}]}}]'

    def text(self) -> str:
        return f"[{','.join(f'{self.topic}-{number}' for number in self.numbers or ())}]"

    def binary(self) -> bytes:
        if not self.numbers:
            return struct.pack(">i", -1 if self.numbers is None else 0)
        topic = self.topic.encode()
        count = len(self.numbers)
        return struct.pack(f">ih{len(topic)}si{count}i", 1, len(topic), topic, count, *self.numbers)


class _States:
    """Records of the state in each form."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._names = pa.array(history.names, pa.large_string())
        self._name_bytes = np.array([len(name) for name in history.names])

    def console(self, states: States) -> Words:
        """As the formatter of the console consumer prints them: objects without anything between them."""
        value = joined('{"version":0,"data":', self._json_values(states), "}")
        return joined(
            '{"key":{"type":0,"data":{"transactionalId":"', self._names.take(pa.array(states.owner)), '"}},"value":',
            either(states.status == TOMBSTONE, "null", value), "}",
        )  # fmt: skip

    def dump(self, states: States, *, is_json: bool) -> Words:
        """As the tools of 4.1 and later print them, or in the text of the earlier ones."""
        offset, names = np.arange(len(states)), self._names.take(pa.array(states.owner))
        key_bytes, value_bytes = 4 + self._name_bytes[states.owner], self._value_bytes(states)
        size_bytes = HEADER_BYTES + _record_bytes(key_bytes, value_bytes)
        if is_json:
            key = joined('{"type":"0","data":{"transactionalId":"', names, '"}}')
            value = joined('{"version":"0","data":', self._json_values(states), "}")
        else:
            key, value = joined("transaction_metadata::transactionalId=", names), self._text_values(states)
        return joined(
            "baseOffset: ", offset, " lastOffset: ", offset,
            " count: 1 baseSequence: -1 lastSequence: -1 producerId: -1 producerEpoch: -1 partitionLeaderEpoch: ",
            f"{COORDINATOR_EPOCH} isTransactional: false isControl: false deleteHorizonMs: OptionalLong.empty",
            " position: ",
            np.cumsum(size_bytes) - size_bytes, " CreateTime: ", states.time_ms, " size: ", size_bytes,
            " magic: 2 compresscodec: none crc: ", checksums(len(states)), " isvalid: true\n| offset: ", offset,
            " CreateTime: ", states.time_ms, " keySize: ", key_bytes, " valueSize: ", value_bytes,
            " sequence: -1 headerKeys: [] key: ", key,
            " payload: ", either(states.status == TOMBSTONE, "<DELETE>", value), "\n",
        )  # fmt: skip

    def segment(self, states: States) -> Iterator[bytes]:
        """As they lie in a segment, each record in a batch of its own."""
        columns = (column.tolist() for column in (states.owner, states.status, states.time_ms, states.start_ms))
        rows = zip(*columns, self._listed(states).binary(), strict=True)
        for offset, (owner, status, time_ms, start_ms, partitions) in enumerate(rows):
            name, value = self._history.names[owner].encode(), None
            if status != TOMBSTONE:
                head = struct.pack(">hqhib", 0, self._history.producer_id(owner), 0, _TIMEOUT_MS, status)
                value = head + partitions + struct.pack(">qq", time_ms, start_ms)
            yield _batch(offset, time_ms, struct.pack(">hh", 0, len(name)) + name, value)

    def _json_values(self, states: States) -> Words:
        return joined(
            '{"producerId":', self._history.producer_id(states.owner),
            f',"producerEpoch":0,"transactionTimeoutMs":{_TIMEOUT_MS},"transactionStatus":', states.status,
            ',"transactionPartitions":', self._listed(states).words(_List.json),
            ',"transactionLastUpdateTimestampMs":', states.time_ms,
            ',"transactionStartTimestampMs":', states.start_ms, "}",
        )  # fmt: skip

    def _text_values(self, states: States) -> Words:
        return joined(
            "producerId:", self._history.producer_id(states.owner), ",producerEpoch:0,state=",
            pa.array([_WORDS[status] for status in states.status.tolist()], pa.large_string()),
            ",partitions=", self._listed(states).words(_List.text),
            ",txnLastUpdateTimestamp=", states.time_ms, f",txnTimeoutMs={_TIMEOUT_MS}",
        )  # fmt: skip

    def _value_bytes(self, states: States) -> Ints:
        listed = self._listed(states)
        sizes = np.array([len(each.binary()) for each in listed.lists], dtype=np.int64)
        return np.where(states.status == TOMBSTONE, -1, _VALUE_BYTES + sizes[listed.of])

    def _listed(self, states: States) -> _Lists:
        has_list = np.isin(states.status, (ONGOING, PREPARE_COMMIT))
        width = np.where(states.is_retired, RETIRED_PARTITIONS, self._history.width.partitions)
        columns = (states.status == COMPLETE_COMMIT, has_list, states.is_retired, states.first % width, states.count)
        rows = np.stack(columns, axis=1)
        rows[~has_list, 2:] = 0
        different, of = np.unique(rows, axis=0, return_inverse=True)
        lists = []
        for is_ended, is_listed, is_retired, first, count in different.tolist():
            topic, size = (
                (_RETIRED_TOPIC, RETIRED_PARTITIONS) if is_retired else (TOPIC, self._history.width.partitions)
            )
            numbers = tuple((first + n) % size for n in range(count))
            lists.append(_List(topic, numbers if is_listed else () if is_ended else None))
        return _Lists(lists, of.reshape(-1))


def _record_bytes(key_bytes: Ints, value_bytes: Ints) -> Ints:
    """The size of a record without headers, its length included."""
    body = 4 + _varint_bytes(key_bytes) + key_bytes + _varint_bytes(value_bytes) + np.maximum(value_bytes, 0)
    return _varint_bytes(body) + body


def _varint_bytes(value: Ints) -> Ints:
    return 1 + (value >= 1 << 6) + (value >= 1 << 13)


def _batch(offset: int, time_ms: int, key: bytes, value: bytes | None) -> bytes:
    """A batch with one record."""
    head = struct.pack(">hiqqqhii", 0, 0, time_ms, time_ms, -1, -1, -1, 1)
    return framed(head + record(0, 0, key, value), offset, COORDINATOR_EPOCH)
