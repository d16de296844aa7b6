"""The command lines of `explain` and `ended`: what is refused before anything starts."""

import json
from types import SimpleNamespace

import pytest

from tests.tools import report_rows as rows
from tests.tools.cases import cases
from tests.tools.program import program
from txn_analysis.judge.endings import TIMEOUT
from txn_analysis.report.formats import Answer, Column

pytestmark = pytest.mark.usefixtures("library")


@cases(
    "words title",
    {
        "a-list-of-explanations": ((), None),
        "one-offset": (("a-0:7",), "OffsetAnswer"),
        "one-offset-of-1.0": (("--topic", "a", "--partition", "0", "--offset", "7"), "OffsetAnswer"),
    },
)
def test_the_schema_of_what_is_printed_as_json(words: tuple[str, ...], title: str | None) -> None:
    done = program("explain", *words, "--schema")
    schema = json.loads(done.out)
    assert (done.code, schema.get("title")) == (0, title)
    assert schema["type"] == ("array" if title is None else "object")


def test_the_schema_of_who_it_is() -> None:
    done = program("explain", "--group", "billing-readers", "--schema")
    assert (done.code, json.loads(done.out)["title"]) == (0, "OwnerAnswer")


@cases(
    "transactional_id cause is_told",
    {
        "a-timeout-of-an-id-like-flinks": ("pay-sink-0-6", TIMEOUT, True),
        "an-abort-of-its-own": ("pay-sink-0-6", "client_abort", False),
        "a-timeout-of-another-id": ("billing-worker", TIMEOUT, False),
    },
)
def test_what_a_timeout_can_have_cost_stands_on_stderr(
    monkeypatch: pytest.MonkeyPatch, transactional_id: str, cause: str, is_told: bool
) -> None:
    answer = Answer((Column("TransactionalId"), Column("Cause")), ((transactional_id, cause),))
    monkeypatch.setattr("txn_analysis.runs.run_tables.run_tables", lambda *_: rows_of_a_run())
    monkeypatch.setattr("txn_analysis.questions.filters.check_seen", lambda *_, **__: None)
    monkeypatch.setattr("txn_analysis.questions.ended.ended_answer", lambda *_: (answer, 0))
    done = program("ended")
    notes = [line for line in done.err.splitlines() if "of an id like Flink's the timeout aborts" in line]
    assert (done.code, len(notes), "Flink's" in done.out) == (0, int(is_told), False)
    assert all("what a completed checkpoint counts as delivered" in note for note in notes)


def rows_of_a_run() -> SimpleNamespace:
    return SimpleNamespace(
        forgotten_captures=(), believed_inputs={}, newer_run=None, run=rows.run(cluster="east"), finished=None
    )
