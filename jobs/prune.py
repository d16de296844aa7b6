"""Take what is old out of a warehouse."""

from __future__ import annotations

from typing import Annotated

import typer

from txn_analysis.cli import keeping_verbs
from txn_analysis.cli.options import Format, Request
from txn_analysis.cli.verbs import job


@job("prune", "--warehouse txn-warehouse --older-than 90d", uses=(), form=Format)
def prune(
    request: Request,
    older_than: Annotated[
        str | None,
        typer.Option("--older-than", "--keep", metavar="AGE", help="What is older goes, such as 90d. [keep_ms]"),
    ] = None,
    grace: keeping_verbs.Grace = None,
    dry_run: keeping_verbs.DryRun = False,
) -> int:
    """Take captures, runs and the files behind them out of the warehouse that are older than an age.

    What newer captures need stays. Exit code: 0, or 2 where there is no such warehouse, or no age is given.
    """
    return keeping_verbs.forget_old(request, older_than, grace, is_rehearsal=dry_run)


if __name__ == "__main__":
    prune()
