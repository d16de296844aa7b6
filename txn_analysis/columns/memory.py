"""Pages of memory: from one heap, kept between buffers, and given back between stages."""

from __future__ import annotations

import ctypes
import os
import sys
from contextlib import suppress
from functools import cache

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8  # `M_…` of glibc's malloc.h
_KEPT_BYTES = 256 << 20  # some times the text of one range
_ALLOCATOR = "ARROW_DEFAULT_MEMORY_POOL"  # Arrow reads it when it is imported


def take_from_one_heap() -> None:
    """Let all threads, and Arrow, take memory from one heap; called before Arrow is imported, and before they start.

    Arrow has an allocator of its own, and glibc a heap for each thread. What one of them holds free no other one can
    take: a third of the memory of an audit.
    """
    os.environ.setdefault(_ALLOCATOR, "system")
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_ARENA_MAX, 1)


def keep_little_memory() -> None:
    """Let Arrow give memory back between batches; called before it is imported.

    Of 12 million batches answers take 240 MB, and 340 as it comes. Not all builds of Arrow have jemalloc, but all for
    Linux.
    """
    if sys.platform == "linux":
        os.environ.setdefault(_ALLOCATOR, "jemalloc")


@cache
def keep_pages() -> None:
    """Let this process keep up to 256 MiB of freed memory for its next buffers.

    Readers need the same buffers of some megabytes for each range. glibc, and Arrow's own allocator, give each one back
    to the system and take it anew, page by page: a quarter of the time that it takes to read a shallow dump. Where the
    C library is another one, nothing changes but Arrow's allocator.
    """
    import pyarrow as pa  # noqa: PLC0415 where it takes memory is said before

    with suppress(OSError, AttributeError):
        of_c = ctypes.CDLL(None)
        of_c.mallopt(_MMAP_THRESHOLD, _KEPT_BYTES)
        of_c.mallopt(_TRIM_THRESHOLD, _KEPT_BYTES)
    pa.set_memory_pool(pa.system_memory_pool())


def give_back_memory() -> None:
    """Hand what Arrow and the C library hold free back to the system, so that no stage pays for the one before."""
    import pyarrow as pa  # noqa: PLC0415 as above

    pa.default_memory_pool().release_unused()
    with suppress(OSError, AttributeError):  # only glibc has it
        ctypes.CDLL(None).malloc_trim(0)
