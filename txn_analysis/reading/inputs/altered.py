"""Texts of Kafka's tools that something altered on their way: what stands where it should not, and what to type."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from txn_analysis.reading.grammar.noise import noise_end, says_stop
from txn_analysis.reading.inputs.refusals import Refusal, Refused
from txn_analysis.text import escape

if TYPE_CHECKING:
    from collections.abc import Callable

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
_AGAIN = "Dump the file again, without 2>&1"
_JQ = "jq -c '{key: (.key | if has(\"type\") then {type, data} else {version, data} end), value}' FILE > NEW_FILE"

_WITHOUT_COLOURS = r"Take them off: sed 's/\x1b\[[0-9;]*[mK]//g' FILE > NEW_FILE"
_COLOURS_IN_LINES = Refusal(Refused.COLOURS, "colours of a terminal stand in its lines", _WITHOUT_COLOURS)
_SPACES_BEHIND = Refusal(
    Refused.SPACES_BEHIND, "its lines end in spaces", r"Take them off: sed 's/[ \t\r]*$//' FILE > NEW_FILE"
)


def altered_text(head: bytes) -> Refusal | None:
    """What stands in a text that begins with `head` where its first line should; None where no line of Kafka's is seen.

    No text is shown but what two lines begin with alike.
    """
    if head.startswith(_BYTE_ORDER_MARK):
        return Refusal(
            Refused.BYTE_ORDER_MARK,
            "it begins with a byte order mark",
            r"Take it off: sed '1s/^\xEF\xBB\xBF//' FILE > NEW_FILE",
        )
    if _PRETTY.match(head, noise_end(head, 0, len(head))):
        return Refusal(
            Refused.FORMATTED_JSON,
            "JSON that is not formatted as the console consumer writes it",
            f"Put it back: {_JQ}",
        )
    mark = _MARK.search(head)
    if mark is None:
        is_table = _TABLE.match(head, noise_end(head, 0, len(head)))
        what = "a table of kafka-transactions.sh, which holds no log"
        return Refusal(Refused.TABLE, what, "Give the files of the brokers, or dumps of them") if is_table else None
    start = head.rfind(b"\n", 0, mark.start()) + 1
    number, before = head.count(b"\n", 0, start) + 1, head[start : mark.start()]
    if not before:
        what = f"lines that are none of Kafka's stand in front of the first one, which is line {number}"
        has_stopped = any(says_stop(line, 0, len(line)) for line in head[:start].splitlines())
        how = "Dump it again, without 2>&1" if has_stopped else f"Take them off: tail -n +{number} FILE > NEW_FILE"
        kind = Refused.STOPPED_IN_FRONT if has_stopped else Refused.LINES_IN_FRONT
        return Refusal(kind, what, how) if number > 1 else None
    return _in_front(head, start, number, before)


def _in_front(head: bytes, start: int, number: int, before: bytes) -> Refusal:
    where = f"in front of what line {number} says"
    if _COLOUR.search(before):
        return Refusal(
            Refused.COLOURS,
            f"colours of a terminal stand {where}",
            _WITHOUT_COLOURS,
        )
    if not before.strip():
        return Refusal(Refused.INDENTED, f"spaces stand {where}", r"Take them off: sed 's/^[ \t]*//' FILE > NEW_FILE")
    if _NUMBER.fullmatch(before):
        how = r"Take them off: sed -E 's/^ *[0-9]+[:[:space:]] ?//' FILE > NEW_FILE"
        return Refusal(Refused.NUMBERED, f"numbers of lines stand {where}", how)
    following = head[head.find(b"\n", start) + 1 :].partition(b"\n")[0]
    length = len(before.decode(errors="replace"))
    is_alike = following.startswith(before) and length <= _MOST_SHOWN
    what = f"`{escape(before.decode(errors='replace'))}` stands" if is_alike else f"{length} characters stand"
    cut = f"Cut them off: sed -E 's/^.{{{length}}}//' FILE > NEW_FILE"
    return Refusal(
        Refused.PREFIXED, f"{what} {where}", cut if is_alike or number == 1 else f"{cut}, if each line has so many"
    )


def altered_lines(body: bytes, is_line: Callable[[bytes], bool]) -> Refusal | None:
    """What was done to the first line of a section's body, which is none; None where nothing is known.

    Args:
        body: the first lines of it.
        is_line: whether some bytes are a whole line of this section.
    """
    lines = body.split(b"\n", _MOST_PIECES + 1)[: _MOST_PIECES + 1]
    first = lines[0]
    if is_line(first.rstrip(b" \t\r")):
        return _SPACES_BEHIND
    if is_line(_COLOUR.sub(b"", first)):
        return _COLOURS_IN_LINES
    for joint in (b"", b" "):
        if any(is_line(joint.join(lines[:count])) for count in range(2, len(lines) + 1)):
            return Refusal(
                Refused.BROKEN_LINES,
                "its lines are broken into several",
                "Dump the file again into a file, not from a window",
            )
    for at in range(1, min(len(first), 200)):
        if is_line(first[at:]):
            shown = escape(first[:at].decode(errors="replace"))
            is_alike = at <= _MOST_SHOWN and (len(lines) < 2 or not lines[1] or lines[1].startswith(first[:at]))
            what = f"`{shown}` stands" if is_alike else f"{at} bytes stand"
            cut = f"Cut them off: sed -E '/^(Dumping|Log starting|Starting) /!s/^.{{{at}}}//' FILE > NEW_FILE"
            return Refusal(Refused.PREFIXED, f"{what} in front of its lines", cut)
    if (number := next((number for number, line in enumerate(lines) if is_line(line)), 0)) > 0:
        what = "a line" if number == 1 else f"{number} lines"
        others = f"{what} of others stand{'s' if number == 1 else ''} in front of its first one"
        return Refusal(Refused.LINES_OF_OTHERS, others, _AGAIN)
    return None


def glued_path(line: bytes) -> Refusal | None:
    """What is wrong with a `Dumping` line that names no file of a broker's; None where nothing is known."""
    if line != line.rstrip(b" \t\r"):
        return _SPACES_BEHIND
    if _COLOUR.search(line):
        return _COLOURS_IN_LINES
    if re.search(rb"\.(?:log|snapshot|txnindex)(?=[A-Z]?[a-z]+[A-Z ]\w*[ :])", line):
        return Refusal(
            Refused.GLUED_LINES,
            "the next line follows the name of the file without a newline",
            r"Put it back: sed -E '/^Dumping /s/\.(log|snapshot|txnindex)/&\n/' FILE > NEW_FILE",
        )
    return None
