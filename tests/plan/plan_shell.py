"""A plan's script, run by a shell beside a `date` and a `kafka-transactions.sh` that say what a test wants."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tests.report import rows
from txn_analysis.plan.abort_plan import abort_plan
from txn_analysis.plan.script import commands
from txn_analysis.settings import Settings

if TYPE_CHECKING:
    from pathlib import Path

SHELLS = tuple(shell for shell in ("dash", "bash") if shutil.which(shell))
NOW_S = rows.AS_OF_MS // 1000  # inside the window of every plan of these tests

LAST_MS = rows.finding()["last_timestamp_ms"]

_TOOL = r"""#!/bin/sh
# Writes down its arguments, each behind a NUL and a call behind \\1, and says what the test wants it to.
folder=${0%/*}
for argument in "$@"; do printf '%s\0' "$argument"; done >> "$folder/calls"
printf '\001\0' >> "$folder/calls"
for argument in "$@"; do
    case $argument in describe | describe-producers | abort) verb=$argument; break ;; esac
done
cat "$folder/$verb.out"
cat "$folder/$verb.err" >&2
exit "$(cat "$folder/$verb.code")"
"""
_DATE = r"""#!/bin/sh
# The moments of a file, one after the other; the last one stays.
moments=${0%/*}/moments
head -n 1 "$moments"
if [ "$(wc -l < "$moments")" -gt 1 ]; then sed -i 1d "$moments"; fi
"""


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


def transaction(name: str, producer_id: int, epoch: int, *partitions: str) -> Said:
    """What `describe` says of a transactional id."""
    header = ("CoordinatorId", "TransactionalId", "ProducerId", "ProducerEpoch", "TransactionState")
    times = ("TransactionTimeoutMs", "CurrentTransactionStartTimeMs", "TransactionDurationMs")
    state = "Ongoing" if partitions else "CompleteAbort"
    row = (0, name, producer_id, epoch, state, 60000, "None", "None", ",".join(partitions))
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
    """What became of a script: its exit code, what it said, and the calls of Kafka's tool."""

    code: int
    said: str
    calls: list[list[str]]

    @property
    def aborts(self) -> list[list[str]]:
        """The words of each abort, from `abort` on."""
        return [call[call.index("abort") :] for call in self.calls if "abort" in call]


@dataclass(frozen=True)
class Executor:
    """Somebody who runs a script: the shell, the clock (epoch seconds, one after the other) and the brokers."""

    folder: Path
    shell: str
    moments: tuple[object, ...] = (NOW_S,)
    describe_producers: Said = STILL_OPEN
    describe: Said = FENCED
    abort: Said = field(default_factory=Said)
    brokers: str | None = "broker:9092"
    config: str | None = None
    has_tool: bool = True

    def but(self, **changes: Any) -> Executor:
        """The same, with some things different."""
        return replace(self, **changes)

    def runs(self, script: str, *arguments: str) -> Sent:
        """Runs it without a terminal."""
        return self._run(self._command(script, arguments), subprocess.DEVNULL)

    def runs_typed(self, script: str, words: str) -> Sent:
        """Runs it with the words as somebody types them at the shell's prompt."""
        shell, file = self._command(script, ())
        return self._run([shell, "-c", f"{shell} {file} {words}"], subprocess.DEVNULL)

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
        done = subprocess.run(command, env=environment, stdin=stdin, capture_output=True, check=False, timeout=60)
        assert done.stdout == b""
        return self._sent(done.returncode, done.stderr.decode())

    def _command(self, script: str, arguments: tuple[str, ...]) -> list[str]:
        file = self.folder / "plan.sh"
        file.write_text(script, encoding="utf-8")
        return [shutil.which(self.shell) or self.shell, str(file), *arguments]

    def _environment(self) -> dict[str, str]:
        said = {"describe-producers": self.describe_producers, "describe": self.describe, "abort": self.abort}
        for verb, answer in said.items():
            for end, text in (("out", answer.out), ("err", answer.err), ("code", str(answer.code))):
                (self.folder / f"{verb}.{end}").write_text(text, encoding="utf-8")
        (self.folder / "moments").write_text("".join(f"{moment}\n" for moment in self.moments), encoding="utf-8")
        (self.folder / "calls").write_bytes(b"")
        _executable(self.folder / "date", _DATE)
        if self.has_tool:
            _executable(self.folder / "kafka-transactions.sh", _TOOL)
        given = {"BROKERS": self.brokers, "COMMAND_CONFIG": self.config}
        return {
            "PATH": f"{self.folder}:/usr/bin:/bin",
            "LC_ALL": "C.UTF-8",
            **{name: value for name, value in given.items() if value is not None},
        }

    def _sent(self, code: int, said: str) -> Sent:
        calls: list[list[str]] = [[]]
        for word in (self.folder / "calls").read_bytes().decode().split("\0")[:-1]:
            if word == "\x01":
                calls.append([])
            else:
                calls[-1].append(word)
        return Sent(code, said, calls[:-1])


def script_of(*findings: rows.Row) -> str:
    """The script of a plan for these findings."""
    return commands(abort_plan(rows.judged(*findings), Settings(), rows.AS_OF_MS))


def _executable(file: Path, text: str) -> None:
    file.write_text(text, encoding="utf-8")
    file.chmod(0o755)
