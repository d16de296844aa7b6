"""Kafka's own `kafka-dump-log` and `kafka-transactions`, from the jars that the end-to-end tests start brokers from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.processes import FailedError, run
from tests.systems.e2e.broker import QUIET
from tests.tools.kafka_jars import TRANSACTIONS_TOOL, class_path, dump_tool
from tests.tools.maven_jars import FetchError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from benchmarks.processes import Finished

KAFKA_VERSION = "4.2.0"
BROKER_VERSION = "4.3.1"
_OF_ITS_SCRIPT = ("-Xmx256M", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-Djava.awt.headless=true")
"""Java's options, as `kafka-run-class.sh` gives them."""


def dump_log(segments: list[Path], output: Path) -> Finished:
    """Dump segments as shallow text, as `kafka-dump-log.sh --files …` does.

    Raises:
        FailedError: the tool failed, or cannot be fetched.
    """
    files = ",".join(map(str, segments))
    return _run(KAFKA_VERSION, ("-Xmx256m",), dump_tool(KAFKA_VERSION), "--files", files, output=output)


def transactions_help() -> Finished:
    """`kafka-transactions.sh --help`: what a command of Kafka's takes to start; errors as of `dump_log`."""
    return _run(BROKER_VERSION, _OF_ITS_SCRIPT, TRANSACTIONS_TOOL, "--help", code=1)  # as it ends


def find_hanging(bootstrap: str) -> Finished:
    """`kafka-transactions.sh find-hanging` of all that a live broker leads; errors as of `dump_log`."""
    words = ("--bootstrap-server", bootstrap, "find-hanging", "--broker-id", "1")
    return _run(BROKER_VERSION, _OF_ITS_SCRIPT, TRANSACTIONS_TOOL, *words)


def _run(
    version: str, java: Sequence[str], tool: str, *words: str, output: Path | None = None, code: int = 0
) -> Finished:
    try:
        jars = class_path(version)
    except FetchError as error:
        raise FailedError(str(error)) from error
    return run(["java", *java, *QUIET, "-cp", jars, tool, *words], output=output, code=code)
