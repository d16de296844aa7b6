"""Text from evidence, made safe to show.

Transactional ids, paths and topic names were written by others. A newline in one can forge a line of the report, an
escape sequence can rewrite the screen, and a bidirectional mark can swap what is read. There is one function for each
place where such text is shown: terminal (`escape`), shell (`shell_word`), CSV and HTML.
"""

from __future__ import annotations

import html
import shlex

_NAMED = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}
# What ends a quoted word, what printf reads (a dash first is an option), and what bash expands at a prompt.
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
    ends at the first escaped quote, and what follows is run.) A NUL is lost: no argument of a process can hold one.
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
    return "".join(f"\\{byte:03o}" for byte in char.encode("utf-8", "surrogatepass"))
