"""A script that waits for nobody, looks twice, and can be asked first what it would do: told to every shell."""

from pathlib import Path

import pytest

from tests.tools import report_rows as rows
from tests.unit.plan.plan_shell import (
    FENCED,
    NOW_S,
    RETURNING,
    SHELLS,
    TOO_OLD,
    UNKNOWN,
    Executor,
    Said,
    producers,
    script_of,
    transaction,
)
from txn_analysis.plan.abort_plan import abort_plan
from txn_analysis.plan.script import commands
from txn_analysis.settings import Settings
from txn_analysis.text import shell_word

ENDED = ("--yes", "--ended", "billing")
LATER = rows.finding(finding_id="f2", partition=3)


@pytest.fixture(params=SHELLS)
def executor(request: pytest.FixtureRequest, tmp_path: Path) -> Executor:
    return Executor(tmp_path, request.param)


def test_every_call_has_a_deadline(executor: Executor) -> None:
    done = executor.runs(script_of(RETURNING), *ENDED)
    assert done.deadlines == [60] * len(done.calls)
    hasty = executor.but(variables={"TIMEOUT_SECONDS": "7"}).runs(script_of(RETURNING), *ENDED)
    assert hasty.deadlines == [7] * 4


@pytest.mark.parametrize("ended_with", [124, 143, 137])
@pytest.mark.parametrize("verb", ["describe-producers", "describe"])
def test_a_look_that_hangs_is_refused_and_the_next_record_goes_on(
    executor: Executor, verb: str, ended_with: int
) -> None:
    done = executor.but(hangs=verb, ended_with=ended_with).runs(script_of(RETURNING, LATER), *ENDED)
    assert done.code == 1
    assert f"`kafka-transactions.sh {verb}` has not answered within 60 s" in done.said
    assert [abort[4] for abort in done.aborts] == ([] if verb == "describe-producers" else ["3"])


def test_an_abort_that_hangs_may_have_been_sent(executor: Executor) -> None:
    done = executor.but(hangs="abort").runs(script_of(UNKNOWN), "--yes")
    assert done.code == 1
    assert "has not answered within 60 s, and may have sent it. Run this again: it looks first" in done.said
    assert "sent: " not in done.said


@pytest.mark.parametrize("verb", ["describe-producers", "describe"])
def test_ctrl_c_at_a_look_sends_nothing(executor: Executor, verb: str) -> None:
    done = executor.but(interrupted=verb).runs(script_of(RETURNING), *ENDED)
    assert (done.code, done.aborts) == (130, [])
    assert done.said == "interrupted. Run this again: it looks first\n"


def test_ctrl_c_at_an_abort_sends_nothing_else(executor: Executor) -> None:
    done = executor.but(interrupted="abort").runs(script_of(UNKNOWN, LATER), "--yes")
    assert (done.code, len(done.aborts)) == (130, 1)


def test_without_timeout_it_says_so_and_asks(executor: Executor) -> None:
    without, script = executor.but(has_timeout=False), script_of(UNKNOWN)
    assert without.runs(script).code == 2
    done = without.runs(script, "--yes")
    assert (done.code, len(done.aborts), done.deadlines) == (0, 1, [])
    assert "timeout(1) is not on the PATH: nothing will end a call of Kafka's tool that hangs\n" in done.said
    asked = without.runs_at_a_terminal(script, "n\n")
    assert (asked.code, asked.calls) == (2, [])
    assert "Go on without it? [y/N] error: not confirmed. Nothing was sent." in asked.said
    assert len(without.runs_at_a_terminal(script, "y\ny\n").aborts) == 1


def test_the_coordinator_is_looked_at_twice(executor: Executor) -> None:
    assert executor.runs(script_of(RETURNING), *ENDED).pauses == [10]
    assert executor.but(variables={"PAUSE_SECONDS": "0"}).runs(script_of(RETURNING), *ENDED).pauses == [0]
    assert executor.runs(script_of(UNKNOWN), *ENDED).pauses == []


