import io
import json
import re

import pytest

from tests.tools import report_rows as rows
from tests.tools.cases import cases
from txn_analysis.judge.applications import remark_on
from txn_analysis.report.build import build_report
from txn_analysis.report.figures import Reader
from txn_analysis.report.finding_text import facts, scene_of
from txn_analysis.report.html.page import html_report
from txn_analysis.report.markdown import markdown_report
from txn_analysis.report.model import AuditReport
from txn_analysis.report.terminal import lines_of, print_styled, wrapped
from txn_analysis.report.text_report import report_lines, text_report
from txn_analysis.tables import Finding
from txn_analysis.verdict import Verdict

EVIL = "evil\n<b>&;$(rm -rf ~)\x1b[2J\u202e"


def one_of_each() -> AuditReport:
    findings = [
        rows.inconclusive(),
        rows.finding(
            verdict="in_progress",
            rule="not_late",
            partition=1,
            idle_ms=1500,
            late_by_ms=-1_198_500,
            evidence=["late by -1198500 ms"],
        ),
        rows.live_finding(),
        rows.finding(transactional_id=EVIL),
    ]
    return build_report(
        rows.run(verdict_counts={"hanging": 2, "inconclusive": 1, "in_progress": 1}, earlier_captures=["monday"]),
        [rows.input_file(), rows.input_file(path="x.txt", kind=None, rejected_bytes=9, problem="offset 0: no dump")],
        [
            rows.health(),
            rows.health(topic="payments", partition=0, last_stable_offset=120),
            rows.health(
                partition=0,
                is_in_capture=False,
                problems=[{"offset": 120, "kind": "batches_missing", "reason": "no batch here"}],
            ),
        ],
        findings,
    )


def test_causes_and_warnings_are_said_and_escaped() -> None:
    cause = {"name": "late_write_after_marker", "confidence": "certain", "evidence_for": [], "evidence_against": []}
    impact = {
        "hidden_since_ms": rows.AS_OF_MS - rows.HOUR_MS,
        "hidden_share": 0.25,
        "is_compaction_stopped": False,
        "hidden_lost_at_ms": rows.AS_OF_MS + rows.HOUR_MS,
        "pending_groups": [EVIL],
    }
    warnings = json.dumps(
        [{"kind": "timeout_outlier", "subject": EVIL, "example": EVIL + "-1", "text": "x", "count": 2}]
    )
    text = text_report(
        build_report(
            rows.run(warnings=warnings),
            [],
            [rows.health()],
            [rows.finding(cause=cause, impact=impact), rows.inconclusive(cause=cause)],
        ),
        width=400,
    )
    assert "certain: records came after the end marker of their transaction (KIP-890)\n" in text
    assert "Blocked since 2026-11-21T02:00:00.000Z: 1 partition, 12 records hidden." in text
    assert "retention may delete them unread from 2026-11-21T04:00:00.000Z on" in text
    assert "compaction stops there" not in text
    assert "and 1 other id: x" in text
    assert EVIL not in text
    assert "\x1b" not in text


def test_of_many_warnings_the_soonest_are_said_and_the_others_counted() -> None:
    kinds = {"timeout_above_maximum": None, "about_to_expire": 0}
    lines = [
        {"kind": kind, "subject": f"{kind}-{n}", "text": "x", "count": 1, "at_ms": at if at is None else 100 - n}
        for kind, at in kinds.items()
        for n in range(8)
    ]
    report = build_report(rows.run(warnings=json.dumps(lines)), [], [rows.health()], [rows.finding()])
    said = text_report(report).partition("-- Early warning")[2].partition("-- What was read")[0].splitlines()[1:]
    assert [line.split(":")[1].strip() for line in said[:10]] == [
        *(f"about_to_expire-{n}" for n in reversed(range(8))),
        *(f"timeout_above_maximum-{n}" for n in range(2)),
    ]
    assert said[10] == "6 more early warnings not shown: 6 timeout_above_maximum. All are in `warnings` of:"
    assert said[11].strip().startswith("txn-analysis report --run")
    assert said[11].endswith("--format json")
    assert "6 more early warnings not shown" in html_report(report)


def test_missing_evidence_is_not_reported_as_clean() -> None:
    report = build_report(rows.run(verdict_counts={"inconclusive": 1}), [], [], [rows.inconclusive()])
    head = text_report(report).splitlines()[:2]
    assert head[0] == "COULD NOT TELL: 1 transaction on 1 partition: orders-0"
    assert head[1].startswith("Nothing is known to hang, but ")


