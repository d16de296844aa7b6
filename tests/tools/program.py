"""The command line, run in this process."""

import contextlib
import io
from typing import NamedTuple

from txn_analysis.cli.main import app


class Done(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str


def program(*words: object) -> Done:
    """Run `txn-analysis` with some words, and wait for its end."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    code: object = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            app([str(word) for word in words], prog_name="txn-analysis")
        except SystemExit as end:
            code = end.code
    return Done(
        code if isinstance(code, int) else int(code is not None),
        *(each.buffer.getvalue().decode() for each in (out, err)),
    )
