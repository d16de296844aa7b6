from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli.stubs import raising
from tests.report import rows
from txn_analysis import queries
from txn_analysis.errors import WarehouseError
from txn_analysis.report.answer import Answer, Column

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Done

ONE_ROW = Answer((Column("Topic"),), (("orders",),))
NO_ROW = Answer((Column("Topic"),), ())
VERBS = {
    "find-hanging": "find_hanging",
    "list": "list_transactions",
    "describe": "describe",
    "describe-producers": "describe_producers",
}
NEEDED = {"describe": ("--transactional-id", "x"), "describe-producers": ("--topic", "orders", "--partition", "0")}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Answers every query with one row, and keeps what it was asked."""
    found: dict[str, Any] = {}

    def run_tables(warehouse: Any, cluster: str, run_id: str | None) -> Any:
        found["run"] = (warehouse, cluster, run_id)
        return SimpleNamespace(
            findings=lambda: "findings",
            of=lambda name: SimpleNamespace(findings=lambda: f"findings of {name}"),
            health=lambda: "health",
            current_states=lambda: "states",
            as_of_ms=rows.AS_OF_MS,
        )

    def query(*arguments: Any) -> Answer:
        found["arguments"] = arguments
        return ONE_ROW

    monkeypatch.setattr(queries, "run_tables", run_tables)
    for function in VERBS.values():
        monkeypatch.setattr(queries, function, query)
    return found


@pytest.mark.parametrize("verb", VERBS)
def test_answers_as_text_and_json(command: Callable[..., Done], asked: dict[str, Any], verb: str) -> None:
    words = (verb, *NEEDED.get(verb, ()))
    assert command(*words).out == "Topic \t\norders\t\n"
    assert json.loads(command(*words, "--format", "json").out) == [{"Topic": "orders"}]


@pytest.mark.parametrize("verb", VERBS)
def test_the_run_that_was_asked_for(command: Callable[..., Done], asked: dict[str, Any], verb: str) -> None:
    command(verb, *NEEDED.get(verb, ()), "--run", "run-7", "--warehouse", "w", "--cluster", "c")
    assert asked["run"] == (("warehouse", "w"), "c", "run-7")


@pytest.mark.parametrize("verb", VERBS)
def test_no_such_run(command: Callable[..., Done], monkeypatch: pytest.MonkeyPatch, verb: str) -> None:
    monkeypatch.setattr(queries, "run_tables", raising(WarehouseError("no run run-7")))
    done = command(verb, *NEEDED.get(verb, ()))
    assert (done.code, done.out, done.err) == (2, "", "error: no run run-7\n")


def test_find_hanging_exits_with_one_where_it_lists_something(
    command: Callable[..., Done], asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert command("find-hanging").code == 1
    assert command("find-hanging", "--exit-zero").code == 0
    monkeypatch.setattr(queries, "find_hanging", lambda *_: NO_ROW)
    assert command("find-hanging").code == 0


def test_filters_of_find_hanging(command: Callable[..., Done], asked: dict[str, Any]) -> None:
    words = [
        "--topic",
        "orders",
        "--partition",
        "2",
        "--producer-id",
        "1",
        "--producer-id",
        "2",
        "--duration-filter",
        "5",
    ]
    command("find-hanging", *words, "--transactional-id-pattern", "a.*")
    filters = queries.Filters("orders", 2, (), (1, 2), 5, "a.*")
    assert asked["arguments"] == ("findings", filters, None)


def test_what_hung_in_another_run_already_is_left_out(command: Callable[..., Done], asked: dict[str, Any]) -> None:
    command("find-hanging", "--since", "run-1")
    assert asked["arguments"] == ("findings", queries.Filters(), "findings of run-1")


def test_filters_of_list(command: Callable[..., Done], asked: dict[str, Any]) -> None:
    words = [
        "--state",
        "Ongoing",
        "--state",
        "Empty",
        "--producer-id",
        "1",
        "--duration-filter",
        "5",
        "--coordinator",
        "__transaction_state-3",
    ]
    assert command("list", *words).code == 0
    filters = queries.Filters(states=("Ongoing", "Empty"), producer_ids=(1,), duration_ms=5, state_partition=3)
    assert asked["arguments"] == ("states", rows.AS_OF_MS, filters)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("find-hanging", "--partition", "1"), "--partition needs --topic"),
        (("find-hanging", "--broker", "1"), "dumps do not say which broker leads"),
        (("list", "--broker-id", "1"), "dumps do not say which broker leads"),
        (("list", "--coordinator", "1"), "dumps do not say which broker coordinates"),
        (("list", "--coordinator", "__transaction_state-x"), "such as __transaction_state-3"),
        (("list", "--state", "ongoing"), "the states are Empty, Ongoing"),
        (("list", "--transactional-id-pattern", "("), "is not a regular expression"),
    ],
)
def test_filters_that_files_cannot_answer_are_refused(
    command: Callable[..., Done], words: tuple[str, ...], problem: str
) -> None:
    done = command(*words)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert problem in done.err
