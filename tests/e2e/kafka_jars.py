"""Kafka itself: the jars of one version from Maven Central, resolved by the Ivy that comes with Spark.

`python -m tests.e2e.kafka_jars` fetches those of every version that the tests start. `make bench` needs one of them.
"""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

from tests.delta_jars import IVY_SETTINGS

TRANSACTIONS_TOOL = "org.apache.kafka.tools.TransactionsCommand"
"""The class behind `kafka-transactions.sh`."""
VERSIONS = ("2.8.2", "3.9.1", "4.2.2", "4.3.1", "4.4.0")
"""Of the brokers that `make e2e` starts, the oldest and the newest at the ends: `--brief` takes these two."""
TOOLS_OF = {"4.2.2": "4.2.0", "4.4.0": "4.3.1"}
"""Of which version the tools are that go with brokers of a version whose `kafka-tools` Maven Central did not give
when these brokers were added (November 2026). Every other broker has the tools of its own version."""
CACHE = Path(__file__).parents[2] / ".kafka"

_FIRST_WITH_TOOLS = (3, 5)  # `kafka-tools` has the commands; before, they were in the broker's own jar
_REASONS = ("Server access error", "download failed", "not found")  # in lines of Ivy's, those that say most first
_MODULE = """<ivy-module version="2.0"><info organisation="tests" module="kafka"/>
<configurations><conf name="default"/></configurations><dependencies>{}</dependencies></ivy-module>
"""
_DEPENDENCY = '<dependency org="{}" name="{}" rev="{}" conf="default-&gt;default"/>'


class FetchError(Exception):
    """The jars cannot be fetched; the message says why, and what to do."""


def kafka_jars(version: str) -> Path:
    """The folder with the jars of one version, fetched once.

    Raises:
        FetchError: Java or Maven Central cannot be reached.
    """
    folder = CACHE / version
    if not folder.is_dir():
        arriving = CACHE / f"arriving-{version}"
        _fetch(version, arriving)
        arriving.rename(folder)
    return folder


def class_path(version: str) -> str:
    """What Java's `-cp` takes for brokers and clients of a version; see `kafka_jars`."""
    return f"{kafka_jars(version)}/*"


def tools_version(version: str) -> str:
    """Of which version Kafka's own tools are that go with brokers of a version."""
    return TOOLS_OF.get(version, version)


def dump_tool(version: str) -> str:
    """The class behind `kafka-dump-log.sh` of the tools of a version: 4.3 moved it to `kafka-tools`."""
    return "org.apache.kafka.tools.DumpLogSegments" if _number(version) >= (4, 3) else "kafka.tools.DumpLogSegments"


def _number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")[:2]))


def _fetch(version: str, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    wanted = [("org.apache.kafka", "kafka_2.13", version), ("org.slf4j", "slf4j-simple", "1.7.36")]
    if _number(version) >= _FIRST_WITH_TOOLS and tools_version(version) == version:
        wanted.append(("org.apache.kafka", "kafka-tools", version))
    module = folder / "ivy.xml"
    module.write_text(_MODULE.format("".join(_DEPENDENCY.format(*artifact) for artifact in wanted)))
    pyspark = find_spec("pyspark")
    assert pyspark is not None
    assert pyspark.origin is not None
    (ivy,) = Path(pyspark.origin).parent.glob("jars/ivy-*.jar")
    words: list[str | Path] = ["-settings", IVY_SETTINGS, "-ivy", module, "-cache", folder / "ivy"]
    pattern = folder / "[artifact]-[revision](-[classifier]).[ext]"
    command = ["java", "-jar", ivy, *words, "-types", "jar", "bundle", "-retrieve", pattern, "-warn"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    except OSError as error:
        raise FetchError(f"cannot fetch Kafka {version}: java cannot be started ({error.strerror})") from error
    if done.returncode != 0 or not list(folder.glob(f"kafka_2.13-{version}.jar")):
        raise FetchError(_failure(version, done.stdout + done.stderr))


def _failure(version: str, output: str) -> str:
    lines = [line.strip() for line in output.splitlines()]
    said = next((line for reason in _REASONS for line in lines if reason in line), "Ivy gives no reason")
    return f"cannot fetch Kafka {version} ({said}): give this machine access to Maven Central once"


def main() -> int:
    """Fetch the jars of every version and say where they are. Returns the exit code."""
    try:
        with ThreadPoolExecutor() as pool:
            for jars in pool.map(kafka_jars, sorted({*VERSIONS, *map(tools_version, VERSIONS)})):
                print(f"{len(list(jars.glob('*.jar')))} jars in {jars}", file=sys.stderr)
    except FetchError as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
