"""A report that is sent to somebody outside names nothing of the cluster, in whatever form."""

import json
import re
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tools.captures import run_audit
from tests.tools.program import program
from tests.tools.repository import CASES
from tests.tools.sessions import no_session, opened
from txn_analysis.kafka.names import INTERNAL_TOPICS
from txn_analysis.tables import GROUP_OFFSETS, INPUTS, LOG_BATCHES, RUNS, TRANSACTION_STATES

CLUSTER = "eu-payments"
KEY = "TXN_ANALYSIS_PSEUDONYM_KEY"
FORMS = ("text", "json", "ndjson", "csv", "html", "markdown")
NIGHTS = {
    "two-nights": ("kafka-4.2/capture-1/segments", "kafka-4.2/capture-1/transaction-state"),
    "groups": ("kafka-4.2-edge/capture-2/group-offsets", "kafka-4.2-edge/capture-2/transaction-state"),
}
SECOND = ("kafka-4.2/capture-2/segments", "kafka-4.2/capture-2/transaction-state")
# Plain words of reports that the captures use as names as well.
ALSO_OURS = {"segments", "transaction-state", "group-offsets", "data", "cases"}


def audit(folder: Path, parts: tuple[str, ...]) -> None:
    run_audit(no_session, str(folder), [str(CASES / part) for part in parts], cluster=CLUSTER)


@pytest.fixture(params=NIGHTS, scope="module")
def warehouse(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of two nights, with a finding that somebody accepted; and of a capture with consumer groups."""
    folder: Path = tmp_path_factory.mktemp("warehouse")
    audit(folder, NIGHTS[request.param])
    if request.param == "two-nights":
        audit(folder, SECOND)
        accept = ["accept", "--cluster", CLUSTER, "--warehouse", str(folder), "--finding", "orders-2@155"]
        program(*accept, "--until", "2026-12-24", "--reason", "gone with shop.example.org", "--by", "anna")
    return folder


def report_of(warehouse: Path, *words: str) -> str:
    """What is printed of the last night."""
    done = program("report", "--warehouse", warehouse, "--cluster", CLUSTER, *words)
    assert done.code in {0, 1, 3}
    return done.out


@pytest.fixture(scope="module")
def forms(warehouse: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, str]]:
    """In each form a report with names, and one without."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(KEY, str(tmp_path_factory.mktemp("own") / "key"))
        asked = {form: ("--show-accepted", "--format", form) for form in FORMS}
        return {
            form: (report_of(warehouse, *words), report_of(warehouse, "--anonymize", *words))
            for form, words in asked.items()
        }


def names_of(warehouse: Path) -> Iterator[str]:
    """Every string of the captures that could name something, from the tables."""
    known = opened(warehouse)
    yield from known.rows(LOG_BATCHES, "topic")["topic"].to_pylist()
    yield from known.rows(TRANSACTION_STATES, "transactional_id")["transactional_id"].to_pylist()
    yield from known.rows(GROUP_OFFSETS, "group_id")["group_id"].to_pylist()
    for row in known.rows(RUNS, "run_id", "cluster", "capture").to_pylist():
        yield from row.values()
    for path in known.rows(INPUTS, "path")["path"].to_pylist():
        yield from (path, *path.removeprefix(f"{CASES}/").split("/"))
    yield from known.rows(INPUTS, "input_id")["input_id"].to_pylist()
    yield from ("anna", "shop.example.org", str(warehouse))


def test_no_name_of_the_captures_is_in_any_form(warehouse: Path, forms: dict[str, tuple[str, str]]) -> None:
    names = {name for name in names_of(warehouse) if name} - {*INTERNAL_TOPICS} - ALSO_OURS
    assert len(names) > 15
    for form, (named, hidden) in forms.items():
        assert [name for name in names if standing_alone(name, named)], form
        assert [name for name in sorted(names) if standing_alone(name, hidden)] == [], form


def standing_alone(name: str, text: str) -> bool:
    as_a_word = rf"(?<![\w-]){re.escape(name)}(?![\w-]|\.\w)|{re.escape(name)}-\d"
    return name in text and re.search(as_a_word, text) is not None


def test_no_command_is_printed(forms: dict[str, tuple[str, str]]) -> None:
    ours = r"txn-analysis (?:report|explain|verify|abort|audit|accept)|--warehouse|--run "
    for form, (_, hidden) in forms.items():
        assert re.findall(rf"{ours}|kafka-transactions\.sh|BROKERS|<pre", hidden) == [], form


def test_figures_stay_and_only_names_change(forms: dict[str, tuple[str, str]]) -> None:
    named, hidden = map(json.loads, forms["json"])
    kept = ("verdict", "rule", "partition", "producer_id", "producer_epoch", "txn_start_offset", "last_timestamp_ms")
    as_rows = [sorted(tuple(f[name] for name in kept) for f in report["findings"]) for report in (named, hidden)]
    assert as_rows[0] == as_rows[1]
    assert hidden["run"]["parameters"] == named["run"]["parameters"]
    assert all("left out" not in fact for finding in hidden["findings"] for fact in finding["evidence"])


def test_one_name_has_one_pseudonym_until_the_key_changes(
    warehouse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = tmp_path / "own" / "key"
    monkeypatch.setenv(KEY, str(key))
    first, again = (report_of(warehouse, "--anonymize", "--format", "json") for _ in range(2))
    assert again == first
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    key.unlink()
    other = report_of(warehouse, "--anonymize", "--format", "json")
    topics = [{f["topic"] for f in json.loads(text)["findings"]} - {*INTERNAL_TOPICS} for text in (first, other)]
    assert topics[0].isdisjoint(topics[1])


@pytest.mark.parametrize("form", ["text", "json", "html"])
def test_its_first_lines_say_what_a_reader_can_do_and_what_not(forms: dict[str, tuple[str, str]], form: str) -> None:
    beginning = forms[form][1].partition("</style>")[2 if form == "html" else 0]
    said = " ".join(beginning[:2500].split())
    assert "pseudonyms, and commands are left out" in said
    assert "nor test a guess" in said
    assert "its sender finds what is meant" in said
