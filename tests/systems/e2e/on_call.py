"""Somebody on call: a shell at a terminal, in a folder of its own, with Kafka's tools and what copies from a broker.

What is typed says `broker-1`, as in the documents. Programs on the PATH make of it the broker of the test, and what is
printed says `broker-1` again.
"""

import os
import pty
import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE, STDOUT, Popen

from tests.systems.e2e.broker import Cluster
from tests.systems.e2e.executor import put_tool
from tests.unit.docs.test_copying import STAND_IN, program

HOST = "broker-1"
BROKERS = f"{HOST}:9092"
LOG_DIRS = "/var/lib/kafka"

_ASKS = b"[y/N] "
_ENDED = re.compile(rb"\x1e(\d+)\x1e")
_LEFT_OUT = re.compile(r"^(txn-analysis: |SLF4J: |log4j:).*\n", re.MULTILINE)
_IN_OTHER_WORDS = """#!/bin/sh
# {program}, with {said} in its words read as {meant}.
for word do
    shift
    case $word in *{said}*) word="${{word%%{said}*}}{meant}${{word#*{said}}}" ;; esac
    set -- "$@" "$word"
done
exec {program} "$@"
"""
_CLOCK = """#!/bin/sh
# The clock of a script, so many seconds ahead of this machine's as a file says.
if [ "$*" = +%s ]; then exec {date} -d "now + $(cat "${{0%/*}}/ahead") seconds" +%s; fi
exec {date} "$@"
"""


@dataclass(frozen=True)
class Typed:
    """A line that was typed, its exit code, and what the terminal showed, the answers to questions among it."""

    line: str
    code: int
    shown: str


class OnCall:
    """One shell, which remembers variables from line to line."""

    def __init__(self, cluster: Cluster, folder: Path, tools_version: str, tools: Sequence[str]) -> None:
        self._bin, self._desk = folder / "bin", folder / "desk"
        self._desk.mkdir(parents=True)
        self._names = {cluster.bootstrap: BROKERS, str(cluster.log_dir()): LOG_DIRS}
        self._put_programs(cluster, tools_version, tools)
        self.passes(0)
        self._keys, screen = pty.openpty()
        known = {**os.environ, "PATH": f"{self._bin}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8"}
        self._shell = Popen(
            ["sh"], cwd=self._desk, env=known, stdin=screen, stdout=PIPE, stderr=STDOUT, start_new_session=True
        )
        os.close(screen)

    def _put_programs(self, cluster: Cluster, tools_version: str, tools: Sequence[str]) -> None:
        for tool in tools:
            put_tool(self._bin / "kafka", tools_version, tool)
            self._stands_for(tool, self._bin / "kafka" / tool, BROKERS, cluster.bootstrap)
        rsync = shutil.which("rsync") or program(self._bin / "stand-in", STAND_IN)
        self._stands_for("rsync", rsync, f"{HOST}:{LOG_DIRS}", str(cluster.log_dir()))
        program(self._bin / "txn-analysis", f'#!/bin/sh\nexec "{sys.executable}" -m txn_analysis "$@"\n')
        program(self._bin / "date", _CLOCK.format(date=shutil.which("date")))

    def _stands_for(self, name: str, meant: Path | str, said: str, is_read_as: str) -> None:
        program(self._bin / name, _IN_OTHER_WORDS.format(program=meant, said=said, meant=is_read_as))

    def passes(self, minutes: int) -> None:
        """From now on a script's clock is so many minutes ahead."""
        (self._bin / "ahead").write_text(str(60 * minutes))

    def types(self, line: str) -> Typed:
        """Types a line, and says yes to what is asked."""
        os.write(self._keys, f"{line}; printf '\\036%d\\036' \"$?\"\n".encode())
        assert self._shell.stdout is not None
        seen = b""
        while not (ended := _ENDED.search(seen)):
            more = os.read(self._shell.stdout.fileno(), 65536)
            assert more, f"the shell ended: {line}"
            seen += more
            if seen.endswith(_ASKS):
                os.write(self._keys, b"y\n")
                seen += b"y\n"
        return Typed(line, int(ended[1]), self._as_printed(seen[: ended.start()].decode()))

    def _as_printed(self, text: str) -> str:
        """With the names of the documents, without progress, and without what tools say of their logging."""
        for here, there in self._names.items():
            text = text.replace(here, there)
        return _LEFT_OUT.sub("", text)

    def close(self) -> None:
        """Hangs up."""
        os.close(self._keys)
        self._shell.wait()
        assert self._shell.stdout is not None
        self._shell.stdout.close()
