"""What is said to settle the open questions of a run: one remedy a kind, and never a word that is not true."""

import json

import pytest

from tests.tools import report_rows as rows
from tests.tools.cases import cases
from txn_analysis.report.build import build_report
from txn_analysis.report.model import AuditReport, Remedy
from txn_analysis.report.text_report import text_report
from txn_analysis.tables import Finding

NO_STATE = json.dumps({"expected": 50, "seen": 0, "missing": list(range(50))})
COPIED_LAST = "__transaction_state up to a later moment, or --state-copied-last"
NOT_FORGOTTEN = "all of __transaction_state, or --transactional-id-expiration-ms, if the brokers' is below 7 days"
NOT_LOST = "the records of __transaction_state that are gone, from an earlier copy, or --no-records-lost"


def report(*findings: Finding, state: str | None = None, **run: object) -> AuditReport:
    own = run if state is None else run | {"state_coverage": state}
    counts: dict[str, int] = {}
    for finding in findings:
        counts[finding.verdict] = counts.get(finding.verdict, 0) + 1
    return build_report(rows.run(verdict_counts=counts, **own), [], [], findings)


def settled(*findings: Finding, state: str | None = None, **run: object) -> tuple[Remedy, ...]:
    return report(*findings, state=state, **run).outcome.settled_by


def head(found: AuditReport) -> str:
    """The first statements, without line breaks."""
    return " ".join(text_report(found).partition("\n-- ")[0].split())


def test_without_a_state_the_headline_asks_for_one() -> None:
    found = report(
        rows.inconclusive(missing_evidence=["an end marker after the data in this partition"]),
        rows.finding(verdict="in_progress", rule="not_late", late_by_ms=-1),
        state=NO_STATE,
    )
    assert head(found) == (
        "COULD NOT TELL: 2 transactions on 2 partitions: orders-0, orders-2 "
        "Nothing is known to hang, but no partition of `__transaction_state` was given. What would settle it: audit "
        "them again with `__transaction_state`: all its partitions, copied after the logs, from their leaders."
    )
    assert "--state-copied-last" not in text_report(found)


@pytest.mark.parametrize(
    ("rule", "missing", "option"),
    [
        ("state_older_than_log", COPIED_LAST, "--state-copied-last"),
        ("commit_may_be_missing", NOT_LOST, "--no-records-lost"),
        ("state_does_not_fit", NOT_FORGOTTEN, "--transactional-id-expiration-ms N"),
    ],
)
def test_a_word_is_asked_for_where_it_can_be_true(rule: str, missing: str, option: str) -> None:
    asked = rows.inconclusive(rule=rule, missing_evidence=[missing])
    (remedy,) = settled(asked)
    assert f"; or `{option}`, if " in remedy.text
    refuted = rows.inconclusive(rule=rule, missing_evidence=[missing.partition(", or --")[0]])
    (remedy,) = settled(refuted)
    assert option not in remedy.text


@pytest.mark.parametrize(("missing", "named"), [([1, 3], "partitions 1, 3"), ([2], "partition 2")])
def test_a_state_that_lacks_partitions_is_to_be_copied_whole(missing: list[int], named: str) -> None:
    state = json.dumps({"expected": 4, "seen": 4 - len(missing), "missing": missing})
    (remedy,) = settled(rows.inconclusive(), state=state)
    assert remedy.missing == f"`__transaction_state` is without {named}"
    assert remedy.text == "copy all partitions of `__transaction_state` from their leaders"


def test_a_word_on_a_state_that_lacks_partitions_comes_with_the_rest_of_it() -> None:
    state = json.dumps({"expected": 4, "seen": 2, "missing": [1, 3]})
    of_nobody = rows.inconclusive(
        rule="state_older_than_log", missing_evidence=[COPIED_LAST], transactional_id=None, producer_id=9
    )
    assert settled(of_nobody, state=state)[0].text.startswith("copy all partitions of `__transaction_state` after")


