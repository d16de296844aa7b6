"""What open transactions block in a real capture, against numbers worked out by hand from its dumps."""

from collections.abc import Callable

import pytest

from tests.acceptance.captures import VARIANTS, Variant
from txn_analysis.report.model import AuditReport

CAPTURE = Variant("kafka-4.2-edge/capture-2", ("segments", "group-offsets", "transaction-state", "producer-snapshots"))


@pytest.fixture(scope="module")
def report(audit_of: Callable[[Variant], AuditReport]) -> AuditReport:
    return audit_of(CAPTURE)


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
