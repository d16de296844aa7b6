"""Some partitions alone: the answers are those of the whole audit or `inconclusive`; others are as if not there."""

from pathlib import Path
from typing import Any

import pytest

from tests.tools.captures import PARAMETERS, TRUE_WORDS, VARIANTS, Variant, run_audit
from tests.tools.repository import CASES
from tests.tools.sessions import no_session
from txn_analysis.errors import ConfigError
from txn_analysis.kafka.names import STATE_TOPIC
from txn_analysis.pipeline import steps as pipeline
from txn_analysis.report.headline import headline, narrowed
from txn_analysis.report.model import AuditReport
from txn_analysis.report.text_report import text_report
from txn_analysis.settings import Settings
from txn_analysis.tables import Finding
from txn_analysis.verdict import Verdict

Place = tuple[str, int]

FIRST, SECOND, THIRD = (CASES / "kafka-4.2" / f"capture-{number}" for number in (1, 2, 3))
# `make test` has the log directories of three brokers, `make cluster` the others.
QUICK = "kafka-4.2-three-nodes/capture-1: log-dirs"
ALONE = [v if v.name == QUICK else pytest.param(v, marks=pytest.mark.cluster) for v in VARIANTS]
ORDERS_2 = {"topic": ["orders"], "partition": [2]}


def audited(warehouse: Path, *paths: Path | str, **settings: Any) -> AuditReport:
    """Audit some paths in this process; so little needs no Spark."""
    return run_audit(no_session, str(warehouse), [str(path) for path in paths], **settings)


def verdicts(report: AuditReport, place: Place) -> dict[tuple[int, int], Finding]:
    return {(f.producer_id, f.txn_start_offset): f for f in report.findings if (f.topic, f.partition) == place}


def logs_of(report: AuditReport) -> set[Place]:
    return {(p.topic, p.partition) for p in report.partitions if p.topic != STATE_TOPIC}


@pytest.mark.parametrize("variant", ALONE, ids=lambda variant: variant.name)
def test_each_partition_alone_has_the_answers_of_the_whole_audit_or_none(variant: Variant, tmp_path: Path) -> None:
    settings = dict(variant.settings) | dict(TRUE_WORDS)
    whole = audited(tmp_path, *variant.paths, **settings)
    for topic, partition in sorted(logs_of(whole)):
        asked = {"topic": [topic], "partition": [partition], "cluster": f"{topic}-{partition}"}
        alone = audited(tmp_path, *variant.paths, **settings, **asked)
        assert logs_of(alone) == {(topic, partition)}
        expected, found = verdicts(whole, (topic, partition)), verdicts(alone, (topic, partition))
        assert found.keys() == expected.keys()
        for key, finding in found.items():
            assert finding.verdict in {expected[key].verdict, Verdict.INCONCLUSIVE}


def test_what_hangs_hangs_on_its_partition_alone(tmp_path: Path) -> None:
    whole = audited(tmp_path / "whole", FIRST / "log-dirs")
    for finding in whole.hanging:
        asked = {"topic": [finding.topic], "partition": [finding.partition]}
        alone = audited(tmp_path / finding.finding_id, FIRST / "log-dirs", **asked)
        assert [(f.verdict, f.rule) for f in alone.hanging] == [(Verdict.HANGING, finding.rule)]


def test_only_the_files_that_are_asked_for_are_read(tmp_path: Path) -> None:
    alone = audited(tmp_path, FIRST / "log-dirs", **ORDERS_2)
    folders = {item.path.split("/")[-2] for item in alone.inputs if item.path.endswith((".log", ".snapshot"))}
    assert {folder for folder in folders if not folder.startswith(STATE_TOPIC)} == {"orders-2"}
    assert sum(folder.startswith(STATE_TOPIC) for folder in folders) == 4


def test_one_dump_of_many_partitions_is_asked_for_one(tmp_path: Path) -> None:
    dump = tmp_path / "broker-1.txt"
    dump.write_bytes(b"".join(path.read_bytes() for path in sorted((FIRST / "segments").iterdir())))
    alone = audited(tmp_path / "alone", dump, FIRST / "transaction-state", **ORDERS_2)
    assert logs_of(alone) == {("orders", 2)}
    whole = audited(tmp_path / "alone", dump, FIRST / "transaction-state")
    assert whole.run.capture != alone.run.capture
    assert len(logs_of(whole)) == 7
    assert len(whole.hanging) == 4


