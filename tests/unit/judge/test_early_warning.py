"""What does not hang yet and will: each kind just at its bound and just below it, in one frame."""

from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession

from tests.tools.cases import cases
from tests.tools.coordinator_rows import states_of, table_row
from tests.tools.judged_cases import LATE_MS, Case, listed
from txn_analysis.columns.values import VALUES
from txn_analysis.coordinator.state_records import (
    HISTORIES,
    Placings,
    abort_counts,
    by_id,
    histories_of,
    newest_records,
)
from txn_analysis.engine.engine import Engine
from txn_analysis.engine.in_process import InProcess
from txn_analysis.engine.on_spark import OnSpark
from txn_analysis.judge import early_warning
from txn_analysis.judge.early_warning import WARNINGS, EarlyWarning, median_of
from txn_analysis.judge.warning_steps import LAST_RECORDS, WarningLine, near_bound, open_warnings
from txn_analysis.pipeline.coordinator_side import States, ids_side
from txn_analysis.settings import Settings
from txn_analysis.verdict import Verdict

Row = dict[str, Any]

NOW_MS = 1_800_000_000_000
DAY_MS = 86_400_000
WEEK_MS = 7 * DAY_MS


def record(transactional_id: str, state: str = "Empty", offset: int = 0, **changes: Any) -> Row:
    return table_row(offset, transactional_id, state, **{"last_update_ms": NOW_MS} | changes)


def aborted(transactional_id: str, number: int, *, at_ms: int, taken_over: bool = False) -> list[Row]:
    """One aborted transaction that began at 0, whose epoch was raised; then perhaps a new instance."""
    epoch, offset = 2 * number, 10 * number
    rows = [
        record(transactional_id, "Ongoing", offset, producer_epoch=epoch, start_ms=0, last_update_ms=0),
        record(
            transactional_id, "PrepareAbort", offset + 1, producer_epoch=epoch + 1, start_ms=0, last_update_ms=at_ms
        ),
        record(
            transactional_id, "CompleteAbort", offset + 2, producer_epoch=epoch + 1, start_ms=0, last_update_ms=at_ms
        ),
    ]
    after = record(transactional_id, "Empty", offset + 3, producer_epoch=epoch + 2, last_update_ms=at_ms + 100)
    return [*rows, after] if taken_over else rows


HISTORY = [
    *(record(f"quiet{letter}") for letter in "abcdefghijklmnopqrst"),
    record("running-at-74", "Ongoing", start_ms=NOW_MS - 44_999),
    record("running-at-75", "Ongoing", start_ms=NOW_MS - 45_000),
    record("long", timeout_ms=900_001),
    record("longest-allowed", timeout_ms=900_000),
    record("two-phase", timeout_ms=2**31 - 1),
    record("epochs-left", producer_epoch=31_765),
    record("epochs-used", producer_epoch=31_766),
    record("used-lately", last_update_ms=NOW_MS - WEEK_MS + DAY_MS),
    record("unused", last_update_ms=NOW_MS - WEEK_MS + DAY_MS - 1),
    record("gone", producer_epoch=32_000, is_tombstone=True),
    *(record(f"many-{n}-{n}", last_update_ms=NOW_MS - WEEK_MS) for n in range(3)),
    *(row for n in range(3) for row in aborted("slow", n, at_ms=60_000)),
    *(row for n in range(2) for row in aborted("slow-twice", n, at_ms=60_000)),
    *(row for n in range(3) for row in aborted("restarted", n, at_ms=59_999, taken_over=True)),
    *(row for n in range(3) for row in aborted("gave-up", n, at_ms=59_999)),
]


def warnings_on(engine: Engine[Any], rows: list[Row], as_of_ms: int | None = NOW_MS) -> list[WarningLine]:
    records, none = states_of(*rows), np.zeros(len(rows), np.int64)
    ordered = by_id(records, none, none)
    often = histories_of(records, none, ordered.only(abort_counts(records, ordered) >= early_warning.MANY))
    newest = newest_records(records, ordered)
    parts = (HISTORIES.empty_table(), often, newest, VALUES.empty_table(), newest.select(LAST_RECORDS.names))
    return ids_side(engine, States(Placings({}), *map(engine.made, parts)), Settings(), as_of_ms)[0]


def in_memory(rows: list[Row], as_of_ms: int | None = NOW_MS) -> list[WarningLine]:
    return warnings_on(InProcess(), rows, as_of_ms)


def in_tasks(spark: SparkSession, rows: list[Row], as_of_ms: int | None = NOW_MS) -> list[WarningLine]:
    return warnings_on(OnSpark(spark, 3), rows, as_of_ms)


@pytest.fixture(scope="module")
def warned() -> dict[tuple[str, str], WarningLine]:
    """One history of many ids; the warnings by kind and application."""
    return {(line.kind, line.subject): line for line in in_memory(HISTORY)}


@pytest.mark.parametrize(
    ("kind", "subjects"),
    [
        ("transaction_near_timeout", {"running-at"}),
        ("timeout_above_maximum", {"long"}),
        ("timeout_outlier", {"longest-allowed"}),
        ("never_times_out", {"two-phase"}),
        ("epoch_near_exhaustion", {"epochs-used"}),
        ("many_timeouts", {"slow"}),
        ("many_fencings", {"restarted"}),
    ],
)
def test_each_kind_warns_from_its_bound_on(
    warned: dict[tuple[str, str], WarningLine], kind: str, subjects: set[str]
) -> None:
    assert {subject for found, subject in warned if found == kind} == subjects


