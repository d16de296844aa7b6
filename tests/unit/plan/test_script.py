"""The script of a plan refuses by itself: contract, section 7. Each story is told to every shell that is there."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.golden.answers import own_lines_of
from tests.tools import report_rows as rows
from tests.unit.plan.plan_shell import (
    FENCED,
    LAST_MS,
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
from txn_analysis.plan.script import commands
from txn_analysis.tables import Finding

LOOK_UP = ["abort", "--topic", "orders", "--partition", "2", "--start-offset", "155"]
FOUR_FIELDS = [
    *("abort", "--topic", "orders", "--partition", "2"),
    *("--producer-id", "987654321", "--producer-epoch", "3", "--coordinator-epoch", "0"),
]
FROM_S, TO_S = 1_795_220_401, 1_795_316_400
HOSTILE = (
    "\\n'; touch X; #",
    "-rf",
    "--everything",
    "a b\tc",
    "$(touch X)`touch X`",
    "evil\nkafka-transactions.sh abort --everything",
    "\n",
    "%s%n\n!!\n",
    "\x1b[2J\u202e\u2028'\"",
    "*",
    "ProducerId",
    "77",
)


@pytest.fixture(params=SHELLS)
def executor(request: pytest.FixtureRequest, tmp_path: Path) -> Executor:
    return Executor(tmp_path, request.param)


def test_what_holds_is_sent(executor: Executor) -> None:
    done = executor.runs(script_of(UNKNOWN), "--yes")
    assert (done.code, done.said) == (0, "sent: orders-2@155, producer id 987654321\n")
    assert [call[:2] for call in done.calls] == [["--bootstrap-server", "broker:9092"]] * 2
    assert done.calls[0][2:] == ["describe-producers", "--topic", "orders", "--partition", "2"]
    assert done.aborts == [LOOK_UP]


def test_credentials_go_to_every_call(executor: Executor) -> None:
    done = executor.but(config="/etc/my admin.conf").runs(script_of(UNKNOWN), "--yes")
    assert [call[2:4] for call in done.calls] == [["--command-config", "/etc/my admin.conf"]] * 2
    assert done.aborts == [LOOK_UP]


@pytest.mark.parametrize(
    ("moment", "says"),
    [
        (FROM_S - 1, "too early: wait 1 min more"),
        (TO_S + 1, "too late: it expired 0 min ago. Copy the files and audit again"),
        (TO_S + 36_000, "too late: it expired 600 min ago"),
        (FROM_S, None),
        (TO_S, None),
    ],
)
def test_it_is_sent_inside_its_window_alone(executor: Executor, moment: int, says: str | None) -> None:
    done = executor.but(moments=(moment,)).runs(script_of(UNKNOWN, RETURNING), "--yes", "--ended", "billing")
    assert len(done.aborts) == (0 if says else 2)
    assert says is None or done.said.count(f": {says}") == 2
    assert done.code == (1 if says else 0)


@pytest.mark.parametrize("moment", ["", "Sat Nov 21 03:00:00 UTC 2026", "-5", "12e9"])
def test_a_clock_that_does_not_tell_the_time_stops_it(executor: Executor, moment: str) -> None:
    done = executor.but(moments=(moment,)).runs(script_of(UNKNOWN), "--yes")
    assert (done.code, done.calls) == (2, [])
    assert "date +%s does not tell the time. Nothing was sent" in done.said


@pytest.mark.parametrize(
    ("changes", "arguments", "says"),
    [
        ({"brokers": None}, ["--yes"], "BROKERS is not set"),
        ({"brokers": ""}, ["--yes"], "BROKERS is not set"),
        ({"tool": None}, ["--yes"], "kafka-transactions.sh is not on the PATH"),
        ({}, [], "no terminal to ask at: read the plan, then say --yes"),
        ({}, ["--ended", "billing"], "no terminal to ask at"),
        ({}, ["--yes", "--force"], "unknown argument --force"),
        ({}, ["--yes", "--ended"], "--ended needs a value"),
        ({}, ["--yes", "--unchecked"], "--unchecked needs a value"),
    ],
)
def test_it_does_not_begin(executor: Executor, changes: dict[str, object], arguments: list[str], says: str) -> None:
    done = executor.but(**changes).runs(script_of(UNKNOWN, RETURNING), *arguments)
    assert (done.code, done.calls) == (2, [])
    assert says in done.said


@pytest.mark.parametrize(
    ("answer", "is_sent"), [("y", True), ("YES", True), ("n", False), ("", False), ("yeah", False)]
)
def test_at_a_terminal_it_asks(executor: Executor, answer: str, is_sent: bool) -> None:
    done = executor.runs_at_a_terminal(script_of(UNKNOWN), f"{answer}\n")
    assert "Abort orders-2@155, producer id 987654321? [y/N]" in done.said
    assert done.aborts == ([LOOK_UP] if is_sent else [])
    assert done.code == (0 if is_sent else 1)


def test_it_asks_for_each(executor: Executor) -> None:
    script = script_of(UNKNOWN, rows.finding(finding_id="f2", partition=3))
    done = executor.runs_at_a_terminal(script, "n\ny\n")
    assert [abort[4] for abort in done.aborts] == ["3"]
    assert done.code == 1


def test_an_answer_that_took_too_long_is_too_late(executor: Executor) -> None:
    began, looked, answered = NOW_S, NOW_S, TO_S + 60
    done = executor.but(moments=(began, looked, answered)).runs_at_a_terminal(script_of(UNKNOWN), "y\n")
    assert (done.code, done.calls) == (1, [])
    assert "too late" in done.said


@pytest.mark.parametrize(
    ("seen", "says"),
    [
        (producers((987_654_321, 3, 156)), "begins at offset 156 there. Copy the files and audit again"),
        (producers((987_654_321, 3, 100)), "begins at offset 100 there"),
        (producers((987_654_321, 4, 155)), "has epoch 4 there: someone wrote since the copy"),
        (
            producers((987_654_321, 3, 155), last_ms=LAST_MS + 1),
            f"wrote there at {LAST_MS + 1}, after the copy's {LAST_MS}",
        ),
        (producers((987_654_321, 3, 155), last_ms="lately"), "wrote there at lately"),
        (Said(err="Timed out waiting for a node assignment.\n", code=1), "failed: Timed out waiting for a node"),
        (Said(err="Not authorized to access topics: [orders]\n", code=1), "failed: Not authorized"),
        (Said("usage: kafka-transactions.sh\n"), "says what is not understood: usage: kafka-transactions.sh"),
        (Said(), "says what is not understood"),
        (TOO_OLD, "too old for `kafka-transactions.sh describe-producers`, which must be looked at first"),
    ],
)
@pytest.mark.parametrize("finding", [UNKNOWN, RETURNING], ids=["unknown producer", "producer that may return"])
def test_what_the_partition_does_not_confirm_is_refused(
    executor: Executor, finding: Finding, seen: Said, says: str
) -> None:
    done = executor.but(describe_producers=seen).runs(script_of(finding), "--yes", "--ended", "billing")
    assert (done.code, done.aborts) == (1, [])
    assert says in done.said


@pytest.mark.parametrize(
    "seen", [producers((987_654_321, 3, "None")), producers((987_654_320, 3, 155)), producers((1, 0, "None"))]
)
def test_what_is_ended_already_needs_nothing(executor: Executor, seen: Said) -> None:
    done = executor.but(describe_producers=seen).runs(script_of(UNKNOWN), "--yes")
    assert (done.code, done.aborts) == (0, [])
    assert done.said.startswith("nothing to do: orders-2@155")


def test_producer_ids_that_a_float_cannot_tell_apart(executor: Executor) -> None:
    mine, other = 2**53 + 1, 2**53
    seen = producers((other, 3, 155))
    done = executor.but(describe_producers=seen).runs(script_of(rows.finding(producer_id=mine)), "--yes")
    assert done.aborts == []


def test_yes_does_not_answer_for_a_producer_that_may_return(executor: Executor) -> None:
    done = executor.runs(script_of(RETURNING), "--yes")
    assert (done.code, done.calls) == (1, [])
    assert "its producer may return, and what it writes then would be lost" in done.said
    assert "say --ended billing\n" in done.said
    assert executor.runs(script_of(RETURNING), "--yes", "--ended", "payments").aborts == []


def test_nor_does_a_person_at_a_terminal(executor: Executor) -> None:
    assert executor.runs_at_a_terminal(script_of(RETURNING), "y\n").aborts == []
    assert executor.runs_at_a_terminal(script_of(RETURNING), "y\n", "--ended", "billing").aborts == [FOUR_FIELDS]


def test_an_ended_producer_is_looked_at_and_its_recorded_epochs_are_sent(executor: Executor) -> None:
    done = executor.runs(script_of(RETURNING), "--ended", "billing", "--yes")
    assert [call[2] for call in done.calls] == ["describe-producers", "describe", "describe", "abort"]
    assert [call[3:] for call in done.calls[1:3]] == [["--transactional-id", "billing"]] * 2
    assert (done.code, done.aborts) == (0, [FOUR_FIELDS])


@pytest.mark.parametrize(
    ("seen", "says"),
    [
        (transaction("billing", 987_654_321, 3), "the coordinator's epoch is 3, and must be above 3, or of another"),
        (transaction("billing", 987_654_321, 2), "not fenced"),
        (transaction("billing", 987_654_321, 4, "orders-2"), "the coordinator lists orders-2"),
        (transaction("billing", 987_654_321, 4, "orders-1", "orders-2", "x-0"), "the coordinator lists orders-2"),
        (transaction("billing", 987_654_999, 0, "x-0", state="Ongoing"), "a transaction in progress: producer id 9876"),
        (transaction("billing", 987_654_999, 0, "x-0", state="PrepareAbort"), "in state PrepareAbort, which a fence"),
        (transaction("billing2", 987_654_321, 4), "is not understood"),
        (Said(FENCED.out.splitlines()[0]), "is not understood"),
        (Said(), "is not understood"),
        (Said(err="The transactionalId could not be found\n", code=1), "failed: The transactionalId could not"),
        (TOO_OLD, "too old for `kafka-transactions.sh describe`"),
    ],
)
def test_a_producer_that_the_coordinator_has_not_ended_keeps_its_data(
    executor: Executor, seen: Said, says: str
) -> None:
    done = executor.but(describe=seen).runs(script_of(RETURNING), "--yes", "--ended", "billing")
    assert (done.code, done.aborts) == (1, [])
    assert says in done.said


@pytest.mark.parametrize(
    "seen",
    [
        transaction("billing", 987_654_999, 0),  # its epochs were used up: it has another producer id now
        transaction("billing", 1_999, 0),  # the same, of a block that its broker was given earlier
        Said("WARN a word of Log4j\n" + FENCED.out),
        Said(FENCED.out.replace("\t", " ")),
    ],
)
def test_fenced_is_fenced(executor: Executor, seen: Said) -> None:
    assert executor.but(describe=seen).runs(script_of(RETURNING), "--yes", "--ended", "billing").aborts == [FOUR_FIELDS]


def test_old_brokers_need_a_word_for_each_record(executor: Executor) -> None:
    script = script_of(UNKNOWN, rows.finding(finding_id="f2", partition=3))
    old = executor.but(describe_producers=TOO_OLD)
    assert "--unchecked f0\n" in old.runs(script, "--yes").said
    assert [abort[4] for abort in old.runs(script, "--yes", "--unchecked", "f2").aborts] == ["3"]


@pytest.mark.parametrize("typed", [("--yes", "--ended", "it's billing"), ("--dry-run",)], ids=["in earnest", "dry run"])
def test_of_old_brokers_it_prints_what_to_look_at_and_the_line_that_sends(
    executor: Executor, typed: tuple[str, ...]
) -> None:
    script = script_of(RETURNING._replace(transactional_id="it's billing"))
    old = executor.but(describe=TOO_OLD, brokers="one:9092,two:9092")
    said = old.runs(script, *typed).said
    assert (
        "`txn-analysis describe --transactional-id 'it'\\''s billing'` must show an epoch above 3, or another" in said
    )
    (line,) = (line for line in said.splitlines() if line.startswith("  BROKERS="))
    environment, _, words = line.partition("plan.sh")
    assert environment.startswith("  BROKERS=one:9092,two:9092 sh ")
    assert old.runs_typed(script, f"--yes {words.replace('--yes', '')}").aborts == [FOUR_FIELDS]


def test_what_was_typed_with_control_characters_is_not_printed_again(executor: Executor) -> None:
    name = "a\x1b[2Jb\nc"
    script = script_of(RETURNING._replace(transactional_id=name))
    old = executor.but(describe=TOO_OLD).runs(script, "--yes", "--ended", name)
    assert "send it by --unchecked f1\n" in old.said
    assert ("\x1b" in old.said, "plan.sh" in old.said) == (False, False)


def test_no_word_replaces_what_the_brokers_can_check(executor: Executor) -> None:
    busy = executor.but(describe=transaction("billing", 987_654_321, 4, "orders-2"))
    arguments = ("--yes", "--ended", "billing", "--unchecked", "f1")
    assert busy.runs(script_of(RETURNING), *arguments).aborts == []
    assert executor.but(describe=TOO_OLD).runs(script_of(RETURNING), *arguments).aborts == [FOUR_FIELDS]
    assert executor.but(describe=TOO_OLD).runs(script_of(RETURNING), "--yes", "--unchecked", "f1").aborts == []


def test_the_value_of_an_option_is_no_option(executor: Executor) -> None:
    done = executor.runs(script_of(RETURNING), "--unchecked", "--ended", "--ended", "billing", "--yes")
    assert done.aborts == [FOUR_FIELDS]
    assert executor.runs(script_of(RETURNING), "--yes", "--unchecked", "--ended", "--unchecked", "billing").aborts == []


def test_time_of_the_last_write_is_not_asked_where_the_copy_does_not_tell_it(executor: Executor) -> None:
    script = script_of(rows.finding(last_timestamp_ms=None, lateness_basis="broker_clock"))
    assert executor.runs(script, "--yes").aborts == [LOOK_UP]


def test_an_abort_that_fails_is_told(executor: Executor) -> None:
    done = executor.but(abort=Said(code=1)).runs(script_of(UNKNOWN), "--yes")
    assert done.code == 1
    assert "Kafka's tool ended with exit code 1" in done.said


def test_start_that_is_not_exact_is_looked_up_or_not_sent(executor: Executor) -> None:
    known: rows.Row = {"coordinator_epoch": 2, "coordinator_epoch_basis": "marker", "is_txn_start_exact": False}
    assert executor.runs(script_of(rows.finding(**known)), "--yes").aborts == [LOOK_UP]
    done = executor.runs(script_of(RETURNING._replace(**known)), "--yes", "--ended", "billing")
    assert (done.code, done.calls) == (1, [])
    assert "no command: its start is not exact" in done.said


def test_unknown_coordinator_epoch_is_looked_up_or_not_sent(executor: Executor) -> None:
    unknown: rows.Row = {"coordinator_epoch_basis": "unknown"}
    assert executor.runs(script_of(rows.finding(**unknown)), "--yes").aborts == [LOOK_UP]
    assert executor.runs(script_of(RETURNING._replace(**unknown)), "--yes", "--ended", "billing").calls == []


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_transactional_ids_arrive_as_they_are(executor: Executor, name: str) -> None:
    fenced = executor.but(describe=transaction(name, 987_654_321, 4))
    done = fenced.runs(script_of(RETURNING._replace(transactional_id=name)), "--yes", "--ended", name)
    option = [f"--transactional-id={name}"] if name.startswith("-") else ["--transactional-id", name]
    assert done.calls[1][3:] == option
    assert done.aborts == [FOUR_FIELDS], done.said
    assert not list(Path().glob("X")) + list(fenced.folder.glob("X"))


@pytest.mark.parametrize("name", HOSTILE)
def test_the_words_that_a_refusal_asks_for_are_the_ones_that_work(executor: Executor, name: str) -> None:
    fenced = executor.but(describe=transaction(name, 987_654_321, 4))
    script = script_of(RETURNING._replace(transactional_id=name))
    asked = fenced.runs(script, "--yes").said.partition(" and say ")[2].partition("\n")[0]
    assert asked.isprintable()
    assert fenced.runs_typed(script, f"--yes {asked}").aborts == [FOUR_FIELDS]


@pytest.mark.parametrize("topic", ["-rf", "--topic", "_", ".a", "a.b-c_d"])
def test_topics_are_no_options(executor: Executor, topic: str) -> None:
    done = executor.runs(script_of(rows.finding(topic=topic)), "--yes")
    option = [f"--topic={topic}"] if topic.startswith("-") else ["--topic", topic]
    assert done.aborts == [["abort", *option, "--partition", "2", "--start-offset", "155"]]
    assert done.calls[0][3:] == [*option, "--partition", "2"]


def test_what_brokers_say_does_not_steer_the_terminal(executor: Executor) -> None:
    evil = Said(err="no \x1b[2J\u202e\nsent: orders-2@155\n", code=1)
    done = executor.but(describe_producers=evil).runs(script_of(UNKNOWN), "--yes")
    assert all(line.isprintable() for line in done.said.splitlines())
    assert not any(line.startswith("sent") for line in done.said.splitlines())


def test_a_script_that_was_cut_sends_nothing_else(executor: Executor) -> None:
    script = script_of(UNKNOWN, RETURNING)
    whole = executor.runs(script, "--yes", "--ended", "billing").aborts
    assert whole == [LOOK_UP, FOUR_FIELDS]
    for end in range(script.index("\n# orders-2"), len(script), 97):
        assert executor.runs(script[:end], "--yes", "--ended", "billing").aborts in ([], [LOOK_UP], whole)


def test_empty_plan_is_a_script_that_does_nothing(executor: Executor) -> None:
    done = executor.runs(commands(()))
    assert (done.code, done.calls) == (0, [])


@pytest.mark.golden
def test_scripts_are_golden(golden: Callable[[Path, str], None]) -> None:
    evil = "evil\nkafka-transactions.sh abort --everything\x1b[2J\u202e\u2028'\"`$(rm -rf ~)`"
    script = script_of(
        rows.finding(transactional_id=evil),
        rows.finding(partition=3, is_txn_start_exact=False, coordinator_epoch=2, coordinator_epoch_basis="marker"),
        rows.live_finding(coordinator_epoch_basis="unknown"),
        RETURNING._replace(topic="-rf", transactional_id=evil),
    )
    golden(Path(__file__).parent / "golden" / "plan.sh", own_lines_of(script))
