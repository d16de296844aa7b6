import json
from hashlib import blake2b
from typing import Any

import pytest
from pydantic import ValidationError

from tests.tools import report_rows as rows
from txn_analysis.errors import AuditError
from txn_analysis.plan.abort_plan import abort_plan, plan_fingerprint, whole_plan
from txn_analysis.settings import Settings
from txn_analysis.tables import ABORT_PLAN, AbortRecord, Finding
from txn_analysis.tables.findings import plan_rows
from txn_analysis.verdict import Verdict

SETTINGS = Settings()
AS_OF_MS = rows.AS_OF_MS
LATE_AFTER_MS = 900_000 + 300_000


def plan_of(*findings: Finding, as_of_ms: int | None = AS_OF_MS, **settings: Any) -> tuple[AbortRecord, ...]:
    return abort_plan(findings, Settings(**settings), as_of_ms)


def only(**columns: Any) -> AbortRecord:
    (record,) = plan_of(rows.finding(**columns))
    return record


def test_record_has_the_columns_of_the_table() -> None:
    assert tuple(AbortRecord.model_fields) == tuple(column.name for column in ABORT_PLAN.columns)


@pytest.mark.parametrize("verdict", [v for v in Verdict if v is not Verdict.HANGING])
def test_only_hanging_transactions_are_planned(verdict: Verdict) -> None:
    assert plan_of(rows.finding(verdict=verdict.value)) == ()


@pytest.mark.parametrize(
    ("basis", "seen", "sent"),
    [("none_seen", None, 0), ("marker", 7, 7), ("snapshot", 2, 2), ("unknown", None, None)],
)
def test_coordinator_epoch_is_never_inflated(basis: str, seen: int | None, sent: int | None) -> None:
    assert only(coordinator_epoch_basis=basis, coordinator_epoch=seen).coordinator_epoch == sent


def test_window_begins_when_the_brokers_clocks_agree() -> None:
    bound_ms = AS_OF_MS - 5
    record = only(appended_before_ms=bound_ms)
    assert record.not_before_ms == bound_ms + LATE_AFTER_MS
    assert record.not_after_ms == record.not_before_ms + SETTINGS.plan_valid_ms


def test_window_of_long_late_data_ends_a_plan_life_after_the_copy() -> None:
    record = only(appended_before_ms=AS_OF_MS - 10 * rows.HOUR_MS)
    assert record.not_before_ms == AS_OF_MS - 10 * rows.HOUR_MS + LATE_AFTER_MS
    assert record.not_after_ms == AS_OF_MS + SETTINGS.plan_valid_ms


def test_without_a_bound_the_window_counts_from_the_copy() -> None:
    assert only(appended_before_ms=None).not_before_ms == AS_OF_MS + LATE_AFTER_MS


def test_without_any_broker_time_there_is_no_plan() -> None:
    with pytest.raises(AuditError, match=r"orders-2 .*--as-of"):
        plan_of(rows.finding(appended_before_ms=None), as_of_ms=None)


def test_precondition_looks_the_start_up() -> None:
    precondition = only().precondition
    assert "describe-producers --topic orders --partition 2" in precondition
    assert "producer id 987654321 with epoch 3 and CurrentTransactionStartOffset 155" in precondition
    assert precondition.endswith(f"and no LastTimestamp after {AS_OF_MS - 3 * rows.HOUR_MS}")
    assert "describe --transactional-id" not in precondition


@pytest.mark.parametrize(("is_live", "may_return"), [(True, True), (False, True), (True, False)])
def test_a_producer_that_may_write_again_is_ended_first(is_live: bool, may_return: bool) -> None:
    columns: dict[str, Any] = {"is_producer_live": is_live, "producer_may_return": may_return}
    (record,) = plan_of(rows.live_finding(transactional_id="evil\n$(rm -rf ~)")._replace(**columns))
    assert (record.producer_is_live, record.producer_may_return) == (is_live, may_return)
    assert record.precondition.startswith("first end the producer")
    name = r"""--transactional-id "$(printf 'evil\012$(rm \055rf ~)')"`"""
    assert f"{name} must show an epoch above 0 and not list payments-0" in record.precondition
    assert "never by --start-offset" in record.precondition


