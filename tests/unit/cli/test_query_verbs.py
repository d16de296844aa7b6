from types import SimpleNamespace
from typing import Any

import pytest

from tests.tools import report_rows as rows
from tests.tools.program import program
from tests.unit.cli.stubs import raising
from txn_analysis.errors import ConfigError, WarehouseError
from txn_analysis.judge.outcome import ALL_COVERED
from txn_analysis.questions import answers as queries
from txn_analysis.questions.filters import Filters
from txn_analysis.report.formats import Answer, Column
from txn_analysis.tables import Finding
from txn_analysis.verdict import Verdict

pytestmark = pytest.mark.usefixtures("library")

ONE_ROW = Answer((Column("Topic"),), (("orders",),))
NO_ROW = Answer((Column("Topic"),), ())
HANGS = rows.finding(late_by_ms=1)
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
            current_states=lambda *ids: ["states", *ids],
            as_of_ms=rows.AS_OF_MS,
            has_state=True,
            log_coverage=ALL_COVERED,
            forgotten_captures=(),
            believed_inputs={},
            newer_run=None,
            run=rows.run(cluster="east"),
            warehouse=warehouse,
        )

    def query(*arguments: Any, **_: Any) -> Answer:
        found["arguments"] = arguments
        return ONE_ROW

    def check_seen(_: Any, filters: Filters, **__: Any) -> None:
        if "nosuch" in filters.topics:
            raise ConfigError("--topic nosuch: this run saw no such topic")

    monkeypatch.setattr("txn_analysis.runs.run_tables.run_tables", run_tables)
    monkeypatch.setattr("txn_analysis.questions.filters.check_seen", check_seen)
    monkeypatch.setattr("txn_analysis.runs.decisions.accepted_of", lambda *_: ())
    monkeypatch.setattr(queries, "asked_about", lambda *_, **__: [HANGS])
    for function in VERBS.values():
        monkeypatch.setattr(queries, function, query)
    return found


@pytest.mark.parametrize("verb", VERBS)
def test_the_run_that_was_asked_for(asked: dict[str, Any], verb: str) -> None:
    program(verb, *NEEDED.get(verb, ()), "--run", "run-7", "--warehouse", "w", "--cluster", "c")
    assert asked["run"] == (("warehouse", "w"), "c", "run-7")


@pytest.mark.parametrize("verb", VERBS)
def test_no_such_run(monkeypatch: pytest.MonkeyPatch, verb: str) -> None:
    monkeypatch.setattr("txn_analysis.runs.run_tables.run_tables", raising(WarehouseError("no run run-7")))
    done = program(verb, *NEEDED.get(verb, ()))
    assert (done.code, done.out, done.err) == (2, "", "error: no run run-7\n")


def opened(verdict: Verdict, late_by_ms: int | None = 1) -> Finding:
    return rows.finding(verdict=verdict, late_by_ms=late_by_ms)


@pytest.mark.parametrize(
    ("found", "words", "code"),
    [
        ([], (), 0),
        ([opened(Verdict.SUSPECT)], (), 0),
        ([opened(Verdict.HANGING)], (), 1),
        ([opened(Verdict.HANGING)], ("--exit-zero",), 0),
        ([opened(Verdict.SUSPECT)], ("--fail-on", "suspect"), 1),
        ([opened(Verdict.INCONCLUSIVE)], (), 3),
        ([opened(Verdict.INCONCLUSIVE, None)], (), 3),
        ([opened(Verdict.INCONCLUSIVE, -1)], (), 0),
        ([opened(Verdict.INCONCLUSIVE)], ("--accept-inconclusive",), 0),
    ],
)
def test_find_hanging_ends_with_the_code_of_what_is_asked_about(
    asked: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    found: list[Finding],
    words: tuple[str, ...],
    code: int,
) -> None:
    monkeypatch.setattr(queries, "asked_about", lambda *_, **__: found)
    assert program("find-hanging", *words).code == code


def test_what_find_hanging_does_not_list_is_said(asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "asked_about", lambda *_, **__: [opened(Verdict.INCONCLUSIVE)])
    monkeypatch.setattr(queries, "find_hanging", lambda *_: NO_ROW)
    done = program("find-hanging")
    assert done.out == "Topic\t\n"
    assert done.err == (
        "note: 1 open transaction of which it could not be told, on orders-2; more says: "
        "txn-analysis report --run run-1 --cluster east\n"
    )


@pytest.mark.parametrize("verb", ["find-hanging", "list", "describe-producers"])
def test_a_slip_in_a_filter_is_refused(asked: dict[str, Any], verb: str) -> None:
    done = program(verb, "--topic", "nosuch", "--partition", "0")
    assert (done.code, done.out, done.err) == (2, "", "error: --topic nosuch: this run saw no such topic\n")


def test_filters_of_find_hanging(asked: dict[str, Any]) -> None:
    words = [*("--topic", "orders", "--topic", "payments", "--partition", "2", "--state", "ONGOING")]
    words += ["--producer-id", "1", "--producer-id", "2", "--duration-filter", "9", "--duration-filter", "5"]
    words += ["--coordinator", "__transaction_state-3", "--transactional-id-pattern", "a.*"]
    program("find-hanging", *words)
    filters = Filters(("orders", "payments"), (2,), ("Ongoing",), (1, 2), 5, ("a.*",), (3,))
    assert asked["arguments"] == ("findings", filters, [])


def test_what_hung_in_another_run_already_is_left_out(asked: dict[str, Any]) -> None:
    program("find-hanging", "--since", "run-1")
    assert asked["arguments"] == ("findings", Filters(), "findings of run-1")


def test_filters_of_list(asked: dict[str, Any]) -> None:
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
    assert program("list", *words).code == 0
    filters = Filters(states=("Ongoing", "Empty"), producer_ids=(1,), duration_ms=5, state_partitions=(3,))
    assert asked["arguments"] == (["states"], rows.AS_OF_MS, filters)
