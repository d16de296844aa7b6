"""The metrics of a run, read back by prometheus-client's own parser."""

from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from tests.tools import report_rows as rows
from txn_analysis.report.build import build_report
from txn_analysis.report.formats import MOST_PARTITIONS, prometheus_text
from txn_analysis.report.model import AuditReport
from txn_analysis.tables import Finding, PartitionHealth

FINISHED_MS = rows.AS_OF_MS + 5_000
HELD = {"impact": {"hidden_since_ms": rows.AS_OF_MS - 3 * rows.HOUR_MS}}


def metrics(report: AuditReport) -> dict[tuple[str, ...], float]:
    families = text_string_to_metric_families(prometheus_text(report, FINISHED_MS))
    return {
        (s.name.removeprefix("txn_analysis_"), *(v for k, v in sorted(s.labels.items()) if k != "cluster")): s.value
        for family in families
        for s in family.samples
    }


def report(*findings: Finding, partitions: list[PartitionHealth] | None = None, **columns: Any) -> AuditReport:
    return build_report(rows.run(**columns), [], partitions or [rows.health()], findings)


def test_what_could_not_be_told_is_a_gauge_of_its_own() -> None:
    found = metrics(report(rows.inconclusive()))
    assert (found["could_not_tell",], found["open_transactions_in_doubt",]) == (1, 1)
    found = metrics(report(rows.finding(), rows.inconclusive()))
    assert (found["could_not_tell",], found["open_transactions_in_doubt",]) == (0, 1)
    assert metrics(report())["could_not_tell",] == 0


def test_late_is_counted_as_the_broker_counts_it() -> None:
    bound_ms = 900_000 + 300_000
    assert metrics(report(rows.finding(**HELD, idle_ms=bound_ms)))["partitions_with_late_transactions_count",] == 0
    assert metrics(report(rows.finding(**HELD, idle_ms=bound_ms + 1)))["partitions_with_late_transactions_count",] == 1
    behind_another = rows.finding(idle_ms=bound_ms + 1, blocks_partition=False)
    assert metrics(report(behind_another))["partitions_with_late_transactions_count",] == 0


def test_labels_are_bounded_and_never_an_id() -> None:
    many = [rows.health(partition=p, end_offset=200 + p) for p in range(MOST_PARTITIONS + 3)]
    text = prometheus_text(report(rows.finding(transactional_id="secret-id"), partitions=many), FINISHED_MS)
    assert "secret-id" not in text
    found = metrics(report(rows.finding(), partitions=many))
    assert sum(name[0] == "last_stable_offset_lag" for name in found) == MOST_PARTITIONS
    assert found["partitions_left_out",] == 3
