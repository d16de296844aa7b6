"""The dashboard asks for metrics that a real run writes, in PromQL, and in a form that Grafana reads to the end."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.tools.repository import ROOT

DASHBOARD = ROOT / "deploy" / "dashboard.json"
METRIC = re.compile(r"\btxn_analysis_[a-z_]+")
LABEL = re.compile(r"\{\{(\w+)\}\}")
PROMTOOL = shutil.which("promtool")


@pytest.fixture(scope="module")
def dashboard() -> dict[str, Any]:
    return dict(json.loads(DASHBOARD.read_text(encoding="utf-8")))


@pytest.fixture(scope="module")
def metrics() -> str:
    """The metrics of an audit of a real capture, in which four transactions hang."""
    return (ROOT / "tests/golden/demo/metrics.prom").read_text(encoding="utf-8")


def expressions(dashboard: dict[str, Any]) -> list[str]:
    return [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]


def test_it_asks_for_every_metric_that_a_real_run_writes_and_for_no_other(
    dashboard: dict[str, Any], metrics: str
) -> None:
    asked = {name for expression in expressions(dashboard) for name in METRIC.findall(expression)}
    assert asked == {*re.findall(r"^# TYPE (\w+) gauge$", metrics, re.MULTILINE)}


def test_what_a_legend_names_is_a_label_of_the_metric(dashboard: dict[str, Any], metrics: str) -> None:
    labels = {name: {*re.findall(r"(\w+)=", of)} for name, of in re.findall(r"^(\w+)\{(.*)\}", metrics, re.MULTILINE)}
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            (metric,) = METRIC.findall(target["expr"])
            assert {*LABEL.findall(target["legendFormat"])} <= labels[metric], panel["title"]


def test_each_panel_shows_the_clusters_that_are_chosen(dashboard: dict[str, Any]) -> None:
    assert [variable["name"] for variable in dashboard["templating"]["list"]] == ["datasource", "cluster"]
    assert all('cluster=~"$cluster"' in expression for expression in expressions(dashboard))
    assert all(panel["datasource"]["uid"] == "${datasource}" for panel in dashboard["panels"])


def test_panels_stand_beside_each_other_in_the_grid_of_24_columns(dashboard: dict[str, Any]) -> None:
    taken = [
        (x, y)
        for place in (panel["gridPos"] for panel in dashboard["panels"])
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(taken) == len({*taken})
    assert max(x for x, _ in taken) == 23
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])


@pytest.mark.skipif(PROMTOOL is None, reason="promtool (Debian's package prometheus) is not here")
def test_prometheus_takes_each_expression(dashboard: dict[str, Any], tmp_path: Path) -> None:
    rules = [
        {"record": f"panel:{number}", "expr": expression.replace("$cluster", "east|west")}
        for number, expression in enumerate(expressions(dashboard))
    ]
    file = tmp_path / "rules.yml"
    file.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))  # JSON is YAML
    done = subprocess.run([str(PROMTOOL), "check", "rules", file], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"{len(rules)} rules found" in done.stdout


def test_grafanas_own_classes_read_all_of_it(dashboard: dict[str, Any]) -> None:
    """What they do not know they drop; what they know has the values that stand here."""
    models = pytest.importorskip("grafana_foundation_sdk.models.dashboard", reason="of the extra `test`")
    cog = pytest.importorskip("grafana_foundation_sdk.cog.encoder")
    read = models.Dashboard.from_json(dashboard)
    assert_holds(json.loads(cog.JSONEncoder(sort_keys=True).encode(read)), dashboard, "dashboard")


def assert_holds(read: Any, written: Any, where: str) -> None:
    if isinstance(written, dict):
        for name, value in written.items():
            assert isinstance(read, dict), where
            assert name in read or value is None, f"{where}.{name}"
            assert_holds(read.get(name), value, f"{where}.{name}")
    elif isinstance(written, list):
        assert len(read) == len(written), where
        for number, value in enumerate(written):
            assert_holds(read[number], value, f"{where}[{number}]")
    else:
        assert read == written, where
