"""Group names come from what was read once: a run made again says the same, whatever became of the copies."""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.tools.captures import PARAMETERS, run_audit
from tests.tools.repository import CASES
from tests.tools.sessions import no_session, opened
from tests.tools.table_rows import listed
from txn_analysis.pipeline import steps as pipeline
from txn_analysis.settings import Settings
from txn_analysis.tables import FINDINGS, GROUP_OFFSETS

Row = dict[str, Any]
CAPTURE = CASES / "kafka-4.2-edge/capture-2"
PARTS = ("group-offsets", "transaction-state")
PLACE = ("topic", "partition", "producer_id", "txn_start_offset")


@dataclass(frozen=True)
class Audited:
    """A warehouse after one audit, whose copies were deleted."""

    root: str
    run_id: str
    capture: str
    findings: list[Row]

    def judged_again(self) -> list[Row]:
        """The findings after the same run was made again."""
        settings = Settings.model_validate(PARAMETERS | {"warehouse": self.root, "capture": self.capture})
        pipeline.reconstruct(no_session, settings)
        assert pipeline.judge(no_session, settings).run_id == self.run_id
        return stored(self.root)


def stored(root: str) -> list[Row]:
    rows = listed(opened(root), FINDINGS)
    return sorted(rows, key=lambda row: [row[name] for name in PLACE])


def groups(findings: list[Row]) -> list[tuple[Any, Any]]:
    impacts = [row["impact"] for row in findings if row["topic"] == "__consumer_offsets"]
    return [(impact["pending_groups"], impact["waiting_groups"]) for impact in impacts]


@pytest.fixture(scope="module")
def audited(empty_warehouse: Path, tmp_path_factory: pytest.TempPathFactory) -> Audited:
    folder = tmp_path_factory.mktemp("copies-that-are-deleted")
    copies = [shutil.copytree(CAPTURE / part, folder / part) for part in PARTS]
    root = str(shutil.copytree(empty_warehouse, folder / "warehouse"))
    report = run_audit(no_session, root, [str(copy) for copy in copies])
    for copy in copies:
        shutil.rmtree(copy)
    return Audited(root, report.run.run_id, report.run.capture, stored(root))


def test_a_run_made_again_without_the_copies_says_the_same(audited: Audited) -> None:
    assert groups(audited.findings) == [(["billing-readers"], [])]
    assert audited.judged_again() == audited.findings


def test_content_that_is_given_twice_is_stored_once(audited: Audited) -> None:
    before = sorted(listed(opened(audited.root), GROUP_OFFSETS), key=repr)
    settings = Settings.model_validate(PARAMETERS | {"warehouse": audited.root, "cluster": "another"})
    pipeline.ingest(no_session, [str(CAPTURE / part) for part in PARTS], settings)
    assert sorted(listed(opened(audited.root), GROUP_OFFSETS), key=repr) == before
