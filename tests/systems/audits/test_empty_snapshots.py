"""The dump of a producer snapshot without a line: a remark, and no word that there was no producer."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.tools.captures import rows_of, run_audit
from tests.tools.repository import CASES
from tests.tools.sessions import no_session
from txn_analysis.report.model import AuditReport

CAPTURE = CASES / "kafka-4.2" / "capture-2"
LOGS = (CAPTURE / "segments", CAPTURE / "transaction-state")


def audited(warehouse: Path, paths: Iterable[Path]) -> AuditReport:
    return run_audit(no_session, str(warehouse), [str(path) for path in paths])


def without_identity(report: AuditReport) -> list[dict[str, Any]]:
    return [row | {"finding_id": None, "run_id": None} for row in rows_of(report)]


@pytest.fixture
def headers(tmp_path: Path) -> Path:
    """The first line alone of each real dump of a snapshot."""
    folder = tmp_path / "headers"
    folder.mkdir()
    for dump in (CAPTURE / "producer-snapshots").iterdir():
        lines = dump.read_bytes().splitlines(keepends=True)
        (folder / dump.name).write_bytes(b"".join(line for line in lines if line.startswith(b"Dumping ")))
    return folder


def test_a_header_alone_proves_nothing_and_is_remarked(tmp_path: Path, headers: Path) -> None:
    without = audited(tmp_path / "without", LOGS)
    beside = audited(tmp_path / "beside", (*LOGS, headers))
    assert without_identity(beside) == without_identity(without)
    assert any("lists no producer: it proves nothing" in r for p in beside.partitions for r in p.remarks)


def test_a_partition_of_which_there_is_nothing_else_is_not_in_the_capture(tmp_path: Path, headers: Path) -> None:
    alone = audited(tmp_path / "alone", (headers, LOGS[1]))
    assert not alone.coverage.has_logs
