"""Independent actions side by side: small Spark jobs mostly wait for the driver, not for each other."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_MOST_AT_ONCE = 8


# What a thread does first.
_begin: ContextVar[Callable[[], None]] = ContextVar("begin", default=lambda: None)


def in_parallel(*actions: Callable[[], Any]) -> list[Any]:
    """What some independent actions return, in their order."""
    begin = _begin.get()

    def begun() -> None:
        _begin.set(begin)  # a thread has a context of its own
        begin()

    with ThreadPoolExecutor(min(len(actions), _MOST_AT_ONCE) or 1, initializer=begun) as pool:
        return list(pool.map(lambda action: action(), actions))


@contextmanager
def threads_begin_with(begin: Callable[[], None]) -> Iterator[None]:
    """Meanwhile this is what each thread of `in_parallel` does first, however deep it is nested."""
    before = _begin.get()
    _begin.set(begin)
    try:
        yield
    finally:
        _begin.set(before)  # a token could only be given back by the thread that has it