@pytest.mark.parametrize(
    ("later", "says"),
    [
        (transaction("billing", 987_654_321, 4, coordinator=2), "coordinator 2, producer id 987654321, epoch 4, Comp"),
        (transaction("billing", 987_654_321, 5), "coordinator 0, producer id 987654321, epoch 5, CompleteAbort"),
        (transaction("billing", 987_654_999, 4), "coordinator 0, producer id 987654999, epoch 4, CompleteAbort"),
        (transaction("billing", 987_654_321, 4, state="Empty"), "coordinator 0, producer id 987654321, epoch 4, Empty"),
    ],
    ids=["another coordinator", "another epoch", "another producer id", "another state"],
)
def test_looks_that_disagree_are_refused_and_the_next_record_goes_on(
    executor: Executor, later: Said, says: str
) -> None:
    done = executor.but(describe_later=later).runs(script_of(RETURNING, LATER), *ENDED)
    first = "coordinator 0, producer id 987654321, epoch 4, CompleteAbort"
    assert f"of its producer was said: {first}; and 10 s later: {says}" in done.said
    assert (done.code, [abort[4] for abort in done.aborts]) == (1, ["3"])


@pytest.mark.parametrize(
    ("later", "says"),
    [
        (transaction("billing", 987_654_321, 3), "not fenced"),
        (transaction("billing", 987_654_321, 5, "orders-2"), "the coordinator lists orders-2"),
        (Said(err="Timed out\n", code=1), "failed: Timed out"),
        (TOO_OLD, "too old"),
    ],
)
def test_what_the_second_look_does_not_confirm_is_refused(executor: Executor, later: Said, says: str) -> None:
    done = executor.but(describe_later=later).runs(script_of(RETURNING), *ENDED, "--unchecked", "f1")
    assert (done.code, done.aborts) == (1, [])
    assert says in done.said


def test_brokers_that_cannot_describe_are_asked_once(executor: Executor) -> None:
    done = executor.but(describe=TOO_OLD).runs(script_of(RETURNING), *ENDED, "--unchecked", "f1")
    assert (done.code, len(done.aborts), done.pauses) == (0, 1, [])


@pytest.mark.parametrize("name", ["0", "987654321", "4"])
def test_an_id_of_digits_is_not_taken_for_a_number(executor: Executor, name: str) -> None:
    """Behind the coordinator's number, which could be the same, stands the id."""
    script = script_of(RETURNING._replace(transactional_id=name))
    words = ("--yes", "--ended", name)
    assert executor.but(describe=transaction(name, 987_654_321, 3)).runs(script, *words).aborts == []
    assert len(executor.but(describe=transaction(name, 987_654_321, 4)).runs(script, *words).aborts) == 1


@pytest.mark.parametrize("tool", ["kafka-transactions", "docker"])
def test_kafkas_tool_may_be_called_otherwise(executor: Executor, tool: str) -> None:
    words = ["exec", "broker", "*"] if tool == "docker" else []
    elsewhere = executor.but(tool=tool, variables={"KAFKA_TRANSACTIONS": " ".join([tool, *words])})
    done = elsewhere.runs(script_of(UNKNOWN), "--yes")
    assert [call[: len(words) + 1] for call in done.calls] == [[*words, "--bootstrap-server"]] * 2
    assert (done.code, len(done.aborts)) == (0, 1)


@pytest.mark.parametrize(
    ("variables", "says"),
    [
        ({"KAFKA_TRANSACTIONS": "no-such-tool exec"}, "no-such-tool exec is not on the PATH"),
        ({"KAFKA_TRANSACTIONS": " "}, "is not on the PATH: KAFKA_TRANSACTIONS says how it is called"),
        ({"TIMEOUT_SECONDS": "0"}, "TIMEOUT_SECONDS and PAUSE_SECONDS are whole seconds"),
        ({"TIMEOUT_SECONDS": "1m"}, "TIMEOUT_SECONDS and PAUSE_SECONDS are whole seconds"),
        ({"PAUSE_SECONDS": "-1"}, "TIMEOUT_SECONDS and PAUSE_SECONDS are whole seconds"),
    ],
)
def test_settings_that_are_none_stop_it(executor: Executor, variables: dict[str, str], says: str) -> None:
    done = executor.but(variables=variables).runs(script_of(UNKNOWN), "--yes")
    assert (done.code, done.calls) == (2, [])
    assert says in done.said


