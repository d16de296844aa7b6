"""Kafka's protocol on the wire: requests as bytes, answers read field by field, and record batches."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from tests.tools.log_dirs.encoder import framed, record, unsigned_varint

Place = tuple[str, int]

NO_TAGS = b"\0"
NO_ID = -1

_TRANSACTIONAL = 0x10
_Item = TypeVar("_Item")


class Connection:
    """One connection to one broker; answers come in the order of the requests."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._correlation_id = 0

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def call(self, api_key: int, version: int, body: bytes, *, is_flexible: bool = False) -> Answer:
        """One request and its answer; `is_flexible` versions have tagged fields in their headers (KIP-482)."""
        self._correlation_id += 1
        header = struct.pack(">hhi", api_key, version, self._correlation_id) + text("raw")
        message = header + (NO_TAGS if is_flexible else b"") + body
        self._socket.sendall(struct.pack(">i", len(message)) + message)
        (size,) = struct.unpack(">i", self._read(4))
        answer = Answer(self._read(size)[4:])
        if is_flexible:
            answer.tags()
        return answer

    def _read(self, size: int) -> bytes:
        read = b""
        while len(read) < size:
            more = self._socket.recv(size - len(read))
            assert more, "the broker closed the connection: it refuses the request as such"
            read += more
        return read


class Answer:
    """An answer, read from its beginning."""

    def __init__(self, content: bytes) -> None:
        self._content, self._at = content, 0

    def numbers(self, form: str) -> tuple[int, ...]:
        """Numbers of fixed sizes, as `struct` names them."""
        found = struct.unpack_from(">" + form, self._content, self._at)
        self._at += struct.calcsize(">" + form)
        return found

    def number(self, form: str) -> int:
        """One number."""
        return self.numbers(form)[0]

    def text(self) -> str | None:
        """A text with a length of two bytes."""
        return self._text(self.number("h"))

    def compact_text(self) -> str | None:
        """A text of a flexible version."""
        return self._text(self._varint() - 1)

    def items(self, read: Callable[[], _Item]) -> list[_Item]:
        """An array."""
        return [read() for _ in range(self.number("i"))]

    def compact_items(self, read: Callable[[], _Item]) -> list[_Item]:
        """An array of a flexible version."""
        return [read() for _ in range(self._varint() - 1)]

    def to_only_place(self, *, is_flexible: bool = False) -> Answer:
        """On to the fields of the one partition of the one topic that was asked for, its number included."""
        if is_flexible:
            self._varint()
            self.compact_text()
            self._varint()
        else:
            self.number("i")
            self.text()
            self.number("i")
        return self

    def varint(self) -> int:
        """A signed number of as many bytes as it needs, as records have them."""
        value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def sized(self) -> bytes:
        """A key or a value of a record."""
        size = self.varint()
        self._at += size
        return self._content[self._at - size : self._at]

    def rest(self) -> bytes:
        """What has not been read."""
        return self._content[self._at :]

    def tags(self) -> None:
        """Tagged fields, which nothing here asks for."""
        for _ in range(self._varint()):
            self._varint()
            self._at += self._varint()

    def _text(self, size: int) -> str | None:
        if size < 0:
            return None
        self._at += size
        return self._content[self._at - size : self._at].decode()

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._content[self._at]
            self._at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value


def text(value: str | None) -> bytes:
    """A text with a length of two bytes; -1 is none."""
    return struct.pack(">h", -1) if value is None else struct.pack(">h", len(value.encode())) + value.encode()


def compact_text(value: str | None) -> bytes:
    """A text of a flexible version."""
    return b"\0" if value is None else compact_bytes(value.encode())


def compact_bytes(value: bytes) -> bytes:
    """Bytes of a flexible version."""
    return unsigned_varint(len(value) + 1) + value


def items(values: Sequence[bytes]) -> bytes:
    """An array."""
    return struct.pack(">i", len(values)) + b"".join(values)


def compact_items(values: Sequence[bytes]) -> bytes:
    """An array of a flexible version."""
    return unsigned_varint(len(values) + 1) + b"".join(values)


def batch(
    producer_id: int,
    producer_epoch: int,
    sequence: int,
    records: Iterable[tuple[bytes | None, bytes]],
    *,
    at_ms: int,
    is_transactional: bool = True,
) -> bytes:
    """A record batch as a client sends it; a batch of no producer has -1 for id, epoch and sequence."""
    written = [record(number, 0, key, value) for number, (key, value) in enumerate(records)]
    epochs = (producer_id, producer_epoch, sequence)
    attributes = _TRANSACTIONAL if is_transactional else 0
    count = len(written)
    checked = struct.pack(">hiqqqhii", attributes, count - 1, at_ms, at_ms, *epochs, count) + b"".join(written)
    return framed(checked, leader_epoch=-1)
