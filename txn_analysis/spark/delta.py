"""Delta in Spark: which sessions have it, and with what a session that is started here gets it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_EXTENSION = "spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension"
_CATALOG = "spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog"
SETTINGS = (_EXTENSION, _CATALOG)
_JARS = "io.delta_*.jar", "delta-*.jar", "io.unitycatalog_*.jar"
# Whoever says one of these of a session has jars of their own, or none of ours.
_OF_OTHERS = ("--jars", "--packages", "spark.jars", "extraClassPath", _EXTENSION[0], _CATALOG[0])


def has_delta(spark: SparkSession) -> bool:
    """Whether a session was told to read Delta tables by itself."""
    return all(word in str(spark.conf.get(name, "")) for name, word in SETTINGS)


def options_of_session(env: Mapping[str, str]) -> dict[str, str]:
    """What a session is told that is to have Delta; nothing where there are no jars, or somebody says what it has."""
    jars = delta_jars(env)
    if not jars or any(word in text for text in _settings(env) for word in _OF_OTHERS):
        return {}
    return with_jars([] if jars[0].parent == _of_spark(env) else jars)


def with_jars(jars: Sequence[Path]) -> dict[str, str]:
    """With which options a session has Delta: by some jars, or by those that Spark has."""
    options = dict(SETTINGS) | {"spark.databricks.delta.snapshotPartitions": "1"}  # 50: for large logs
    names = [str(jar) for jar in jars]
    by_jars = {"spark.jars": ",".join(names), "spark.driver.extraClassPath": os.pathsep.join(names)}
    return options | (by_jars if jars else {})


def delta_jars(env: Mapping[str, str]) -> list[Path]:
    """The jars of Delta for this Spark, from the first folder that has them: Spark's own, or a cache of Ivy's or ours.

    `spark.jars.packages=io.delta:delta-spark_…` leaves them in Ivy's, at any earlier start of Spark.
    """
    of_spark = ".".join(version("pyspark").split(".")[:2])
    name = "delta-spark_2.13-4.0" if of_spark == "4.0" else f"delta-spark_{of_spark}_2.13-"
    home = Path(env.get("HOME") or Path.home())
    cache = Path(env.get("XDG_CACHE_HOME") or home / ".cache", "txn-analysis")
    for folder in (_of_spark(env), *sorted(home.glob(".ivy2*/jars")), *sorted(cache.glob("delta-spark_*"))):
        jars = sorted({jar for pattern in _JARS for jar in folder.glob(pattern)})
        if any(name in jar.name for jar in jars):
            return jars
    return []


def _of_spark(env: Mapping[str, str]) -> Path:
    spec = find_spec("pyspark")
    home = env.get("SPARK_HOME") or (Path(spec.origin).parent if spec and spec.origin else "")
    return Path(home, "jars")


def _settings(env: Mapping[str, str]) -> Iterator[str]:
    yield env.get("PYSPARK_SUBMIT_ARGS", "")
    folder = env.get("SPARK_CONF_DIR") or Path(env.get("SPARK_HOME", ""), "conf")
    with suppress(OSError, UnicodeDecodeError):
        yield Path(folder, "spark-defaults.conf").read_text()
