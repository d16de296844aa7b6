"""Pages of memory: kept between buffers, and given back between stages."""

from __future__ import annotations

import ctypes
from contextlib import suppress
from functools import cache

import pyarrow as pa

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # `M_…` of glibc's malloc.h
_KEPT_BYTES = 256 << 20  # some times the text of one range


@cache
def keep_pages() -> None:
    """Let this process keep up to 256 MiB of freed memory for its next buffers.

    Readers need the same buffers of some megabytes for each range. glibc, and Arrow's own allocator, give each one back
    to the system and take it anew, page by page: a quarter of the time that it takes to read a shallow dump. Where the
    C library is another one, nothing changes but Arrow's allocator.
    """
    with suppress(OSError, AttributeError):
        of_c = ctypes.CDLL(None)
        of_c.mallopt(_MMAP_THRESHOLD, _KEPT_BYTES)
        of_c.mallopt(_TRIM_THRESHOLD, _KEPT_BYTES)
    pa.set_memory_pool(pa.system_memory_pool())


def give_back_memory() -> None:
    """Hand what Arrow and the C library hold free back to the system, so that no stage pays for the one before."""
    pa.default_memory_pool().release_unused()
    with suppress(OSError, AttributeError):  # only glibc has it
        ctypes.CDLL(None).malloc_trim(0)
