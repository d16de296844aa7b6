"""Independent actions side by side: small Spark jobs mostly wait for the driver, not for each other."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_MOST_AT_ONCE = 8


def in_parallel(*actions: Callable[[], Any]) -> list[Any]:
    """What some independent actions return, in their order."""
    with ThreadPoolExecutor(min(len(actions), _MOST_AT_ONCE) or 1) as pool:
        return list(pool.map(lambda action: action(), actions))
