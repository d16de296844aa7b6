"""What an id has open whose records could not be decoded is not known: never nothing."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.tools.captures import run_audit
from tests.tools.cases import cases
from tests.tools.repository import CASES
from tests.tools.sessions import no_session, opened
from txn_analysis.questions.owners import Kind, who_is
from txn_analysis.questions.owners_text import owner_text
from txn_analysis.runs.run_tables import RunTables, run_tables

CAPTURE = CASES / "kafka-4.2/capture-1"
STATE_1 = "n2.__transaction_state-1.txt"
NAME = '"transactionalId":"order-service-2"'
NOT_DECODED = "could not be decoded: records in __transaction_state-1 that may be of it"
Told = Callable[[str, Callable[[str], str]], RunTables]


@pytest.fixture
def told(warehouse: str, tmp_path: Path) -> Told:
    def audited(cluster: str, changed: Callable[[str], str]) -> RunTables:
        for file in (CAPTURE / "transaction-state").iterdir():
            text = file.read_text()
            text = text if file.name != STATE_1 else "".join(map(changed, text.splitlines(keepends=True)))
            (tmp_path / file.name).write_text(text)
        paths = [str(CAPTURE / "segments"), *map(str, tmp_path.glob("*.txt"))]
        run = run_audit(no_session, warehouse, paths, cluster=cluster).run
        return run_tables(opened(warehouse), run.cluster, run.run_id)

    return audited


def unknown_status(line: str) -> str:
    return line.replace('"transactionStatus":', '"transactionStatus":7')


@cases(
    "changed",
    {
        "all-of-its-records": lambda line: unknown_status(line) if NAME in line else line,
        "its-last-record": lambda line: unknown_status(line) if NAME in line and "offset: 132" in line else line,
        "no-key": lambda line: unknown_status(line.replace('{"type":"0"', '{"type":"9"')) if NAME in line else line,
    },
)
def test_it_is_not_known_what_an_id_has_open(
    told: Told, request: pytest.FixtureRequest, changed: Callable[[str], str]
) -> None:
    answer = who_is(told(request.node.callspec.id, changed), Kind.TRANSACTIONAL_ID, "order-service-2")
    text = " ".join(owner_text(answer).split())
    assert (answer.is_told, answer.missing[0]) == (False, NOT_DECODED)
    assert "open nothing" not in text
    assert "not known" in text.split(" open ", 1)[1]


def test_the_others_of_its_partition_are_told(told: Told) -> None:
    tables = told("others", lambda line: unknown_status(line) if NAME in line else line)
    assert who_is(tables, Kind.TRANSACTIONAL_ID, "billing-worker-17").is_told
    assert (
        who_is(tables, Kind.PRODUCER_ID, 1001)
        .missing[0]
        .startswith("could not be decoded: records in __transaction_state-1")
    )
