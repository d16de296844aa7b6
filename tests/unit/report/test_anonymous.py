"""Names of every kind, wherever a sentence has them."""

from tests.tools import report_rows as rows
from txn_analysis.report.anonymous import LEFT_OUT, Pseudonyms, anonymized
from txn_analysis.report.build import build_report
from txn_analysis.report.formats import json_report

KEY = b"k" * 32


def test_a_word_that_may_name_something_takes_its_sentence_with_it() -> None:
    known = Pseudonyms(KEY, [("topic", "orders")])
    assert known.sentence("copied from broker-7.example.org, and whole") == LEFT_OUT
    assert known.sentence("copied from 10.0.0.7:9092") == LEFT_OUT


def test_a_sentence_of_figures_and_words_of_ours_stays() -> None:
    said = "no end marker of the producer after offset 162; by its last timestamp it is 9674664 ms beyond it, 24.4%"
    assert Pseudonyms(KEY, []).sentence(said) == said


def test_a_topic_is_found_with_its_partition_and_behind_any_sign() -> None:
    known = Pseudonyms(KEY, [("topic", "ledger.events"), ("id", "eu loader\n'1'")])
    topic, name = known.of("topic", "ledger.events"), known.of("id", "eu loader\n'1'")
    assert known.sentence("(ledger.events-1): lists ledger.events.") == f"({topic}-1): lists {topic}."
    assert known.sentence("id eu loader\n'1' has it") == f"id {name} has it"


def test_names_of_one_text_are_apart_by_kind() -> None:
    known = Pseudonyms(KEY, [])
    assert known.of("topic", "orders") != known.of("id", "orders").replace("id-", "topic-")
    assert known.of("topic", "__transaction_state") == "__transaction_state"


def test_another_key_gives_other_pseudonyms() -> None:
    assert Pseudonyms(KEY, []).of("topic", "orders") != Pseudonyms(b"l" * 32, []).of("topic", "orders")


def test_no_hostile_name_comes_through() -> None:
    hostile = "the transaction of <b>ACME</b>\u202e, \"orders\"; rm -rf 'x'\n"
    found = rows.live_finding(transactional_id=hostile, application=hostile, evidence=[f"the id {hostile} has it"])
    health = rows.health(topic="payments", partition=0, remarks=[f"a copy in /srv/{hostile}/x has more"])
    report = build_report(rows.run(verdict_counts={"hanging": 1}), [rows.input_file(path=hostile)], [health], [found])
    told, _ = anonymized(report, None, KEY)
    assert "ACME" in "".join(json_report(report))
    assert "ACME" not in "".join(json_report(told))
    assert told.partitions[0].remarks == (LEFT_OUT,)
