"""The alert rules ask for metrics that are written, and go off when they should."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.tools import report_rows as rows
from tests.tools.repository import ROOT
from txn_analysis.report.formats import prometheus_text

ALERTS = ROOT / "deploy" / "alerts.yml"
TRIED = Path(__file__).with_name("alerts_test.yml")
METRIC = re.compile(r"\btxn_analysis_[a-z_]+")
PROMTOOL = shutil.which("promtool")


def test_each_metric_that_a_rule_asks_for_is_written() -> None:
    written = {*METRIC.findall(prometheus_text(rows.report(rows.finding()), 0))}
    asked = {*METRIC.findall(ALERTS.read_text(encoding="utf-8"))}
    assert asked
    assert asked <= written


def test_each_rule_is_tried() -> None:
    rules = re.findall(r"- alert: (\w+)", ALERTS.read_text(encoding="utf-8"))
    assert {*rules} == {*re.findall(r"alertname: (\w+)", TRIED.read_text(encoding="utf-8"))}


@pytest.mark.skipif(PROMTOOL is None, reason="promtool (Debian's package prometheus) is not here")
def test_rules_go_off_when_they_should(tmp_path: Path) -> None:
    for file in (ALERTS, TRIED):
        shutil.copy(file, tmp_path)
    for words in (["check", "rules", ALERTS.name], ["test", "rules", TRIED.name]):
        done = subprocess.run([str(PROMTOOL), *words], check=False, cwd=tmp_path, capture_output=True, text=True)
        assert (done.returncode, done.stdout + done.stderr) == (0, done.stdout)