def test_a_two_phase_commit_is_left_to_its_owner_in_its_finding_as_in_the_warning(
    warned: dict[tuple[str, str], WarningLine],
) -> None:
    told = "two-phase commit: never times out, its owner decides; whether it is prepared is not in the state"
    judged = Case("", "", known=listed("Ongoing", timeout_ms=2**31 - 1, start_ms=0)).judged()
    assert (judged.rule.name, judged.verdict) == ("in_coordinator", Verdict.COORDINATED)
    assert told in judged.words.evidence_in(judged.case)
    assert warned["never_times_out", "two-phase"].text.endswith(told)
    other = Case("", "", known=listed("Ongoing")).judged()
    assert told not in other.words.evidence_in(other.case)


def test_ids_of_one_application_are_one_line(warned: dict[tuple[str, str], WarningLine]) -> None:
    many = warned["about_to_expire", "many"]
    assert (many.count, many.example) == (3, "many-0-0")
    assert many.text.endswith("(Flink)")
    assert warned["about_to_expire", "unused"].count == 1
    assert ("about_to_expire", "used-lately") not in warned


# Applications beyond the ten that are named, equal ones, records that two copies hold, another producer of the same id.
MANY = [
    *(record(f"{name}-{n}", producer_epoch=32_000 + n % 4) for n in range(4) for name in "abcdefghijkl"),
    *(record(f"even-{n}-{n}", timeout_ms=1_000_000) for n in range(2)),
    *(record(name, timeout_ms=1_000_000) for name in ("even", "odd", "odd-1")),
    *(row for n in range(4) for row in aborted("slow", n, at_ms=60_000)),
    *(row | {"producer_id": 1 + row["producer_epoch"]} for n in range(4) for row in aborted("other", n, at_ms=60_000)),
]
UNDECODED = [
    row | {"transactional_id": f"no {name} of {row['transactional_id']}", name: None}
    for name in ("state", "producer_epoch", "timeout_ms", "last_update_ms", "start_ms")
    for row in HISTORY
]


@cases(
    "rows as_of_ms",
    {
        "each kind": (HISTORY, NOW_MS),
        "no clock": (HISTORY, None),
        "many": ([*MANY, *reversed(MANY)], NOW_MS),
        "undecoded": (UNDECODED, NOW_MS),
        "none": ([], NOW_MS),
    },
)
def test_tasks_warn_as_memory_does(spark: SparkSession, rows: list[Row], as_of_ms: int | None) -> None:
    assert in_tasks(spark, rows, as_of_ms) == in_memory(rows, as_of_ms)


def test_of_many_applications_the_worst_are_named() -> None:
    epochs = [line for line in in_memory(MANY) if line.kind == "epoch_near_exhaustion"]
    assert [line.subject for line in epochs] == [*"abcdefghij"]
    assert {(line.example, line.count) for line in epochs} == {(f"{name}-3", 4) for name in "abcdefghij"}


@pytest.mark.parametrize(("late_by_ms", "is_near"), [(-300_000, False), (-299_999, True), (0, True), (1, False)])
def test_an_open_transaction_near_its_bound(late_by_ms: int, is_near: bool) -> None:
    opened = Case("near its bound", "not_late", open={"last_timestamp_ms": NOW_MS - LATE_MS - late_by_ms}).judged()
    found = open_warnings(near_bound([opened]), NOW_MS)
    assert bool(found) is is_near
    assert all(
        line.text.startswith(f"open from offset 100, late in {-late_by_ms} ms, from 2027-01-15") for line in found
    )
    assert all(line.at_ms == NOW_MS - late_by_ms for line in found)


def test_a_warning_says_by_when_it_happens(warned: dict[tuple[str, str], WarningLine]) -> None:
    near, unused = warned["transaction_near_timeout", "running-at"], warned["about_to_expire", "unused"]
    assert near.at_ms == NOW_MS + 15_000
    assert "its coordinator aborts it soon after 2027-01-15T08:00:15.000Z" in near.text
    assert unused.at_ms == NOW_MS + DAY_MS - 1
    assert "the coordinator forgets it from 2027-01-16T07:59:59.999Z on" in unused.text
    assert warned["epoch_near_exhaustion", "epochs-used"].at_ms is None


@cases(
    "timeouts_ms median_ms",
    {
        "the demo: twelve ids": ({60_000: 7, 850_000: 5}, None),
        "one id too few": ({60_000: 28, 900_000: 1}, None),
        "one of thirty": ({60_000: 29, 900_000: 1}, 60_000),
        "a tenth is far above": ({60_000: 27, 900_000: 3}, 60_000),
        "two kinds of application": ({60_000: 26, 900_000: 4}, None),
        "ten times is not far": ({60_000: 26, 600_000: 4}, 60_000),
        "none": ({}, None),
    },
)
def test_a_median_speaks_of_many_ids_of_which_few_are_far_above(
    timeouts_ms: dict[int, int], median_ms: int | None
) -> None:
    assert median_of(timeouts_ms) == median_ms


@pytest.mark.parametrize("warning", WARNINGS, ids=lambda warning: warning.kind)
def test_a_warning_is_found_by_its_name(warning: EarlyWarning) -> None:
    assert vars(early_warning)[warning.kind.upper()] is warning
