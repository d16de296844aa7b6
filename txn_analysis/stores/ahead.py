"""Work on objects side by side, and its outcomes in order: a store takes long to answer, and little to be asked."""

from __future__ import annotations

from collections import deque
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

AT_ONCE = 16
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