def test_a_partial_report_speaks_of_nothing_else(tmp_path: Path) -> None:
    quiet = audited(tmp_path, FIRST / "log-dirs", topic=["ledger.events"], partition=[0])
    assert headline(quiet).text == "Nothing hangs in what was read of ledger.events-0."
    assert narrowed(quiet) == "This run judged only ledger.events-0, with __transaction_state."
    text = text_report(quiet)
    assert "left out          other partitions: nothing is said of them." in text
    assert "Nothing hangs in what was read." not in text
    assert [(one.topic, one.partition) for one in quiet.coverage.asked] == [("ledger.events", 0)]


def test_a_topic_is_asked_for_with_all_its_partitions(tmp_path: Path) -> None:
    assert logs_of(audited(tmp_path, FIRST / "log-dirs", topic=["orders"])) == {("orders", n) for n in range(3)}


def test_what_was_open_elsewhere_is_neither_listed_nor_hidden(tmp_path: Path) -> None:
    """A partition that a partial capture was not asked for is as if that capture were not there."""
    last = (THIRD / "segments" / "n1.orders-2.txt", THIRD / "transaction-state")
    dump = tmp_path / "second.txt"  # holds the others as well
    dump.write_bytes(b"".join(path.read_bytes() for path in sorted((SECOND / "segments").iterdir())))
    for warehouse in (tmp_path / "without", tmp_path / "with"):
        first = audited(warehouse, FIRST / "segments", FIRST / "transaction-state", capture="first")
        assert {(f.topic, f.partition) for f in first.hanging} > {("orders", 2)}
    partial = audited(tmp_path / "with", dump, SECOND / "transaction-state", capture="second", **ORDERS_2)
    assert partial.run.earlier_captures == ("first",)
    assert {(f.topic, f.partition) for f in partial.findings} <= {("orders", 2)}
    assert partial.coverage.partitions_missing == ()
    assert partial.since is None
    after, without = (audited(tmp_path / name, *last, capture="third") for name in ("with", "without"))
    assert after.coverage.partitions_missing == without.coverage.partitions_missing != ()
    assert after.since == without.since
    assert after.since is not None
    assert [_said(f) for f in after.findings] == [_said(f) for f in without.findings]
    stays = [f for f in after.findings if (f.topic, f.partition) != ("orders", 2)]
    assert {f.rule for f in stays} == {"evidence_broken"}


def _said(finding: Finding) -> tuple[Any, ...]:
    return finding.topic_partition, finding.producer_id, finding.txn_start_offset, finding.verdict, finding.rule


def test_a_word_that_other_logs_could_disprove_does_not_count(tmp_path: Path) -> None:
    """In this capture the state was copied first; it is other partitions' markers that show it."""
    wrong_order = CASES / "kafka-4.3-wrong-order" / "capture-1"
    paths, word = (wrong_order / "shallow", wrong_order / "state"), {"state_copied_last": True}
    whole = audited(tmp_path / "whole", *paths, **word)
    assert "state_copied_last" in whole.coverage.disproved
    for topic, partition in sorted(logs_of(whole)):
        alone = audited(tmp_path / f"{topic}-{partition}", *paths, **word, topic=[topic], partition=[partition])
        assert alone.run.parameters["state_copied_last"] is False
        assert not alone.hanging


def test_a_capture_is_filled_for_the_same_partitions_alone(tmp_path: Path) -> None:
    audited(tmp_path, FIRST / "log-dirs", capture="night", **ORDERS_2)
    with pytest.raises(ConfigError, match="--capture night: it was filled with other --topic and --partition"):
        audited(tmp_path, FIRST / "log-dirs", capture="night")


def test_the_steps_judge_a_partial_capture_as_it_was_asked_for(tmp_path: Path) -> None:
    given = Settings.model_validate({"warehouse": str(tmp_path)} | PARAMETERS | ORDERS_2)
    pipeline.ingest(no_session, [str(FIRST / "log-dirs")], given)
    later = given.model_copy(update={"topic": (), "partition": ()})
    pipeline.reconstruct(no_session, later)
    run = pipeline.judge(no_session, later)
    assert {(p.topic, p.partition) for p in run.health() if p.topic != STATE_TOPIC} == {("orders", 2)}
    with pytest.raises(ConfigError, match="was filled with other partitions: leave the option out"):
        pipeline.reconstruct(no_session, given.model_copy(update={"partition": (1,)}))
    assert run.run_id == audited(tmp_path, FIRST / "log-dirs", **ORDERS_2).run.run_id


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"topic": ["order"]}, "--topic order: this call saw no such topic; did you mean orders?"),
        ({"topic": ["orders"], "partition": [7]}, "--partition 7: this call saw no such partition; of orders it saw 0"),
        ({"partition": [7]}, "--partition needs --topic"),
    ],
)
def test_a_name_that_no_file_has_is_refused(tmp_path: Path, asked: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said.replace("?", r"\?")):
        audited(tmp_path, FIRST / "log-dirs", **asked)
