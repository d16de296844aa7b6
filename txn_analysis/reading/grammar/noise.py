"""Lines around a dump that its tool did not print."""

from __future__ import annotations

import re

from txn_analysis.reading.grammar.forms import DEPRECATED
from txn_analysis.reading.grammar.state_forms import CONSOLE_COUNT

# What ends up around a dump when stderr goes to the same file (kafka-formats.md, 1.1 and 1.6): no line of a dump, and
# nothing that a client could have written.
_NOISE = (
    rb"SLF4J(?:\([A-Z]\))?: [^\n]*",
    DEPRECATED.loose(),
    rb"(?:log4j:)?(?:WARN|WARNING|INFO|ERROR|DEBUG)[: ][^\n]*",
    rb"\[\d{4}-\d\d-\d\d [^\]\n]*\] (?:WARN|INFO|ERROR|DEBUG) [^\n]*",
    rb"\d{4}-\d\d-\d\dT[0-9:.]+Z [\w-]+ (?:WARN|INFO|ERROR|DEBUG) [^\n]*",
    rb"Picked up \w*JAVA\w*: [^\n]*|(?:OpenJDK|Java HotSpot)[^\n]* warning: [^\n]*",
    rb"Ignoring unknown file [^\n]*",
    CONSOLE_COUNT,
    rb"Mismatches in :[^\n]*|Found timestamp mismatch in :[^\n]*|Found out of order timestamp in :[^\n]*",
    rb"  Index (?:offset|timestamp): [^\n]*|The following indexed offsets are not found in the log\.",
    rb"Indexed offset: \d+, found log offset: \d+|Non-consecutive offsets in [^\n]*|  \d+ is followed by \d+",
    b"",
)
NOISE_LINE = re.compile(b"(?:" + b"|".join(_NOISE) + rb")\n")


def after_noise(text: bytes) -> int:
    """The byte of the first line that is none of the tool's environment."""
    start = 0
    while noise := NOISE_LINE.match(text, start):
        start = noise.end()
    return start
