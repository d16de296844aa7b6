"""An archive of the classes that Spark and Delta load, with which Java starts some seconds faster.

`python -m txn_analysis.cli.class_archive` makes it once, beside the Delta jars, which it fetches; `make setup` does so.
It is Java's own dynamic class-data sharing (JEP 350): Java checks that it fits, and without one that fits everything
works, more slowly. It fits one Java and the Spark of one virtual environment: each has its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from txn_analysis.errors import AuditError
from txn_analysis.pipeline.steps import audit
from txn_analysis.settings import Settings
from txn_analysis.spark.delta_jars import jars_folder, resolve_jars
from txn_analysis.spark.interrupts import delete_when_interrupted, ending_at_once
from txn_analysis.spark.session import SILENT_ARCHIVE, RunLength, class_archive, session, spark_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LONGEST_EXIT_S = 120
_OWNER = ".spark-home"
_SAMPLE = """\
Dumping sample-0/00000000000000000000.log
Log starting offset: 0
baseOffset: 0 lastOffset: 0 count: 1 baseSequence: 0 lastSequence: 0 producerId: 1 producerEpoch: 0 \
partitionLeaderEpoch: 0 isTransactional: true isControl: false deleteHorizonMs: OptionalLong.empty position: 0 \
CreateTime: 1700000000000 size: 100 magic: 2 compresscodec: none crc: 1 isvalid: true
"""


def make_archive(folder: Path) -> Path:
    """Audit a line, and then it and another, in a Java that writes down what it loaded; put that into `folder`.

    Only the second audit finds rows in its warehouse, as those of every later night do.

    Raises:
        MissingToolError: no usable JDK or no Delta jars.
        OSError: it cannot be stored.
    """
    with tempfile.TemporaryDirectory(dir=folder, prefix=".classes-") as work:
        delete_when_interrupted(Path(work))
        made, first, second = (Path(work, name) for name in ("classes.jsa", "first.txt", "second.txt"))
        first.write_text(_SAMPLE, encoding="utf-8")
        second.write_text(_SAMPLE.replace("sample-0", "sample-1"), encoding="utf-8")
        spark = session(
            "local[2]", length=RunLength.SHORT, java_options=f'"-XX:ArchiveClassesAtExit={made}" {SILENT_ARCHIVE}'
        )
        settings = Settings(warehouse=str(Path(work, "warehouse")))
        for samples in ([first], [first, second]):
            audit(spark, [str(sample) for sample in samples], settings)
        _end_java(spark)
        return keep(made, class_archive(folder))


def keep(made: Path, archive: Path) -> Path:
    """Put it in its place, and beside it whose it is; those go whose Spark is gone."""
    owner = made.with_name("owner")
    owner.write_text(spark_home(), encoding="utf-8")
    owner.replace(archive.with_suffix(_OWNER))
    made.replace(archive)
    for other in archive.parent.glob(f"*{_OWNER}"):
        if not Path(other.read_text(encoding="utf-8")).exists():
            other.with_suffix(archive.suffix).unlink(missing_ok=True)
            other.unlink(missing_ok=True)
    return archive


def _end_java(spark: SparkSession) -> None:
    """Stop Spark and wait for the end of its Java, which writes the archive then."""
    gateway: Any = spark.sparkContext._gateway
    java: subprocess.Popen[bytes] = gateway.proc
    spark.stop()
    gateway.shutdown()
    if java.stdin:
        java.stdin.close()
    java.wait(_LONGEST_EXIT_S)


def main() -> int:
    """Make the archive, unless it is there; where that fails, say why and go on without. Returns the exit code, 0."""
    try:
        folder = jars_folder(os.environ)
        resolve_jars(folder)
        if not class_archive(folder).exists():
            print(f"{make_archive(folder).stat().st_size >> 20} MiB of classes in {folder}", file=sys.stderr)
    except (AuditError, OSError, subprocess.TimeoutExpired) as problem:
        print(f"no class archive, every start takes some seconds longer: {problem}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    with ending_at_once():
        sys.exit(main())
