"""A plan of another version is refused in one line that ends with what to do, whatever later versions require."""

from __future__ import annotations

import json
from typing import Any, Literal

import pytest

from tests.report import rows
from txn_analysis.errors import AuditError, WarehouseError
from txn_analysis.plan import plan_file, plan_versions
from txn_analysis.plan.abort_plan import AbortRecord, abort_plan, fingerprinted
from txn_analysis.plan.plan_file import read_plan
from txn_analysis.plan.plan_versions import stored_record
from txn_analysis.plan.renderings import PLAN_SCHEMA_VERSION, ndjson
from txn_analysis.settings import Settings

PLAN = abort_plan(rows.judged(rows.finding()), Settings(), rows.AS_OF_MS)
(RECORD,) = PLAN
ROW = RECORD.model_dump()
LINE = {"schema_version": PLAN_SCHEMA_VERSION} | ROW
EARLIER = "was made by an earlier version, which did not say"
NEWER = "was made by a newer version, which says"


class TomorrowsRecord(AbortRecord):
    """With a field that a later version requires."""

    rack: str


class TomorrowsLine(TomorrowsRecord):
    schema_version: Literal[2]


@pytest.fixture
def tomorrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """The program as it may be then."""
    monkeypatch.setattr(plan_versions, "AbortRecord", TomorrowsRecord)
    monkeypatch.setattr(plan_file, "AbortRecord", TomorrowsRecord)
    monkeypatch.setattr(plan_file, "PlanLine", TomorrowsLine)


def refusal(row: dict[str, Any]) -> str:
    with pytest.raises(WarehouseError) as refused:
        stored_record(row)
    return str(refused.value)


def file_refusal(text: str) -> str:
    with pytest.raises(AuditError) as refused:
        read_plan(text, "plan")
    return str(refused.value)


def test_row_of_this_version_is_its_record() -> None:
    assert stored_record(ROW) == RECORD


@pytest.mark.parametrize("column", ["rule", "producer_is_live", "producer_may_return", "not_before_ms", "evidence"])
def test_row_without_what_is_required_is_of_an_earlier_version(column: str) -> None:
    expected = f"run-1: its abort plan {EARLIER} {column}: audit again"
    assert refusal(ROW | {column: None}) == expected
    assert refusal({name: value for name, value in ROW.items() if name != column}) == expected


def test_row_of_today_lacks_what_tomorrow_requires(tomorrow: None) -> None:
    expected = f"run-1: its abort plan {EARLIER} rack: audit again"
    assert refusal(ROW) == refusal(ROW | {"rack": None}) == expected
    assert stored_record(ROW | {"rack": "r1"}).model_dump() == ROW | {"rack": "r1"}


def test_row_of_tomorrow_says_what_is_not_known_today() -> None:
    found = refusal(ROW | {"rack": "r1"})
    assert found == f"run-1: its abort plan {NEWER} rack: use that one, or audit again"


def test_row_of_today_in_a_table_of_tomorrow_is_taken() -> None:
    assert stored_record(ROW | {"rack": None}) == RECORD


def test_row_that_no_version_wrote_is_refused() -> None:
    assert refusal(ROW | {"producer_epoch": -1}) == "run-1: its abort plan holds a record that cannot be: audit again"


def test_file_of_an_earlier_version_is_refused(tomorrow: None) -> None:
    assert file_refusal(ndjson(PLAN)) == f"plan, line 1: {EARLIER} rack: audit again"
    known = fingerprinted([TomorrowsRecord(**ROW, rack="r1")])
    assert read_plan(ndjson(known), "plan") == known


def test_file_of_a_newer_version_is_refused() -> None:
    text = ndjson(fingerprinted([TomorrowsRecord(**ROW, rack="r1")]))
    assert file_refusal(text) == f"plan, line 1: {NEWER} rack: use that one, or audit again"


def test_line_without_a_version_is_of_an_earlier_one() -> None:
    assert file_refusal(json.dumps(ROW) + "\n") == f"plan, line 1: {EARLIER} schema_version: audit again"


def test_line_of_another_version_is_refused_whatever_its_fields_are() -> None:
    text = ndjson(PLAN).replace('"schema_version": 2', '"schema_version": 3')
    expected = "plan, line 1: has schema_version 3, which this version does not read: audit again"
    assert file_refusal(text) == expected


def test_what_a_file_says_reaches_no_terminal_unescaped() -> None:
    found = file_refusal(json.dumps(ROW | {"\x1b[2J" + "x" * 500: 1}) + "\n")
    assert NEWER in found
    assert found.isprintable()
    assert len(found) < 200


@pytest.mark.parametrize(
    "text",
    ["{}", "[]", "7", "null", "a script", '{"markers": []}', json.dumps(LINE | {"producer_epoch": 70_000})],
    ids=["nothing", "list", "number", "null", "no JSON", "Kafka's request", "out of range"],
)
def test_other_files_are_no_records_of_a_plan(text: str) -> None:
    found = file_refusal(text)
    assert "line 1: is no record of a plan (" in found
    assert found.endswith("Only what `abort-plan --format ndjson` prints can be checked")
