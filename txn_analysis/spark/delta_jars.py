"""The Delta jars: where they are, and how they are fetched once by Spark's own resolver.

They are kept in the user's cache, in a folder for each version, where every checkout and every installation finds them;
`python -m txn_analysis.spark.delta_jars` fetches them, and prints them as `spark-submit --jars` takes them.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from txn_analysis.errors import MissingToolError
from txn_analysis.settings import JARS_VARIABLE
from txn_analysis.spark.interrupts import delete_when_interrupted, ending_at_once
from txn_analysis.spark.jdk import check_jdk

if TYPE_CHECKING:
    from collections.abc import Mapping

DELTA_VERSION = "4.4.0"
DELTA_ARTIFACT = "delta-spark_4.2_2.13"
DELTA_COORDINATES = f"io.delta:{DELTA_ARTIFACT}:{DELTA_VERSION}"
IVY_SETTINGS = Path(__file__).with_name("ivysettings.xml")
"""Where Ivy, which comes with Spark, looks for jars."""

# Everything that Delta asks for beside its own jars and the Unity Catalog client: Spark has it, in newer versions.
_IN_SPARK = "com.*:*,org.*:*,javax.*:*,commons-*:*,io.airlift:*"
_REASON = re.compile(r"\[?(unresolved dependency: [^\]\n]+|download failed: [^\]\n]+)")


def jars_folder(env: Mapping[str, str]) -> Path:
    """The folder of the Delta jars: `$TXN_ANALYSIS_JARS`, or one per version in the user's cache.

    Raises:
        MissingToolError: the user has no home.
    """
    if chosen := env.get(JARS_VARIABLE):
        return Path(chosen).absolute()
    try:
        cache = Path(env.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError as problem:
        raise MissingToolError(
            f"there is no home to keep the Delta jars in: set {JARS_VARIABLE} to a folder to write to"
        ) from problem
    return cache.absolute() / "txn-analysis" / f"{DELTA_ARTIFACT}-{DELTA_VERSION}"


def delta_jars(folder: Path) -> list[Path]:
    """The jars in `folder`, sorted by name; none where the folder does not hold Delta.

    Raises:
        MissingToolError: the folder holds another version of Delta.
    """
    jars = sorted(folder.glob("*.jar"))
    delta = [jar.name for jar in jars if "delta-spark_" in jar.name]
    if not delta:
        return []
    if any(not name.endswith(f"{DELTA_ARTIFACT}-{DELTA_VERSION}.jar") for name in delta):
        raise MissingToolError(f"{folder} holds {', '.join(delta)}, not {DELTA_COORDINATES}: empty the folder")
    return jars


def resolve_jars(folder: Path) -> list[Path]:
    """Fetch the Delta jars into `folder`, unless they are there, and return them.

    Raises:
        MissingToolError: no usable JDK, or the jars cannot be fetched or stored.
    """
    if jars := delta_jars(folder):
        return jars
    check_jdk(os.environ)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".resolving-") as work:
            delete_when_interrupted(Path(work))
            _fetch(Path(work))
            # The main jar is moved last: where it is, the others are, even if two first runs meet or one is killed.
            for jar in sorted(Path(work, "jars").glob("*.jar"), key=lambda jar: DELTA_ARTIFACT in jar.name):
                jar.replace(folder / jar.name)
    except OSError as problem:
        raise MissingToolError(
            f"cannot store the Delta jars in {folder}: {problem.strerror}; set {JARS_VARIABLE} to a folder to write to"
        ) from problem
    return delta_jars(folder)


def _fetch(work: Path) -> None:
    """Let spark-submit resolve the jars into `work`/jars, on the way to an application that does nothing."""
    application = work / "nothing.py"
    application.touch()
    conf = {
        "spark.jars.packages": DELTA_COORDINATES,
        "spark.jars.excludes": _IN_SPARK,
        "spark.jars.ivySettings": str(IVY_SETTINGS),
        "spark.jars.ivy": str(work),
    }
    options = [word for key, value in conf.items() for word in ("--conf", f"{key}={value}")]
    done = subprocess.run(
        [_spark_submit(), "--master", "local[1]", *options, str(application)],
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode != 0 or not any(work.glob(f"jars/*{DELTA_ARTIFACT}*")):
        raise MissingToolError(_failure(done.stdout + done.stderr))


def _spark_submit() -> str:
    pyspark = find_spec("pyspark")  # its place only: importing it takes longer than most of this module's callers run
    if pyspark is None or pyspark.origin is None:
        raise MissingToolError("pyspark is not installed: pip install txn-analysis")
    return str(Path(pyspark.origin).with_name("bin") / "spark-submit")


def _failure(output: str) -> str:
    reason = _REASON.search(output)
    exceptions = (line.strip() for line in output.splitlines() if "Exception" in line)
    said = reason[1] if reason else next(exceptions, "no reason given")
    return (
        f"cannot fetch the Delta jars ({said}): give this machine access to Maven Central once,"
        f" or set {JARS_VARIABLE} to a folder with the jars of {DELTA_COORDINATES}"
    )


def main() -> int:
    """Fetch the jars and print their paths, separated by commas. Returns the exit code."""
    try:
        print(",".join(str(jar) for jar in resolve_jars(jars_folder(os.environ))))
    except MissingToolError as problem:
        print(f"error: {problem}", file=sys.stderr)
        return problem.exit_code
    return 0


if __name__ == "__main__":
    with ending_at_once():
        sys.exit(main())
