"""Noise: lines around a text of Kafka's tools that others printed, as stderr in the same file; a closed list of them.

A line of noise is one of these forms from its first byte to its last. It counts as noise only where no text of a client
can stand: in front, between a `Dumping` line and the header of its file, between sections, behind the last batch of
a shallow dump or of decoded state, and behind a record that is the broker's own, or leaves no room for header keys. It
is taken away last, counts as parsed, and opens, ends and doubts nothing. None of these lines is of level ERROR, or says
that something was skipped, interrupted or not written: where such a one stands, the section ends.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from txn_analysis.reading.grammar.forms import DEPRECATED

_BELOW_ERROR = rb"(?:TRACE|DEBUG|INFO|WARN|WARNING)"
_ERROR = rb"(?:ERROR|FATAL|SEVERE)"
_DATE, _ISO_TIME = rb"\[\d{4}-\d\d-\d\d [^\]\n]{1,40}\]", rb"\d{4}-\d\d-\d\dT[0-9:.,]{1,20}Z"
_SAYS_MORE = rb"(?![^\n]*(?i:skip|interrupt|ignoring|unable to|cannot be written|not written|terminat|abort))"


def _logged(level: bytes) -> bytes:
    """How a line begins that log4j, its own set-up, or SLF4J's simple logger prints at a level."""
    return (rb"(?:(?:log4j:)?" + level + b"[: ]|" + _DATE + b" " + level + b" |") + (
        _ISO_TIME + rb" [\w-]{1,64} " + level + rb" |\[[\w.-]{1,64}\] " + level + rb" [\w.$]{1,200} - )"
    )


_FORMS = (
    rb"[ \t]*",
    # How it begins is asked first: of a line of a client only that is read, however long it is.
    rb"(?=SLF4J(?:\([TDIW]\))?: |" + _logged(_BELOW_ERROR) + b")" + _SAYS_MORE + rb"[^\n]*",
    rb"(?:NOTE: )?Picked up \w*(?:JAVA|JDK)\w*: [^\n]*|(?:OpenJDK|Java HotSpot)[^\n]* warning: [^\n]*",
    DEPRECATED.loose(),
    rb"Option --[\w.-]{1,64} is deprecated and will be removed in a future version\. Use --[\w.-]{1,64} instead\.",
    rb"Mismatches in :[^\n]*|Found timestamp mismatch in :[^\n]*|Found out of order timestamp in :[^\n]*",
    rb"  Index (?:offset|timestamp): [^\n]*|The following indexed offsets are not found in the log\.",
    rb"Indexed offset: \d+, found log offset: \d+|Non-consecutive offsets in [^\n]*|  -?\d+ is followed by -?\d+",
)
# How the console consumer ends: by Ctrl-C, by its count, or by `--timeout-ms`, whose exception it logs without a text.
_ENDED_BY_TIME = (
    (b"(?:" + _DATE + b" ERROR|" + _ISO_TIME + rb" [\w-]{1,64} ERROR|\[[\w.-]{1,64}\] ERROR [\w.$]{1,200} -)")
    + rb" Error processing message, terminating consumer process: *(?:\([\w.$]{1,200}\))? *\n"
    + rb"(?:org\.apache\.kafka\.common\.errors\.TimeoutException|kafka\.consumer\.ConsumerTimeoutException)"
)
_OF_EXPORTS = rb"\^C|(?:\^C)?Processed a total of (?P<count>\d{1,18}) messages|" + _ENDED_BY_TIME

NOISE_LINE = re.compile(b"(?:" + b"|".join(_FORMS) + rb")\n")
NOISE_BYTES = 1 << 13
"""More than lines of noise have that stand between a `Dumping` line and the header of its file."""
MARKS_OF_RECORDS = re.compile(rb"::TransactionMetadata\(|::NULL|, producerId=")
"""What no line of noise holds in an export as text: it would be a part of a record, whose id can be any text."""
_EXPORT_NOISE = re.compile(b"(?:" + b"|".join((*_FORMS, _OF_EXPORTS)) + rb")\n")
_STOP_LINE = re.compile(
    (rb"(?:" + _logged(_ERROR) + rb"[^\n]*|SLF4J\(E\): [^\n]*|\^C[^\n]*|Killed|Terminated|Exception in thread [^\n]*")
    + rb"|\tat [\w.$]+[^\n]*|Caused by: [^\n]*|(?:[a-z]\w*\.)+[A-Z]\w*(?:Exception|Error)(?:: [^\n]*)?"
    + rb"|(?=[A-Z\[])(?=[^\n]*(?i:skipping|interrupted|unable to write|not written))[^\n]*)(?:\n|\Z)"
)


def noise_end(text: bytes, at: int, stop: int) -> int:
    """Where the noise lines end that begin at a byte of a dump; that byte where none does."""
    while at < stop and (noise := NOISE_LINE.match(text, at, stop)):
        at = noise.end()
    return at


def others_end(text: bytes, at: int, stop: int) -> int:
    """The same of noise lines, and lines that say that a tool stopped."""
    while (end := noise_end(text, at, stop)) < stop and (line := _STOP_LINE.match(text, end, stop)):
        at = line.end()
    return end


def says_stop(text: bytes, at: int, stop: int) -> bool:
    """Whether a line begins at a byte that says that a tool stopped, or left something out."""
    return _STOP_LINE.match(text, at, stop) is not None


class ExportNoise(NamedTuple):
    """A line of noise in an export, with its length; `record_count` is how many the consumer says that it printed."""

    length: int
    record_count: int | None


def export_noise(text: bytes, *, is_end: bool) -> ExportNoise | None:
    """The noise that an export's text begins with, a line or two; None where it begins with none.

    Args:
        text: what begins at a place where no record does.
        is_end: the export ends with it: its last line needs no newline.
    """
    noise = _EXPORT_NOISE.match(text + b"\n" if is_end else text)
    if noise is None:
        return None
    return ExportNoise(min(noise.end(), len(text)), None if noise["count"] is None else int(noise["count"]))
