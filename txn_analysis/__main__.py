"""The entry point: `txn-analysis`, or `python -m txn_analysis`."""

from __future__ import annotations

import gc
import os
import sys
from contextlib import suppress

from txn_analysis import __version__
from txn_analysis.spark.hidden_pandas import hide_pandas
from txn_analysis.spark.interrupts import ending_at_once

_MANY_OBJECTS = 200_000


def main() -> None:
    """Run the command line; ends the process with the exit code of the verb."""
    _reopen_closed_streams()
    if sys.argv[1:] == ["--version"]:  # whoever asks for nothing else need not wait for the options of all verbs
        with suppress(OSError):  # which the command line says
            print(f"txn-analysis {__version__}", flush=True)
            return
    hide_pandas()
    gc.set_threshold(_MANY_OBJECTS)  # a question makes fewer: to look for garbage among them is a tenth of its time
    with ending_at_once():
        from txn_analysis.cli.main import app  # noqa: PLC0415 half a second, in which it can be interrupted too

        try:
            app(prog_name="txn-analysis")
        finally:
            gc.freeze()  # nor is any looked for while the process ends


def _reopen_closed_streams() -> None:
    """What goes to a stdout or stderr that was closed (`>&-`) is lost, as in /dev/null.

    Left closed, their numbers would be those of the next files, and Python would print to stdout what is for stderr.
    """
    for number, name in ((1, "stdout"), (2, "stderr")):
        if getattr(sys, name) is None:
            descriptor = os.open(os.devnull, os.O_WRONLY)
            if descriptor != number:  # stdin is closed as well
                os.dup2(descriptor, number)
            setattr(sys, name, open(number, "w", encoding="utf-8", closefd=False))  # noqa: SIM115 until the end


if __name__ == "__main__":
    main()