@pytest.mark.parametrize(("transactional_id", "is_asked"), [(None, True), ("billing", False)])
def test_where_any_partition_may_hold_an_id_those_that_were_not_decoded_come_first(
    transactional_id: str | None, *, is_asked: bool
) -> None:
    given = ["1 partition was dumped without its decoder", "dump it again"]
    state = json.dumps({"expected": 4, "seen": 2, "missing": [1, 3], "not_understood": given})
    older = rows.inconclusive(rule="state_older_than_log", transactional_id=transactional_id)
    (remedy,) = settled(older, state=state)
    assert ([remedy.missing, remedy.text] == given) is is_asked


def test_of_many_partitions_three_are_named() -> None:
    broken = [rows.inconclusive(rule="evidence_broken", partition=n) for n in range(4)]
    (remedy,) = settled(*broken)
    assert remedy.text.startswith("copy all files of orders-0, orders-1, orders-2 and 1 more again")
    (remedy,) = settled(*broken[:3])
    assert remedy.text.startswith("copy all files of orders-0, orders-1, orders-2 again")


def test_an_id_that_is_known_needs_no_other_partition_of_the_state() -> None:
    state = json.dumps({"expected": 4, "seen": 2, "missing": [1, 3]})
    of_somebody = rows.inconclusive(rule="state_older_than_log", missing_evidence=[COPIED_LAST])
    assert "all partitions" not in settled(of_somebody, state=state)[0].text


def test_a_state_that_is_all_there_may_be_vouched_for() -> None:
    text = settled(rows.inconclusive())[0].text
    assert text.startswith("copy all files of all its partitions")  # a word is never the first remedy
    assert "`--transaction-state-complete`: compaction leaves such holes, so it is true if " in text
    vouched = json.dumps(rows.PARAMETERS | {"transaction_state_complete": True})
    assert "--transaction-state-complete" not in settled(rows.inconclusive(), parameters=vouched)[0].text


@cases(
    "part newer words",
    {
        "undecodable": ({"undecodable": 2}, 0, "give the brokers' own files of them"),
        "undecodable-and-newer": ({"undecodable": 2}, 9, "give the brokers' own files of them"),
        "newer": ({"is_complete": True}, 9, "or audit with a txn-analysis that knows the fields"),
        "newer-and-with-a-hole": ({"is_complete": False}, 9, "`--transaction-state-complete`: compaction"),
    },
)
def test_what_was_not_read_is_settled_by_no_word(part: rows.Row, newer: int, words: str) -> None:
    placed = [{"partition": 1, "is_seen": True, "is_complete": False} | part]
    state = json.dumps({"expected": 2, "seen": 2, "missing": [], "partitions": placed, "newer": newer})
    (remedy,) = settled(rows.inconclusive(), state=state)
    assert words in remedy.text
    assert "undecodable" not in part or remedy.missing.endswith("could not be decoded, of partition 1")
    assert ("--transaction-state-complete" in remedy.text) == ("-state-complete" in words)


@pytest.mark.parametrize(
    ("finding", "run", "words"),
    [
        ({"rule": "evidence_broken"}, {}, "copy all files of orders-0 again"),
        ({"rule": "evidence_broken"}, {"state_coverage": NO_STATE}, "copy all files of orders-0 again"),
        ({"rule": "log_may_end_early"}, {}, "copy orders-0 again, and audit it with the state that you have"),
        ({"rule": "state_does_not_fit"}, {}, "of the cluster that the logs are from"),
        ({"rule": "clock_not_credible", "late_by_ms": None}, {"as_of_ms": None}, "`--as-of TIME`"),
        (
            {"rule": "clock_not_credible", "late_by_ms": None, "last_timestamp_ms": rows.AS_OF_MS + 1},
            {},
            "`--as-of TIME`, if the files were copied later than 2026-11-21T03:00:00.000Z",
        ),
        ({"rule": "clock_not_credible", "late_by_ms": None, "last_timestamp_ms": -1}, {}, "copy orders-0 again when"),
        ({"rule": "no_rule"}, {}, "copy the files again, when its coordinator has gone on"),
        ({"rule": "a_rule_of_another_version"}, {}, "audit the same files again with this version"),
    ],
)
def test_every_kind_of_doubt_has_its_remedy(finding: rows.Row, run: rows.Row, words: str) -> None:
    (remedy,) = settled(rows.inconclusive(**finding), **run)
    assert words in remedy.text


COUNTED = {"used": 50, "basis": "default", "fitting": "10, 25, 50", "fitting_count": 3}


