"""The Delta jars, with which Spark reads a warehouse as any other reader does; the program itself needs none.

`python -m tests.tools.delta_jars` fetches them once, by Spark's own resolver, into a folder of the user's cache
for each version of Spark, where every checkout finds them.
"""

import os
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from unittest.mock import patch

import pyspark
from pyspark.sql import SparkSession

DELTA_VERSION = "4.4.0"
DELTA_ARTIFACT = f"delta-spark_{'.'.join(version('pyspark').split('.')[:2])}_2.13"
IVY_SETTINGS = Path(__file__).with_name("ivysettings.xml")
"""Where Ivy, which comes with Spark, looks for jars."""

# Everything that Delta asks for beside its own jars and the Unity Catalog client: Spark has it, in newer versions.
_IN_SPARK = "com.*:*,org.*:*,javax.*:*,commons-*:*,io.airlift:*"


def delta_options() -> dict[str, bool | float | int | str | None]:
    """With which options a session reads and writes Delta tables.

    Raises:
        RuntimeError: the jars were not fetched.
    """
    jars = sorted(_folder().glob("*.jar"))
    if not jars:
        raise RuntimeError("there are no Delta jars: python -m tests.tools.delta_jars")
    from txn_analysis.spark.delta import with_jars  # noqa: PLC0415 the jars are fetched by a Python that has less

    return {**with_jars(jars)}


def session_with_delta(master: str, app_name: str = "txn-analysis-tests", **options: str) -> SparkSession:
    """A session as the program starts it, which reads and writes Delta tables as well."""
    from txn_analysis.spark.session import session  # noqa: PLC0415 as above

    words = " ".join(f"--conf {name}={value}" for name, value in (delta_options() | options).items())
    with patch.dict(os.environ, PYSPARK_SUBMIT_ARGS=f"{words} pyspark-shell"):
        return session(master, app_name)


def _folder() -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "txn-analysis" / f"{DELTA_ARTIFACT}-{DELTA_VERSION}"


def fetch() -> None:
    """Fetch the jars, unless they are there."""
    folder = _folder()
    if any(DELTA_ARTIFACT in jar.name for jar in folder.glob("*.jar")):
        return
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".resolving-") as work:
        application = Path(work, "nothing.py")
        application.touch()
        conf = {
            "spark.jars.packages": f"io.delta:{DELTA_ARTIFACT}:{DELTA_VERSION}",
            "spark.jars.excludes": _IN_SPARK,
            "spark.jars.ivySettings": str(IVY_SETTINGS),
            "spark.jars.ivy": work,
        }
        options = [word for key, value in conf.items() for word in ("--conf", f"{key}={value}")]
        submit = Path(pyspark.__file__).with_name("bin") / "spark-submit"
        subprocess.run(
            [submit, "--master", "local[1]", *options, application],
            env={**os.environ, "PYSPARK_PYTHON": sys.executable},
            check=True,
        )
        # The main jar is moved last: where it is, the others are, even if two first runs meet or one is killed.
        for jar in sorted(Path(work, "jars").glob("*.jar"), key=lambda jar: DELTA_ARTIFACT in jar.name):
            jar.replace(folder / jar.name)


if __name__ == "__main__":
    fetch()
