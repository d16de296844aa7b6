"""What open transactions block in a real capture, against numbers worked out by hand from its dumps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.acceptance.captures import VARIANTS, Variant, run_audit

if TYPE_CHECKING:
    from collections.abc import Callable

    from txn_analysis.report.model import AuditReport

CAPTURE = Variant("kafka-4.2-edge/capture-2", ("segments", "group-offsets", "transaction-state", "producer-snapshots"))
# The newest timestamp of a broker: the last record of __transaction_state.
AS_OF_MS = 1_795_233_045_481
FIRST_MARKER_MS = 1_795_231_677_470  # of accounts-0, at offset 5
DAY_MS = 86_400_000
TOPICS = """\
All configs for topic accounts are:
  cleanup.policy=compact sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:cleanup.policy=compact}
  retention.ms=604800000 sensitive=false synonyms={}
Dynamic configs for topic trades-eu are:
  cleanup.policy=delete sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:cleanup.policy=delete}
  retention.ms=86400000 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=86400000}
"""


@pytest.fixture(scope="module")
def report(no_spark: Any, warehouse: str, tmp_path_factory: pytest.TempPathFactory) -> AuditReport:
    topics = tmp_path_factory.mktemp("topics") / "topics.txt"
    topics.write_text(TOPICS)
    settings = {"topic_config": str(topics), "free_bytes": 10**9}
    return run_audit(no_spark, warehouse, CAPTURE.paths, cluster="impact", **settings)


def test_what_each_partition_hides(report: AuditReport) -> None:
    blocked = {item.topic_partition: item for item in report.partitions if item.impact is not None}
    assert {
        name: (item.last_stable_offset, item.hidden_record_count, item.hidden_bytes) for name, item in blocked.items()
    } == {
        "__consumer_offsets-0": (1, 1, 123),  # one batch of 123 bytes
        "accounts-0": (54, 410, 4_017_619),  # sums of `count` (data) and `size` (all) from baseOffset 54 on
        "accounts-1": (0, 29, 5_047),
        "trades-0": (54, None, None),  # its first segments are deleted
        "trades-eu-1": (0, 25, 4_881),
    }


def test_since_when_and_how_much_of_the_log(report: AuditReport) -> None:
    accounts = impact_of(report, "accounts-0")
    # The first end marker after offset 55 is at offset 61; the log has 4,028,365 bytes.
    assert accounts["hidden_since_ms"] == 1_795_231_687_474
    assert accounts["hidden_share"] == pytest.approx(4_017_619 / 4_028_365)
    assert impact_of(report, "trades-eu-1")["hidden_since_ms"] == 1_795_231_688_667  # LogAppendTime of its only batch


def test_how_fast_it_grows(report: AuditReport) -> None:
    accounts = impact_of(report, "accounts-0")
    measured_ms = AS_OF_MS - FIRST_MARKER_MS
    assert accounts["log_growth_measured_ms"] == measured_ms
    assert accounts["log_growth_bytes_per_day"] == 4_028_365 * DAY_MS // measured_ms
    assert accounts["days_until_full"] == pytest.approx(10**9 / (4_028_365 * DAY_MS / measured_ms), rel=1e-6)


def test_what_compaction_and_retention_will_do(report: AuditReport) -> None:
    stopped = {item.topic_partition: item.impact.is_compaction_stopped for item in report.partitions if item.impact}
    assert stopped == {
        "__consumer_offsets-0": True,  # Kafka's own policy
        "accounts-0": True,
        "accounts-1": True,
        "trades-0": None,  # its configuration is not given
        "trades-eu-1": False,
    }
    assert impact_of(report, "trades-eu-1")["hidden_lost_at_ms"] == 1_795_231_688_667 + DAY_MS
    assert impact_of(report, "accounts-0")["hidden_lost_at_ms"] is None


def test_which_groups_wait(report: AuditReport) -> None:
    offsets = impact_of(report, "__consumer_offsets-0")
    assert (offsets["pending_groups"], offsets["waiting_groups"]) == (("billing-readers",), ())


def test_the_cluster_in_one_line(report: AuditReport) -> None:
    assert report.impact is not None
    assert (report.impact.partitions_blocked, report.impact.hidden_record_count) == (5, None)
    assert (report.impact.oldest_partition, report.impact.oldest_since_ms) == (
        "__consumer_offsets-0",
        1_795_231_684_998,
    )
    assert (report.impact.worst_partition, report.impact.worst_hidden_record_count) == ("accounts-0", 410)


def test_groups_of_other_topics_are_not_known(report: AuditReport) -> None:
    accounts = impact_of(report, "accounts-0")
    assert (accounts["pending_groups"], accounts["waiting_groups"]) == (None, None)


def test_without_the_decoder_the_groups_are_not_known(audit_of: Callable[[Variant], AuditReport]) -> None:
    report = audit_of(Variant(CAPTURE.capture, ("segments/n1.__consumer_offsets-0.txt", "transaction-state")))
    offsets = impact_of(report, "__consumer_offsets-0")
    assert (offsets["pending_groups"], offsets["waiting_groups"]) == (None, None)


def test_log_directories_name_the_same_groups(audit_of: Callable[[Variant], AuditReport]) -> None:
    (log_dirs,) = (v for v in VARIANTS if v.capture == CAPTURE.capture and "log-dirs" in v.parts)
    report = audit_of(log_dirs)
    assert impact_of(report, "__consumer_offsets-0")["pending_groups"] == ("billing-readers",)


def impact_of(report: AuditReport, name: str) -> dict[str, object]:
    (item,) = (item for item in report.partitions if item.topic_partition == name)
    assert item.impact is not None
    return item.impact._asdict()
