"""Folders that nobody but their owner can look into: what an audit writes names transactional ids.

Spark makes its folders with the modes that the umask leaves, so they get a private one to be made in, which Spark
deletes at its end like its own; where somebody else says where they are, they are closed as soon as they are there.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from txn_analysis.spark import private_api

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OWNER_ONLY = 0o700


def make_private(folder: Path) -> None:
    """Make a folder for its owner alone, below parents as the umask leaves them; one that is there keeps its mode.

    Raises:
        OSError: it cannot be made.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        folder.mkdir(OWNER_ONLY)
    except FileExistsError:
        return
    folder.chmod(OWNER_ONLY)  # also where a set-group-id parent, or a default access list, gave it more


def make_private_in_store(spark: SparkSession, root: str) -> None:
    """Make a folder for its owner alone at any URI that Spark can write; stores without modes only make it."""
    private_api.make_folder(spark, root, OWNER_ONLY)


def private_temp_folder() -> Path:
    """A new folder for the temporary files of one Java; see `delete_with_java`."""
    return Path(tempfile.mkdtemp(prefix="txn-analysis-"))  # 0700, whatever the umask


def delete_with_java(jvm: Any, folder: Path) -> None:
    """Let Java delete its folder when it ends: it outlives this process for a moment, and still writes to it."""
    for made in folder.iterdir():  # by spark-submit, before there was a session
        if made.is_dir():
            made.chmod(OWNER_ONLY)
    private_api.delete_at_end(jvm, folder)


def close_spark_folders(spark: SparkSession) -> None:
    """Close the folders in which a driver that has just started will keep blocks, files and artifacts."""
    for folder in private_api.own_folders(spark):
        folder.chmod(OWNER_ONLY)
