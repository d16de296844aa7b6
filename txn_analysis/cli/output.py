"""Where a report goes: stdout, or a file that appears whole or not at all."""

from __future__ import annotations

import os
import secrets
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from txn_analysis.errors import AuditError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TextIO


def check_output(output: str | None, flag: str = "-o") -> None:
    """Refuses an output that cannot be written, before any work is done.

    Raises:
        AuditError: the folder is missing, or FILE is a folder.
    """
    if output is None:
        return
    path = Path(output)
    if path.is_dir():
        raise AuditError(f"{flag} {output}: this is a folder; give a file in it")
    if not path.absolute().parent.is_dir():
        raise AuditError(f"{flag} {output}: the folder does not exist; create it first")


def emit(text: str, output: str | None, flag: str = "-o") -> None:
    """Writes the text to stdout, or to the file `output`, which appears whole or not at all.

    Args:
        text: what is written.
        output: the file; None for stdout.
        flag: the option that named it.

    Raises:
        AuditError: the file cannot be written.
    """
    if output is None:
        with quiet_pipe(sys.stdout) as stream:
            stream.write(text)
        return
    try:
        _write_whole(Path(output), text)
    except OSError as error:
        why = error.strerror or error
        raise AuditError(f"{flag} {output}: cannot be written: {why}; mend that, or give another FILE") from error


def emit_styled(show: Callable[[TextIO], None]) -> None:
    """Lets `show` print on stdout, which is a terminal."""
    with quiet_pipe(sys.stdout) as stream:
        show(stream)


def is_terminal(output: str | None) -> bool:
    """Whether the output is a terminal that can show colours."""
    return output is None and sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


@contextmanager
def quiet_pipe(stream: TextIO) -> Iterator[TextIO]:
    """A stream whose reader may leave early, as `head` does; what cannot be encoded is escaped."""
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="backslashreplace")
    try:
        yield stream
        stream.flush()
    except BrokenPipeError:
        # Python flushes stdout once more at exit, and would complain there.
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _write_whole(path: Path, text: str) -> None:
    """Writes a file that appears whole or not at all."""
    data = text.encode("utf-8", "backslashreplace")
    if path.exists() and not path.is_file():  # a pipe or a device can only be written to, not replaced
        path.write_bytes(data)
        return
    target = path.resolve()
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        with draft.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
