"""The clocks of this machine, and how long a broker that cannot be reached is asked again; tests have their own."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from txn_analysis.capture.answers import CaptureError, ClusterGoneError, NobodyAnswersError, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable


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


_Answer = TypeVar("_Answer")
_FIRST_PAUSE_MS, _LONGEST_PAUSE_MS = 200, 2000


@dataclass
class Patience:
    """How long what cannot be answered is asked again; once something was given up, everything is asked once.

    Attributes:
        clock: by which time passes.
        give_up_after_ms: since a call was first not answered.
        say: tells somebody that it waits, once for each reason.
        has_given_up: a call was.
    """

    clock: Clock
    give_up_after_ms: int
    say: Callable[[str], None]
    has_given_up: bool = False
    _said: set[str] = field(default_factory=set)

    def ask(self, call: Callable[[], _Answer], again: Callable[[], None] = lambda: None) -> _Answer:
        """The answer to a call; `again` is called before each repetition, and may end it by an error.

        Raises:
            CaptureError: there was none in time; a ClusterGoneError where nobody answered.
        """
        began_ms = self.clock.monotonic_ms()
        pause_ms = _FIRST_PAUSE_MS
        while True:
            try:
                return call()
            except UnavailableError as error:
                waited_ms = self.clock.monotonic_ms() - began_ms
                if self.has_given_up or waited_ms >= self.give_up_after_ms:
                    self.has_given_up = True
                    kind = ClusterGoneError if isinstance(error, NobodyAnswersError) else CaptureError
                    raise kind(
                        f"{error}. Given up after {waited_ms // 1000} s (--give-up-after-ms {self.give_up_after_ms})"
                    ) from error
                if str(error) not in self._said:
                    self._said.add(str(error))
                    self.say(f"{error}: asked again for up to {self.give_up_after_ms // 1000} s")
            self.clock.wait(pause_ms)
            pause_ms = min(2 * pause_ms, _LONGEST_PAUSE_MS)
            again()
