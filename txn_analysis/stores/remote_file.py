"""Objects of a store, side by side: ranges of one, of which nothing is read twice in a row, and work on many, in order.

A store takes long to answer, and little to be asked.
"""

from __future__ import annotations

import io
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

from txn_analysis.stores.store import ChangedError, store_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from concurrent.futures import Future

    from txn_analysis.stores.places import Place
    from txn_analysis.stores.store import Piece, Store, Version

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


_PART_BYTES = 4 << 20
_PARTS_AT_ONCE = 16
_AHEAD_BYTES = 16 << 20
_KEPT_BLOCKS = 2  # a reader that looks back into the chunk before, or on into the next one, asks for neither again
_MOST_KEPT_BYTES = 8 << 20
_STREAM_BYTES = 4 << 20
_WHOLE_BYTES = 64 << 10  # a smaller object is read at once: one request costs more than so many bytes


@dataclass
class Cost:
    """What requests to one store cost, as measured on those that were made.

    Attributes:
        request_s: of one request, its bytes not counted.
        byte_s: of one byte.
    """

    request_s: float = 0.01
    byte_s: float = 1e-8
    is_measured: bool = False

    def learn(self, size_bytes: int, took_s: float) -> None:
        """Take in one request: a short one tells what a request costs, a long one what its bytes do."""
        if size_bytes <= _WHOLE_BYTES:
            self.request_s += (took_s - self.request_s) * (0.2 if self.is_measured else 1)
            self.is_measured = True
        elif size_bytes >= _PART_BYTES // 2:
            self.byte_s += (max(0.0, took_s - self.request_s) / size_bytes - self.byte_s) * 0.2

    @property
    def bytes_per_request(self) -> int:
        """The size below which a batch of a segment is read whole: that takes less time than a request for the next.

        Of larger batches the headers alone are read, one request for each.
        """
        return int(self.request_s / max(self.byte_s, 1e-12))


_costs: dict[str, Cost] = {}
_guard = Lock()


def cost_of(root: str) -> Cost:
    """What is known of a store in this process."""
    with _guard:
        return _costs.setdefault(root, Cost())


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_PARTS_AT_ONCE, "store")


@dataclass
class _Coming:
    """A part of an object that will be read, and may be on its way."""

    start: int
    end: int
    data: Future[Piece] | None = None


class RemoteFile:
    """An object as it was when it was listed; whatever replaced it is never read.

    Args:
        place: its name.
        version: as it was listed; None asks the store what it is now.

    Raises:
        FileNotFoundError: there is none.
        StoreError: the store does not answer.
    """

    def __init__(self, place: Place, version: Version | None = None) -> None:
        self._store: Store = store_of(place)
        self._key, self._cost = place.key, cost_of(place.root)
        if version is None:
            found = self._store.found(place.key)
            if found is None:
                raise FileNotFoundError("there is no such object")
            version = found.version
        self._version, self.size_bytes = version, version.size_bytes
        self._kept: list[tuple[int, bytes]] = []
        self._coming: list[_Coming] = []

    @property
    def bytes_per_request(self) -> int:
        """As of `Cost`."""
        return self._cost.bytes_per_request

    def read(self, start: int, end: int) -> bytes:
        """The bytes from `start` to `end`, cut at the end of the object.

        Raises:
            ChangedError: the object was replaced since it was listed.
            StoreError: the store does not answer.
        """
        start, end = max(0, start), min(end, self.size_bytes)
        if start >= end:
            return b""
        for at, data in self._kept:
            if _is_within(start, end, at, data):
                return data[start - at : end - at]
        first, stop = (0, self.size_bytes) if self.size_bytes <= _WHOLE_BYTES else (start, end)
        data = self._fetched(first, stop)
        # Single headers would push out what is worth more; of ranges of many megabytes the parts are still here.
        if _WHOLE_BYTES < len(data) <= _MOST_KEPT_BYTES or len(data) == self.size_bytes:
            self._kept = [(first, data), *self._kept][:_KEPT_BLOCKS]
        return data[start - first : end - first]

    def will_read(self, places: Iterable[tuple[int, int]]) -> None:
        """Have ranges come, in the order in which they will be read, while others are worked on.

        A small object comes at once, and whole; errors are those of `read`. All others are raised by `read`.
        """
        if self.size_bytes <= _WHOLE_BYTES:
            self.read(0, self.size_bytes)
            return
        for start, end in places:
            is_kept = any(_is_within(start, end, *kept) for kept in self._kept)
            if not is_kept and self._known_up_to(start, end)[2] < end:
                self._coming += _parts(max(0, start), min(end, self.size_bytes))
        self._ask(0)

    def close(self) -> None:
        """Ask for nothing more."""
        self._forget(len(self._coming))

    def _forget(self, count: int) -> None:
        for part in self._coming[:count]:
            if part.data is not None:
                part.data.cancel()
        del self._coming[:count]

    def _known_up_to(self, start: int, end: int) -> tuple[int, int, int]:
        """From which part to which of what is to come a range, or its beginning, is in; and up to which byte."""
        first = next((n for n, part in enumerate(self._coming) if part.start <= start < part.end), len(self._coming))
        stop, at = first, start
        while at < end and stop < len(self._coming) and self._coming[stop].start <= at < self._coming[stop].end:
            at = self._coming[stop].end
            stop += 1
        return first, stop, at

    def _ask(self, count: int) -> None:
        """Ask for the first parts of what is to come, and for as much behind them as may be on its way."""
        on_its_way_bytes = 0
        for number, part in enumerate(self._coming):
            if number >= count:
                on_its_way_bytes += part.end - part.start
                if on_its_way_bytes > _AHEAD_BYTES or number >= count + _PARTS_AT_ONCE:
                    break
            self._asked(part)

    def _asked(self, part: _Coming) -> Future[Piece]:
        if part.data is None:
            part.data = _pool().submit(self._part, part.start, part.end)
        return part.data

    def _fetched(self, start: int, end: int) -> bytes:
        """A range, as far as it was to come of those parts; what was to come before it is forgotten."""
        first, stop, known_end = self._known_up_to(start, end)
        if first == stop and end - start <= _PART_BYTES:
            return bytes(self._part(start, end))
        own = self._coming[first:stop]
        if own:
            self._forget(first)
            self._ask(len(own))
        return self._joined([*own, *_parts(known_end, end)], start, end)

    def _joined(self, parts: list[_Coming], start: int, end: int) -> bytes:
        pieces, at = list[memoryview](), start
        for part, coming in [(part, self._asked(part)) for part in parts]:
            data = memoryview(coming.result())
            pieces.append(data[at - part.start : end - part.start])
            at = part.end  # the next one may begin before it
        return b"".join(pieces)

    def _part(self, start: int, end: int) -> Piece:
        began = time.perf_counter()
        data = self._store.read(self._key, start, end, self._version)
        self._cost.learn(len(data), time.perf_counter() - began)
        if len(data) != end - start:
            raise ChangedError
        return data


def _is_within(start: int, end: int, at: int, data: bytes) -> bool:
    return at <= start and end <= at + len(data)


def _parts(start: int, end: int) -> list[_Coming]:
    return [_Coming(at, min(at + _PART_BYTES, end)) for at in range(start, end, _PART_BYTES)]


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
    return io.BufferedReader(_RemoteStream(file), _STREAM_BYTES)
