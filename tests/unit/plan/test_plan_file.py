import json
from typing import Any

import jsonschema
import pytest

from tests.tools import report_rows as rows
from tests.tools.cases import cases
from txn_analysis.errors import AuditError
from txn_analysis.plan.abort_plan import abort_plan, fingerprinted
from txn_analysis.plan.plan_file import (
    Part,
    check_against,
    check_size,
    check_time,
    ndjson,
    read_plan,
    record_schema,
    what_was_checked,
)
from txn_analysis.settings import Settings
from txn_analysis.tables import AbortRecord
from txn_analysis.text import iso_utc

PLAN = abort_plan(
    [
        rows.live_finding(),
        rows.finding(),
        rows.finding(partition=3, coordinator_epoch_basis="unknown", finding_id="f9"),
    ],
    Settings(),
    rows.AS_OF_MS,
)
TEXT = ndjson(PLAN)
ENDS_MS = min(record.not_after_ms for record in PLAN)


def places(records: tuple[AbortRecord, ...]) -> list[str]:
    return [record.topic_partition for record in records]


@pytest.mark.parametrize(
    ("part", "left"),
    [
        (Part(), ["orders-2", "orders-3", "payments-0"]),
        (Part(topics=("orders",)), ["orders-2", "orders-3"]),
        (Part(topics=("orders",), partitions=(3,)), ["orders-3"]),
        (Part(topics=("orders", "payments")), ["orders-2", "orders-3", "payments-0"]),
        (Part(topics=("orders",), partitions=(2, 3)), ["orders-2", "orders-3"]),
        (Part(transactional_ids=("inventory-sync", "nobody")), ["payments-0"]),
        (Part(max_records=2), ["orders-2", "orders-3"]),
        (Part(topics=("nowhere",)), []),
    ],
)
def test_part_of_a_plan(part: Part, left: list[str]) -> None:
    assert places(part.of(PLAN)) == left


def test_part_of_a_plan_can_be_checked_like_a_plan() -> None:
    part = Part(topics=("orders",)).of(PLAN)
    assert part[0].plan_fingerprint != PLAN[0].plan_fingerprint
    assert read_plan(ndjson(part), "plan") == part
    check_against(part, PLAN, "plan")


def test_partition_alone_names_nothing() -> None:
    with pytest.raises(AuditError, match="--partition needs --topic"):
        Part(partitions=(3,))


def test_plan_for_more_partitions_than_allowed_is_refused() -> None:
    check_size(PLAN, 3)
    with pytest.raises(AuditError, match=r"for 3 partitions, more than plan_max_partitions \(2\).*--yes-many"):
        check_size(PLAN, 2)


def test_plan_is_read_back() -> None:
    assert read_plan(TEXT, "plan") == PLAN


def test_every_record_is_valid_by_the_printed_schema() -> None:
    schema = record_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    for line in TEXT.splitlines():
        jsonschema.validate(json.loads(line), schema)


@pytest.mark.parametrize(
    "change",
    [
        {"transaction_result": True},
        {"transaction_version": 2},
        {"producer_epoch": 32_768},
        {"coordinator_epoch": -1},
        {"topic": "orders/.."},
        {"evidence": []},
        {"surprise": 1},
    ],
    ids=str,
)
def test_schema_refuses_what_no_plan_says(change: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(PLAN[0].model_dump() | change, record_schema())


def test_schema_says_what_each_field_is() -> None:
    schema: Any = record_schema()
    assert all(field["description"] for field in schema["properties"].values())


FIRST, SECOND, THIRD = TEXT.splitlines(keepends=True)


@cases(
    "changed",
    {
        "an epoch raised": TEXT.replace('"producer_epoch": 3', '"producer_epoch": 4'),
        "another start": TEXT.replace('"txn_start_offset": 155', '"txn_start_offset": 156'),
        "a longer life": TEXT.replace(f'"not_after_ms": {ENDS_MS}', f'"not_after_ms": {ENDS_MS + 1}'),
        "a precondition reworded": TEXT.replace("first end the producer", "go ahead"),
        "a record left out": FIRST + SECOND,
        "a record twice": TEXT + THIRD,
        "another order": SECOND + FIRST + THIRD,
        "another spelling": TEXT.replace(": ", ":", 1),
        "a key twice": TEXT.replace('"run_id"', '"partition": 0, "run_id"', 1),
        "other line ends": TEXT.replace("\n", "\r\n"),
        "a commit": TEXT.replace('"transaction_result": false', '"transaction_result": true', 1),
        "cut": TEXT[:-10],
        "empty": "",
        "another rendering": "# a script\n",
    },
)
def test_changed_file_is_refused(changed: str) -> None:
    assert changed != TEXT
    with pytest.raises(AuditError, match=r"^plan"):
        read_plan(changed, "plan")


def test_expired_plan_is_refused_from_the_first_expired_record_on() -> None:
    check_time(PLAN, ENDS_MS, "plan")
    with pytest.raises(AuditError, match="expired at"):
        check_time(PLAN, ENDS_MS + 1, "plan")


def test_forged_record_with_a_right_fingerprint_is_none_of_the_run() -> None:
    forged = fingerprinted([PLAN[0].model_copy(update={"producer_epoch": 9}), *PLAN[1:]])
    assert read_plan(ndjson(forged), "plan") == forged
    with pytest.raises(AuditError, match=r"recommends no such abort of orders-2, producer id 987654321"):
        check_against(forged, PLAN, "plan")


def test_check_says_how_long_to_wait() -> None:
    starts_ms = max(record.not_before_ms for record in PLAN)
    said, *producers = what_was_checked(PLAN, starts_ms).splitlines()
    assert said.endswith(f"3 records, unchanged, valid until {iso_utc(ENDS_MS)}")
    assert [line.partition(":")[0] for line in producers] == [
        "first end the producer of payments-0, transactional id inventory-sync"
    ]
    assert f"3 of them not before {iso_utc(starts_ms)}" in what_was_checked(PLAN, starts_ms - 1)


def refusal(text: str) -> str:
    with pytest.raises(AuditError) as refused:
        read_plan(text, "plan")
    return str(refused.value)


def test_a_plan_of_another_version_is_refused_whatever_its_fields_are() -> None:
    text = ndjson(PLAN).replace('"schema_version": 2', '"schema_version": 3').replace('"rule"', '"law"')
    assert refusal(text) == "plan, line 1: has schema_version 3, which this version does not read: audit again"


@pytest.mark.parametrize(
    "text",
    [
        *("{}", "[]", "7", "null", "a script", '{"markers": []}'),
        ndjson(PLAN).replace('"schema_version": 2, ', ""),
        ndjson(PLAN).replace('"producer_epoch": ', '"producer_epoch": 70000'),
        ndjson(PLAN).replace('"rule": ', '"rack": "r1", "rule": '),
        json.dumps({"\x1b[2J" + "x" * 500: 1}) + "\n",
    ],
    ids=["nothing", "list", "number", "null", "no-json", "kafkas-request", "no-version", "range", "field", "terminal"],
)
def test_other_files_are_no_records_of_a_plan(text: str) -> None:
    found = refusal(text)
    assert "line 1: is no record of a plan (" in found
    assert found.endswith("Only what `abort-plan --format ndjson` prints can be checked")
    assert found.isprintable()
    assert len(found) < 400
