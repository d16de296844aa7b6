"""What is needed of Spark's Java, and PySpark has no public name for; for PySpark 4.2.

Everything else that reaches into Java starts a session (`session`), or works in one of somebody else
(`foreign_session`).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyspark

from txn_analysis.errors import MissingToolError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VERSION = "4.2"
_OWNER_ONLY = 0o700


def check_version(version: str = pyspark.__version__) -> None:
    """Refuse a PySpark whose private parts may be others.

    Raises:
        MissingToolError: it is not of the version that this module is for.
    """
    if not version.startswith(f"{VERSION}."):
        raise MissingToolError(f"this is PySpark {version}: install pyspark {VERSION}, which this version works with")


def delete_with_java(jvm: Any, folder: Path) -> None:
    """Let Java delete its folder when it ends: it outlives this process for a moment, and still writes to it."""
    for made in folder.iterdir():  # by spark-submit, before there was a session
        if made.is_dir():
            made.chmod(_OWNER_ONLY)
    jvm.org.apache.spark.util.ShutdownHookManager.registerShutdownDeleteDir(jvm.java.io.File(str(folder)))


def close_spark_folders(spark: SparkSession) -> None:
    """Close the folders in which a driver that has just started will keep blocks, files and artifacts.

    Somebody else may have said where they are.
    """
    jvm: Any = spark._jvm
    environment = jvm.org.apache.spark.SparkEnv.get()
    blocks = environment.blockManager().diskBlockManager().localDirs()
    files = jvm.org.apache.spark.util.Utils.getLocalDir(environment.conf())
    artifacts = spark._jsparkSession.artifactManager().artifactRootPath().toString()
    for folder in (*blocks, files, artifacts):
        Path(str(folder)).chmod(_OWNER_ONLY)
