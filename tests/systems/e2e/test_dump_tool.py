"""4.3 moved `kafka-dump-log` to another class, and 4.4 names states; all else is as in 4.2, but for one blank."""

import subprocess
from pathlib import Path

import pytest

from tests.systems.e2e.broker import QUIET
from tests.tools.forms.broker import replay
from tests.tools.kafka_jars import class_path, dump_tool
from tests.tools.log_dirs.encoder import snapshot_bytes
from tests.tools.repository import ROOT
from tests.unit.log.test_copies import OTHER_PRODUCER, data, marker
from txn_analysis.reading.state.values import STATES

pytestmark = pytest.mark.e2e
FOLDERS = ROOT / "data/cases/kafka-4.2/capture-1/log-dirs"
LOGS = ("payments-*/*.log", "payments-*/*.txnindex")


def dumped(version: str, option: tuple[str, ...], files: list[Path]) -> bytes:
    words = [*QUIET, "-cp", class_path(version), dump_tool(version), *option, "--files", ",".join(map(str, files))]
    return subprocess.run(["java", "-Xmx256m", *words], capture_output=True, check=True).stdout


@pytest.mark.parametrize(
    ("option", "patterns"),
    [
        ((), LOGS),
        (("--deep-iteration",), LOGS),
        (("--print-data-log",), LOGS),
        (("--transaction-log-decoder",), ("__transaction_state-*/*.log",)),
    ],
    ids=["shallow", "deep", "payload", "state"],
)
def test_all_versions_print_the_same(option: tuple[str, ...], patterns: tuple[str, ...]) -> None:
    files = sorted(file for pattern in patterns for file in FOLDERS.glob(f"*/{pattern}"))
    found = dumped("4.3.1", option, files)
    assert found == dumped("4.2.0", option, files)
    newest = dumped("4.4.0", option, files)
    for number, name in enumerate(STATES):
        newest = newest.replace(b'"transactionStatus":"%s"' % name.encode(), b'"transactionStatus":%d' % number)
    assert found == newest
    assert found.count(b"Dumping ") == len(files) > 1


def test_a_producer_without_data_has_no_blank_behind_its_time(tmp_path: Path) -> None:
    """All else of a producer snapshot is the same."""
    snapshot = tmp_path / f"{2:020}.snapshot"
    snapshot.write_bytes(snapshot_bytes(replay((marker(0), data(1, producer=OTHER_PRODUCER)), below=2).snapshot()))
    found = dumped("4.3.1", (), [snapshot])
    assert found == dumped("4.2.0", (), [snapshot]).replace(b" \n", b"\n")
    assert found.count(b"producerId: ") == 2
