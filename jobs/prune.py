"""Take what is old out of a warehouse."""

from __future__ import annotations

from txn_analysis.cli import keeping_verbs
from txn_analysis.cli.options import Format, Request
from txn_analysis.cli.verbs import job


@job("prune", "--warehouse txn-warehouse --keep 90d", uses=(), form=Format)
def prune(
    request: Request,
    keep: keeping_verbs.Keep = None,
    grace: keeping_verbs.Grace = None,
    dry_run: keeping_verbs.DryRun = False,
) -> int:
    """Take captures, runs and the files behind them out of the warehouse that are older than an age.

    What newer captures need stays. Exit code: 0, or 2 where there is no such warehouse, or no age is given.
    """
    return keeping_verbs.prune(request, keep, grace, dry_run=dry_run)


if __name__ == "__main__":
    prune()
