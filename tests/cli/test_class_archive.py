"""The archive of Java's classes: a session takes them from it, and does without one that is damaged."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

_MAKE = "import sys, pathlib; from txn_analysis.cli.class_archive import make; make(pathlib.Path(sys.argv[1]))"
_START = """
import pathlib, sys
from txn_analysis.spark.session import from_archive, session
archive, said = map(pathlib.Path, sys.argv[1:])
options = f'{from_archive(archive)} "-Xlog:class+load:file={said}"'
print(session("local[1]", java_options=options).range(3).count())
"""


def run(program: str, *words: Path) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-c", program, *map(str, words)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done


def session_of_spark_comes_from(archive: Path, said: Path) -> str:
    """Where Java says that it took the class from, while a session started, silently, and worked."""
    assert run(_START, archive, said).stdout == "3\n"
    (line,) = (each for each in said.read_text().splitlines() if " org.apache.spark.SparkContext source: " in each)
    return line.partition("source: ")[2].split(":")[0]


@pytest.mark.cluster
def test_spark_starts_from_the_archive_and_without_one_that_is_damaged(tmp_path: Path) -> None:
    archive = tmp_path / "a folder" / "spark.jsa"
    run(_MAKE, archive)
    assert [*archive.parent.iterdir()] == [archive]
    assert session_of_spark_comes_from(archive, tmp_path / "whole.log") == "shared objects file (top)"

    archive.chmod(0o600)
    with archive.open("r+b") as file:
        file.seek(archive.stat().st_size // 2)
        file.write(bytes(1 << 20))
    assert session_of_spark_comes_from(archive, tmp_path / "damaged.log") == "file"
