"""The file from which Java takes its classes, as an audit by Spark has loaded them: Spark starts in half of the time.

`python -m txn_analysis.cli.class_archive` makes it, once for each environment: it audits the capture of the demo by
Spark's tasks, and Java writes the file as it ends (JEP 350). It has 150 MB, and goes with the environment it lies in.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from pyspark import SparkContext

from txn_analysis import Settings, audit
from txn_analysis.cli.demo import CAPTURES
from txn_analysis.errors import AuditError
from txn_analysis.settings import EngineName
from txn_analysis.spark.jdk import java_program
from txn_analysis.spark.session import CLASS_ARCHIVE, from_archive, session


def make(archive: Path = CLASS_ARCHIVE) -> None:
    """Make the archive, in place of one that is there; in a process that has not started Spark, and does no more.

    Raises:
        MissingToolError: no usable JDK.
        AuditError: Java did not write all of it.
        OSError: its folder cannot be written to.
    """
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=archive.parent) as work:
        new = Path(work, archive.name)
        _audit(Path(work), f'"-XX:ArchiveClassesAtExit={new}" -Xlog:cds*=off')
        # Java 17 ends with a signal where some of the file is missing, and writes a report of it where it is.
        tried = [java_program(os.environ), *shlex.split(from_archive(new)), "-version"]
        if not new.is_file() or subprocess.run(tried, cwd=work, capture_output=True, check=False).returncode:
            raise AuditError(f"Java did not write all of {archive}. Is there room for it?")
        new.replace(archive)


def _audit(work: Path, java_options: str) -> None:
    """An audit by Spark's tasks, until its Java has ended."""
    spark, gateway = session(java_options=java_options), SparkContext._gateway
    assert gateway is not None
    settings = Settings(warehouse=str(work / "warehouse"), engine=EngineName.SPARK)
    audit(spark, [part.resolve() for part in (CAPTURES / "before").iterdir()], settings)
    spark.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()  # with it Java ends
    gateway.proc.wait()


def main() -> int:
    """Make the archive, and print where it is, or why there is none. Returns the exit code."""
    try:
        make()
    except (AuditError, OSError) as problem:
        print(f"error: {problem}", file=sys.stderr)
        return AuditError.exit_code
    print(f"{CLASS_ARCHIVE}: {CLASS_ARCHIVE.stat().st_size >> 20} MiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
