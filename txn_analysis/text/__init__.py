"""Text for people: moments, sizes and plurals, and what comes from evidence, made safe to show.

Transactional ids, paths and topic names were written by others. A newline in one can forge a line of the report, an
escape sequence can rewrite the screen, and a bidirectional mark can swap what is read. There is one function for each
place where such text is shown: terminal (`escape`), shell (`shell_word`), CSV and HTML.
"""

from __future__ import annotations

import html
import json
import re
import shlex
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from functools import lru_cache

SCHEMA_DIALECT = "https://json-schema.org/draft/2020-12/schema"
"""What `$schema` says of the schemas that are printed."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS_PER_S = 1000
_S_PER_MIN = 60
_S_PER_H = 3600
_S_PER_DAY = 86_400
_BYTE_UNITS = ("B", "kB", "MB", "GB", "TB")
_BYTE_STEP = 1000


@lru_cache(maxsize=1 << 10)
def utc(ms: int | None) -> str | None:
    """ISO 8601 in UTC to the millisecond; None stays None, and the bare number where no calendar reaches."""
    if ms is None:
        return None
    try:
        moment = _EPOCH + timedelta(milliseconds=ms)
    except OverflowError:
        return f"{ms} ms since 1970"
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def iso_utc(time_ms: int | None) -> str:
    """ISO 8601 in UTC to the millisecond, as in the facts of a judgement; `unknown` for None."""
    return utc(time_ms) or "unknown"


def if_known(sentence: str, *values: object) -> str | None:
    """A sentence with a value in place of each `{}`; None where one of them is not known, or where there is none."""
    return None if any(value is None for value in values) else sentence.format(*values)


def duration(duration_ms: int | None) -> str:
    """The two largest units, such as `3 h 0 min`; rounded down, so that nothing looks later than it is."""
    if duration_ms is None:
        return "unknown"
    seconds = abs(duration_ms) // _MS_PER_S
    sign = "-" if duration_ms < 0 and seconds else ""
    if seconds < _S_PER_MIN:
        return f"{sign}{seconds} s"
    if seconds < _S_PER_H:
        return f"{sign}{seconds // _S_PER_MIN} min {seconds % _S_PER_MIN} s"
    if seconds < _S_PER_DAY:
        return f"{sign}{seconds // _S_PER_H} h {seconds % _S_PER_H // _S_PER_MIN} min"
    return f"{sign}{seconds // _S_PER_DAY} d {seconds % _S_PER_DAY // _S_PER_H} h"


def size(size_bytes: int | None) -> str:
    """A size with one decimal, in steps of 1000."""
    if size_bytes is None:
        return "unknown size"
    value, unit = float(size_bytes), 0
    while value >= _BYTE_STEP and unit < len(_BYTE_UNITS) - 1:
        value, unit = value / _BYTE_STEP, unit + 1
    return f"{size_bytes} B" if unit == 0 else f"{value:.1f} {_BYTE_UNITS[unit]}"


def count(number: int, noun: str, plural: str | None = None) -> str:
    """`1 record`, `2 records`."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def listed(items: list[str], at_most: int) -> str:
    """Comma-separated, and how many more there are."""
    more = len(items) - at_most
    return ", ".join(items[:at_most]) + (f" and {more} more" if more > 0 else "")


def ranges(numbers: Iterable[int]) -> str:
    """Numbers as people list them: `0 to 3, 7, 9 to 11`."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][-1] + 1:
            runs[-1][1:] = [number]
        else:
            runs.append([number])
    return ", ".join(" to ".join(map(str, run)) for run in runs)


_NAMED = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}
# What ends a quoted word, what printf reads (a dash first is an option), and what bash expands at a prompt.
_NOT_ASCII = re.compile(r"[^\x00-\x7e]")
_SPECIAL_IN_PRINTF = frozenset("'\\%-!")
_FORMULA_STARTS = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def escape(text: str) -> str:
    r"""Shows everything that does not print as `\n`, `\x1b` or `\u202e`; the rest stays as it is.

    "Does not print" is Unicode's own list: control, format (bidirectional marks too), surrogate, private and unassigned
    characters, and every separator but the plain space. Escaping twice changes nothing more, so that a sentence
    may be built from escaped parts.
    """
    return text if text.isprintable() else "".join(_escaped(char) for char in text)


def clip(text: str, width: int) -> str:
    """`text` escaped, and cut to `width` characters with `...` where it was longer."""
    shown = escape(text)
    return shown if len(shown) <= width else shown[: max(width - 3, 0)] + "..."


def shell_word(text: str) -> str:
    r"""`text` as one word for any POSIX shell, on one line.

    Plain quotes where everything prints; else `"$(printf '...\012...')"`, which gives the shell the exact bytes of the
    text in UTF-8 without a control character ever reaching the terminal. (`$'...'` is one word in bash, but in dash it
    ends at the first escaped quote, and what follows is run.) In place of a NUL, which no argument of a process can
    hold, there is a byte that UTF-8 does not have: without it the word would be that of another id.
    """
    if text.isprintable():
        return shlex.quote(text)
    inner = text.rstrip("\n")
    # $(...) drops newlines at the end. IFS begins with a space and a tab, and its third character is one.
    ends = '"${IFS#??}"' * (len(text) - len(inner))
    return (_printed_word(inner) if inner else "") + ends


def shell_option(name: str, value: str) -> str:
    """An option and its value as words for any POSIX shell, where no value is taken for an option itself.

    Kafka's tools (argparse4j) take `--topic -rf` for two options, and `--topic=-rf` for one.
    """
    return f"{name}{'=' if value.startswith('-') else ' '}{shell_word(value)}"


def formula_guard(text: str) -> str:
    """`text` as a cell of a CSV file, not quoted yet, which no spreadsheet takes for a formula.

    What does not print is shown escaped. A cell that begins like a formula, also in full-width characters, gets an
    apostrophe in front, as OWASP's "CSV Injection" advises; spaces before do not hide the beginning.
    """
    shown = escape(text)
    return ("'" if shown.lstrip().startswith(_FORMULA_STARTS) else "") + shown


def html_text(text: str) -> str:
    """`text` inside an element or a quoted attribute of an HTML page.

    Character references stand for `&`, `<`, `>` and both quotes (HTML Living Standard, 13.1.2.3 and 13.1.4). What does
    not print is shown escaped, so that no bidirectional mark swaps what is read.
    """
    return html.escape(escape(text), quote=True)


def json_in_ascii(text: str) -> str:
    """JSON as `json.dumps` spells it, DEL included; to look whether anything is to do takes a hundredth of doing it."""
    return text if text.isascii() and "\x7f" not in text else _NOT_ASCII.sub(_spelled_in_json, text)


def _spelled_in_json(character: re.Match[str]) -> str:
    return json.dumps(character[0])[1:-1]


def _escaped(char: str) -> str:
    if char.isprintable():
        return char
    if char in _NAMED:
        return _NAMED[char]
    code = ord(char)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _printed_word(text: str) -> str:
    if text.isprintable():
        return shlex.quote(text)
    return "\"$(printf '" + "".join(map(_printf_escaped, text)) + "')\""


def _printf_escaped(char: str) -> str:
    if char.isprintable() and char not in _SPECIAL_IN_PRINTF:
        return char
    # Octal escapes are the ones that POSIX has; three digits, so that no digit behind joins them.
    if char == "\0":
        return r"\377"
    return "".join(f"\\{byte:03o}" for byte in char.encode("utf-8", "surrogatepass"))
