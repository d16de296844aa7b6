"""Texts of Kafka's tools that something altered on their way: what stands where it should not, and what to type."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from txn_analysis.reading.grammar.noise import noise_end, says_stop
from txn_analysis.reading.inputs.refusals import Refused
from txn_analysis.text import escape

if TYPE_CHECKING:
    from collections.abc import Callable

    from txn_analysis.reading.inputs.refusals import Refusal

_MARK = re.compile(
    rb"Dumping [^\n ]{1,4000}\.(?:log|snapshot|txnindex)\b|\bbaseOffset: \d+ lastOffset: |\| offset: \d+ "
    rb'|\bproducerId: \d+ producerEpoch: |\{"key":\{"|::TransactionMetadata\(transactionalId='
)
_TABLE = re.compile(
    rb"(?m)^[A-Za-z()| \t]*(?:ProducerId[ \t|]+(?:ProducerEpoch|TransactionState)|CurrentTransactionStartOffset)"
)
_PRETTY = re.compile(rb'[\s\[]*\{\s*"(?:key|value)"\s*:\s*\{\s*"(?:type|version|data)"\s*:')
_BYTE_ORDER_MARK, _COLOUR = b"\xef\xbb\xbf", re.compile(rb"\x1b\[[0-9;]*[mK]")
_NUMBER = re.compile(rb" *\d+[:\t ] ?")
_MOST_SHOWN = 40
_MOST_PIECES = 8
_COLOURS_IN_LINES = Refused.COLOURS.of("in its lines")


def altered_text(head: bytes) -> Refusal | None:
    """What stands in a text that begins with `head` where its first line should; None where no line of Kafka's is seen.

    No text is shown but what two lines begin with alike.
    """
    if head.startswith(_BYTE_ORDER_MARK):
        return Refused.BYTE_ORDER_MARK.of()
    if _PRETTY.match(head, noise_end(head, 0, len(head))):
        return Refused.FORMATTED_JSON.of()
    mark = _MARK.search(head)
    if mark is None:
        is_table = _TABLE.match(head, noise_end(head, 0, len(head)))
        return Refused.TABLE.of() if is_table else None
    start = head.rfind(b"\n", 0, mark.start()) + 1
    number, before = head.count(b"\n", 0, start) + 1, head[start : mark.start()]
    if not before:
        has_stopped = any(says_stop(line, 0, len(line)) for line in head[:start].splitlines())
        kind = Refused.STOPPED_IN_FRONT if has_stopped else Refused.LINES_IN_FRONT
        return kind.of(number, how=f"Take them off: tail -n +{number} FILE > NEW_FILE") if number > 1 else None
    return _in_front(head, start, number, before)


def _in_front(head: bytes, start: int, number: int, before: bytes) -> Refusal:
    where = f"in front of what line {number} says"
    if _COLOUR.search(before):
        return Refused.COLOURS.of(where)
    if not before.strip():
        return Refused.INDENTED.of(where)
    if _NUMBER.fullmatch(before):
        return Refused.NUMBERED.of(where)
    following = head[head.find(b"\n", start) + 1 :].partition(b"\n")[0]
    length = len(before.decode(errors="replace"))
    is_alike = following.startswith(before) and length <= _MOST_SHOWN
    what = f"`{escape(before.decode(errors='replace'))}` stands" if is_alike else f"{length} characters stand"
    cut = f"Cut them off: sed -E 's/^.{{{length}}}//' FILE > NEW_FILE"
    return Refused.PREFIXED.of(what, where, how=cut if is_alike or number == 1 else f"{cut}, if each line has so many")


def altered_lines(body: bytes, is_line: Callable[[bytes], bool]) -> Refusal | None:
    """What was done to the first line of a section's body, which is none; None where nothing is known.

    Args:
        body: the first lines of it.
        is_line: whether some bytes are a whole line of this section.
    """
    lines = body.split(b"\n", _MOST_PIECES + 1)[: _MOST_PIECES + 1]
    first = lines[0]
    if is_line(first.rstrip(b" \t\r")):
        return Refused.SPACES_BEHIND.of()
    if is_line(_COLOUR.sub(b"", first)):
        return _COLOURS_IN_LINES
    for joint in (b"", b" "):
        if any(is_line(joint.join(lines[:count])) for count in range(2, len(lines) + 1)):
            return Refused.BROKEN_LINES.of()
    for at in range(1, min(len(first), 200)):
        if is_line(first[at:]):
            shown = escape(first[:at].decode(errors="replace"))
            is_alike = at <= _MOST_SHOWN and (len(lines) < 2 or not lines[1] or lines[1].startswith(first[:at]))
            what = f"`{shown}` stands" if is_alike else f"{at} bytes stand"
            cut = f"Cut them off: sed -E '/^(Dumping|Log starting|Starting) /!s/^.{{{at}}}//' FILE > NEW_FILE"
            return Refused.PREFIXED.of(what, "in front of its lines", how=cut)
    if (number := next((number for number, line in enumerate(lines) if is_line(line)), 0)) > 0:
        what = "a line" if number == 1 else f"{number} lines"
        return Refused.LINES_OF_OTHERS.of(f"{what} of others stand{'s' if number == 1 else ''}")
    return None


def glued_path(line: bytes) -> Refusal | None:
    """What is wrong with a `Dumping` line that names no file of a broker's; None where nothing is known."""
    if line != line.rstrip(b" \t\r"):
        return Refused.SPACES_BEHIND.of()
    if _COLOUR.search(line):
        return _COLOURS_IN_LINES
    if re.search(rb"\.(?:log|snapshot|txnindex)(?=[A-Z]?[a-z]+[A-Z ]\w*[ :])", line):
        return Refused.GLUED_LINES.of()
    return None
