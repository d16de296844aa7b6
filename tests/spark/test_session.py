"""Starting Spark: the JDK, the Delta jars, and a quiet session with Delta in UTC."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from txn_analysis.errors import MissingToolError
from txn_analysis.settings import JARS_VARIABLE
from txn_analysis.spark import delta_jars as jars_module
from txn_analysis.spark.delta_jars import (
    DELTA_ARTIFACT,
    DELTA_COORDINATES,
    DELTA_VERSION,
    delta_jars,
    jars_folder,
    resolve_jars,
)
from txn_analysis.spark.jdk import check_jdk
from txn_analysis.spark.session import session

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from pyspark.sql import SparkSession

OTHER_JAR = "io.delta_delta-storage-1.jar"
MAIN_JAR = f"io.delta_{DELTA_ARTIFACT}-{DELTA_VERSION}.jar"
FETCHES = (
    'for word; do case "$word" in spark.jars.ivy=*) ivy=${word#*=};; esac; done; mkdir "$ivy/jars"; '
    f'touch "$ivy/jars/{OTHER_JAR}" "$ivy/jars/{MAIN_JAR}"'
)


@pytest.fixture
def java_home(tmp_path: Path) -> Callable[[str], Mapping[str, str]]:
    """An environment with a `java` that is this shell script."""

    def make(script: str) -> Mapping[str, str]:
        _program(tmp_path / "bin" / "java", script)
        return {"JAVA_HOME": str(tmp_path)}

    return make


@pytest.fixture
def spark_submit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Puts a shell script in the place of spark-submit."""

    def make(script: str) -> None:
        program = tmp_path / "spark-submit"
        _program(program, script)
        monkeypatch.setattr(jars_module, "_spark_submit", lambda: str(program))

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


@pytest.mark.parametrize(
    ("script", "found"),
    [
        pytest.param(says("25.0.1"), "is version 25.0.1", id="too-new"),
        pytest.param(says("11.0.2"), "is version 11.0.2", id="too-old"),
        pytest.param(
            f'[ "$1" = -version ] || exit 1; {says("1.8.0_402")}', "is version 1.8.0_402", id="jdk-8-knows-no-modules"
        ),
        pytest.param(
            f'[ "$1" = -version ] || exit 1; {says("17.0.9")}',
            "lacks the module jdk.incubator.vector",
            id="small-runtime",
        ),
        pytest.param("echo 'not found'; exit 2", "does not tell its version", id="broken"),
    ],
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


def test_jars_are_in_the_named_folder_or_in_the_users_cache(tmp_path: Path) -> None:
    assert jars_folder({"TXN_ANALYSIS_JARS": str(tmp_path)}) == tmp_path
    assert (
        jars_folder({"XDG_CACHE_HOME": str(tmp_path)})
        == tmp_path / "txn-analysis" / f"{DELTA_ARTIFACT}-{DELTA_VERSION}"
    )


def test_a_user_without_a_home_is_told_of_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container that runs as a number."""
    monkeypatch.delenv("HOME")
    monkeypatch.setattr("pwd.getpwuid", {}.__getitem__)
    with pytest.raises(MissingToolError, match="no home to keep the Delta jars in: set TXN_ANALYSIS_JARS to a folder"):
        jars_folder({})


def test_a_home_that_cannot_be_written_is_one_line_with_the_remedy(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.touch()
    with pytest.raises(MissingToolError) as refused:
        resolve_jars(jars_folder({"XDG_CACHE_HOME": str(home)}))
    assert str(refused.value) == (
        f"cannot store the Delta jars in {home}/txn-analysis/{DELTA_ARTIFACT}-{DELTA_VERSION}: Not a directory;"
        " set TXN_ANALYSIS_JARS to a folder to write to"
    )


def test_jars_are_fetched_once(tmp_path: Path, spark_submit: Callable[[str], None]) -> None:
    spark_submit(FETCHES)
    folder = tmp_path / "jars"
    names = [jar.name for jar in resolve_jars(folder)]
    assert names == sorted([OTHER_JAR, MAIN_JAR])
    assert sorted(path.name for path in folder.iterdir()) == names
    spark_submit("exit 1")
    assert [jar.name for jar in resolve_jars(folder)] == names


def test_two_set_ups_at_once_do_not_harm_each_other(tmp_path: Path, spark_submit: Callable[[str], None]) -> None:
    spark_submit(f"sleep 0.2; {FETCHES}")
    with ThreadPoolExecutor() as pool:
        found = list(pool.map(resolve_jars, [tmp_path / "jars"] * 3))
    assert [[jar.name for jar in jars] for jars in found] == [sorted([OTHER_JAR, MAIN_JAR])] * 3
    assert len(list((tmp_path / "jars").iterdir())) == 2


def test_what_an_interrupted_set_up_left_is_not_used(tmp_path: Path, spark_submit: Callable[[str], None]) -> None:
    """The main jar is the last to be there."""
    (tmp_path / OTHER_JAR).write_text("half of it")
    (tmp_path / ".resolving-1").mkdir()
    (tmp_path / ".resolving-1" / MAIN_JAR).touch()
    assert delta_jars(tmp_path) == []
    spark_submit(FETCHES)
    assert [jar.read_text() for jar in resolve_jars(tmp_path)] == ["", ""]


def test_jars_are_printed_as_spark_submit_takes_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(JARS_VARIABLE, str(tmp_path))
    for name in (MAIN_JAR, OTHER_JAR):
        (tmp_path / name).touch()
    assert jars_module.main() == 0
    assert capsys.readouterr() == (",".join(sorted(f"{tmp_path}/{name}" for name in (MAIN_JAR, OTHER_JAR))) + "\n", "")


def test_failed_fetch_is_one_line_with_the_remedy(tmp_path: Path, spark_submit: Callable[[str], None]) -> None:
    spark_submit("echo 'RuntimeException: [unresolved dependency: io.delta#x;1: not found]' >&2; echo at y >&2; exit 1")
    with pytest.raises(MissingToolError) as refused:
        resolve_jars(tmp_path / "jars")
    assert str(refused.value) == (
        "cannot fetch the Delta jars (unresolved dependency: io.delta#x;1: not found): give this machine access to"
        f" Maven Central once, or set TXN_ANALYSIS_JARS to a folder with the jars of {DELTA_COORDINATES}"
    )
    assert delta_jars(tmp_path / "jars") == []


def test_jars_of_another_delta_are_refused(tmp_path: Path) -> None:
    (tmp_path / "io.delta_delta-spark_4.2_2.13-9.9.9.jar").touch()
    with pytest.raises(MissingToolError, match="empty the folder"):
        delta_jars(tmp_path)


def test_session_has_delta_utc_and_ansi(spark: SparkSession, tmp_path: Path) -> None:
    spark.sql("SELECT TIMESTAMP '2026-11-21 03:15:00' AS t").write.format("delta").save(str(tmp_path / "times"))
    row = spark.read.format("delta").load(str(tmp_path / "times")).selectExpr("unix_millis(t) AS t_ms").first()
    assert row is not None
    assert row["t_ms"] == 1_795_230_900_000
    assert spark.conf.get("spark.sql.ansi.enabled") == "true"


def test_functions_of_arrow_batches_work(spark: SparkSession) -> None:
    frame = spark.range(4)
    by_id = frame.groupBy("id")
    assert frame.mapInArrow(lambda batches: batches, "id BIGINT").count() == 4
    assert by_id.applyInArrow(lambda table: table, "id BIGINT").count() == 4
    assert by_id.cogroup(by_id).applyInArrow(lambda left, _: left, "id BIGINT").count() == 4


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
