"""Every open transaction of every real capture has the cause with which it was made (`scenario.json`)."""

import json
from typing import Any

import pytest

from tests.tools.captures import VARIANTS, AuditOf, Variant
from tests.tools.repository import CASES
from txn_analysis.tables import Finding

CAUSE_OF_KIND = {
    "late-after-abort": "late_write_after_marker",
    "never-added": "write_before_partition_added",
    "hanging-offset-commit": "write_before_partition_added",
    "start-deleted": "write_before_partition_added",
    "compaction-blocked": "write_before_partition_added",
    "log-append-time": "write_before_partition_added",
    "future-timestamp": "write_before_partition_added",
    "unknown-pid": "producer_id_never_known",
    "no-mapped-id": "producer_id_never_known",  # another id did expire there; its number tells
    "unknown-pid-first": "producer_id_never_known",  # no broker's clock before it tells how old it is; its number does
    "id-expired": "transactional_id_expired",
    "marker-lost": "marker_missing",
    "rotated": "producer_id_rotated",
    "fenced-old-epoch": "old_epoch_left_open",
    "two-epochs": "old_epoch_left_open",
    "stray-then-readded": "late_write_joined_next_transaction",
    "stale-joins-next": "late_write_joined_next_transaction",
    "ongoing": "transaction_in_progress",
    "fresh": "transaction_in_progress",
    "pending-commit": "marker_missing",
    "unknown producer id": "producer_id_never_known",
    "late write after the abort marker": "late_write_after_marker",
    "late write after the last commit": "late_write_after_marker",
    "late write after the last commit, no marker of it left": "write_before_partition_added",
    "old epoch left open after fencing": "old_epoch_left_open",
    "in progress": "transaction_in_progress",
    # Its id went on to other producer ids, and nothing in the state names this one: as of an id that expired.
    "left under a producer id that was used up": "transactional_id_expired",
}
CAUSE_OF_ALL = {
    "kafka-4.2-mixed/capture-1": "marker_missing",  # copied within a second of the decisions
    "kafka-4.2-mixed/capture-2": "marker_missing",
}
# They are in progress, and the state was copied before they began, or is another cluster's: it tells nothing of them.
NOT_TOLD = ("kafka-4.3-wrong-order/capture-1", "twin-no-commit")
TOLD = [variant for variant in VARIANTS if variant.capture not in NOT_TOLD]


def scenario(variant: Variant) -> list[dict[str, Any]]:
    file = CASES / variant.capture.split("/")[0] / "scenario.json"
    return json.loads(file.read_text()) if file.exists() else []


def made_as(finding: Finding, stories: list[dict[str, Any]]) -> str:
    """How the scenario says that this open transaction was made; what it does not tell apart runs normally."""
    of_producer = [s for s in stories if s.get("pid", s.get("producer_id")) == finding.producer_id]
    here = [s for s in of_producer if s["topic"] == finding.topic and s.get("partition", 0) == finding.partition]
    kinds = {s["kind"] for s in here or [s for s in of_producer if s["kind"] == "fresh"]}
    return kinds.pop() if kinds else "ongoing"


@pytest.mark.parametrize("variant", TOLD, ids=lambda v: v.name)
def test_every_cause_is_the_one_with_which_it_was_made(variant: Variant, audit_of: AuditOf) -> None:
    stories = scenario(variant)
    findings = audit_of(variant).findings
    assert findings
    for finding in findings:
        assert finding.cause is not None
        expected = CAUSE_OF_ALL.get(variant.capture) or CAUSE_OF_KIND[made_as(finding, stories)]
        assert (finding.topic_partition, finding.cause.name) == (finding.topic_partition, expected)
        assert finding.cause.evidence_for
        assert (finding.cause.confidence == "certain") == (not finding.cause.evidence_against)
