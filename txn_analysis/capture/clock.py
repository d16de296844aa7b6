"""The clocks of this machine, and waiting; tests have their own."""

from __future__ import annotations

import time


class Clock:
    """Wall time, which somebody may set, and time that only grows; in milliseconds."""

    def wall_ms(self) -> int:
        """Epoch milliseconds by this machine."""
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        """Milliseconds since any moment."""
        return time.monotonic_ns() // 1_000_000

    def wait(self, ms: int) -> None:
        """Let time pass."""
        time.sleep(ms / 1000)
