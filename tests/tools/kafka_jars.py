"""Kafka itself: the jars of one version from Maven Central, resolved by the Ivy that comes with Spark.

`python -m tests.tools.kafka_jars` fetches those of every version that the tests start. `make bench` needs one of them.
"""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.tools.maven_jars import FetchError, fetch_jars
from tests.tools.repository import ROOT

TRANSACTIONS_TOOL = "org.apache.kafka.tools.TransactionsCommand"
"""The class behind `kafka-transactions.sh`."""
VERSIONS = ("2.8.2", "3.9.1", "4.2.2", "4.3.1", "4.4.0")
"""Of the brokers that `make e2e` starts, the oldest and the newest at the ends: `--brief` takes these two."""
TOOLS_OF = {"4.2.2": "4.2.0"}
"""Of which version the tools are that go with brokers of a version whose `kafka-tools` Maven Central did not give
when these brokers were added (November 2026). Every other broker has the tools of its own version."""
CACHE = ROOT / ".kafka"

_FIRST_WITH_TOOLS = (3, 5)  # `kafka-tools` has the commands; before, they were in the broker's own jar


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


def test_jars(version: str) -> Path:
    """The folder with Kafka's own test jars of one version that have `LocalTieredStorage`, fetched once.

    Raises:
        FetchError: Java or Maven Central cannot be reached.
    """
    folder = CACHE / f"tests-{version}"
    if not folder.is_dir():
        arriving = CACHE / f"arriving-tests-{version}"
        wanted = [("org.apache.kafka", name, version) for name in ("kafka-storage", "kafka-clients")]
        fetch_jars(f"the test jars of Kafka {version}", wanted, arriving, are_of_tests=True)
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
    return "org.apache.kafka.tools.DumpLogSegments" if number_of(version) >= (4, 3) else "kafka.tools.DumpLogSegments"


def config_tool(version: str) -> str:
    """The class behind `kafka-configs.sh` of the tools of a version: 4.4 moved it to `kafka-tools`."""
    return "org.apache.kafka.tools.ConfigCommand" if number_of(version) >= (4, 4) else "kafka.admin.ConfigCommand"


def number_of(version: str) -> tuple[int, ...]:
    """A version as it is compared: its first two numbers."""
    return tuple(map(int, version.split(".")[:2]))


def _fetch(version: str, folder: Path) -> None:
    wanted = [("org.apache.kafka", "kafka_2.13", version), ("org.slf4j", "slf4j-simple", "1.7.36")]
    if number_of(version) >= _FIRST_WITH_TOOLS and tools_version(version) == version:
        wanted.append(("org.apache.kafka", "kafka-tools", version))
    fetch_jars(f"Kafka {version}", wanted, folder)


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
