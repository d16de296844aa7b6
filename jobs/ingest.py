"""Fill the input tables from files; the first of the steps of which `nightly_audit.py` is all."""

from txn_analysis.cli.steps import ingest

if __name__ == "__main__":
    ingest()
