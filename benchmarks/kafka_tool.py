"""Kafka's own `kafka-dump-log`, from the jars on Maven Central; needs Java and Maven."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from benchmarks.processes import FailedError, run

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.processes import Finished

KAFKA_VERSION = "4.2.0"

_POM = """<project><modelVersion>4.0.0</modelVersion>
<groupId>bench</groupId><artifactId>bench</artifactId><version>1</version><dependencies>
<dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>{0}</version></dependency>
<dependency><groupId>org.apache.kafka</groupId><artifactId>kafka-tools</artifactId><version>{0}</version></dependency>
</dependencies></project>
"""


def kafka_jars(cache: Path) -> Path:
    """The folder of Kafka's jars, fetched once.

    Args:
        cache: where they stay; nothing in it is fetched again.

    Raises:
        FailedError: Maven is not installed, or cannot fetch them.
    """
    folder = cache / f"kafka-{KAFKA_VERSION}"
    jars = folder / "jars"
    if jars.is_dir():
        return jars
    if shutil.which("mvn") is None:
        raise FailedError("Kafka's jars are fetched by Maven, which is not installed")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pom.xml").write_text(_POM.format(KAFKA_VERSION))
    arriving = folder / "arriving"
    copy = ("dependency:copy-dependencies", f"-DoutputDirectory={arriving}", "-DincludeScope=runtime")
    run(["mvn", "-q", "-B", "-f", str(folder / "pom.xml"), *copy])
    return arriving.rename(jars)


def dump_log(jars: Path, segments: list[Path], output: Path) -> Finished:
    """Dump segments as shallow text, as `kafka-dump-log.sh --files …` does.

    Raises:
        FailedError: the tool failed.
    """
    files = ",".join(map(str, segments))
    quiet = "-Dorg.apache.logging.log4j.level=ERROR"
    tool = ["java", "-Xmx256m", quiet, "-cp", f"{jars}/*", "kafka.tools.DumpLogSegments", "--files", files]
    return run(tool, output=output)
