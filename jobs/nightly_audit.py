"""The whole audit, for a scheduler: ingest, reconstruct, judge, plan, report."""

from __future__ import annotations

from txn_analysis.cli import audit_verbs
from txn_analysis.cli.options import ENDING, JUDGING, AuditFormat
from txn_analysis.cli.verbs import job

nightly_audit = job(
    "nightly_audit",
    "--config conf/nightly.toml segments/ transaction-state/",
    uses=(*JUDGING, *ENDING),
    form=AuditFormat,
)(audit_verbs.audit)

if __name__ == "__main__":
    nightly_audit()
