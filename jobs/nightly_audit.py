"""The whole audit, for a scheduler: ingest, reconstruct, judge, plan, report."""

from txn_analysis.cli.steps import nightly_audit

if __name__ == "__main__":
    nightly_audit()
