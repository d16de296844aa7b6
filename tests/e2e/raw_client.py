"""A deliberately rude Kafka client: it writes transactional batches that no correct client would write.

Request versions are the oldest that brokers 2.8 to 4.3 share: FindCoordinator 1, InitProducerId 0, AddPartitionsToTxn
0, Produce 3, EndTxn 0, TxnOffsetCommit 0.
"""

from __future__ import annotations

import socket
import struct
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import google_crc32c

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Place = tuple[str, int]

_TRY_AGAIN = {14, 15, 16, 51}  # coordinator loading, not available, moved; concurrent transactions
_ATTEMPTS = 100
_PAUSE_S = 0.2
_TRANSACTIONAL = 0x10


class RefusedError(Exception):
    """The broker answered with an error; `code` is Kafka's."""

    def __init__(self, what: str, code: int) -> None:
        super().__init__(f"{what}: Kafka's error {code}")
        self.code = code


@dataclass(frozen=True)
class Producer:
    """What a producer got from its coordinator."""

    transactional_id: str | None
    producer_id: int
    producer_epoch: int


class RawClient:
    """One connection to one broker, which leads and coordinates everything."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self._correlation_id = 0

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def init_producer_id(self, transactional_id: str, timeout_ms: int = 180_000) -> Producer:
        """A producer id; for an id that has one, the next epoch."""
        body = _text(transactional_id) + struct.pack(">i", timeout_ms)
        self._until_accepted("FindCoordinator", lambda: self._call(10, 1, _text(transactional_id) + b"\x01"))
        answer = self._until_accepted("InitProducerId", lambda: self._call(22, 0, body))
        return Producer(transactional_id, *struct.unpack_from(">qh", answer, 6))

    def add_partition(self, producer: Producer, place: Place) -> None:
        """Tell the coordinator that a partition is part of the transaction."""
        topic, partition = place
        head = _text(producer.transactional_id) + struct.pack(">qhi", producer.producer_id, producer.producer_epoch, 1)
        body = head + _text(topic) + struct.pack(">ii", 1, partition)
        code_at = 4 + 4 + len(_text(topic)) + 4 + 4
        self._until_accepted("AddPartitionsToTxn", lambda: self._call(24, 0, body), code_at)

    def end(self, producer: Producer, *, commit: bool) -> None:
        """End the transaction."""
        body = _text(producer.transactional_id)
        body += struct.pack(">qh?", producer.producer_id, producer.producer_epoch, commit)
        self._until_accepted("EndTxn", lambda: self._call(26, 0, body))

    def write(self, producer: Producer, place: Place, sequence: int, *, at_ms: int, count: int = 2) -> int:
        """Write one transactional batch without asking the coordinator; returns its base offset."""
        topic, partition = place
        batch = _batch(producer, sequence, count, at_ms)
        body = _text(producer.transactional_id) + struct.pack(">hii", -1, 30_000, 1) + _text(topic)
        body += struct.pack(">iii", 1, partition, len(batch)) + batch
        at = 4 + len(_text(topic)) + 4
        answer = self._call(0, 3, body)
        _, code, offset = struct.unpack_from(">ihq", answer, at)
        if code:
            raise RefusedError(f"Produce {topic}-{partition}", code)
        return int(offset)

    def commit_group_offset(self, producer: Producer, group: str, place: Place, offset: int) -> None:
        """Write a group's offset without adding the group to the transaction (TxnOffsetCommit)."""
        topic, partition = place
        body = _text(producer.transactional_id) + _text(group)
        body += struct.pack(">qhi", producer.producer_id, producer.producer_epoch, 1) + _text(topic)
        body += struct.pack(">iiq", 1, partition, offset) + _text("")
        self._until_accepted("FindCoordinator", lambda: self._call(10, 1, _text(group) + b"\x00"))
        code_at = 4 + 4 + len(_text(topic)) + 4 + 4
        self._until_accepted("TxnOffsetCommit", lambda: self._call(28, 0, body), code_at)

    def _until_accepted(self, what: str, call: Callable[[], bytes], code_at: int = 4) -> bytes:
        for _ in range(_ATTEMPTS):
            answer = call()
            (code,) = struct.unpack_from(">h", answer, code_at)
            if code == 0:
                return answer
            if code not in _TRY_AGAIN:
                raise RefusedError(what, code)
            time.sleep(_PAUSE_S)
        raise RefusedError(what, code)

    def _call(self, api_key: int, version: int, body: bytes) -> bytes:
        self._correlation_id += 1
        message = struct.pack(">hhi", api_key, version, self._correlation_id) + _text("raw") + body
        self._socket.sendall(struct.pack(">i", len(message)) + message)
        (size,) = struct.unpack(">i", self._read(4))
        return self._read(size)[4:]

    def _read(self, size: int) -> bytes:
        read = b""
        while len(read) < size:
            more = self._socket.recv(size - len(read))
            assert more, "the broker closed the connection: it refuses the request as such"
            read += more
        return read


def _text(text: str | None) -> bytes:
    return struct.pack(">h", -1) if text is None else struct.pack(">h", len(text.encode())) + text.encode()


def _varint(number: int) -> bytes:
    zigzag, written = (number << 1) ^ (number >> 63), bytearray()
    while zigzag > 0x7F:
        written.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    return bytes([*written, zigzag])


def _record(number: int, value: bytes) -> bytes:
    body = b"\x00" + _varint(0) + _varint(number) + _varint(-1) + _varint(len(value)) + value + _varint(0)
    return _varint(len(body)) + body


def _batch(producer: Producer, sequence: int, count: int, at_ms: int) -> bytes:
    values: Sequence[bytes] = [b"value %d" % number for number in range(count)]
    records = b"".join(_record(number, value) for number, value in enumerate(values))
    epochs = (producer.producer_id, producer.producer_epoch, sequence)
    checked = struct.pack(">hiqqqhii", _TRANSACTIONAL, count - 1, at_ms, at_ms, *epochs, count) + records
    rest = struct.pack(">ibI", -1, 2, google_crc32c.value(checked)) + checked
    return struct.pack(">qi", 0, len(rest)) + rest