@pytest.mark.parametrize(
    ("fail_on", "first"),
    [
        (Verdict.HANGING, "Nothing hangs in what was read."),
        (Verdict.SUSPECT, "SUSPECT: 1 transaction on 1 partition: orders-2"),
        (Verdict.IN_PROGRESS, "SUSPECT: 1 transaction on 1 partition: orders-2"),
    ],
)
def test_first_line_says_the_same_as_the_exit_code(fail_on: Verdict, first: str) -> None:
    found = build_report(rows.run(verdict_counts={"suspect": 1}), [], [], [rows.finding(verdict="suspect")])
    assert text_report(found, reader=Reader(fail_on=fail_on)).splitlines()[0] == first


def test_who_asks_for_what_is_in_progress_reads_how_many_are() -> None:
    found = build_report(rows.run(), [], [], [rows.finding(verdict="in_progress", late_by_ms=-1)])
    first = text_report(found, reader=Reader(fail_on=Verdict.IN_PROGRESS)).splitlines()[0]
    assert first == "IN PROGRESS: 1 transaction on 1 partition: orders-2"


@pytest.mark.parametrize("width", [80, 100, 120])
def test_text_report_is_inert_and_fits(width: int) -> None:
    lines = text_report(one_of_each(), width).split("\n")
    assert all(line.isprintable() for line in lines)
    prose = [line for line in lines if line.startswith(("   blocks", "   why", "   do", "Nobody"))]
    assert prose and all(len(line) <= width for line in prose)  # noqa: PT018 - no prose, and nothing was tested


def test_more_hanging_than_blocks_are_still_listed() -> None:
    many = [rows.finding(partition=number, finding_id=str(number), producer_id=number) for number in range(25)]
    text = text_report(build_report(rows.run(verdict_counts={"hanging": 25}), [], [], many))
    assert (
        "HANGING: 25 transactions on 25 partitions: orders-0, orders-1, orders-2, orders-3, orders-4 and 20 more"
        in text
    )
    assert all(f"orders-{number}" in text.split("\n\n", 1)[1] for number in range(25))


@pytest.mark.parametrize(
    ("open_from", "kind", "label"),
    [
        (None, "hole_in_file", "compacted"),
        (6, "hole_in_file", "compacted"),
        (5, "hole_in_file", "not whole"),
        (6, "invalid_batch", "not whole"),
    ],
    ids=["nothing-open", "open-behind-the-hole", "open-before-the-hole", "damage"],
)
def test_ordinary_compaction_does_not_read_like_damage(open_from: int | None, kind: str, label: str) -> None:
    problem = {"offset": 5, "kind": kind, "reason": "file 0 has no batch for offset 5"}
    findings = [] if open_from is None else [rows.finding(topic="trades", partition=1, txn_start_offset=open_from)]
    health = rows.health(topic="trades", partition=1, problems=[problem])
    lines = text_report(build_report(rows.run(), [rows.input_file()], [health], findings), 110).splitlines()
    (line,) = [line for line in lines if "no batch for offset 5" in line and "trades-1" in line]
    assert line.startswith(label)
    assert ("as compaction leaves it" in line) == (label == "compacted")


def test_a_disproved_word_that_nothing_was_lost_is_not_taken() -> None:
    found = {"parameters": json.dumps(rows.PARAMETERS | {"no_records_lost": True})}
    found["state_coverage"] = json.dumps(
        {"expected": 4, "seen": 4, "disproved": {"no_records_lost": "a marker is gone"}}
    )
    text = " ".join(text_report(build_report(rows.run(**found), [], [], [rows.finding()])).split())
    assert "which you asserted" not in text
    assert "--no-records-lost is ignored, because the files contradict it: a marker is gone." in text


