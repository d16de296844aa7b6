"""Random access by byte offset to the text of an input, plain or compressed, with bounded memory."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Sequence
from types import TracebackType
from typing import IO, Self, cast

import pyarrow as pa

from txn_analysis.files.places import place_of
from txn_analysis.files.remote_file import BYTES_PER_REQUEST, RemoteFile, streamed
from txn_analysis.files.store import StoreError, Version
from txn_analysis.kafka.batch_headers import LOCAL_BYTES_PER_READ

GZIP = "gzip"
ZSTD = "zstd"
# A stream of zstd may begin with a frame to be skipped, of one of 16 kinds, as pzstd writes it.
_SKIPPED = {bytes([kind]) + b"\x2a\x4d\x18": ZSTD for kind in range(0x50, 0x60)}
_MAGIC = {b"\x1f\x8b": GZIP, b"\x28\xb5\x2f\xfd": ZSTD, **_SKIPPED}

_STEP_BYTES = 1 << 20
# A reader that looks back for the line before, or re-reads the chunk it is in, must not start the stream again.
_KEPT_BYTES = 16 << 20

# Of real dumps the most repetitive are 75 times as long as packed; those with one payload of 1 kB in every record, 620.
FREE_TEXT_BYTES = 256 << 20
TEXT_PER_PACKED_BYTE = 500


class TextError(Exception):
    """A compressed stream that is cut or damaged; `offset` is the byte of the text up to which it can be read."""

    def __init__(self, offset: int, reason: str) -> None:
        super().__init__(offset, reason)
        self.offset = offset
        self.reason = reason


def may_unpack_to(packed_bytes: int) -> int:
    """How many bytes of text so many compressed ones may become; none of kafka-dump-log's become more."""
    return FREE_TEXT_BYTES + TEXT_PER_PACKED_BYTE * packed_bytes


def detect_compression(head: bytes) -> str | None:
    """`gzip` or `zstd` by the first bytes of a file, never by its name; None for anything else."""
    return next((name for magic, name in _MAGIC.items() if head.startswith(magic)), None)


class Text:
    """The text of one file. `read` takes offsets into the text, not into the compressed file.

    Args:
        path: the file, or the URI of an object.
        compression: what `detect_compression` said of its first bytes.
        version: of an object as it was listed; any other one is not read.

    Raises:
        OSError: the file cannot be opened.
    """

    _remote: RemoteFile | None = None

    def __init__(self, path: str, compression: str | None, version: Version | None = None) -> None:
        self._path = path
        self._compression = compression
        place = place_of(path)
        self._remote = None if place is None else RemoteFile(place, version)
        self._open()

    def _open(self) -> None:
        self._file = _open_file(self._path, self._compression) if self._remote is None else streamed(self._remote)
        self._stream = _unpacked(self._file, self._compression)
        self._kept = bytearray()  # the last text that the compressed stream gave
        self._kept_start = 0

    def read(self, start: int, end: int) -> bytes:
        """The text from byte `start` to byte `end`, cut at the end of the text.

        Raises:
            TextError: the compressed stream is cut or damaged before `end`.
        """
        if self._compression is None:  # at its place: a buffer would read more than it is asked for
            return self._read_at(start, end)
        if start < self._kept_start:
            self.close()
            self._open()
        pieces: list[bytes] = []
        while True:
            kept_end = self._kept_start + len(self._kept)
            if start < min(end, kept_end):
                piece = bytes(self._kept[start - self._kept_start : end - self._kept_start])
                pieces.append(piece)
                start += len(piece)
            if start >= end or not self._advance(min(_STEP_BYTES, end - kept_end)):
                return b"".join(pieces)

    def will_read(self, places: Sequence[tuple[int, int]]) -> None:
        """Have ranges of an object's text come, in the order in which they will be read; of a packed one if small."""
        if self._remote is not None:
            self._remote.will_read(places if self._compression is None else ())

    def _read_at(self, start: int, end: int) -> bytes:
        return _read_at(self._file.fileno(), start, end) if self._remote is None else self._remote.read(start, end)

    @property
    def bytes_per_request(self) -> int:
        """As many bytes are read on in the time that it takes to read from another place."""
        return LOCAL_BYTES_PER_READ if self._remote is None else BYTES_PER_REQUEST

    @property
    def packed_bytes(self) -> int:
        """How much of the file was taken for what was read; of a compressed one somewhat more, as it is read ahead."""
        return self._file.tell()

    def close(self) -> None:
        """Closes the file."""
        if self._remote is not None:
            self._remote.close()
        self._stream.close()
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _advance(self, size_bytes: int) -> bool:
        """Moves on by up to `size_bytes` of text, and drops what is too far behind; False at the end of the text."""
        offset = self._kept_start + len(self._kept)
        try:
            piece = self._stream.read(size_bytes)
        except StoreError:
            raise
        # Arrow reports a damaged zstd stream as OSError, and so does gzip a bad header or checksum.
        except (OSError, EOFError, zlib.error) as error:
            raise TextError(
                offset, f"the {self._compression} stream is cut or damaged ({_first_line(error)})"
            ) from error
        self._kept += piece
        surplus = len(self._kept) - _KEPT_BYTES
        if surplus >= _KEPT_BYTES:  # rarely, as what is kept moves to the front then
            del self._kept[:surplus]
            self._kept_start += surplus
        return bool(piece)


def _open_file(path: str, compression: str | None) -> IO[bytes]:
    return cast("IO[bytes]", pa.OSFile(path)) if compression == ZSTD else open(path, "rb", buffering=0)


def _unpacked(file: IO[bytes], compression: str | None) -> IO[bytes]:
    """The text in an open file; the file itself where nothing is compressed."""
    if compression == GZIP:
        return cast("IO[bytes]", gzip.open(file, "rb"))  # reads the members of a joined file one after another
    if compression == ZSTD:
        packed = file if isinstance(file, pa.NativeFile) else pa.PythonFile(file, "r")
        return cast("IO[bytes]", pa.BufferedInputStream(pa.CompressedInputStream(packed, ZSTD), _STEP_BYTES))
    return file


def _read_at(file: int, start: int, end: int) -> bytes:
    """The bytes from `start` to `end`; file systems over a network may hand out fewer than there are at a time."""
    pieces: list[bytes] = []
    while start < end and (piece := os.pread(file, end - start, start)):
        pieces.append(piece)
        start += len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0] or type(error).__name__
