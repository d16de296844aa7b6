"""Objects of a store, side by side: blocks of one, of which nothing is read twice in a row, and work on many, in order.

A store takes long to answer, and little to be asked.
"""

from __future__ import annotations

import io
from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache, partial
from typing import TypeVar

from txn_analysis.files.places import Place
from txn_analysis.files.store import ChangedError, Piece, Version, store_of

AT_ONCE = 32
_MOST_BYTES = 128 << 20

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def ahead(
    function: Callable[[_Item], _Result],
    items: Iterable[_Item],
    *,
    at_once: int = AT_ONCE,
    is_object: Callable[[_Item], bool] = lambda _: True,
    size_of: Callable[[_Item], int] = lambda _: 0,
) -> Iterator[tuple[_Item, Callable[[], _Result]]]:
    """Each item, and what gives the outcome of a function for it; the function works on the next items meanwhile.

    Args:
        function: what is to be done.
        items: taken as there is room for them.
        at_once: for so many items at most.
        is_object: an item for which it is not true is worked on when its outcome is asked for, in the caller's thread.
        size_of: the bytes that one of them holds in memory; together they are 128 MiB, or one item.
    """
    coming: deque[tuple[_Item, int, Callable[[], _Result]]] = deque()
    held_bytes = 0
    with ThreadPoolExecutor(at_once) as pool:
        try:
            for item in items:
                size_bytes = size_of(item)
                while coming and (len(coming) >= at_once or held_bytes + size_bytes > _MOST_BYTES):
                    first, its_bytes, outcome = coming.popleft()
                    held_bytes -= its_bytes
                    yield first, outcome
                does = pool.submit(function, item).result if is_object(item) else partial(function, item)
                coming.append((item, size_bytes, does))
                held_bytes += size_bytes
            while coming:
                first, _, outcome = coming.popleft()
                yield first, outcome
        finally:
            pool.shutdown(cancel_futures=True)


BYTES_PER_REQUEST = 1 << 20
"""The size below which a batch of a segment is read whole; of larger ones the headers alone, by one request each.

So many bytes come in the time of one more request: 10 ms at 100 MB/s.
"""
_BLOCK_BYTES = 4 << 20
_BLOCKS_AT_ONCE = 16
_BLOCKS_AHEAD, _KEPT_BLOCKS = 4, 4
_SHORT_BYTES = 64 << 10  # of a smaller object all is read: one request costs more than so many bytes


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_BLOCKS_AT_ONCE, "store")


class RemoteFile:
    """An object as it was when it was listed; whatever replaced it is never read.

    It is read by blocks, of which the last ones are kept; of a large object, what is short by itself.

    Args:
        place: its name.
        version: as it was listed; None asks the store what it is now.

    Raises:
        FileNotFoundError: there is none.
        StoreError: the store does not answer.
    """

    def __init__(self, place: Place, version: Version | None = None) -> None:
        self._store, self._key = store_of(place), place.key
        if version is None:
            head = self._store.head(place.key)
            if head is None:
                raise FileNotFoundError("there is no such object")
            version = head.version
        self._version, self.size_bytes = version, version.size_bytes
        self._blocks: dict[int, Future[Piece]] = {}  # by their numbers, the last used ones last
        self._coming: list[int] = []

    def read(self, start: int, end: int) -> bytes:
        """The bytes from `start` to `end`, cut at the end of the object.

        Raises:
            ChangedError: the object was replaced since it was listed.
            StoreError: the store does not answer.
        """
        start, end = max(0, start), min(end, self.size_bytes)
        if start >= end:
            return b""
        numbers = range(start // _BLOCK_BYTES, -(-end // _BLOCK_BYTES))
        if end - start < _SHORT_BYTES < self.size_bytes and not self._blocks.keys() >= {*numbers}:
            return bytes(self._part(start, end))
        blocks = [self._block(number) for number in numbers]
        if behind := [place for place, number in enumerate(self._coming, 1) if number in numbers]:
            self._forget(behind[-1], numbers)
            self._ask()
        first = numbers[0] * _BLOCK_BYTES
        pieces = [
            memoryview(block.result())[max(0, start - at) : end - at]
            for at, block in zip(range(first, end, _BLOCK_BYTES), blocks, strict=True)
        ]
        used = [number for number in self._blocks if number not in self._coming]
        for number in used[:-_KEPT_BLOCKS]:
            del self._blocks[number]
        return b"".join(pieces)

    def will_read(self, places: Iterable[tuple[int, int]]) -> None:
        """Have ranges come, in the order in which they will be read, while others are worked on.

        A small object comes at once, and whole; errors are those of `read`. All others are raised by `read`.
        """
        if self.size_bytes <= _SHORT_BYTES:
            self.read(0, self.size_bytes)
            return
        for start, end in places:
            for number in range(max(0, start) // _BLOCK_BYTES, -(-min(end, self.size_bytes) // _BLOCK_BYTES)):
                if number not in self._coming and number not in self._blocks:
                    self._coming.append(number)
        self._ask()

    def close(self) -> None:
        """Ask for nothing more."""
        self._forget(len(self._coming), ())

    def _ask(self) -> None:
        for number in self._coming[:_BLOCKS_AHEAD]:
            self._block(number)

    def _forget(self, count: int, used: Container[int]) -> None:
        """Of the first blocks that were to come, those that are not used come no more."""
        for number in self._coming[:count]:
            if number not in used and number in self._blocks:
                self._blocks.pop(number).cancel()
        del self._coming[:count]

    def _block(self, number: int) -> Future[Piece]:
        start = number * _BLOCK_BYTES
        block = self._blocks.pop(number, None)
        if block is None:
            block = _pool().submit(self._part, start, min(start + _BLOCK_BYTES, self.size_bytes))
        self._blocks[number] = block
        return block

    def _part(self, start: int, end: int) -> Piece:
        data = self._store.read(self._key, start, end, self._version)
        if len(data) != end - start:
            raise ChangedError
        return data


class _RemoteStream(io.RawIOBase):
    """An object as a file that is read from its front on, or from any place."""

    def __init__(self, file: RemoteFile) -> None:
        self._file = file
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._file.size_bytes}[whence]
        self._at = base + offset
        return self._at

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override] # any writable buffer
        data = self._file.read(self._at, self._at + len(buffer))
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


def streamed(file: RemoteFile) -> io.BufferedReader:
    """An object as a file that is read in large pieces."""
    return io.BufferedReader(_RemoteStream(file), _BLOCK_BYTES)
