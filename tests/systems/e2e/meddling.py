"""`txn-capture`, during which something happens to a broker.

`python -m tests.systems.e2e.meddling PID SIGNAL NODE WORDS…`
When the first batch is asked for of that node, the process gets the signal; with `self`, that is the capture's own. In
a process of its own, as the client library leaves sockets open behind brokers that die.
"""

import os
import signal
import sys
from collections.abc import Sequence

from txn_analysis.capture import client, command
from txn_analysis.capture.answers import Leadership


def main(words: Sequence[str]) -> None:
    """The command line."""
    pid = os.getpid() if words[0] == "self" else int(words[0])
    number, node = signal.Signals[words[1]], int(words[2])
    is_done = False

    class Meddling(client.KafkaBrokers):
        def fetch(self, led: Leadership, offset: int, max_bytes: int) -> bytes:
            nonlocal is_done
            if not is_done and led.leader_id == node:
                is_done = True
                os.kill(pid, number)
            return super().fetch(led, offset, max_bytes)

    vars(client)["KafkaBrokers"] = Meddling
    command.app(list(words[3:]), prog_name="txn-capture")


if __name__ == "__main__":
    main(sys.argv[1:])
