"""A plan's script, run by a shell beside a clock, a `timeout` and a tool of Kafka that do what a test wants."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from tests.tools import report_rows as rows
from txn_analysis.plan.abort_plan import abort_plan
from txn_analysis.plan.script import commands
from txn_analysis.settings import Settings
from txn_analysis.tables import Finding

_HERE = [shell for shell in ("dash", "bash", "busybox") if shutil.which(shell)]
SHELLS = (*_HERE[:1], *(pytest.param(shell, marks=pytest.mark.cluster) for shell in _HERE[1:]))
"""`make test` tells each story to one of them, `make cluster` to the others."""
NOW_S = rows.AS_OF_MS // 1000  # inside the window of every plan of these tests

LAST_MS = rows.finding().last_timestamp_ms or 0

_TOOL = r"""#!/bin/sh
# Writes down its arguments, each behind a NUL and a call behind \\1, and says what the test wants it to.
folder=${0%/*}
for argument in "$@"; do printf '%s\0' "$argument"; done >> "$folder/calls"
printf '\001\0' >> "$folder/calls"
for argument in "$@"; do
    case $argument in describe | describe-producers | abort) verb=$argument; break ;; esac
done
said=$folder/$verb
if [ -e "$said.again" ] && [ -e "$said.later.out" ]; then said=$said.later; fi
touch "$folder/$verb.again"
if [ "$verb" = "$(cat "$folder/interrupted")" ]; then kill -INT "$(cat "$folder/pid")"; fi
cat "$said.out"
cat "$said.err" >&2
exit "$(cat "$said.code")"
"""
_TIMEOUT = r"""#!/bin/sh
# Writes down how long the call may take, and makes it, or ends it at once where the test wants that.
folder=${0%/*} seconds=$1
shift
if [ "$1" = true ]; then exit 0; fi
printf '%s\n' "$seconds" >> "$folder/deadlines"
for argument in "$@"; do
    if [ "$argument" = "$(cat "$folder/hangs")" ]; then exit "$(cat "$folder/ended")"; fi
done
exec "$@"
"""
_SLEEP = r"""#!/bin/sh
printf '%s\n' "$1" >> "${0%/*}/pauses"
"""
_DATE = r"""#!/bin/sh
# The moments of a file, one after the other; the last one stays.
moments=${0%/*}/moments
head -n 1 "$moments"
if [ "$(wc -l < "$moments")" -gt 1 ]; then sed -i 1d "$moments"; fi
"""

_PROGRAMS = {"date": _DATE, "timeout": _TIMEOUT, "sleep": _SLEEP}


@dataclass(frozen=True)
class Said:
    """What Kafka's tool says to one of its verbs."""

    out: str = ""
    err: str = ""
    code: int = 0


def table(*rows_of_words: tuple[object, ...]) -> Said:
    """As `prettyPrintTable` of Kafka's TransactionsCommand prints it: padded columns, each with a tab behind."""
    widths = [max(len(str(row[n])) for row in rows_of_words) for n in range(len(rows_of_words[0]))]
    lines = ("".join(f"{str(w).ljust(n)}\t" for w, n in zip(row, widths, strict=True)) for row in rows_of_words)
    return Said("".join(f"{line}\n" for line in lines))


def producers(*states: tuple[int, int, object], last_ms: object = LAST_MS) -> Said:
    """What `describe-producers` says: producer id, producer epoch, start offset or None; and when they wrote last."""
    header = ("ProducerId", "ProducerEpoch", "LatestCoordinatorEpoch", "LastSequence", "LastTimestamp")
    found = [(producer_id, epoch, 0, 1, last_ms, start) for producer_id, epoch, start in states]
    return table((*header, "CurrentTransactionStartOffset"), *found)


def transaction(
    name: str, producer_id: int, epoch: int, *partitions: str, coordinator: int = 0, state: str | None = None
) -> Said:
    """What `describe` says of a transactional id."""
    header = ("CoordinatorId", "TransactionalId", "ProducerId", "ProducerEpoch", "TransactionState")
    times = ("TransactionTimeoutMs", "CurrentTransactionStartTimeMs", "TransactionDurationMs")
    state = state or ("Ongoing" if partitions else "CompleteAbort")
    row = (coordinator, name, producer_id, epoch, state, 60000, "None", "None", ",".join(partitions))
    return table((*header, *times, "TopicPartitions"), row)


UNKNOWN = rows.finding()
RETURNING = rows.finding(
    finding_id="f1", rule="partition_not_in_transaction", transactional_id="billing", producer_may_return=True
)
STILL_OPEN = producers((1, 0, "None"), (987_654_321, 3, 155))
FENCED = transaction("billing", 987_654_321, 4)
TOO_OLD = Said(err="Failed: The node does not support DESCRIBE_TRANSACTIONS. Enable debug logging\n", code=1)


@dataclass(frozen=True)
class Sent:
    """What became of a script: its exit code, what it said, and the calls of Kafka's tool.

    `deadlines` are those of the calls, and `pauses` what it waited between them; seconds.
    """

    code: int
    said: str
    calls: list[list[str]]
    deadlines: list[int]
    pauses: list[int]

    @property
    def aborts(self) -> list[list[str]]:
        """The words of each abort, from `abort` on."""
        return [call[call.index("abort") :] for call in self.calls if "abort" in call]


@dataclass(frozen=True)
class Executor:
    """Somebody who runs a script: the shell, the clock (epoch seconds, one after the other) and the brokers.

    `describe_later` is what the coordinator says from the second time on, `hangs` the verb that is not answered, and
    `interrupted` the one at which somebody presses Ctrl-C, of which only the shell hears.
    """

    folder: Path
    shell: str
    moments: tuple[object, ...] = (NOW_S,)
    describe_producers: Said = STILL_OPEN
    describe: Said = FENCED
    describe_later: Said | None = None
    abort: Said = field(default_factory=Said)
    brokers: str | None = "broker:9092"
    config: str | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    tool: str | None = "kafka-transactions.sh"
    has_timeout: bool = True
    hangs: str = ""
    ended_with: int = 124
    interrupted: str = ""

    def but(self, **changes: Any) -> Executor:
        """The same, with some things different."""
        return replace(self, **changes)

    def runs(self, script: str, *arguments: str) -> Sent:
        """Runs it without a terminal."""
        return self._run(self._command(script, arguments), subprocess.DEVNULL)

    def asks_for_help(self, script: str) -> tuple[int, str, str]:
        """Runs it with `--help`, in no environment at all: the exit code, and what it prints and says."""
        command = self._command(script, ("--help",))
        done = subprocess.run(command, env={"PATH": "/usr/bin:/bin"}, capture_output=True, check=False, timeout=60)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def runs_typed(self, script: str, words: str) -> Sent:
        """Runs it with the words as somebody types them at the shell's prompt."""
        self._command(script, ())
        return self._run(
            [*self._shell, "-c", f"{self._stand_ins}set -- {words}; . {self.folder}/plan.sh"], subprocess.DEVNULL
        )

    def runs_at_a_terminal(self, script: str, answers: str, *arguments: str) -> Sent:
        """Runs it at a terminal, and types the answers."""
        ours, theirs = pty.openpty()
        try:
            os.write(ours, answers.encode())
            return self._run(self._command(script, arguments), theirs)
        finally:
            os.close(ours)
            os.close(theirs)

    def _run(self, command: list[str], stdin: int) -> Sent:
        environment = self._environment()
        command = ["sh", "-c", f'echo $$ > {self.folder}/pid; exec "$0" "$@"', *command]
        done = subprocess.run(command, env=environment, stdin=stdin, capture_output=True, check=False, timeout=60)
        assert done.stdout == b""
        return self._sent(done.returncode, done.stderr.decode())

    @property
    def _shell(self) -> list[str]:
        found = shutil.which(self.shell) or self.shell
        return [found, "sh"] if self.shell == "busybox" else [found]

    @property
    def _stand_ins(self) -> str:
        """Programs that are of the shell itself (busybox) are looked for in no folder: functions hide them."""
        if self.shell != "busybox":
            return ""
        return "".join(f'{name}() {{ {self.folder}/{name} "$@"; }}\n' for name in _PROGRAMS)

    def _command(self, script: str, arguments: tuple[str, ...]) -> list[str]:
        file = self.folder / "plan.sh"
        file.write_text(script, encoding="utf-8")
        stand_ins = [] if not self._stand_ins else ["-c", f'{self._stand_ins}. "$0"']
        return [*self._shell, *stand_ins, str(file), *arguments]

    def _environment(self) -> dict[str, str]:
        said = {"describe-producers": self.describe_producers, "describe": self.describe, "abort": self.abort}
        if self.describe_later is not None:
            said["describe.later"] = self.describe_later
        for verb, answer in said.items():
            (self.folder / f"{verb}.again").unlink(missing_ok=True)
            for end, text in (("out", answer.out), ("err", answer.err), ("code", str(answer.code))):
                (self.folder / f"{verb}.{end}").write_text(text, encoding="utf-8")
        for name in ("calls", "deadlines", "pauses"):
            (self.folder / name).write_bytes(b"")
        (self.folder / "moments").write_text("".join(f"{moment}\n" for moment in self.moments), encoding="utf-8")
        (self.folder / "hangs").write_text(self.hangs)
        (self.folder / "interrupted").write_text(self.interrupted)
        (self.folder / "ended").write_text(str(self.ended_with))
        for name, text in _PROGRAMS.items():
            _executable(self.folder / name, text)
        if not self.has_timeout:
            _executable(self.folder / "timeout", "#!/bin/sh\nexit 127\n")
        if self.tool is not None:
            _executable(self.folder / self.tool, _TOOL)
        given = {"BROKERS": self.brokers, "COMMAND_CONFIG": self.config, **self.variables}
        return {
            "PATH": f"{self.folder}:/usr/bin:/bin",
            "LC_ALL": "C.UTF-8",
            **{name: value for name, value in given.items() if value is not None},
        }

    def _sent(self, code: int, said: str) -> Sent:
        calls: list[list[str]] = [[]]
        for word in (self.folder / "calls").read_bytes().decode(errors="replace").split("\0")[:-1]:
            if word == "\x01":
                calls.append([])
            else:
                calls[-1].append(word)
        seconds = ([int(s) for s in (self.folder / name).read_text().split()] for name in ("deadlines", "pauses"))
        return Sent(code, said, calls[:-1], *seconds)


def script_of(*findings: Finding) -> str:
    """The script of a plan for these findings."""
    return commands(abort_plan(findings, Settings(), rows.AS_OF_MS))


def _executable(file: Path, text: str) -> None:
    file.write_text(text, encoding="utf-8")
    file.chmod(0o755)
