"""The entry point: `txn-analysis`, or `python -m txn_analysis`."""

from __future__ import annotations

from txn_analysis.spark.interrupts import ending_at_once


def main() -> None:
    """Run the command line; ends the process with the exit code of the verb."""
    with ending_at_once():
        from txn_analysis.cli.main import app  # noqa: PLC0415 half a second, in which it can be interrupted too

        app(prog_name="txn-analysis")


if __name__ == "__main__":
    main()
