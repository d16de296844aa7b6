"""The owner of a transactional id, by its shape, and how the id's transaction ends, to the millisecond."""

import shlex

import pytest

from tests.tools import report_rows as rows
from tests.tools.cases import cases
from tests.tools.coordinator_rows import record, tombstone
from txn_analysis.kafka.transactions import NEVER_TIMES_OUT_MS, StateRecord
from txn_analysis.report.build import build_report
from txn_analysis.report.finding_text import ends_sentence
from txn_analysis.report.owner import Owner, ending_sentence, owner_of, owner_sentence
from txn_analysis.verdict import Verdict

MINUTE_MS = 60_000
BEGAN_MS = rows.AS_OF_MS - 2 * MINUTE_MS  # 02:58:00
FLINKS_ID = "orders-sink-4-1700"


def ongoing(name: str, timeout_ms: int = 15 * MINUTE_MS, epoch: int = 3) -> StateRecord:
    return record("Ongoing", BEGAN_MS, start_ms=BEGAN_MS, timeout_ms=timeout_ms, transactional_id=name, epoch=epoch)


def owner(*history: StateRecord, as_of_ms: int | None = rows.AS_OF_MS) -> Owner:
    return owner_of(history[-1].transactional_id, history, as_of_ms)


def said(found: Owner) -> str:
    return " ".join(found.ends)


def test_a_transaction_in_progress_ends_at_its_timeout_or_when_its_coordinator_next_looks() -> None:
    ending = owner(ongoing("billing")).ending
    assert ending is not None
    assert ending.times_out_ms == BEGAN_MS + 15 * MINUTE_MS
    assert ending.aborted_by_ms == BEGAN_MS + 15 * MINUTE_MS + 10_000
    assert ending.overdue_after_ms == BEGAN_MS + 20 * MINUTE_MS
    sentence = ending_sentence(ending)
    moments = ("2026-11-21T03:13:00.000Z", "2026-11-21T03:13:10.000Z", "2026-11-21T03:18:00.000Z")
    assert all(moment in sentence for moment in moments)


def test_what_had_become_overdue_when_the_files_were_copied_is_said_so() -> None:
    found = owner(ongoing("billing"), as_of_ms=BEGAN_MS + 20 * MINUTE_MS + 1)
    assert "The files were copied after 2026-11-21T03:18:00.000Z, when it had become coordinator_overdue" in said(found)
    assert "files were copied" not in said(owner(ongoing("billing"), as_of_ms=BEGAN_MS + 20 * MINUTE_MS))


def test_a_record_without_a_start_does_not_tell_when_it_ends() -> None:
    assert "nobody can tell when it ends by itself" in said(owner(ongoing("billing")._replace(start_ms=None)))


def test_a_two_phase_commit_never_ends_by_itself_and_its_owner_ends_it() -> None:
    found = owner(ongoing("ledger", NEVER_TIMES_OUT_MS))
    assert found.ending is not None
    assert (found.ending.never_times_out, found.ending.times_out_ms) == (True, None)
    assert "never by itself" in said(found)
    assert "InitProducerId with keepPreparedTxn" in said(found)
    assert [way.result for way in found.ways] == ["fence"]


def test_a_flink_sink_is_ended_as_its_checkpoint_says_and_both_commands_are_there() -> None:
    found = owner(ongoing(FLINKS_ID))
    assert (found.framework, found.application, found.parts) == (
        "Flink",
        "orders-sink",
        ("subtask 4", "number 1700"),
    )
    assert owner_sentence(found) == "looks like Flink: orders-sink, subtask 4, number 1700"
    assert "holds this id with producer id 7 and epoch 3" in said(found)
    assert "counts as delivered" in said(found)
    commit, abort, fence = found.ways
    assert (commit.result, abort.result, fence.result) == ("commit", "abort", "fence")
    assert shlex.split(commit.command)[3:] == [
        *("--action", "commit", "--bootstrap-servers", "$BROKERS", "--transactional-id", FLINKS_ID),
        *("--producer-id", "7", "--epoch", "3"),
    ]
    assert shlex.split(abort.command)[3:] == [
        *("--action", "abort", "--bootstrap-servers", "$BROKERS", "--transactional-id", FLINKS_ID)
    ]
    assert "forceTerminateTransaction" in fence.command


def test_an_id_that_was_committed_before_has_a_pooled_name_that_nobody_may_take_again() -> None:
    committed = record("CompleteCommit", BEGAN_MS - MINUTE_MS, epoch=2, transactional_id=FLINKS_ID)
    assert "FLINK-40626" in said(owner(committed, ongoing(FLINKS_ID)))


@cases(
    "before",
    {
        "no-commit": record("Empty", BEGAN_MS - 1, epoch=2, transactional_id=FLINKS_ID),
        "an-abort": record("CompleteAbort", BEGAN_MS - 1, epoch=2, transactional_id=FLINKS_ID),
    },
)
def test_an_id_that_was_never_committed_is_not_called_pooled(before: StateRecord) -> None:
    assert "FLINK-40626" not in said(owner(before, ongoing(FLINKS_ID)))


@pytest.mark.parametrize("state", ["PrepareCommit", "PrepareAbort"])
def test_what_is_decided_is_ended_by_nobody_else(state: str) -> None:
    found = owner(record(state, BEGAN_MS, transactional_id=FLINKS_ID, start_ms=BEGAN_MS))
    assert (found.ending, found.ways) == (None, ())
    assert said(found) == f"{state} is decided: its coordinator writes the markers itself. Nobody may end it otherwise"


@pytest.mark.parametrize("last", [record("CompleteCommit", BEGAN_MS), record("Empty", BEGAN_MS), tombstone(BEGAN_MS)])
def test_an_id_without_a_transaction_has_nothing_to_end(last: StateRecord) -> None:
    found = owner(last)
    assert (found.ending, found.ways, said(found)) == (None, (), "nothing is in progress under this id")


def test_an_id_like_an_option_is_no_option_in_any_command() -> None:
    for way in owner(ongoing("-rf-1-2")).ways:
        words = shlex.split(way.command)
        assert [word for word in words if word.endswith("=-rf-1-2")], words


def test_a_finding_says_when_it_ends_and_one_that_hangs_does_not() -> None:
    report = build_report(rows.run(), [], [], [])
    columns = {
        "transactional_id": FLINKS_ID,
        "coordinator_state": "Ongoing",
        "coordinator_start_ms": BEGAN_MS,
        "coordinator_timeout_ms": 15 * MINUTE_MS,
    }
    coordinated = rows.finding(verdict="coordinated", rule="in_coordinator", **columns)._replace(
        verdict=Verdict.COORDINATED
    )
    sentence = ends_sentence(report.run, coordinated)
    assert sentence is not None
    assert sentence.startswith("its coordinator aborts it by 2026-11-21T03:13:10.000Z, at most 10 s")
    assert "It looks like Flink: the timeout aborts also what a completed checkpoint counts as delivered" in sentence
    doubtful = ends_sentence(report.run, coordinated._replace(verdict=Verdict.INCONCLUSIVE))
    assert doubtful is not None
    assert doubtful.startswith("if the coordinator's transaction lists orders-2, its coordinator")
    hanging = coordinated._replace(verdict=Verdict.HANGING)
    assert (hanging.ending, ends_sentence(report.run, hanging)) == (None, None)
