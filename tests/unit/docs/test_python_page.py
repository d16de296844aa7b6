"""The page for Python's users runs, in a process and a session of its own, as somebody would type it in."""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.tools.repository import ROOT

PAGE = ROOT / "docs/python.md"
_CELL = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_NOT_INSTALLED_FOR_TESTS = ("polars", "duckdb")

# What the machine of a test has not: Airflow.
_STAND_INS = """
import sys, types
from pyspark.sql import SparkSession
own = dict.fromkeys(["spark.driver.host", "spark.driver.bindAddress"], "127.0.0.1") | {"spark.ui.enabled": "false"}
SparkSession.builder.config(map=own)
sys.modules["airflow"], sys.modules["airflow.sdk"] = types.ModuleType("airflow"), types.ModuleType("airflow.sdk")
sys.modules["airflow.sdk"].task = lambda function: function
"""
_LOOK = """
settings_then = None
def settings_now():
    spark.sql("SELECT 1").collect()  # Delta sets two of Parquet's with the first query of a session
    return {name: value for name, value in dict(spark.conf.getAll).items() if not name.startswith("spark.app")}
"""
_CHECKS = """
assert [f.verdict.value for f in report.findings].count("hanging") == len(hanging) == plan.count() > 0
assert worst.verdict is Verdict.HANGING
assert health.count() == blocked.num_rows > 0
assert latest.count() == history.count() == len(report.findings)
assert {row["finding_id"] for row in latest.collect()} == {finding.finding_id for finding in report.findings}
said = report.run.model_copy(update={"engine": None})  # the tables do not say which engine judged
assert again == report.model_copy(update={"run": said})
assert audit_of_the_night(f"{capture}/segments")["answer"] == "could_not_tell"
assert batches.count() > per_team.count() == 2
assert settings_now() == settings_then
print("all of the page ran")
"""


def cells() -> list[str]:
    return _CELL.findall(PAGE.read_text(encoding="utf-8"))


@pytest.mark.cluster
def test_every_line_of_the_page_runs_in_a_session_of_ones_own(tmp_path: Path) -> None:
    first, *others = [
        cell
        for cell in cells()
        if not any(f"import {n}" in cell and not find_spec(n) for n in _NOT_INSTALLED_FOR_TESTS)
    ]
    watched = [_STAND_INS, first, _LOOK, "settings_then = settings_now()", *others, _CHECKS]
    (tmp_path / "data").symlink_to(ROOT / "data")
    program = tmp_path / "page.py"
    program.write_text("\n".join(watched), encoding="utf-8")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(
        [sys.executable, program], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "/no/such/folder: no such file or folder" in done.stdout
    assert done.stdout.endswith("all of the page ran\n")
