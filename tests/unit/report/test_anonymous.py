"""What is left of a report for somebody outside: pseudonyms, numbers, times and enumerated words."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.tools import report_rows as rows
from txn_analysis.judge.causes import CAUSES
from txn_analysis.judge.rules import RULES
from txn_analysis.kafka.transactions import COMPLETE_ABORT
from txn_analysis.report.anonymous import LEFT_OUT, NOTICE, Pseudonyms, anonymized
from txn_analysis.report.build import build_report
from txn_analysis.report.formats import json_report
from txn_analysis.report.html.page import html_report
from txn_analysis.report.markdown import markdown_report
from txn_analysis.report.model import AuditReport
from txn_analysis.report.text_report import text_report
from txn_analysis.verdict import Verdict

KEY = b"k" * 32
WARNING = {"kind": "about_to_expire", "subject": "marker", "example": "log", "text": "the log", "count": 1, "at_ms": 0}


def report_of(name: str, **columns: Any) -> AuditReport:
    """A report in which somebody called one thing after another `name`; a sentence has it as well."""
    said = f"copied by {name} of the coordinator"
    cause = {"name": CAUSES[0].name, "confidence": "likely", "evidence_for": [said], "evidence_against": []}
    known = {"transactional_id": name, "topic": name, "application": name, "evidence": [said], "cause": cause}
    health = rows.health(topic=name, remarks=[said])
    run: Any = rows.run(cluster=name, capture=name, warnings=json.dumps([WARNING | {"text": said}]))
    return build_report(run, [rows.input_file(path=name)], [health], [rows.live_finding(**known | columns)])


def forms_of(report: AuditReport) -> dict[str, str]:
    told, _ = anonymized(report, None, KEY)
    return {
        "json": "".join(json_report(told)),
        "text": text_report(told),
        "markdown": "".join(markdown_report(told)),
        "page": html_report(told),
    }


@pytest.mark.parametrize("word", ["transaction", "consumers", "the"])
def test_an_id_that_is_an_english_word_is_in_no_sentence(word: str) -> None:
    told, _ = anonymized(report_of(word), None, KEY)
    (finding,) = told.findings
    assert finding.transactional_id == Pseudonyms(KEY).of("id", word)
    assert (finding.evidence, finding.cause.evidence_for if finding.cause else None) == ((), ())
    assert told.partitions[0].remarks == ()
    assert [warning.text for warning in told.warnings] == [LEFT_OUT]


def test_a_name_that_no_field_has_is_not_told_though_each_word_is_one_of_ours() -> None:
    told = anonymized(report_of("orders", evidence=["the broker of the marker"]), None, KEY)[0]
    assert "the broker of the marker" not in "".join(json_report(told))


def test_no_hostile_name_comes_through_in_any_form() -> None:
    report = report_of("the transaction of <b>ACME</b>\u202e, \"orders\"; rm -rf 'x'\n")
    assert "ACME" in "".join(json_report(report))
    assert [form for form, text in forms_of(report).items() if "ACME" in text] == []


def test_each_text_of_the_json_is_a_pseudonym_a_number_or_an_enumerated_word() -> None:
    told = json.loads(forms_of(report_of("orders"))["json"])
    words = {*Verdict, *(rule.name for rule in RULES), *(cause.name for cause in CAUSES), "about_to_expire", "likely"}
    words |= {"Ongoing", COMPLETE_ABORT, "none_seen", "last_timestamp", "log_dump", "findings", NOTICE, LEFT_OUT}
    words |= {"newest_broker_timestamp", "given", "partition_stuck"}
    assert {text for text in texts_of(told) if text not in words and not IS_PSEUDONYM(text)} == set()


IS_PSEUDONYM = re.compile(r"[a-z]+-[0-9a-f]{12}(-\d+)?|[\d.+-]+").fullmatch


def texts_of(value: Any) -> set[str]:
    if isinstance(value, str):
        return {value}
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return {text for part in parts for text in texts_of(part)}


def test_what_no_list_has_is_left_out_also_where_it_looks_like_a_word() -> None:
    told = anonymized(report_of("orders", rule="acme_rule", coordinator_state="Acme"), None, KEY)[0]
    (finding,) = told.findings
    assert (finding.rule, finding.coordinator_state) == (LEFT_OUT, LEFT_OUT)


def test_nothing_is_read_of_the_programs_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    report = report_of("orders")
    monkeypatch.setattr(Path, "read_text", None)
    assert anonymized(report, None, KEY)[0].anonymized == NOTICE


def test_names_of_one_text_are_apart_by_kind() -> None:
    known = Pseudonyms(KEY)
    assert known.of("topic", "orders") != known.of("id", "orders").replace("id-", "topic-")
    assert known.of("topic", "__transaction_state") == "__transaction_state"


def test_another_key_gives_other_pseudonyms() -> None:
    assert Pseudonyms(KEY).of("topic", "orders") != Pseudonyms(b"l" * 32).of("topic", "orders")
