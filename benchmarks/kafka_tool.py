"""Kafka's own `kafka-dump-log`, from the jars that the end-to-end tests start brokers from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.processes import FailedError, run
from tests.e2e.kafka_jars import FetchError, class_path, dump_tool

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.processes import Finished

KAFKA_VERSION = "4.2.0"


def dump_log(segments: list[Path], output: Path) -> Finished:
    """Dump segments as shallow text, as `kafka-dump-log.sh --files …` does.

    Raises:
        FailedError: the tool failed, or cannot be fetched.
    """
    try:
        jars = class_path(KAFKA_VERSION)
    except FetchError as error:
        raise FailedError(str(error)) from error
    files = ",".join(map(str, segments))
    quiet = ("-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-Dlog4j2.level=ERROR")
    return run(["java", "-Xmx256m", *quiet, "-cp", jars, dump_tool(KAFKA_VERSION), "--files", files], output=output)
