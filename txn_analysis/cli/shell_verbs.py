"""The verbs that read no warehouse: `doctor`, `copy-kit`; and the version."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import click

from txn_analysis import __version__
from txn_analysis.cli.options import ONE, Request, schema
from txn_analysis.cli.output import deliver, deliver_schema, emit, one
from txn_analysis.cli.verbs import verb

SCRIPT = Path(__file__).with_name("copy-kit.sh")


@click.command("copy-kit", epilog="\b\nExample:\n  txn-analysis copy-kit > copy-kit.sh")
def copy_kit() -> None:
    """Print the script that copies log directories.

    `txn-analysis copy-kit > copy-kit.sh`, and on each broker `sh copy-kit.sh --to DIR LOG_DIR...`. It needs a POSIX
    shell and coreutils there, or busybox; `sh copy-kit.sh --help` lists its options.
    """
    emit(SCRIPT.read_text(encoding="utf-8"), None)


def version(*, is_verbose: bool) -> None:
    """Print the version; and what a report of a bug needs as well."""
    emit(f"txn-analysis {__version__}\n", None)
    if is_verbose:
        from txn_analysis.cli.doctor import versions  # the first line needs nothing of it

        emit("".join(f"{name:13}{installed}\n" for name, installed in versions(os.environ)), None)


@dataclass(frozen=True, kw_only=True)
class _Doctor(Request):
    schema: bool = schema()


@verb("doctor", "txn-analysis doctor --warehouse s3://audits/txn-warehouse", ONE, uses=("master",))
def doctor(asked: _Doctor) -> int:
    """Show what is here for audits, and what is missing.

    Python's packages, memory, disk, Java and Spark; up to how much this process judges; what a cluster of Spark would
    need as well. Spark is not started, and no store and no cluster is asked.

    Exit code: 0 audits run here, if only of what this process may hold; 2 none does.
    """
    settings = asked.settings()
    from txn_analysis.cli.doctor import Machine, machine, machine_text

    if asked.schema:
        return deliver_schema(asked.targets, Machine)
    host = machine(settings, os.environ, __version__)
    deliver(asked.targets, one(host, lambda: machine_text(host)))
    return 0 if host.can_audit else 2
