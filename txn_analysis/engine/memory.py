"""How much this process holds of what was read, by the memory that is free."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

MEMORY_BYTES = 1 << 30
"""Of text that a run rests on, earlier captures included: up to so much of batch lines this process ends before Spark's
tasks do, even with eight cores, as Spark takes ten seconds to start."""
_ALWAYS_BYTES = 16 << 20
_MEMORY_PER_BYTE = 5  # of text; at most 4 were measured, where every transactional id has a transaction open

_MACHINE, _CONTROL_GROUP = Path("/proc/meminfo"), Path("/sys/fs/cgroup")


def most_in_memory_bytes() -> int:
    """Of how much text this process holds what was read: less than `MEMORY_BYTES` where little memory is free."""
    return min(MEMORY_BYTES, max(_ALWAYS_BYTES, free_memory_bytes() // _MEMORY_PER_BYTE))


def free_memory_bytes() -> int:
    """What this process may take: what is free on the machine, or all of its container's where that is less.

    A container counts the pages of files that it has read as its own, and gives them back: what is left says little.
    """
    free = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    with suppress(OSError):
        named = dict(line.split(":", 1) for line in _MACHINE.read_text().splitlines())
        free.append(int(named["MemAvailable"].split()[0]) << 10)
    for name in ("memory.max", "memory/memory.limit_in_bytes"):  # of control groups, version 2 and 1
        with suppress(OSError, ValueError):  # "max" where there is no bound
            free.append(int((_CONTROL_GROUP / name).read_text()))
    return min(free)
