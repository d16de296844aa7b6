"""Files of brokers of 4.2, 4.3 and 4.4, dumped by the tools of 4.4.0, which print the names of states."""

from pathlib import Path

import pytest

from tests.systems.audits.test_files_of_tomorrow import audited, verdicts
from tests.systems.e2e.newest_tools import BROKERS, log_dirs
from tests.tools.captures import TRUE_WORDS
from tests.tools.repository import CASES


def paths(version: str, *names: str) -> list[Path]:
    return [CASES / "tools-4.4" / version / name for name in names]


@pytest.mark.parametrize("version", BROKERS)
def test_their_dumps_are_answered_as_the_files_are(tmp_path: Path, version: str) -> None:
    words = dict(TRUE_WORDS)
    of_files = audited(tmp_path, *log_dirs(version), **words)
    assert of_files.findings
    of_dumps = audited(tmp_path, *paths(version, "logs.txt", "state.txt"), **words)
    assert verdicts(of_dumps) == verdicts(of_files)
    assert of_dumps.coverage.rejected_bytes == 0


@pytest.mark.parametrize("version", BROKERS)
def test_every_record_of_their_export_is_understood(tmp_path: Path, version: str) -> None:
    words = dict(TRUE_WORDS) | {"transaction_state_complete": True}
    of_files = audited(tmp_path, *log_dirs(version), **words)
    of_export = audited(tmp_path, *paths(version, "logs.txt", "console.json"), **words)
    assert of_export.coverage.rejected_bytes == 0
    assert {row[:3] for row in verdicts(of_export)} == {row[:3] for row in verdicts(of_files)}
    hanging = {row for row in verdicts(of_export) if "hanging" in row}
    assert hanging <= verdicts(of_files)
    assert hanging or version != "4.3"
