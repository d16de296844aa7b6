"""Captures that do not belong together are never trusted: taking evidence away, or mixing it, raises no `hanging`."""

import shutil
from collections.abc import Callable
from pathlib import Path

from tests.tools.captures import PARAMETERS, by_place
from tests.tools.cases import cases
from tests.tools.harness import audit_files
from tests.tools.inputs import InputReader
from tests.tools.repository import CASES
from txn_analysis.settings import Settings

CAPTURE_1 = CASES / "kafka-4.2/capture-1"
CAPTURE_2 = CASES / "kafka-4.2/capture-2"
PAYOUT = ("payments", 1, 7)  # payout-batch-1: committed at the coordinator, its marker is still pending in capture 1
UNKNOWN_PRODUCER = ("orders", 2, 987654321)
HANGING = {("ledger.events", 1, 1004), ("orders", 0, 1002), ("payments", 0, 3), UNKNOWN_PRODUCER}


def state_of_capture_2(state: Path) -> None:
    shutil.rmtree(state)
    shutil.copytree(CAPTURE_2 / "transaction-state", state)


def file_of_payout(state: Path) -> Path:
    return next(file for file in state.iterdir() if b"payout-batch-1" in file.read_bytes())


def cut_before_its_last_records(state: Path) -> None:
    """The file that holds payout-batch-1 ends before its first record: a state that was copied before the logs."""
    file = file_of_payout(state)
    text = file.read_bytes()
    file.write_bytes(text[: text.rindex(b"\nbaseOffset: ", 0, text.index(b"payout-batch-1")) + 1])


def only_its_header(state: Path) -> None:
    file = file_of_payout(state)
    file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:2]))


def one_partition_removed(state: Path) -> None:
    file_of_payout(state).unlink()


def as_it_is(state: Path) -> None:
    assert state.exists()


@cases(
    "spoil state_partitions payout unknown_producer",
    {
        "logs-of-one-capture-state-of-the-next": (state_of_capture_2, 4, "inconclusive", "hanging"),
        "state-cut-early": (cut_before_its_last_records, 4, "inconclusive", "hanging"),
        "a-state-dump-with-only-its-header": (only_its_header, 4, "inconclusive", "inconclusive"),
        "a-state-partition-removed": (one_partition_removed, 4, "inconclusive", "inconclusive"),
        "a-wrong-number-of-state-partitions": (as_it_is, 50, "inconclusive", "inconclusive"),
    },
)
def test_what_the_state_cannot_prove_is_inconclusive(
    tmp_path: Path,
    reader: InputReader,
    spoil: Callable[[Path], None],
    state_partitions: int,
    payout: str,
    unknown_producer: str,
) -> None:
    state = tmp_path / "transaction-state"
    shutil.copytree(CAPTURE_1 / "transaction-state", state)
    spoil(state)
    files = {str(file): file.read_bytes() for folder in (CAPTURE_1 / "segments", state) for file in folder.iterdir()}
    settings = PARAMETERS | {"transaction_state_partitions": state_partitions}
    answer = audit_files(reader, {"capture": files}, Settings.model_validate(settings))
    found = {place: row["verdict"] for place, row in by_place(answer.findings).items()}
    assert found[PAYOUT] == payout
    assert found[UNKNOWN_PRODUCER] == unknown_producer
    assert {place for place, verdict in found.items() if verdict == "hanging"} <= HANGING
