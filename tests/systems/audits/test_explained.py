"""The real captures explained: timelines of open transactions, and how the ended ones came to their end."""

from dataclasses import replace
from typing import Any

import pytest

from tests.tools.captures import SEGMENTS, RunOf, TablesOf, Variant
from tests.tools.cases import cases
from txn_analysis.errors import ConfigError
from txn_analysis.judge.endings import ENDINGS
from txn_analysis.questions.ended import asked_ended, ended_answer, with_records
from txn_analysis.questions.explain import explain
from txn_analysis.questions.filters import Filters
from txn_analysis.runs.past_run import PastRun

LIVE = Variant("kafka-4.2/capture-1", SEGMENTS)
REPAIRED = Variant("kafka-4.2/capture-3", (*SEGMENTS, "producer-snapshots"))
VERSION_2 = Variant("kafka-4.2-tv2/capture-1", SEGMENTS)
STALE = Variant("kafka-4.2-edge/capture-2", (*SEGMENTS, "producer-snapshots"))


def ended(run: PastRun, *, outcome: str | None = "ABORT", stale: bool = False, **filters: Any) -> list[tuple[Any, ...]]:
    """Transactional id, topic, start, cause and confidence of ended transactions."""
    answer, left_out_count = ended_answer(run, Filters(**filters, is_stale=stale), outcome, 1000)
    assert left_out_count == 0
    names = [column.name for column in answer.columns]
    kept = ("TransactionalId", "Topic", "StartOffset", "Cause", "Confidence")
    return [tuple(dict(zip(names, row, strict=True))[name] for name in kept) for row in answer.rows]


def test_nothing_that_fits_is_an_error(tables_of: TablesOf) -> None:
    with pytest.raises(ConfigError, match="no open transaction"):
        explain(tables_of(LIVE), Filters(("missing",)))


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("fraud-.*", {"fraud-scorer"}),
        ("fraud", set()),
        (r"(?P<word>i)nv.*", {"inventory-sync"}),  # Java has no such group
    ],
)
def test_patterns_are_those_of_the_other_verbs(run_of: RunOf, pattern: str, expected: set[str]) -> None:
    assert {row[0] for row in ended(run_of(REPAIRED), transactional_id_patterns=(pattern,))} == expected


def test_commits_are_their_clients(run_of: RunOf) -> None:
    causes = {row[3:] for row in ended(run_of(LIVE), outcome="COMMIT")}
    assert causes == {("client_commit", "certain")}


def test_stale_records_of_an_ended_transaction_are_found_after_the_fact(run_of: RunOf) -> None:
    assert ended(run_of(STALE), outcome=None, stale=True) == [
        ("risk-engine-2", "trades-eu", 57, "coordinator_timeout", "certain")
    ]


@cases(
    "variant filters",
    {
        "after-a-repair": (REPAIRED, {}),
        "of-transaction-version-2": (VERSION_2, {}),
        "with-stale-data": (STALE, {}),
        "of-some-ids": (REPAIRED, {"transactional_id_patterns": ("[a-f].*",)}),
        "of-a-topic": (STALE, {"topics": ("orders",)}),
    },
)
def test_what_is_asked_by_cause_is_what_all_answers_hold(
    run_of: RunOf, variant: Variant, filters: dict[str, Any]
) -> None:
    run, wanted_ids = run_of(variant), Filters(**filters)
    everything = answered(run, Filters(topics=wanted_ids.topics))
    of_ids = [row for row in everything if wanted_ids.has_id(row["TransactionalId"])]
    assert answered(run, wanted_ids) == of_ids
    for cause in ENDINGS:
        found = answered(run, replace(wanted_ids, cause=cause))
        assert found == [row for row in of_ids if row["Cause"] == cause]
        newest = answered(run, replace(wanted_ids, cause=cause), limit=2)
        assert newest == found[:2]
    stale = answered(run, replace(wanted_ids, is_stale=True))
    assert stale == [row for row in of_ids if row["Stale"] is not None]


def test_a_list_of_ended_transactions_is_of_a_window_of_time(run_of: RunOf) -> None:
    run = run_of(LIVE)
    every = answered(run, Filters())
    times_ms = sorted(row["EndTimeMs"] for row in every if row["EndTimeMs"] is not None)
    since_ms, until_ms = times_ms[len(times_ms) // 4], times_ms[len(times_ms) // 2]
    for cause in (None, "client_commit"):
        of_all = [
            row for row in every if cause in {None, row["Cause"]} and since_ms <= (row["EndTimeMs"] or 0) < until_ms
        ]
        assert answered(run, Filters(since_ms=since_ms, until_ms=until_ms, cause=cause)) == of_all
        assert of_all


@pytest.mark.parametrize("variant", [LIVE, Variant("kafka-4.2/capture-1", ("segments",))], ids=["state", "no state"])
def test_of_an_id_that_nobody_has_nothing_ended(run_of: RunOf, variant: Variant) -> None:
    nobody = Filters(transactional_id_patterns=("nobody",))
    assert answered(run_of(variant), nobody) == []
    assert [*with_records(run_of(variant), asked_ended(run_of(variant), nobody))] == []


def answered(run: PastRun, filters: Filters, limit: int = 9999) -> list[dict[str, Any]]:
    answer, _ = ended_answer(run, filters, None, limit)
    names = [column.name for column in answer.columns]
    return [dict(zip(names, row, strict=True)) for row in answer.rows]
