"""The docs say what the code says."""

from tests.tools.repository import ROOT
from txn_analysis.plan.plan_file import PLAN_SCHEMA_VERSION
from txn_analysis.report.model import SCHEMA_VERSION
from txn_analysis.verdict import Verdict


def test_the_page_of_formats_names_the_versions_that_are_printed() -> None:
    text = (ROOT / "docs/data-formats.md").read_text(encoding="utf-8")
    assert f"`report --format json`, `audit --format json` | `schema_version` {SCHEMA_VERSION} |" in text
    assert f"| {SCHEMA_VERSION} | report |" in text
    assert f"`abort-plan --format ndjson` | `schema_version` {PLAN_SCHEMA_VERSION}," in text


def test_the_readme_explains_every_verdict() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert all(f"| `{verdict.value}` |" in text for verdict in Verdict)


def test_the_runbook_explains_what_an_executor_must_honour_and_every_refusal() -> None:
    text = (ROOT / "docs/runbook.md").read_text(encoding="utf-8")
    fields = (
        "not_before_ms",
        "not_after_ms",
        "precondition",
        "producer_is_live",
        "producer_epoch",
        "coordinator_epoch",
    )
    assert [field for field in fields if f"| `{field}` |" not in text] == []
    assert [code for code in (47, 52, 3, 6, 31, 43) if f"| {code} |" not in text] == []
    assert text.index("late or blindly") < text.index("## In short")  # what kills live data comes first
