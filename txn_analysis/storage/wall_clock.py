"""This machine's own clock. No verdict looks at it: every other time in the program is given, or in the files."""

from __future__ import annotations

import time


def now_ms() -> int:
    """Epoch milliseconds."""
    return time.time_ns() // 1_000_000
