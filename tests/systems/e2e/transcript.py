"""docs/repair-transcript.md, and the same of old brokers: lines are typed on real brokers, their outputs compared.

`python -m tests.systems.e2e.transcript` writes anew what stands below each `$` line. Prose and lines are the page's
own, but a line must have been printed before, in the documents that tell how to copy and repair or in an output: that
one is typed, with the names of hosts filled in.
"""

import re
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.systems.e2e.on_call import BROKERS, HOST, OnCall, Typed
from tests.systems.e2e.stuck_topic import STUCK, TOPIC, stuck_topic
from tests.tools.docs.commands import blocks_of, inline_code
from tests.tools.repository import ROOT

PAGE = ROOT / "docs/repair-transcript.md"
OLDER = Path(__file__).with_name("repair_2.8.2.txt")  # what differs there is in the runbook, in fewer words
TOOLS = {"4.3.1": "4.3.1", "2.8.2": "3.9.1"}
"""The versions of the brokers, and of the tools that are used there: before 3.0 there is no `kafka-transactions.sh`."""

_SOURCES = ("docs/log-directories.md", "docs/runbook.md")
_PROGRAMS = ("kafka-transactions.sh", "kafka-log-dirs.sh", "kafka-producer-perf-test.sh")
_HOSTS = {"broker-1 broker-2 broker-3": HOST, "host:9092": BROKERS}
_SECTION = re.compile(r"(?<=^## Brokers of )([\d.]+)\n.*?(?=^## |\Z)", re.DOTALL | re.MULTILINE)
_PART = re.compile(r"^```\n(?P<block>.*?)^```$|<!-- (?P<minutes>\d+) minutes pass -->", re.DOTALL | re.MULTILINE)
_LINE = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
# What differs from run to run, and what stands for it. The order counts: a time holds digits.
_VARYING = (
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"), "TIME"),
    (re.compile(r"\b\d{8}T\d{6}Z"), "COPY"),
    (re.compile(r"\b(run|capture)-[0-9a-f]+"), r"\1-ID"),
    (re.compile(r"(?<=--unchecked )[0-9a-f]+"), "RECORD"),
    # Of `kafka-transactions.sh describe`: when the transaction began, and how long ago.
    (re.compile(r"(CompleteAbort\s+180000\s+)\d+\s+\d+"), r"\1TIME DURATION"),
    (re.compile(r"\b\d+( \d+)? ms\b"), "DURATION"),
    (re.compile(r"\b\d+ (d|h|min|s)\b( \d+ (h|min|s)\b)?"), "DURATION"),
    (re.compile(r"DURATION to DURATION"), "DURATION"),  # bounds of brokers' clocks, which often round to the same
    (re.compile(r"\b[\d.]+ (B|[kMG]B|%)|[\d.]+%"), "SIZE"),
    (re.compile(r"\b\d+ files\b"), "FILES"),  # a broker writes its checkpoints and snapshots when it likes
    (re.compile(r"(?<=producer id )\d+"), "PRODUCER"),
)


@dataclass(frozen=True)
class Retold:
    """A section of the page with what its lines print now, and what was typed in it."""

    version: str
    text: str
    typed: tuple[Typed, ...]
    read_before: int
    end_before: int
    read_after: int
    end_after: int


def sections() -> dict[str, str]:
    """The sections of both files by the version of their brokers."""
    text = PAGE.read_text(encoding="utf-8") + OLDER.read_text(encoding="utf-8")
    return {found[1]: found[0] for found in _SECTION.finditer(text)}


def printed_on(section: str) -> list[tuple[str, str]]:
    """The lines that a section types, each with what stands below it."""
    blocks = [found["block"] for found in _PART.finditer(section) if found["block"] is not None]
    return [(line[1], line[2]) for block in blocks for line in _LINE.finditer(block)]


def retell(version: str, section: str, folder: Path) -> Retold:
    """Types the lines of a section on a broker of its own, as they were printed before."""
    with stuck_topic(version, folder) as (cluster, driver):
        before = driver.consume((TOPIC, STUCK), 1000)
        on_call = OnCall(cluster, folder, TOOLS[version], _PROGRAMS)
        try:
            text, typed = _typed(section, on_call)
        finally:
            on_call.close()
        after = driver.consume((TOPIC, STUCK), 1000)
    read = (before["position"], before["end"], after["position"], after["end"])
    return Retold(version, text, tuple(typed), *read)


def _typed(section: str, on_call: OnCall) -> tuple[str, list[Typed]]:
    printed, typed = list(of_the_documents()), []

    def part(found: re.Match[str]) -> str:
        if found["minutes"] is not None:
            on_call.passes(int(found["minutes"]))
            return found[0]
        return f"```\n{_LINE.sub(line, found['block'])}```"

    def line(found: re.Match[str]) -> str:
        done = on_call.types(as_printed(found[1], printed))
        typed.append(done)
        shown = _readable(done.shown)
        printed.extend(with_hosts(row) for row in shown.splitlines())
        return f"$ {done.line}\n{shown}"

    return _PART.sub(part, section), typed


def of_the_documents() -> Iterator[str]:
    """The lines and words of code of the documents that tell how to copy and repair."""
    for source in _SOURCES:
        text = (ROOT / source).read_text(encoding="utf-8")
        lines = [row for block in blocks_of(text) for row in block.splitlines()]
        yield from map(with_hosts, [*lines, *inline_code(text)])


def with_hosts(line: str) -> str:
    """A printed line with the names of hosts filled in."""
    for printed, name in _HOSTS.items():
        line = line.replace(printed, name)
    return line


def as_printed(line: str, printed: list[str]) -> str:
    """The line as it was printed last; on the page its ids are those of another run."""
    wanted = normalised(line)
    for row in reversed(printed):
        for start in (at.start() for at in re.finditer(r"(?<![^\s`])[^\s`]", row)):
            rest = row[start:]
            for found in (rest, rest.partition("`")[0]):
                if normalised(found) == wanted:
                    return found
    raise AssertionError(f"this line was printed nowhere before: {line}")


def _readable(shown: str) -> str:
    """Without spaces at the ends of lines, and without what a list of all partitions holds."""
    text = re.sub(r'(?<="partitions":\[)\{[^]]*\}(?=\])', " ... ", shown)
    return "".join(f"{row.rstrip()}\n" for row in text.splitlines())


def normalised(text: str) -> str:
    """What is the same in each run: no times, ids, sizes and producer ids, and lines wrapped nowhere."""
    for varying, stands_for in _VARYING:
        text = varying.sub(stands_for, text)
    return " ".join(text.split())


def main() -> int:
    """Write the outputs of both files anew. Returns the exit code."""
    before = sections()
    with tempfile.TemporaryDirectory(prefix="transcript-") as folder, ThreadPoolExecutor() as pool:
        told = [pool.submit(retell, version, text, Path(folder) / version) for version, text in before.items()]
        for each in (one.result() for one in told):
            for file in (PAGE, OLDER):
                text = file.read_text(encoding="utf-8").replace(before[each.version], each.text)
                file.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
