"""Standard input as an input: its bytes are kept in a private file meanwhile, as each part of a text is read by itself.

Every report and table names it `-`, as the command does; where it was kept is in none of them.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from txn_analysis.errors import InputError
from txn_analysis.spark.interrupts import delete_when_interrupted
from txn_analysis.text.words import size

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager

STANDARD_INPUT = "-"
_STEP_BYTES = 1 << 20
# Of the disk that keeps it so much stays free for whoever else writes there, the warehouse among them.
_LEFT_FREE_BYTES, _LEFT_FREE_PART = 256 << 20, 16

_kept: list[Path] = []  # while a command runs that reads it


def kept_at() -> Path | None:
    """The file that holds standard input; None where the command does not read it."""
    return _kept[-1] if _kept else None


@contextmanager
def standard_input(paths: Sequence[str], stage: AbstractContextManager[object] | None = None) -> Iterator[None]:
    """Meanwhile the path `-` is what came through standard input, if it is among some paths; the file is private.

    Args:
        paths: all paths of a command.
        stage: lasts as long as standard input is read to its end.

    Raises:
        InputError: it is named twice, is a terminal, is empty, or there is no room for it.
    """
    if STANDARD_INPUT not in paths:
        yield
        return
    if paths.count(STANDARD_INPUT) > 1:
        raise InputError(["-: standard input is named twice, and can be read once. Name it once"])
    source = _source()
    folder = Path(tempfile.mkdtemp(prefix="txn-analysis-"))  # 0700, whatever the umask
    delete_when_interrupted(folder)
    try:
        with stage or nullcontext():
            _kept.append(_keep(source, folder))
        yield
    finally:
        _kept.clear()
        shutil.rmtree(folder, ignore_errors=True)


def _source() -> int:
    """The descriptor of standard input."""
    if sys.stdin is None or sys.stdin.closed:
        raise InputError(["-: there is no standard input: it is closed. Pipe a dump into this command"])
    if sys.stdin.isatty():
        example = "kafka-dump-log.sh --transaction-log-decoder --files FILE | txn-analysis audit segments/ -"
        raise InputError([f"-: standard input is this terminal: pipe a dump into this command, as in {example}"])
    return sys.stdin.fileno()


def _keep(source: int, folder: Path) -> Path:
    kept, kept_bytes = folder / "stdin", 0
    try:
        with kept.open("xb") as file:
            while step := os.read(source, _STEP_BYTES):
                usage = shutil.disk_usage(folder)
                left_free = min(_LEFT_FREE_BYTES, usage.total // _LEFT_FREE_PART)
                if usage.free - len(step) < left_free:
                    raise _too_large(folder, kept_bytes, f"{size(left_free)} stay free there")
                file.write(step)
                kept_bytes += len(step)
    except OSError as error:  # a quota, or whoever else fills the disk
        raise _too_large(folder, kept_bytes, error.strerror or str(error)) from error
    if not kept_bytes:
        remedy = "See what the command before the pipe says, and run it again"
        raise InputError([f"-: nothing came through standard input. {remedy}"])
    return kept


def _too_large(folder: Path, kept_bytes: int, why: str) -> InputError:
    wrong = f"{folder.parent} has no room for standard input: {size(kept_bytes)} of it were kept, and {why}"
    return InputError([f"-: {wrong}. Set TMPDIR to a folder with more room, or write it to a file and give that"])
