"""Fill the input tables from files; the first of the steps of which `nightly_audit.py` is all."""

from __future__ import annotations

from txn_analysis.cli import audit_verbs
from txn_analysis.cli.options import READING, Format
from txn_analysis.cli.verbs import job

ingest = job(
    "ingest",
    "--warehouse txn-warehouse --capture tonight segments/ transaction-state/",
    uses=READING,
    form=Format,
)(audit_verbs.ingest)

if __name__ == "__main__":
    ingest()
