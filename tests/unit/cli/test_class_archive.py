"""The archive of Java's classes: a session takes them from it, does without a damaged one, and names one cut short."""

import subprocess
import sys
from pathlib import Path

import pytest

_MAKE = "import sys, pathlib; from txn_analysis.cli.class_archive import make; make(pathlib.Path(sys.argv[1]))"
_START = """
import pathlib, sys
from txn_analysis.spark import session
session.CLASS_ARCHIVE, said = map(pathlib.Path, sys.argv[1:])
options = f'{session.from_archive(session.CLASS_ARCHIVE)} "-Xlog:class+load:file={said}"'
print(session.session("local[1]", java_options=options).range(3).count())
"""


def python(program: str, *words: Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd)


def run(program: str, *words: Path) -> subprocess.CompletedProcess[str]:
    done = python(program, *words)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done


def session_of_spark_comes_from(archive: Path, said: Path) -> str:
    """Where Java says that it took the class from, while a session started, silently, and worked."""
    assert run(_START, archive, said).stdout == "3\n"
    (line,) = (each for each in said.read_text().splitlines() if " org.apache.spark.SparkContext source: " in each)
    return line.partition("source: ")[2].split(":")[0]


@pytest.mark.cluster
def test_spark_starts_from_the_archive_without_a_damaged_one_and_not_with_one_cut_short(tmp_path: Path) -> None:
    archive = tmp_path / "a folder" / "spark.jsa"
    run(_MAKE, archive)
    assert [*archive.parent.iterdir()] == [archive]
    assert session_of_spark_comes_from(archive, tmp_path / "whole.log") == "shared objects file (top)"

    archive.chmod(0o600)
    with archive.open("r+b") as file:
        file.seek(archive.stat().st_size // 2)
        file.write(bytes(1 << 20))
    assert session_of_spark_comes_from(archive, tmp_path / "damaged.log") == "file"

    with archive.open("r+b") as file:
        file.truncate(archive.stat().st_size // 2)
    said = python(_START, archive, tmp_path / "cut.log", cwd=tmp_path).stderr  # where Java leaves a report
    assert "ConfigError: Spark does not start: " in said
    assert said.endswith(f", or remove {archive}\n")
