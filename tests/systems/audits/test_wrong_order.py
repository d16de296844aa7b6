"""Shallow dumps, and a state that was copied before them by mistake: the wrong word costs no live transaction."""

import json
from typing import Any

from tests.systems.e2e.wrong_order import IDS
from tests.tools.captures import PARAMETERS
from tests.tools.harness import Answer, audit_files
from tests.tools.inputs import InputReader
from tests.tools.repository import CASES
from txn_analysis.settings import Settings

CASE = CASES / "kafka-4.3-wrong-order"
LOGS = CASE / "capture-1/shallow"


def audited(capture: str, **settings: Any) -> Answer:
    files = [*LOGS.iterdir(), *(CASE / capture / "state").iterdir()]
    given = {str(file): file.read_bytes() for file in files}
    settings = PARAMETERS | {"state_copied_last": True} | settings
    return audit_files(InputReader.in_memory(), {"copy": given}, Settings.model_validate(settings))


def verdicts(answer: Answer) -> list[tuple[Any, ...]]:
    return [(row["topic"], row["partition"], row["verdict"], row["rule"]) for row in answer.findings]


def expected(capture: str) -> list[tuple[Any, ...]]:
    rows = json.loads((CASE / capture / "expected.json").read_text())["open_transactions"]
    return [(row["topic"], row["partition"], row["verdict"], row["rule"]) for row in rows]


def test_all_of_them_were_committed_after_the_copy() -> None:
    assert json.loads((CASE / "clients.json").read_text()) == dict.fromkeys(IDS, "CompleteCommit")


def test_end_markers_of_unknown_kind_disprove_the_word() -> None:
    assert verdicts(audited("capture-1")) == expected("capture-1")
    assert verdicts(audited("capture-1")) == verdicts(audited("capture-1", state_copied_last=False))


def test_no_other_word_helps() -> None:
    assert not audited("capture-1", no_records_lost=True, transaction_state_complete=True).hanging


def test_in_the_right_order_the_coordinator_has_them() -> None:
    assert verdicts(audited("capture-2")) == expected("capture-2")