def test_help_prints_what_there_is(executor: Executor) -> None:
    code, out, err = executor.asks_for_help(script_of(UNKNOWN, RETURNING))
    assert (code, err) == (0, "")
    assert out.startswith("Abort plan ")
    assert "of run run-1: 2 transactions, not after " in out.splitlines()[0]
    words = ("--dry-run", "--yes", "--ended ID", "--unchecked RECORD", "--help", "BROKERS", "COMMAND_CONFIG")
    assert [
        word for word in (*words, "KAFKA_TRANSACTIONS", "TIMEOUT_SECONDS", "PAUSE_SECONDS") if word not in out
    ] == []


def test_a_dry_run_says_what_would_be_sent_and_sends_nothing(executor: Executor) -> None:
    done = executor.runs(script_of(UNKNOWN, RETURNING), "--dry-run", "--ended", "billing")
    assert (done.code, done.aborts) == (0, [])
    would = "would be sent: orders-2@155, producer id 987654321: abort --topic orders --partition 2"
    epochs = "--producer-id 987654321 --producer-epoch 3 --coordinator-epoch 0"
    open_there = "  checked: its time, open there as in the plan, nothing written since"
    fenced = f"{open_there}, fenced in two looks 10 s apart"
    assert done.said.splitlines() == [f"{would} --start-offset 155", open_there, f"{would} {epochs}", fenced]
    assert executor.runs(script_of(UNKNOWN, RETURNING), "--dry-run", "--yes", "--ended", "billing").aborts == []


def test_a_dry_run_asks_nobody(executor: Executor) -> None:
    done = executor.runs_at_a_terminal(script_of(UNKNOWN), "", "--dry-run")
    assert (done.code, done.aborts, "[y/N]" in done.said) == (0, [], False)


def test_a_dry_run_goes_on_behind_what_time_and_people_can_mend(executor: Executor) -> None:
    early = executor.but(moments=(NOW_S - 100_000,), describe=transaction("billing", 987_654_321, 3))
    done = early.runs(script_of(RETURNING), "--dry-run")
    assert (done.code, done.aborts) == (1, [])
    said = [line for line in done.said.splitlines() if line.startswith("would be")]
    assert [line.partition("987654321: ")[2].partition(":")[0].partition(",")[0] for line in said] == [
        "too early",
        "its producer may return",
        "its producer is not fenced",
    ]
    assert done.said.count("forceTerminateTransaction") == 1
    fenced = early.but(describe=FENCED).runs(script_of(RETURNING), "--dry-run")
    assert (fenced.code, "would be sent" in fenced.said) == (1, False)


@pytest.mark.parametrize(
    ("changes", "code", "says"),
    [
        (
            {"moments": (NOW_S + 1_000_000,)},
            1,
            "would be refused: orders-2@155, producer id 987654321: too",
        ),
        ({"describe_producers": producers((987_654_321, 4, 155))}, 1, "someone wrote since the copy"),
        ({"describe_producers": producers((987_654_321, 3, "None"))}, 0, "nothing to do: "),
        ({"hangs": "describe-producers"}, 1, "has not answered within 60 s"),
        ({"brokers": None}, 2, "BROKERS is not set"),
    ],
)
def test_a_dry_run_ends_with_what_would_become_of_it(
    executor: Executor, changes: dict[str, object], code: int, says: str
) -> None:
    done = executor.but(**changes).runs(script_of(UNKNOWN), "--dry-run")
    assert (done.code, done.aborts) == (code, [])
    assert says in done.said


@pytest.mark.parametrize(
    ("words", "changes", "code", "says"),
    [
        (["--yes"], {"tool": None}, 2, "kafka-transactions.sh is not on the PATH"),
        (["--yes"], {"variables": {"TIMEOUT_SECONDS": "1m"}}, 2, "TIMEOUT_SECONDS and PAUSE_SECONDS are whole seconds"),
        ([], {}, 2, "there is no terminal to ask at"),
        (["--yes"], {}, 1, "its producer may return, and what it writes then would be lost"),
        (ENDED, {"describe": transaction("billing", 987_654_321, 3)}, 1, "its producer is not fenced"),
        (
            ENDED,
            {"describe_later": transaction("billing", 987_654_321, 4, coordinator=2)},
            1,
            "Its coordinator is moving, or somebody uses the id",
        ),
        (ENDED, {"hangs": "describe-producers"}, 1, "has not answered within 60 s"),
        (ENDED, {"hangs": "abort"}, 1, "has not answered within 60 s, and may have sent it"),
    ],
)
def test_what_it_refuses_it_says(
    executor: Executor, words: list[str], changes: dict[str, object], code: int, says: str
) -> None:
    done = executor.but(**changes).runs(script_of(RETURNING), *words)
    assert (done.code, says in done.said) == (code, True), done.said
    if "abort" not in changes.values():
        assert done.aborts == []


