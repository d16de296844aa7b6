"""The safety property: no evidence taken away, mixed or handed over differently makes a verdict wrong."""

from collections.abc import Callable

import pytest

from tests.acceptance.captures import VARIANTS, by_place
from tests.oracle.cluster import TWO_PHASE_TIMEOUT_MS, Cluster
from tests.oracle.copies import Truth
from tests.oracle.dump_writer import Tool
from tests.oracle.model import state_partition
from tests.oracle.recipes import HOUR_MS, LONG_AGO_MS, ORDERS, RECIPES, Client, new_cluster
from tests.oracle.state_writer import STATE_TOPIC, console_json
from tests.torture.harness import audit_files
from tests.torture.inputs import InputReader
from tests.torture.safety import run_safety
from tests.torture.subjects import STATE_PARTITIONS, Files, files_of, heartbeat, real_cases
from txn_analysis.judge import rules
from txn_analysis.settings import Settings

MUTATIONS, SEED = 50, 1
LEAST_STILL_HANGING = 30
TOOL = Tool(deep=True)
SETTINGS = Settings(transaction_state_partitions=STATE_PARTITIONS, max_clock_skew_ms=0)
COPIED_LAST = SETTINGS.model_copy(update={"state_copied_last": True})


def live(*, outcome: str | None = None) -> tuple[Cluster, int, int]:
    """An old transaction of `billing` on orders-0, with the moments before it began and before it ended."""
    cluster = new_cluster()
    heartbeat(cluster)
    before = cluster.moment
    client = Client(cluster, "billing").init(timeout_ms=TWO_PHASE_TIMEOUT_MS)
    client.transact(ORDERS, clock_ms=LONG_AGO_MS)
    cluster.sleep(2 * HOUR_MS)
    heartbeat(cluster)
    running = cluster.moment
    if outcome:
        client.end(outcome)
        heartbeat(cluster)
    return cluster, before, running


def state_from_before() -> tuple[Files, Settings]:
    cluster, before, running = live()
    return files_of(cluster.copy_in_order(logs_at=running, state_at=before), TOOL, "dump"), SETTINGS


def log_from_before_the_end() -> tuple[Files, Settings]:
    cluster, _, running = live(outcome="Commit")
    return files_of(cluster.copy_in_order(logs_at=running, state_at=cluster.moment), TOOL, "dump"), SETTINGS


def without_the_coordinators_partition() -> tuple[Files, Settings]:
    cluster, *_ = live()
    files = files_of(cluster.copy(), TOOL, "dump")
    gone = f"{STATE_TOPIC}-{state_partition('billing', STATE_PARTITIONS)}.txt"
    return {name: data for name, data in files.items() if name != gone}, COPIED_LAST


def without_the_marker() -> tuple[Files, Settings]:
    """Of an abort: of a commit, the decision without its marker holds it back as well."""
    cluster, *_ = live(outcome="Abort")
    files = files_of(cluster.copy(), Tool(), "dump")
    lines = files["orders-0.txt"].splitlines(keepends=True)
    producer = b"producerId: %d " % cluster.ids["billing"].value.producer_id
    markers = [line for line in lines if producer in line and b"isControl: true" in line]
    return files | {"orders-0.txt": b"".join(line for line in lines if line not in markers)}, SETTINGS


def compacted_before_the_export() -> tuple[Files, Settings]:
    """Only the last record of each id is left: that of `billing` lists no partition any more."""
    cluster, _, running = live(outcome="Commit")
    copy = cluster.copy_in_order(logs_at=running, state_at=cluster.moment)
    last = {record.transactional_id: record for record in copy.state_records()}
    export = {"console.txt": console_json(last.values()).encode()}
    logs = {name: data for name, data in files_of(copy, TOOL, "dump").items() if not name.startswith(STATE_TOPIC)}
    return logs | export, SETTINGS.model_copy(update={"transaction_state_complete": True})


HELD_BACK: dict[str, Callable[[], tuple[Files, Settings]]] = {
    "evidence_broken": without_the_marker,
    "log_may_end_early": log_from_before_the_end,
    "state_incomplete": without_the_coordinators_partition,
}


def test_a_state_from_before_is_caught_twice(monkeypatch: pytest.MonkeyPatch, reader: InputReader) -> None:
    """It ends before the data, and surely confirms no marker that is as late."""
    files, settings = state_from_before()
    assert {row["rule"] for row in audit_files(reader, {"all": files}, settings).findings} == {"state_older_than_log"}
    monkeypatch.setattr(rules, "RULES", tuple(r for r in rules.RULES if r.name != "state_older_than_log"))
    assert {row["rule"] for row in audit_files(reader, {"all": files}, settings).findings} == {"state_incomplete"}


@pytest.mark.cluster  # the proof's part `safety` tries more; its sample is in `.ci/run`
def test_no_mutation_raises_what_its_coordinator_ends_and_none_loses_a_byte() -> None:
    report = run_safety(MUTATIONS, SEED)
    assert not report.problems, "\n".join(report.problems)
    assert (report.wrongly_raised, report.unaccounted_bytes) == (0, 0)
    assert report.still_hanging >= LEAST_STILL_HANGING, "the property would hold for an audit that finds nothing"


@pytest.mark.parametrize("rule", HELD_BACK)
def test_only_its_rule_holds_back_an_abort_that_would_be_wrong(
    monkeypatch: pytest.MonkeyPatch, reader: InputReader, rule: str
) -> None:
    files, settings = HELD_BACK[rule]()
    found = {row["rule"] for row in audit_files(reader, {"all": files}, settings).findings}
    monkeypatch.setattr(rules, "RULES", tuple(r for r in rules.RULES if r.name != rule))
    without_it = audit_files(reader, {"all": files}, settings)
    assert rule in found
    assert len(without_it.hanging) == 1


def test_compaction_in_a_console_export_does_not_hide_that_a_transaction_ended(reader: InputReader) -> None:
    files, settings = compacted_before_the_export()
    answer = audit_files(reader, {"all": files}, settings)
    assert {row["rule"] for row in answer.findings if row["transactional_id"] == "billing"} == {"log_may_end_early"}
    assert answer.hanging == []


@pytest.mark.parametrize("name", RECIPES)
def test_with_full_evidence_exactly_what_hangs_is_found(reader: InputReader, name: str) -> None:
    cluster = new_cluster()
    heartbeat(cluster)
    (*place, start), truth = RECIPES[name](cluster)
    cluster.sleep(2 * HOUR_MS)
    heartbeat(cluster)
    answer = audit_files(reader, {"all": files_of(cluster.copy(), TOOL, "dump")}, SETTINGS)
    hanging = [(row["topic"], row["partition"], row["producer_id"], row["txn_start_offset"]) for row in answer.hanging]
    assert hanging == ([(*place, start)] if truth is Truth.HANGING else [])


def test_real_captures_keep_their_verdicts_without_spark(reader: InputReader) -> None:
    expected = {v.capture: by_place(v.expected) for v in VARIANTS}
    for case in real_cases():
        for capture, files in case.captures.items():
            answer = audit_files(reader, {capture: files}, Settings.model_validate(case.settings))
            found = {place: (row["verdict"], row["rule"]) for place, row in by_place(answer.findings).items()}
            wanted = expected[f"{case.name.partition(':')[0]}/{capture}"]
            assert found == {place: (row["verdict"], row["rule"]) for place, row in wanted.items()}, case.name
