"""`make test-spark VERSION=4.0`: another Spark, in an environment of its own, gives the tables that this process gives.

Versions are `4.0`, `4.1`, `4.2`, and `connect`: the newest by Spark Connect. The package is installed beside a Spark
that is there already, which must stay as it is. Then every real capture is audited by both engines. Nothing here needs
Delta's jars: the tables are read as files.
"""

import os
import re
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Sequence
from importlib.metadata import version as installed_version
from pathlib import Path

from pyspark.sql import SparkSession

from tests.tools.captures import VARIANTS, run_audit
from tests.tools.repository import ROOT
from tests.tools.scene import differences, tables
from tests.unit.pipeline.test_sources import READ, audited, rows_of
from txn_analysis import query, sources
from txn_analysis.spark.session import session

PROJECT = ROOT
ENVIRONMENTS = PROJECT / ".sparks"
CONNECT = "connect"
# No release of delta-spark goes with PySpark 4.2.1 (November 2026).
VERSIONS = {"4.0": "4.0.*", "4.1": "4.1.*", "4.2": "4.2.0", CONNECT: "4.2.0"}
_LOOPBACK = "127.0.0.1"
_QUESTION = "SELECT outcome, count(transactional_id) AS named_count FROM ended GROUP BY outcome ORDER BY outcome"
_OF_SPARK = re.compile(r"^(pyspark|delta[-_]spark|py4j)\b")
"""What the project pins for one Spark alone."""


def python_of(wanted: str) -> Path:
    """The interpreter of an environment that has a Spark and the package; made on first use.

    Raises:
        SystemExit: installing the package changed the Spark that was there.
    """
    folder = ENVIRONMENTS / wanted
    python, ready = folder / "bin/python", folder / ".ready"
    if not ready.exists():
        venv.create(folder, with_pip=True, clear=True)
        constraints = folder / "constraints.txt"
        pinned = (PROJECT / "constraints.txt").read_text(encoding="utf-8").splitlines(keepends=True)
        constraints.write_text("".join(line for line in pinned if not _OF_SPARK.match(line)), encoding="utf-8")
        install = f"{python} -m pip install --quiet --disable-pip-version-check -c {constraints}".split()
        subprocess.run([*install, f"pyspark[connect]=={VERSIONS[wanted]}"], check=True)
        before = _spark_in(python)
        subprocess.run([*install, "-e", f"{PROJECT}[test]"], check=True)
        if _spark_in(python) != before:
            raise SystemExit(f"error: installing the package made PySpark {before} to {_spark_in(python)}")
        ready.touch()
    return python


def _spark_in(python: Path) -> str:
    question = "from importlib.metadata import version; print(version('pyspark'))"
    return subprocess.run([python, "-c", question], check=True, capture_output=True, text=True).stdout.strip()


def differing(wanted: str, folder: Path) -> list[str]:
    """Audit every real capture by both engines, in the Spark of this environment; what differs, a line each."""
    spark = _session(wanted)
    print(f"Spark {spark.version}, PySpark {installed_version('pyspark')}, {type(spark).__module__}", flush=True)
    problems = []
    for number, variant in enumerate(VARIANTS):
        found = {}
        began = time.monotonic()
        for engine in ("local", "spark"):
            warehouse = folder / f"{number}-{engine}"
            run_audit(spark, str(warehouse), variant.paths, engine=engine, **dict(variant.settings))
            found[engine] = tables(spark, warehouse)
        differ = differences(found["spark"], found["local"])
        rows = sum(map(len, found["local"].values()))
        said = "; ".join(differ) or f"{rows:,} rows of all tables are equal"
        print(f"{time.monotonic() - began:5.1f} s  {variant.name}: {said}", flush=True)
        problems += [f"{variant.name}: {line}" for line in differ]
        if query(spark, folder / f"{number}-spark", _QUESTION).toArrow() != query(
            None, folder / f"{number}-spark", _QUESTION
        ):
            problems.append(f"{variant.name}: a question has other rows by the session")
    return problems + _differing_sources(spark, folder)


def _differing_sources(spark: SparkSession, folder: Path) -> list[str]:
    """Read files by the formats of `sources`; those whose rows are not those of an audit's table."""
    sources.register(spark)
    problems = []
    for number, (name, path, table) in enumerate(READ):
        wanted = audited(folder / f"read-{number}", path, table)
        found = rows_of(spark.read.format(name).load(str(path)), table)
        print(f"{name}: {len(found):,} rows of {path.name}", flush=True)
        problems += [] if found == wanted else [f"{name}: other rows of {path} than in {table.name}"]
    return problems


def _session(wanted: str) -> SparkSession:
    if wanted == CONNECT:
        remote = SparkSession.builder.remote("local[2]").config("spark.ui.showConsoleProgress", "false")
        return remote.config("spark.connect.grpc.binding.address", _LOOPBACK).getOrCreate()
    return session("local[2]", "txn-analysis-tests")


def main(words: Sequence[str]) -> int:
    """Called with a version, and once more with it and `here` in that version's environment."""
    wanted = words[0] if words else ""
    if wanted not in VERSIONS:
        print(f"error: give one of {', '.join(VERSIONS)}", file=sys.stderr)
        return 2
    if words[1:] != ["here"]:
        python = str(python_of(wanted))
        command = [python, "-m", "tests.systems.spark.other_sparks", wanted, "here"]
        # A Connect server takes any other Python for its tasks, and listens on every address.
        own = os.environ | {"PYSPARK_PYTHON": python, "SPARK_LOCAL_IP": _LOOPBACK}
        return subprocess.run(command, cwd=PROJECT, env=own, check=False).returncode
    with tempfile.TemporaryDirectory() as folder:
        problems = differing(wanted, Path(folder))
    print("\n".join(problems) or f"Spark {wanted}: all tables of all captures are equal")
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
