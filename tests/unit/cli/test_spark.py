"""What is refused before Spark starts."""

from pathlib import Path

import pytest

from tests.tools.program import program
from txn_analysis.cli import spark
from txn_analysis.tables import RUNS

READING = (
    ("find-hanging",),
    ("list",),
    ("describe", "--transactional-id", "a"),
    ("describe-producers", "--topic", "a", "--partition", "0"),
    ("explain",),
    ("ended",),
    ("ended", "--by", "id"),
    ("abort-plan",),
    ("verify",),
    ("report",),
)


@pytest.mark.parametrize("words", READING, ids=lambda words: words[0])
def test_a_warehouse_that_is_not_there_is_refused_before_spark_starts(words: tuple[str, ...], tmp_path: Path) -> None:
    done = program(*words, "--warehouse", tmp_path / "none")
    assert (done.code, done.out) == (2, "")
    assert done.err == f"error: {tmp_path}/none: no warehouse here: give the --warehouse of an audit, or audit first\n"


def test_the_folder_that_is_looked_for_is_that_of_the_runs() -> None:
    assert RUNS.name == spark.RUNS_FOLDER
