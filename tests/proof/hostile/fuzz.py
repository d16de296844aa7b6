"""A mutation fuzzer over the parsers.

Lines of real dumps are cut, spliced, repeated, and changed in bits, bytes and numbers; many of them make one text, so
that a parser meets them in the middle of others. Each text depends on the seed and its number only.
"""

import random
import re
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from tests.proof.hostile.checks import problems_of
from tests.proof.part import Report, counted
from tests.tools.inputs import InputReader
from tests.tools.repository import CASES

BODIES = (
    *(f"grammar/{v}/orders-0.{f}.txt" for v in ("2.1.1", "2.2.2", "2.8.2", "4.2.0") for f in ("shallow", "payload")),
    *(f"grammar/{v}/orders-0.{f}.txt" for v in ("2.2.2", "3.1.2", "4.2.0") for f in ("snapshot", "txnindex", "deep")),
    *(f"grammar/{v}/transaction_state-1.txt" for v in ("2.1.1", "2.2.2", "2.8.2", "3.7.2", "4.2.0")),
    "forged-payload",
    "kafka-2.8/console/transaction-state.txt",
    "kafka-4.2/console/transaction-state.json",
)
LINES_PER_TEXT = 300
HEADER_LINES = 2
RANGES_BYTES = (1 << 25, 1 << 25, 5000, 700)
NUMBERS = (
    b"0", b"-1", b"-2", b"1", b"32767", b"32768", b"2147483647", b"2147483648", b"9223372036854775807",
    b"9223372036854775808", b"-9223372036854775809", b"99999999999999999999", b"00", b"0x1f", b"1e3", b"+7",
)  # fmt: skip
SNIPPETS = (
    b"\n", b"\r", b" ", b"", b"\x00", b"\xff", b"\xe2\x80\xa8", b"| offset: ", b"baseOffset: ", b"offset: ",
    b"Dumping orders-1/00000000000000000000.log\nLog starting offset: 0\n", b"]", b"[" * 2000, b'{"key":', b"::NULL\n",
    b" key: ", b" payload: ", b"<DELETE>", b"Found 7 invalid bytes at the end of 00000000000000000000.log\n",
)  # fmt: skip
_NUMBER = re.compile(rb"-?\d+")


@dataclass
class FuzzReport(Report):
    """What a run tried: a text has many changed lines."""

    lines: int = counted("damaged lines tried")
    inputs: int = counted("texts")


def run_fuzz(lines: int, seed: int, first: int = 0) -> FuzzReport:
    """Read texts with at least `lines` changed lines in them, beginning with text number `first`."""
    report, reader = FuzzReport(), InputReader.in_memory()
    try:
        number = first
        while report.lines < lines:
            changed, text, range_bytes = fuzzed(seed, number)
            report.lines += changed
            report.inputs += 1
            report.problems += [f"seed {seed}, text {number}: {p}" for p in _problems(reader, text, range_bytes)]
            number += 1
    finally:
        reader.close()
    return report


def _problems(reader: InputReader, text: bytes, range_bytes: int) -> list[str]:
    try:
        return problems_of(reader, text, range_bytes)
    except Exception:  # noqa: BLE001 - whatever escapes a parser is what a fuzzer looks for
        return [traceback.format_exc()]


def fuzzed(seed: int, number: int) -> tuple[int, bytes, int]:
    """How many lines were changed, the text, and the bytes that one range of it has."""
    source = random.Random(f"{seed}/{number}")
    header, lines = source.choice(_bodies())
    start = source.randrange(max(1, len(lines) - LINES_PER_TEXT))
    body = list(lines[start if source.random() < 0.5 else 0 :][:LINES_PER_TEXT])
    changed = max(1, round(len(body) * source.choice((0.02, 0.1, 0.5, 1.0))))
    for place in source.sample(range(len(body)), min(changed, len(body))):
        body[place] = source.choice(MUTATIONS)(source, body[place])
    begins_whole = source.random() < 0.9
    return changed, (header if begins_whole else b"") + b"".join(body), source.choice(RANGES_BYTES)


@cache
def _bodies() -> list[tuple[bytes, list[bytes]]]:
    files = [file for name in BODIES for file in sorted((CASES / name).glob("*.txt")) or [CASES / name]]
    bodies = []
    for file in files:
        text = file.read_bytes()
        lines = re.split(rb'(?<=\n)|(?=\{"key":\{)', text) if text.startswith(b"{") else text.splitlines(keepends=True)
        count = HEADER_LINES if text.startswith(b"Dumping ") else 0
        bodies.append((b"".join(lines[:count]), [line for line in lines[count:] if line]))
    return bodies


def _flip_bit(source: random.Random, line: bytes) -> bytes:
    at = source.randrange(len(line))
    return line[:at] + bytes([line[at] ^ 1 << source.randrange(8)]) + line[at + 1 :]


def _put_byte(source: random.Random, line: bytes) -> bytes:
    at = source.randrange(len(line))
    return line[:at] + bytes([source.randrange(256)]) + line[at + source.randrange(2) :]


def _cut_out(source: random.Random, line: bytes) -> bytes:
    a, b = sorted(source.choices(range(len(line) + 1), k=2))
    return line[:a] + line[b:]


def _repeat(source: random.Random, line: bytes) -> bytes:
    a, b = sorted(source.choices(range(len(line) + 1), k=2))
    return line[:b] + line[a:] if source.random() < 0.5 else line * 2


def _splice(source: random.Random, line: bytes) -> bytes:
    other = source.choice(source.choice(_bodies())[1])
    return line[: source.randrange(len(line) + 1)] + other[source.randrange(len(other) + 1) :]


def _put_snippet(source: random.Random, line: bytes) -> bytes:
    at = source.randrange(len(line) + 1)
    return line[:at] + source.choice(SNIPPETS) + line[at:]


def _edit_number(source: random.Random, line: bytes) -> bytes:
    numbers = list(_NUMBER.finditer(line))
    if not numbers:
        return line
    found = source.choice(numbers)
    near = b"%d" % (int(found[0][:18]) + source.choice((-1, 1)))
    return line[: found.start()] + source.choice((*NUMBERS, near, near)) + line[found.end() :]


def _drop(source: random.Random, line: bytes) -> bytes:
    return b""


MUTATIONS: tuple[Callable[[random.Random, bytes], bytes], ...] = (
    _flip_bit, _put_byte, _cut_out, _repeat, _splice, _put_snippet, _edit_number, _edit_number, _drop,
)  # fmt: skip
