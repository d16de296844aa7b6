"""What open transactions block in a real capture, against numbers worked out by hand from its dumps."""

from tests.tools.captures import VARIANTS, AuditOf, Variant
from txn_analysis.report.model import AuditReport

CAPTURE = Variant("kafka-4.2-edge/capture-2", ("segments", "group-offsets", "transaction-state", "producer-snapshots"))


def test_without_the_decoder_the_groups_are_not_known(audit_of: AuditOf) -> None:
    report = audit_of(Variant(CAPTURE.capture, ("segments/n1.__consumer_offsets-0.txt", "transaction-state")))
    offsets = impact_of(report, "__consumer_offsets-0")
    assert (offsets["pending_groups"], offsets["waiting_groups"]) == (None, None)


def test_log_directories_name_the_same_groups(audit_of: AuditOf) -> None:
    (log_dirs,) = (v for v in VARIANTS if v.capture == CAPTURE.capture and "log-dirs" in v.parts)
    report = audit_of(log_dirs)
    assert impact_of(report, "__consumer_offsets-0")["pending_groups"] == ("billing-readers",)


def impact_of(report: AuditReport, name: str) -> dict[str, object]:
    (item,) = (item for item in report.partitions if item.topic_partition == name)
    assert item.impact is not None
    return item.impact._asdict()