@pytest.mark.parametrize(
    "columns",
    [
        {"producer_epoch": None},
        {"producer_epoch": -1},
        {"producer_epoch": 32_768},
        {"producer_id": -1},
        {"producer_id": 2**63},
        {"partition": -1},
        {"partition": 2**31},
        {"coordinator_epoch": -1, "coordinator_epoch_basis": "marker"},
        {"coordinator_epoch": 2**31, "coordinator_epoch_basis": "marker"},
        {"coordinator_epoch": None, "coordinator_epoch_basis": "marker"},
        {"coordinator_epoch": 3, "coordinator_epoch_basis": "unknown"},
        {"topic": ""},
        {"topic": "."},
        {"topic": ".."},
        {"topic": "a/b"},
        {"topic": "orders\n"},
        {"topic": "x" * 250},
        {"txn_start_offset": -1},
        {"evidence": []},
        {"finding_id": None},
        {"producer_may_return": True, "transactional_id": None},
    ],
    ids=str,
)
def test_hanging_finding_outside_kafkas_ranges_is_named(columns: dict[str, Any]) -> None:
    with pytest.raises(AuditError, match="cannot become an abort marker"):
        plan_of(rows.finding(), rows.finding(**columns))


@pytest.mark.parametrize(
    "columns",
    [
        {"producer_epoch": 32_767, "producer_id": 2**63 - 1, "partition": 2**31 - 1, "topic": "x" * 249},
        {"producer_epoch": 0, "producer_id": 0, "partition": 0, "topic": "__consumer_offsets", "txn_start_offset": 0},
    ],
)
def test_the_ends_of_kafkas_ranges_are_planned(columns: dict[str, Any]) -> None:
    assert only(**columns).transaction_result is False


@pytest.mark.parametrize("field", ["transaction_result", "transaction_version"])
def test_a_record_can_only_abort_by_the_legacy_rule(field: str) -> None:
    fields = only().model_dump() | {field: True if field == "transaction_result" else 2}
    with pytest.raises(ValidationError, match=field):
        AbortRecord(**fields)


def test_records_are_sorted_and_share_a_fingerprint_whatever_the_order() -> None:
    findings = [rows.live_finding(), rows.finding(partition=10), rows.finding(partition=9)]
    plan = plan_of(*findings)
    assert [record.topic_partition for record in plan] == ["orders-9", "orders-10", "payments-0"]
    assert plan == plan_of(*reversed(findings))
    assert {record.plan_fingerprint for record in plan} == {plan_fingerprint(plan)}
    assert len(plan[0].plan_fingerprint) == 32


def test_records_of_a_partition_are_in_the_order_of_their_starts() -> None:
    plan = plan_of(rows.finding(producer_id=1, txn_start_offset=90), rows.finding(producer_id=2, txn_start_offset=80))
    assert [record.txn_start_offset for record in plan] == [80, 90]
    table = whole_plan([plan_rows(plan)])
    assert table["txn_start_offset"].to_pylist() == [80, 90]
    assert {*table["plan_fingerprint"].to_pylist()} == {plan_fingerprint(plan)}


def test_fingerprint_is_of_the_canonical_json_of_all_records() -> None:
    plan = abort_plan([rows.finding(), rows.live_finding()], Settings(), rows.AS_OF_MS)
    told = [record.model_dump(mode="json", exclude={"plan_fingerprint"}) for record in plan]
    text = json.dumps(told, sort_keys=True, separators=(",", ":"))
    assert plan[0].plan_fingerprint == blake2b(text.encode("ascii"), digest_size=16).hexdigest()


def test_fingerprint_changes_with_any_record() -> None:
    first, second = plan_of(rows.finding())[0], plan_of(rows.finding(producer_epoch=4))[0]
    assert first.plan_fingerprint != second.plan_fingerprint
