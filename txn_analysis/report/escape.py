"""Text from evidence, made safe to show.

Transactional ids, paths and topic names were written by others. A newline in one can forge a line of the report, an
escape sequence can rewrite the screen, and a bidirectional mark can swap what is read. There is one function for each
place where such text is shown: terminal (`escape`), shell (`shell_word`), CSV, HTML, Prometheus and Markdown.
"""

from __future__ import annotations

import html
import re
import shlex

_NAMED = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}
_SHELL_NAMED = {"\\": "\\\\", "'": "\\'", "\n": r"\n", "\r": r"\r", "\t": r"\t"}
_FORMULA_STARTS = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
_ASCII_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")


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
    r"""`text` as one word for a POSIX shell, on one line.

    Plain quotes where everything prints; else the form `$'...\n...'` of bash, ksh and zsh, which gives the shell the
    exact text without a control character ever reaching the terminal.
    """
    if text.isprintable():
        return shlex.quote(text)
    return "$'" + "".join(_SHELL_NAMED.get(char) or _shell_escaped(char) for char in text) + "'"


def csv_cell(text: str) -> str:
    """`text` as one quoted cell of a CSV file (RFC 4180, 2.5 to 2.7), which no spreadsheet takes for a formula.

    What does not print is shown escaped. A cell that begins like a formula, also in full-width characters, gets an
    apostrophe in front, as OWASP's "CSV Injection" advises; spaces before do not hide the beginning.
    """
    shown = escape(text)
    guard = "'" if shown.lstrip().startswith(_FORMULA_STARTS) else ""
    return '"' + (guard + shown).replace('"', '""') + '"'


def html_text(text: str) -> str:
    """`text` inside an element or a quoted attribute of an HTML page.

    Character references stand for `&`, `<`, `>` and both quotes (HTML Living Standard, 13.1.2.3 and 13.1.4). What does
    not print is shown escaped, so that no bidirectional mark swaps what is read.
    """
    return html.escape(escape(text), quote=True)


def prometheus_label(text: str) -> str:
    r"""`text` as a label's value between its quotes, exactly, so that it joins with labels of other sources.

    Only `\`, `"` and line feeds are escaped (Prometheus, "Text-based format"). The format is UTF-8; half a surrogate
    pair, which UTF-8 has no bytes for, is shown as `\\ud800`.
    """
    whole = "".join(_numeric(char) if "\ud800" <= char <= "\udfff" else char for char in text)
    return whole.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def markdown_text(text: str) -> str:
    """`text` inside a line or a table's cell of a Markdown file, where nothing of it is markup.

    Any ASCII punctuation may stand behind a backslash (CommonMark 0.31, 2.4), also a bar in a table's cell (GFM).
    What does not print is shown escaped before, so that it is one line.
    """
    return _ASCII_PUNCTUATION.sub(r"\\\1", escape(text))


def _escaped(char: str) -> str:
    if char.isprintable():
        return char
    return _NAMED.get(char) or _numeric(char)


def _shell_escaped(char: str) -> str:
    if char.isprintable():
        return char
    # Unlike Python, a shell reads \xNN as a byte: above ASCII only \u names the character.
    return f"\\x{ord(char):02x}" if ord(char) < 0x80 else _numeric(char, smallest_wide=0x80)


def _numeric(char: str, smallest_wide: int = 0x100) -> str:
    code = ord(char)
    if code < smallest_wide:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
