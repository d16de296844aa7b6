"""Every command that is printed works as it stands: another cluster, a relative warehouse with a space in it.

Ours are run, one for each verb and set of options; of all others, and of Kafka's tools, the options are looked up.
"""

import html
import json
import re
import shlex
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.tools.cases import cases
from tests.tools.docs.commands import printed_in, wrong_with
from tests.tools.program import Done, program
from tests.tools.repository import CASES
from tests.tools.sessions import no_session
from txn_analysis.judge.words import WORDS as WORDS_OF_RULES
from txn_analysis.verdict import Verdict

Run = Callable[..., Done]

CAPTURE = CASES / "kafka-4.2/capture-1"
COPIED_MS = 1_795_229_990_737
WORDS = ("--warehouse", "my audit/tables", "--cluster", "production")
HANGING, IN_THE_DARK = ("segments", "transaction-state"), ("segments",)


@pytest.fixture
def run(
    empty_warehouse: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Run:
    """Runs a command in a folder of its own; none starts Spark."""
    shutil.copytree(empty_warehouse, tmp_path / WORDS[1])

    @contextmanager
    def session(*_: Any, **__: Any) -> Iterator[Any]:
        yield no_session

    monkeypatch.setattr("txn_analysis.cli.spark.spark_session", session)
    monkeypatch.setattr("txn_analysis.cli.plan_verbs.now_ms", lambda: COPIED_MS)  # read at once, as it should be
    monkeypatch.setattr("txn_analysis.cli.audit_verbs.now_ms", lambda: COPIED_MS)  # read at once, as it should be
    monkeypatch.chdir(tmp_path)
    return program


@cases(
    "parts code programs",
    {
        "hanging": (
            HANGING,
            1,
            {
                *("txn-analysis abort-plan", "txn-analysis explain", "txn-analysis verify"),
                "kafka-transactions.sh --bootstrap-server",
            },
        ),
        "in-the-dark": (IN_THE_DARK, 3, {"txn-analysis explain", "txn-analysis report"}),
    },
)
def test_every_printed_command_works(
    run: Run, tmp_path: Path, parts: tuple[str, ...], code: int, programs: set[str]
) -> None:
    commands = printed_in(_printed(run, tmp_path, [str(CAPTURE / part) for part in parts], code))
    assert list(filter(None, map(wrong_with, commands))) == []
    assert {" ".join(command.words[:2]) for command in commands} >= programs
    ours = [command.words[1:] for command in commands if command.words[0] == "txn-analysis"]
    one_of_each = {tuple(word for word in words if word.startswith("--")) + words[:1]: words for words in ours}
    for words in one_of_each.values():
        done, out, err = run(*words)
        assert "error" not in err, words
        assert done in {0, 1, 3}, words
        assert out or "-o" in words, words


def _printed(run: Run, folder: Path, paths: list[str], code: int) -> str:
    """What an audit and the verbs behind it print: text, page, mail, notes and plan."""
    page, mail = folder / "page.html", folder / "mail.txt"
    ended, text, _ = run("audit", *paths, *WORDS, "--max-clock-skew-ms", "0", "-o", "-", "-o", str(page))
    again, _, _ = run("report", *WORDS, "--width", "76", "-o", str(mail))
    assert (ended, again) == (code, code)
    _, _, notes = run("find-hanging", *WORDS)
    _, plan, of_plan = run("abort-plan", *WORDS, "--format", "ndjson")
    before = [json.loads(line)["precondition"] for line in plan.splitlines()]
    shown = [
        html.unescape(re.sub("</?span[^>]*>", "", code))
        for code in re.findall("<code>(.*?)</code>", page.read_text(), re.DOTALL)
    ]
    return "\n".join([text, mail.read_text(), notes, of_plan, *shown, *before])


WORDS_OF_THE_JUDGE = [text for one in WORDS_OF_RULES.values() for text in (one.reason, one.remedy)] + [
    v.remedy for v in Verdict
]


def test_commands_in_remedies_are_whole() -> None:
    assert [wrong for text in WORDS_OF_THE_JUDGE for wrong in map(wrong_with, printed_in(text)) if wrong] == []


def test_a_report_of_a_run_prints_the_inputs_as_the_audit_did(run: Run) -> None:
    paths = [str(CAPTURE / part) for part in HANGING]
    _, audited, _ = run("audit", *paths, *WORDS, "--max-clock-skew-ms", "0")
    (run_id,) = set(re.findall(r"--run (run-[0-9a-f]+)", audited))
    _, again, _ = run("report", "--run", run_id, "--warehouse", "my audit/tables")
    assert "inputs            11 files, 783.9 kB" in again
    # The tables do not say which engine judged: only the audit's own report does.
    judged_by = [line for line in audited.splitlines() if line.startswith("judged by ")]
    assert judged_by == ["judged by         this process"]
    assert again == audited.replace(f"{judged_by[0]}\n", "")


def test_a_report_of_one_topic_plans_that_topic_and_refuses_a_slip(run: Run) -> None:
    run("audit", *[str(CAPTURE / part) for part in HANGING], *WORDS, "--max-clock-skew-ms", "0")
    code, orders, _ = run("report", *WORDS, "--topic", "orders")
    assert (code, orders.splitlines()[0]) == (1, "HANGING: 2 transactions on 2 partitions: orders-0, orders-2")
    assert "payments" not in orders
    (plan,) = re.findall("txn-analysis (abort-plan .*)", orders)
    _, records, _ = run(*shlex.split(plan)[:-4], "--format", "ndjson")
    assert {json.loads(line)["topic"] for line in records.splitlines()} == {"orders"}
    assert run("report", *WORDS, "--topic", "ledger.events")[0] == 1
    code, out, err = run("report", *WORDS, "--topic", "order")
    assert (code, out) == (2, "")
    assert err == "error: --topic order: this run saw no such topic; did you mean orders?\n"


def test_a_verb_that_finds_no_run_names_the_clusters_that_have_one(run: Run) -> None:
    run("audit", str(CAPTURE / "segments"), *WORDS)
    code, _, err = run("verify", "--warehouse", "my audit/tables")
    assert code == 2
    assert err.rstrip().endswith("no run of cluster default yet: give --cluster production")
