"""Copies of a broker that is busy: logs first and the state last is safe, and the reverse order says so."""

import random
import re
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.systems.e2e.broker import Cluster, copy_folder
from tests.systems.e2e.captures import PARAMETERS
from tests.systems.e2e.hangs import HOUR_MS
from tests.systems.e2e.stage import on_node, staged
from tests.tools.harness import audit_files
from tests.tools.inputs import InputReader
from tests.tools.kafka_jars import dump_tool
from txn_analysis.settings import Settings

pytestmark = pytest.mark.e2e

COPIES = 20
SEED = 20
PLACES = [("busy", partition) for partition in range(3)]
_STATE = "__transaction_state-"
_SECTION = re.compile(r"^Dumping (\S+)\n", re.MULTILINE)


@dataclass(frozen=True)
class Copy:
    """What the tool prints of the logs, of the state that was copied before them, and of the state copied after."""

    logs: bytes
    state_first: bytes
    state_last: bytes


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> list[Copy]:
    """Twenty times the state, the logs, and the state again, at random moments of many short transactions.

    What the clients write is three hours old by their clocks: only the coordinator protects it.
    """
    folder = tmp_path_factory.mktemp("busy")
    dice = random.Random(SEED)
    with staged(Cluster("4.2.0", folder / "broker"), {"busy": on_node(len(PLACES))}) as stage:
        names = [f"busy-{number}" for number in range(6)]
        cluster = stage.cluster
        stage.driver.start_load(names, PLACES, age_ms=3 * HOUR_MS, pause_ms=300)
        targets = [_copy(cluster.log_dir(), folder / f"copy-{number}", dice) for number in range(COPIES)]
        return _dumped(cluster, targets)


def _copy(source: Path, target: Path, dice: random.Random) -> Path:
    """`state-first` and `state-last` hold the two copies of the state, `logs` what was copied between them."""
    time.sleep(dice.uniform(0.2, 1.0))
    for part in ("state-first", "logs", "state-last"):
        for folder in sorted(source.iterdir()):
            is_state = folder.name.startswith(_STATE)
            if folder.is_dir() and is_state == (part != "logs") and not folder.name.startswith("__cluster_metadata"):
                copy_folder(folder, target / part / folder.name)
        time.sleep(dice.uniform(0.0, 0.5))
    return target


def _dumped(cluster: Cluster, targets: list[Path]) -> list[Copy]:
    """All copies in two calls of the tool, which takes longer to start than to dump."""
    logs = _sections(cluster, [f for t in targets for f in sorted(t.glob("logs/*/*.log"))], "--deep-iteration")
    states = [f for t in targets for f in sorted(t.glob("state-*/*/*.log"))]
    state = _sections(cluster, states, "--transaction-log-decoder")
    return [
        Copy(*(_of(logs | state, target / part) for part in ("logs", "state-first", "state-last")))
        for target in targets
    ]


def _sections(cluster: Cluster, files: list[Path], option: str) -> dict[str, str]:
    printed = cluster.run(dump_tool(cluster.version), option, "--files", ",".join(map(str, files)))
    starts = [match.start() for match in _SECTION.finditer(printed)]
    ends = [*starts[1:], len(printed)]
    texts = [printed[start:end] for start, end in zip(starts, ends, strict=True)]
    return {text.split(maxsplit=2)[1]: text for text in texts}


def _of(sections: dict[str, str], folder: Path) -> bytes:
    return "".join(text for path, text in sections.items() if path.startswith(f"{folder}/")).encode()


def verdicts(reader: InputReader, copies: list[Copy], *, is_state_last: bool) -> Counter[str]:
    settings = Settings.model_validate(PARAMETERS | {"state_copied_last": is_state_last})
    found: Counter[str] = Counter()
    for copy in copies:
        files = {"logs": copy.logs, "state": copy.state_last if is_state_last else copy.state_first}
        answer = audit_files(reader, {"tonight": files}, settings)
        found.update(str(finding["verdict"]) for finding in answer.findings)
    return found


def test_logs_first_and_state_last_never_accuses_a_live_transaction(reader: InputReader, copies: list[Copy]) -> None:
    found = verdicts(reader, copies, is_state_last=True)
    assert sum(found.values()) > COPIES, f"hardly anything was open: seed {SEED}"
    assert set(found) <= {"coordinated", "inconclusive"}, found


def test_state_first_is_inconclusive_where_it_is_too_old(reader: InputReader, copies: list[Copy]) -> None:
    found = verdicts(reader, copies, is_state_last=False)
    assert found["inconclusive"] > 0, f"nothing was newer than the state: seed {SEED}"
    assert set(found) <= {"coordinated", "inconclusive"}, found