def test_state_that_was_seen_in_part_is_told_from_what_is_missing() -> None:
    seen = {"is_seen": True, "is_complete": True}
    partitions = [
        seen | {"partition": 0},
        seen | {"partition": 1, "is_complete": False},
        {"partition": 2, "is_seen": False, "is_complete": False},
        seen | {"partition": 3, "is_complete": False},
    ]
    problem = f"__transaction_state-1: 2 records have ids that belong to another partition, such as '{EVIL}' (to 3)"
    coverage = {"expected": 4, "seen": 3, "missing": [2], "problems": [problem], "partitions": partitions}
    text = text_report(build_report(rows.run(state_coverage=json.dumps(coverage)), [], [], []), width=300)
    shown = [line.strip() for line in text.split("transaction state ")[1].splitlines()[:4]]
    assert shown == [
        "3 of 4 partitions of __transaction_state",
        "missing: 2",
        "not complete: 1, 3",
        problem.replace(EVIL, r"evil\n<b>&;$(rm -rf ~)\x1b[2J\u202e"),
    ]


def test_colours_change_no_word() -> None:
    report = one_of_each()
    stream = io.StringIO()
    print_styled(report_lines(report), stream)
    assert stream.getvalue() == text_report(report)


@pytest.mark.parametrize("width", range(20, 120, 9))
def test_what_is_to_be_typed_is_never_broken_over_two_lines(width: int) -> None:
    command = '`kafka-topics.sh --bootstrap-server "$BROKERS" --describe --topic __transaction_state`'
    lines = wrapped(f"state their count with `--transaction-state-partitions 50`; {command} prints it", width, "  ")
    assert [sum(part in line for line in lines) for part in ("`--transaction-state-partitions 50`", command)] == [1, 1]


def test_mail_has_no_long_line_but_commands_and_loses_nothing() -> None:
    found = rows.inconclusive(
        topic="a-topic-with-a-rather-long-name", transactional_id="an-id-that-is-longer-than-a-column"
    )
    text = text_report(build_report(rows.run(), [rows.input_file()], [], [found, rows.live_finding()]), 76)
    long = [line.split()[1] for line in text.splitlines() if len(line) > 76]
    assert long == ["kafka-transactions.sh"] * 2  # to fence, to look whether it is fenced
    assert "inconclusive: state_incomplete" in text
    assert "a-topic-with-a-rather-long-name-0@161" in text
    assert "an-id-that-is-longer-than-a-column" in text


@pytest.mark.parametrize(("width", "most"), [(110, 15), (80, 20)])
def test_a_finding_is_a_dozen_lines_one_of_its_owner_and_two_of_what_ends_before_its_fence(
    width: int, most: int
) -> None:
    cause = {"name": "old_epoch_left_open", "confidence": "certain", "evidence_for": [], "evidence_against": []}
    impact = {"hidden_since_ms": rows.AS_OF_MS - rows.HOUR_MS, "days_until_full": 3.0}
    worst = rows.live_finding(cause=cause, impact=impact, blocks_partition=True)
    behind = rows.finding(verdict="in_progress", topic="payments", partition=0, txn_start_offset=190)
    report = build_report(rows.run(), [], [rows.health(topic="payments", partition=0)], [worst, behind])
    block = text_report(report, width).partition("\n1. ")[2].partition("\n\n")[0]
    assert len(block.splitlines()) <= most


def test_what_the_report_does_not_say_explain_does_and_each_finding_has_its_command() -> None:
    report = one_of_each()
    text = text_report(report)
    for finding in report.hanging:
        assert all(fact not in text for fact in finding.evidence)
        said = " ".join(line.text for line in lines_of(facts(scene_of(report, finding), finding), 110))
        assert all(fact in said for fact in finding.evidence)
        where = f"{finding.topic_partition}@{finding.txn_start_offset}"
        assert f"   explain  txn-analysis explain {where} --run run-1\n" in text


CAUSE = {"name": "old_epoch_left_open", "confidence": "certain"}


def hanging_of(application: str, number: int) -> list[Finding]:
    """So many hanging transactions of one application, each under an id of its own."""
    return [
        rows.live_finding(
            application=application, transactional_id=f"{application}-{n}", finding_id=f"{application}{n}", partition=n,
            topic=application, producer_id=n, cause=CAUSE, blocks_partition=True,
        )
        for n in range(number)
    ]  # fmt: skip


def report_of(findings: list[Finding]) -> AuditReport:
    health = [rows.health(topic=f.topic, partition=f.partition, hidden_record_count=10) for f in findings]
    return build_report(rows.run(verdict_counts={"hanging": len(findings)}), [], health, findings)


