"""The verbs that read no warehouse: `doctor`, `copy-kit`; and the version."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from txn_analysis import __version__
from txn_analysis.cli.options import Request, Schema
from txn_analysis.cli.output import deliver, deliver_text, emit

SCRIPT = Path(__file__).with_name("copy-kit.sh")


def copy_kit() -> None:
    """Print the script that copies log directories.

    `txn-analysis copy-kit > copy-kit.sh`, and on each broker `sh copy-kit.sh --to DIR LOG_DIR...`. It needs a POSIX
    shell and coreutils there, or busybox; `sh copy-kit.sh --help` lists its options.
    """
    emit(SCRIPT.read_text(encoding="utf-8"), None)


Verbose = Annotated[
    bool, typer.Option("--verbose", help="Print what a report of a bug needs as well: packages, Python, system, Java.")
]


def version(verbose: Verbose = False) -> None:
    """Print the version."""
    emit(f"txn-analysis {__version__}\n", None)
    if verbose:
        from txn_analysis.engine.machine import versions  # the first line needs nothing of it

        emit("".join(f"{name:13}{found}\n" for name, found in versions(os.environ)), None)


def doctor(request: Request, schema: Schema = False) -> int:
    """Show what is here for audits, and what is missing.

    Python's packages, memory, disk, Java and Spark; up to how much this process judges; what a cluster of Spark would
    need as well. Spark is not started, and no store and no cluster is asked.

    Exit code: 0 audits run here, if only of what this process may hold; 2 none does.
    """
    settings = request.settings()
    from txn_analysis.engine.machine import Machine, machine, machine_text
    from txn_analysis.errors import AuditError
    from txn_analysis.questions.answers import json_text, schema_text

    if schema:
        deliver_text(request.targets, schema_text(Machine))
        return 0
    found = machine(settings, os.environ, __version__)
    deliver(request.targets, {"json": lambda: json_text(found), "text": lambda: machine_text(found)})
    return 0 if found.can_audit else AuditError.exit_code
