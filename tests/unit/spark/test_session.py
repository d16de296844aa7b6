"""Starting Spark: the JDK, and a quiet session."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.tools.cases import cases
from txn_analysis.errors import MissingToolError
from txn_analysis.spark.hidden_pandas import hide_pandas
from txn_analysis.spark.jdk import check_jdk
from txn_analysis.spark.session import session


@pytest.fixture
def java_home(tmp_path: Path) -> Callable[[str], Mapping[str, str]]:
    """An environment with a `java` that is this shell script."""

    def make(script: str) -> Mapping[str, str]:
        _program(tmp_path / "bin" / "java", script)
        return {"JAVA_HOME": str(tmp_path)}

    return make


def _program(path: Path, script: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)


def says(version: str) -> str:
    return f"""echo 'openjdk version "{version}" 2025-04-15' >&2"""


@pytest.mark.parametrize("version", ["17.0.15", "21", "21.0.7+6-LTS"])
def test_jdk_17_and_21_are_taken(version: str, java_home: Callable[[str], Mapping[str, str]]) -> None:
    check_jdk(java_home(says(version)))


@cases(
    "script found",
    {
        "too-new": (says("25.0.1"), "is version 25.0.1"),
        "too-old": (says("11.0.2"), "is version 11.0.2"),
        "jdk-8-knows-no-modules": (f'[ "$1" = -version ] || exit 1; {says("1.8.0_402")}', "is version 1.8.0_402"),
        "small-runtime": (f'[ "$1" = -version ] || exit 1; {says("17.0.9")}', "lacks the module jdk.incubator.vector"),
        "broken": ("echo 'not found'; exit 2", "does not tell its version"),
    },
)
def test_wrong_jdk_is_one_line_with_the_remedy(
    script: str, found: str, java_home: Callable[[str], Mapping[str, str]]
) -> None:
    with pytest.raises(MissingToolError) as refused:
        check_jdk(java_home(script))
    line = str(refused.value)
    assert found in line
    assert "JDK 17 or 21" in line
    assert "apt-get install openjdk-17-jdk-headless" in line
    assert "\n" not in line


def test_no_java_at_all(tmp_path: Path) -> None:
    with pytest.raises(MissingToolError, match="no java on PATH, and JAVA_HOME is not set"):
        check_jdk({"PATH": str(tmp_path)})
    with pytest.raises(MissingToolError, match="has no bin/java"):
        check_jdk({"JAVA_HOME": str(tmp_path)})


def test_functions_of_arrow_batches_work(spark: SparkSession) -> None:
    frame = spark.range(4)
    by_id = frame.groupBy("id")
    assert frame.mapInArrow(lambda batches: batches, "id BIGINT").count() == 4
    assert by_id.applyInArrow(lambda table: table, "id BIGINT").count() == 4
    assert by_id.cogroup(by_id).applyInArrow(lambda left, _: left, "id BIGINT").count() == 4


def test_pandas_is_there_again_for_spark(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    def is_there() -> bool:
        return any(finder.find_spec("pandas", None) for finder in sys.meta_path)

    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    hide_pandas()
    with pytest.raises(ModuleNotFoundError, match="pandas"):
        is_there()
    assert session() is spark
    assert is_there()


def test_running_session_is_taken(spark: SparkSession) -> None:
    assert session("local[7]").sparkContext is spark.sparkContext


@pytest.mark.cluster
def test_start_is_silent_and_leaves_nothing_behind(tmp_path: Path) -> None:
    program = """
from txn_analysis.spark.session import session
spark = session("local[1]")
print(spark.sql("SHOW TABLES").count())
"""
    work = tmp_path / "work"
    work.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=work,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "0\n", "")
    assert list(work.iterdir()) == []


@pytest.mark.cluster
def test_a_spark_that_does_not_start_says_why_and_where_its_settings_are() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from txn_analysis.spark.session import session; session()"],
        env=os.environ | {"PYSPARK_SUBMIT_ARGS": "--conf spark.driver.memory=much pyspark-shell"},
        capture_output=True,
        text=True,
        check=False,
    )
    last = done.stderr.splitlines()[-1]
    assert re.search(r"ConfigError: Spark does not start: \S.*\. Look at --master, at PYSPARK_SUBMIT_ARGS, ", last)