def test_where_several_counts_fit_all_are_named_and_the_option_asks_for_the_true_one() -> None:
    state = json.dumps({"expected": 50, "seen": 10, "missing": [*range(10, 50)], "count": COUNTED})
    found = report(rows.inconclusive(), state=state)
    (remedy,) = found.outcome.settled_by
    assert remedy.missing == "it is not known how many partitions `__transaction_state` has (10, 25, 50 fit)"
    assert remedy.text.startswith("`--transaction-state-partitions N` with the true count, of which 10, 25, 50 fit")
    lines = " ".join(text_report(found).split())
    assert "Kafka's default is 50; 10, 25, 50 would fit the ids that were read" in lines


def test_a_wrong_count_is_told_the_right_one() -> None:
    counted = {"used": 3, "basis": "given", "fitting": "4", "fitting_count": 1}
    placed = [{"partition": 0, "is_seen": True, "is_complete": False, "misplaced_ids": ["a"]}]
    state = json.dumps({"expected": 3, "seen": 3, "missing": [], "count": counted, "partitions": placed})
    found = report(rows.inconclusive(rule="state_does_not_fit"), state=state)
    assert found.outcome.settled_by[0].text.startswith("`--transaction-state-partitions 4`, the only count that fits")
    assert "3 of 3 partitions of __transaction_state; only 4 would fit" in " ".join(text_report(found).split())


def test_where_all_ids_lie_right_a_state_that_does_not_fit_is_of_another_cluster() -> None:
    state = json.dumps({"expected": 50, "seen": 50, "missing": [], "count": COUNTED})
    found = report(rows.inconclusive(rule="state_does_not_fit"), state=state)
    assert found.outcome.settled_by[0].text.startswith(
        "copy `__transaction_state` of the cluster that the logs are from"
    )


def test_a_partition_that_is_complete_needs_nothing_beside_one_that_compaction_thinned() -> None:
    parts = [
        {"partition": 0, "is_seen": True, "is_complete": False, "is_folder_whole": True},
        {"partition": 1, "is_seen": True, "is_complete": True, "is_folder_whole": False},
    ]
    found = report(
        rows.inconclusive(rule="state_incomplete"), state=json.dumps({"expected": 2, "seen": 2, "partitions": parts})
    )
    assert found.outcome.settled_by[0].text.startswith("give another copy of these partitions beside this one")


def test_a_count_that_the_ids_prove_is_said_to_be_so() -> None:
    counted = {"used": 4, "basis": "derived", "fitting": "4", "fitting_count": 1}
    text = text_report(report(state=json.dumps({"expected": 4, "seen": 4, "count": counted})))
    assert "4 of 4 partitions of __transaction_state; no other count fits the ids in them\n" in text


def test_the_remedy_of_most_comes_first_and_the_rest_is_said() -> None:
    broken = [rows.inconclusive(rule="evidence_broken", partition=n) for n in (5, 6)]
    older = rows.inconclusive(rule="state_older_than_log", missing_evidence=[COPIED_LAST])
    found = report(older, *broken)
    assert [(r.transaction_count, r.partitions) for r in found.outcome.settled_by] == [
        (2, ("orders-5", "orders-6")),
        (1, ("orders-0",)),
    ]
    assert "What would settle 2 of the 3: copy all files of orders-5, orders-6 again" in head(found)


def test_beside_what_hangs_the_doubt_names_its_remedy() -> None:
    older = rows.inconclusive(rule="state_older_than_log", missing_evidence=[COPIED_LAST])
    text = " ".join(text_report(report(rows.finding(), older)).split())
    assert text.startswith("HANGING: 1 transaction on 1 partition: orders-2 ")
    assert "1 open transaction without an answer: the list says what is missing." in text
    assert "What would settle 1 of them: copy the files again: the logs first" in text


def test_no_line_ends_in_the_middle_of_a_remedy() -> None:
    long = "__transaction_state, 46 partitions (4 to 49): not in the capture, and much more, or --state-copied-last"
    lines = text_report(report(rows.inconclusive(missing_evidence=[long]))).splitlines()
    assert "..." not in " ".join(lines)
    assert long in " ".join(" ".join(lines).split())
    assert all(len(line) <= 110 for line in lines)
