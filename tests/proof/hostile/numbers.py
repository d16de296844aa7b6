"""Numbers that do not fit: every numeric field of every line that Kafka's tools print, around and beyond its bounds."""

import re
from collections.abc import Iterator

from tests.tools.repository import CASES

# One file of each grammar; between them they hold every kind of line.
FILES = (
    "grammar/2.1.1/orders-0.shallow.txt",
    "grammar/2.1.1/transaction_state-1.txt",
    "grammar/2.2.2/orders-0.payload.txt",
    "grammar/2.2.2/orders-0.snapshot.txt",
    "grammar/2.8.2/orders-0.deep.txt",
    "grammar/2.8.2/transaction_state-1.txt",
    "grammar/4.2.0/orders-0.payload.txt",
    "grammar/4.2.0/orders-0.snapshot.txt",
    "grammar/4.2.0/orders-0.txnindex.txt",
    "grammar/4.2.0/transaction_state-1.txt",
    "kafka-2.8/console/transaction-state.txt",
    "kafka-4.2/console/transaction-state.json",
)
VALUES = (
    *(b"-1", b"-2", b"00", b"+1", b"0x10", b"1.5", b""),
    *(b"%d" % n for n in (2**15, 2**31, 2**63 - 1, 2**63, -(2**63) - 1)),
    *(b"9" * 19, b"9" * 5000),
)
_NUMBER = re.compile(rb"(?<=[:=(\[-])[ ]?-?\d+|(?<=/)\d{20}")
_RECORD_START = re.compile(rb'(?<=\n)|(?=\{"key":)')
_LINES = 12


def heads() -> dict[str, bytes]:
    """The first lines of each file, enough to hold each kind of line once."""
    return {name: b"".join(_RECORD_START.split((CASES / name).read_bytes())[:_LINES]) for name in FILES}


def out_of_range() -> Iterator[tuple[str, bytes]]:
    """Every head with one number in it replaced, one after another: each field of each kind of line."""
    for name, head in heads().items():
        for found in _fields(head):
            start = found.start() + found[0].startswith(b" ")
            for value in VALUES:
                yield f"{name}, byte {start}: {value[:30]!r}", head[:start] + value + head[found.end() :]


def _fields(head: bytes) -> Iterator[re.Match[bytes]]:
    """The second occurrence of each field, or the only one; a line's kind is what it begins with."""
    places: dict[tuple[bytes, bytes], list[re.Match[bytes]]] = {}
    for found in _NUMBER.finditer(head):
        line = head[head.rfind(b"\n", 0, found.start()) + 1 : found.start()]
        places.setdefault((line[:4], line[-12:]), []).append(found)
    for matches in places.values():
        yield matches[min(1, len(matches) - 1)]
