"""The outputs in README.md and docs/ are what the commands print."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.captures import SEGMENTS, Variant
from tests.docs.examples import DOCUMENTS, ROOT, outputs, with_examples
from txn_analysis.runs.run_tables import run_tables
from txn_analysis.storage.opening import open_warehouse

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from txn_analysis.report.model import AuditReport

DEMO = Variant("kafka-4.2/capture-1", SEGMENTS)
README = ROOT / "README.md"


@pytest.fixture(scope="module")
def found(spark: SparkSession, warehouse: str, audit_of: Callable[[Variant], AuditReport]) -> dict[str, str]:
    """What is printed for the demo's capture, under the names that `make demo` gives its cluster and run."""
    report = audit_of(DEMO)
    (run_id,) = set(re.findall(r"run-[0-9a-f]{16}", README.read_text(encoding="utf-8")))
    named = report.run.model_copy(update={"run_id": run_id, "cluster": "default"})
    tables = run_tables(open_warehouse(spark, warehouse), DEMO.name)
    return outputs(report.model_copy(update={"run": named}), tables)


@pytest.mark.parametrize("path", DOCUMENTS, ids=[str(path.relative_to(ROOT)) for path in DOCUMENTS])
def test_examples_are_what_is_printed(path: Path, found: dict[str, str]) -> None:
    text = path.read_text(encoding="utf-8")
    assert with_examples(text, found) == text, "`make docs` writes them anew"