def test_where_not_all_have_room_each_application_has_a_block_and_says_how_many_are_alike() -> None:
    text = text_report(report_of([*hanging_of("billing", 480), *hanging_of("fraud", 15), *hanging_of("shop", 5)]), 200)
    blocks = [line for line in text.splitlines() if re.match(r"\d+\. \w+-0@\d+: ", line)]
    assert [line.split("@")[0] for line in blocks] == ["1. billing-0", "2. fraud-0", "3. shop-0"]
    assert (
        "479 more of application billing with the same verdict, rule and cause; together 480 transactions on 480 "
        "partitions, 4800 records hidden: billing-1@187, billing-2@187,"
    ) in re.sub(r"\s+", " ", text)
    assert "and 474 more. Fence 479 other ids as well: the script prints how" in re.sub(r"\s+", " ", text)
    assert "497 more open transactions not shown: 497 hanging; 479 of billing, 14 of fraud, 4 of shop." in text
    assert len(text.splitlines()) < 110


def test_where_all_have_room_each_has_its_own_block() -> None:
    text = text_report(report_of(hanging_of("billing", 20)))
    assert "20. billing-19@187: " in text
    assert "alike" not in text


def test_rows_that_repeat_give_room_to_others() -> None:
    many = [rows.inconclusive(partition=n, finding_id=str(n)) for n in range(60)]
    text = text_report(
        build_report(
            rows.run(), [], [], [*many, rows.inconclusive(topic="bills", producer_id=7, transactional_id="shop")]
        )
    )
    assert "    alike: 59 more of transactional id billing-worker-17 with the same verdict" in text
    assert text.count("inconclusive  state_incomplete") == 2


@pytest.mark.parametrize("width", [40, 76, 110])
def test_a_long_report_fits_its_width(width: int) -> None:
    lines = text_report(report_of(hanging_of("billing", 30)), width).split("\n")
    assert all(len(line) <= width for line in lines if "alike" in line or "more of application" in line)


def test_of_a_suspect_it_is_said_in_words_why() -> None:
    suspect = rows.finding(verdict="suspect", rule="commit_marker_missing")
    text = text_report(build_report(rows.run(verdict_counts={"suspect": 1}), [], [], [suspect]))
    assert "    why: the commit was acknowledged, but its end marker is missing from the log\n" in text


@cases(
    "caution",
    {
        "an-id-like-flinks": remark_on("orders-sink-4-1700", 60_000),
        "a-renamed-folder": "no record of __transaction_state names topic orders: was its folder renamed?",
    },
)
def test_a_fact_that_speaks_for_looking_twice_stays_beside_what_to_do(caution: str) -> None:
    finding = rows.finding(evidence=["no transactional id has it", caution])
    text = " ".join(text_report(rows.report(finding)).split())
    assert f"caution {caution} do " in text
    assert "no transactional id has it" not in text


@cases("end_ms is_fenced", {"by its client": (59_999, False), "by its timeout": (60_000, True)})
def test_a_fence_is_printed_unless_a_timeout_has_fenced_already(end_ms: int, is_fenced: bool) -> None:
    """A client that aborts under transaction version 2 takes the raised epoch, and goes on."""
    ended = {"coordinator_state": "CompleteAbort", "coordinator_producer_id": 3, "coordinator_producer_epoch": 1}
    times = {"coordinator_start_ms": 0, "coordinator_timeout_ms": 60_000, "coordinator_update_ms": end_ms}
    found = rows.live_finding(**ended, **times, is_producer_live=False)
    text = text_report(rows.report(found))
    assert ("forceTerminateTransaction" not in text) == is_fenced


@pytest.mark.parametrize("verdict", ["hanging", "coordinated"])
def test_first_line_of_a_finding_names_the_application_that_its_id_looks_like(verdict: str) -> None:
    report = rows.report(rows.finding(verdict=verdict, transactional_id="<orders>\n@here-0-1"))
    forms = "".join(markdown_report(report)), html_report(report)
    assert "looks like Flink: `<orders>\\n@here`" in forms[0]
    assert "looks like Flink: &lt;orders&gt;\\n@here<" in forms[1]
    assert ("looks like Flink: <orders>\\n@here\n" in text_report(report, 200)) is (verdict == "hanging")


def test_first_line_says_nothing_of_an_application_that_is_named_by_its_id_alone() -> None:
    assert "looks like" not in text_report(rows.report(rows.finding(transactional_id="billing-worker-17")))
