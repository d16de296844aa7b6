"""The page's picture of a partition against the nights before, of real nights."""

from pathlib import Path

from tests.tools.captures import PARAMETERS
from tests.tools.repository import CASES
from tests.tools.sessions import no_session, opened
from txn_analysis.pipeline import steps
from txn_analysis.questions.loaded_report import pictures
from txn_analysis.report.html.page import html_report
from txn_analysis.settings import Settings


def test_each_night_is_one_point_and_the_last_one_is_the_reports_own(tmp_path: Path) -> None:
    settings = Settings.model_validate(PARAMETERS | {"warehouse": str(tmp_path)})
    for night in (1, 2):
        parts = [str(CASES / f"kafka-4.2/capture-{night}" / part) for part in ("segments", "transaction-state")]
        report = steps.audit(no_session, parts, settings)
    shown = pictures(opened(tmp_path), report)
    seen = {(timeline.topic, timeline.partition): timeline.nights for timeline in shown.partitions}
    assert seen
    for place, nights in seen.items():
        item = report.partitions_by_place[place]
        moments = [night.as_of_ms or 0 for night in nights]
        assert moments == sorted({*moments})
        assert nights[-1].hidden_record_count == item.hidden_record_count
        assert nights[-1].last_stable_offset == item.last_stable_offset
    assert max(map(len, seen.values())) == 2
    assert html_report(report, shown).count("hidden records over the last nights</h3>") == len(seen)
