"""The entry point: `txn-analysis`, or `python -m txn_analysis`."""

from __future__ import annotations

import gc
import sys

from txn_analysis import __version__
from txn_analysis.spark.hidden_pandas import hide_pandas
from txn_analysis.spark.interrupts import ending_at_once

_MANY_OBJECTS = 200_000


def main() -> None:
    """Run the command line; ends the process with the exit code of the verb."""
    if sys.argv[1:] == ["--version"]:  # whoever asks for nothing else need not wait for the options of all verbs
        print(f"txn-analysis {__version__}")
        return
    hide_pandas()
    gc.set_threshold(_MANY_OBJECTS)  # a question makes fewer: to look for garbage among them is a tenth of its time
    with ending_at_once():
        from txn_analysis.cli.main import app  # noqa: PLC0415 half a second, in which it can be interrupted too

        try:
            app(prog_name="txn-analysis")
        finally:
            gc.freeze()  # nor is any looked for while the process ends


if __name__ == "__main__":
    main()