@pytest.mark.parametrize("pair", [(987_654_321, 3), (987_654_321, 9), (42, 0)])
@pytest.mark.parametrize("state", ["Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence"])
def test_ended_is_refused_while_anything_is_in_progress_under_the_id(
    executor: Executor, pair: tuple[int, int], state: str
) -> None:
    in_progress = executor.but(describe=transaction("billing", *pair, "pay-1", state=state))
    done = in_progress.runs(script_of(RETURNING), *ENDED)
    assert (done.code, done.aborts) == (1, [])
    assert "forceTerminateTransaction" not in done.said
    assert ("--owner-gone billing" in done.said) == (state == "Ongoing")


def test_a_fence_that_aborts_is_printed_for_an_owner_that_is_gone_alone(executor: Executor) -> None:
    in_progress = executor.but(describe=transaction("billing", 42, 0, "pay-1", "pay-2"))
    done = in_progress.runs(script_of(RETURNING), "--yes", "--owner-gone", "billing")
    assert (done.code, done.aborts) == (1, [])
    assert "producer id 42, epoch 0 on pay-1,pay-2. The fence aborts it" in done.said
    assert "awk" not in done.said
    assert "forceTerminateTransaction --transactionalId=billing" in done.said
    # When somebody has fenced it, the script goes on.
    assert len(executor.runs(script_of(RETURNING), "--yes", "--owner-gone", "billing").aborts) == 1


def test_yes_never_says_that_an_owner_is_gone(executor: Executor) -> None:
    in_progress = executor.but(describe=transaction("billing", 42, 0, "pay-1"))
    done = in_progress.runs(script_of(RETURNING), "--yes")
    assert all("awk" in line for line in done.said.splitlines() if "billing" in line and line.startswith("  "))


def test_where_brokers_refuse_the_tools_own_timeout_the_refusal_writes_a_configuration(executor: Executor) -> None:
    script = commands(abort_plan((RETURNING,), Settings(), rows.AS_OF_MS), 20_000)
    said = executor.but(config="/etc/admin.conf").runs(script, "--yes").said
    assert "{ cat /etc/admin.conf; printf '\\nrequest.timeout.ms=10000\\n" in said
    assert "--command-config fence.properties --bootstrap-server broker:9092 forceTerminateTransaction" in said


def test_brokers_that_cannot_say_what_is_in_progress_have_a_fence_for_an_owner_that_is_gone_alone(
    executor: Executor,
) -> None:
    old = executor.but(describe=TOO_OLD)
    said = old.runs(script_of(RETURNING), *ENDED).said
    gone = old.runs(script_of(RETURNING), "--yes", "--owner-gone", "billing").said
    assert ("forceTerminate" in said, "forceTerminate" in gone) == (False, True)
    silent = executor.but(describe=Said(err="Timed out\n", code=1))
    assert "forceTerminate" not in silent.runs(script_of(RETURNING), "--yes", "--owner-gone", "billing").said


def test_the_fence_of_another_id_is_not_that_of_an_id_with_a_nul(executor: Executor) -> None:
    finding = RETURNING._replace(transactional_id="bill\0ing")
    named_so = executor.but(describe=transaction("billing", 5, 0))  # what a program is asked that drops the NUL
    for word in ("billing", shell_word("bill\0ing")):
        done = named_so.runs_typed(script_of(finding), f"--yes --ended {word}")
        assert (done.code, done.aborts) == (1, [])


@pytest.mark.parametrize("name", [" billing", "billing ", "\tbilling", "billing\n", "\x01billing"])
def test_an_id_whose_ends_a_tool_takes_off_is_not_fenced_by_that_tool(executor: Executor, name: str) -> None:
    said = executor.runs(script_of(RETURNING._replace(transactional_id=name)), "--yes").said
    assert "forceTerminateTransaction" in said
    assert "kafka-producer-perf-test.sh --topic" not in said
    assert "not for this id: the tool takes off the blanks at its ends" in said
    assert "perf-test.sh --topic" in executor.runs(script_of(RETURNING), "--yes").said
