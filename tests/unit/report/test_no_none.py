"""No line of a report says `None`: each finding, with each of its columns that may be NULL taken away."""

from collections.abc import Iterator
from typing import Any, get_args, get_type_hints

import pytest

from tests.tools import report_rows as rows
from txn_analysis.report.build import build_report
from txn_analysis.report.figures import ANYBODY
from txn_analysis.report.finding_text import scene_of, telling
from txn_analysis.report.html.page import html_report
from txn_analysis.report.terminal import lines_of
from txn_analysis.report.text_report import text_report
from txn_analysis.tables import Finding, Impact, PartitionHealth
from txn_analysis.verdict import Verdict

IMPACT = Impact(
    hidden_since_ms=rows.AS_OF_MS - rows.HOUR_MS,
    hidden_share=0.5,
    is_compacted=True,
    is_compaction_stopped=True,
    log_growth_bytes_per_day=1_000_000,
    log_growth_measured_ms=rows.HOUR_MS,
    days_until_full=2.0,
    hidden_lost_at_ms=rows.AS_OF_MS + rows.HOUR_MS,
    pending_groups=("billing",),
    waiting_groups=("audit",),
    is_tiering_stopped=True,
    beyond_local_retention_at_ms=rows.AS_OF_MS + rows.HOUR_MS,
)
KNOWN: rows.Row = {
    "coordinator_epoch": 3,
    "coordinator_epoch_basis": "marker",
    "coordinator_state": "Ongoing",
    "coordinator_producer_id": 3,
    "coordinator_producer_epoch": 4,
    "coordinator_start_ms": rows.AS_OF_MS - rows.HOUR_MS,
    "coordinator_update_ms": rows.AS_OF_MS - rows.HOUR_MS,
    "coordinator_timeout_ms": 60_000,
    "transactional_id": "orders-sink-4-1700",
    "application": "orders-sink",
    "impact": IMPACT,
}
FINDINGS = (
    rows.finding(impact=IMPACT),
    rows.live_finding(**KNOWN),
    rows.inconclusive(**KNOWN),
    rows.finding(verdict="suspect", rule="coordinator_overdue", **KNOWN),
    rows.finding(verdict="coordinated", rule="in_coordinator", **KNOWN),
    rows.finding(verdict="in_progress", rule="not_late", **KNOWN | {"late_by_ms": -5}),
)
MAY_BE_NULL = [name for name, hint in get_type_hints(Finding).items() if type(None) in get_args(hint)]
OF_HEALTH = [name for name, hint in get_type_hints(PartitionHealth).items() if type(None) in get_args(hint)]


def nothing(column: str) -> dict[str, Any]:
    return {column: None}


def less(finding: Finding) -> Iterator[tuple[str, Finding]]:
    yield "nothing", finding
    # No abort can be planned without the producer's epoch: what hangs has it.
    known = {"producer_epoch"} if finding.verdict is Verdict.HANGING else set()
    for name in (one for one in MAY_BE_NULL if one not in known):
        yield name, finding._replace(**nothing(name))
    if finding.impact is not None:
        for name in Impact._fields:
            yield f"impact.{name}", finding._replace(impact=finding.impact._replace(**nothing(name)))


@pytest.mark.parametrize("finding", FINDINGS, ids=lambda one: f"{one.verdict.value}-{one.rule}")
def test_no_line_says_none(finding: Finding) -> None:
    health = rows.health(topic=finding.topic, partition=finding.partition)
    wrong = []
    for name, own in less(finding):
        for column, of_log in [("", health), *((one, health._replace(**nothing(one))) for one in OF_HEALTH)]:
            if name != "nothing" and column:
                continue
            report = build_report(rows.run(verdict_counts={own.verdict: 1}), [], [of_log], [own])
            lines = [line.text for line in lines_of(telling(scene_of(report, own), own, ANYBODY), 110)]
            lines += text_report(report).splitlines() + html_report(report).splitlines()
            wrong += [f"{name or column}: {line}" for line in lines if "None" in line]
    assert not wrong
