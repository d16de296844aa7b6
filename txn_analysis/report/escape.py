"""Text from evidence, made safe to show.

Transactional ids, paths and topic names were written by others. A newline in one can forge a line of the report, an
escape sequence can rewrite the screen, and a bidirectional mark can swap what is read.
"""

from __future__ import annotations

import shlex

_NAMED = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}
_SHELL_NAMED = {"\\": "\\\\", "'": "\\'", "\n": r"\n", "\r": r"\r", "\t": r"\t"}


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
