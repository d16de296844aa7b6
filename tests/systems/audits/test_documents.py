"""The outputs in README.md and docs/ are what the commands print."""

import re

import pytest

from tests.tools.captures import SEGMENTS, AuditOf, TablesOf, Variant
from tests.tools.docs.asked import asked_outputs
from tests.tools.docs.examples import DOCUMENTS, outputs, with_examples
from tests.tools.repository import ROOT
from txn_analysis.report.model import AuditReport

DEMO = Variant("kafka-4.2/capture-1", SEGMENTS)


@pytest.fixture(scope="module")
def found(audit_of: AuditOf, tables_of: TablesOf, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What is printed for the captures of the pages, under the names that a warehouse of their own gives them."""
    asked = asked_outputs(tmp_path_factory.mktemp("asked"))
    return outputs(_named(audit_of(DEMO), "docs/every-night.md"), tables_of(DEMO)) | asked


def _named(report: AuditReport, page: str) -> AuditReport:
    """A report under the name that its run has on a page, of the cluster `default`."""
    (run_id,) = set(re.findall(r"run-[0-9a-f]{16}", (ROOT / page).read_text(encoding="utf-8")))
    return report.model_copy(update={"run": report.run.model_copy(update={"run_id": run_id, "cluster": "default"})})


def test_examples_are_what_is_printed(found: dict[str, str]) -> None:
    for path in DOCUMENTS:
        text = path.read_text(encoding="utf-8")
        assert with_examples(text, found) == text, f"{path}: `make docs` writes them anew"
