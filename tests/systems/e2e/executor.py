"""Who executes an abort plan: it checks what a record asks for, and sends it in one of the three forms."""

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

from tests.systems.e2e.broker import QUIET
from tests.systems.e2e.driver import KafkaError
from tests.systems.e2e.scene import Scene
from tests.tools.kafka_jars import TRANSACTIONS_TOOL, class_path
from txn_analysis.kafka.names import TRANSACTIONS
from txn_analysis.plan.plan_file import ndjson, write_txn_markers
from txn_analysis.plan.script import commands
from txn_analysis.tables import AbortRecord

_FOUR_FIELDS = re.compile(r"^(?:    send|#   brokers .*) (abort .* --coordinator-epoch \d+)$", re.MULTILINE)
_CLASSES = {
    "kafka-transactions.sh": TRANSACTIONS_TOOL,
    "kafka-producer-perf-test.sh": "org.apache.kafka.tools.ProducerPerformance",
    "kafka-log-dirs.sh": "org.apache.kafka.tools.LogDirsCommand",
}
_BEFORE_DESCRIBE = "2.8.2"  # brokers before 3.0 cannot describe a transaction


def refusals(scene: Scene, record: AbortRecord, now_ms: int, *, is_producer_ended: bool = False) -> list[str]:
    """Why a record must not be executed now; empty where it may."""
    found = []
    if now_ms < record.not_before_ms:
        found.append("too early")
    if now_ms > record.not_after_ms:
        found.append("expired")
    known = scene.driver.open_in((record.topic, record.partition)).get(record.producer_id)
    if known is None or known["txn_start_offset"] != record.txn_start_offset:
        found.append("nothing is open at the start offset")
    if record.must_end_producer and not is_producer_ended and _is_listed(scene, record):
        found.append("the coordinator lists the partition, or cannot be asked")
    return found


def _is_listed(scene: Scene, record: AbortRecord) -> bool:
    try:
        transaction = scene.driver.described(str(record.transactional_id))
    except KafkaError:
        return True  # before 3.0
    return record.topic_partition in transaction["partitions"]


def by_admin(scene: Scene, record: AbortRecord) -> None:
    """`Admin.abortTransaction` from the record's line of `--format ndjson`.

    Raises:
        KafkaError: the broker refused it.
    """
    scene.driver.call("abort_record", record=json.loads(ndjson([record])))


def by_request(scene: Scene, record: AbortRecord, version: int) -> dict[str, int]:
    """The document of `--format write-txn-markers` on the wire; returns Kafka's error code of each partition.

    Whoever sends it has ended the producer, and says so.
    """
    document, left_out = write_txn_markers([record], version, [str(record.transactional_id)])
    assert left_out == []
    codes: dict[str, int] = scene.driver.call("write_markers", document=json.loads(document), version=version)
    return codes


def by_script(
    scene: Scene, record: AbortRecord, tool_version: str, folder: Path, *, is_unchecked: bool = False
) -> subprocess.CompletedProcess[str]:
    """The script of `--format commands`, as it is, with the tool of some version in the PATH.

    Whoever runs it has ended the producer, and says so; and, where the brokers cannot be asked, has looked elsewhere.
    """
    words = ["--yes"]
    if record.transactional_id is not None:
        words += ["--ended", record.transactional_id]
    if is_unchecked:
        words += ["--unchecked", record.finding_id]
    return _sh(commands([record]), scene, tool_version, folder, *words)


def must_be_unchecked(scene: Scene, record: AbortRecord) -> bool:
    """These brokers cannot tell whether the producer is ended."""
    return record.must_end_producer and scene.version == _BEFORE_DESCRIBE


def by_start_offset(
    scene: Scene, record: AbortRecord, tool_version: str, folder: Path
) -> subprocess.CompletedProcess[str]:
    """What nobody may type for a producer that may return."""
    command = (
        f'kafka-transactions.sh --bootstrap-server "$BROKERS" abort --topic {record.topic} '
        f"--partition {record.partition} --start-offset {record.txn_start_offset}"
    )
    return _sh(command, scene, tool_version, folder)


def by_four_fields(
    scene: Scene, record: AbortRecord, tool_version: str, folder: Path
) -> subprocess.CompletedProcess[str]:
    """The form with the recorded epochs: a command of the script where the producer may return, else a comment."""
    return _sh(with_recorded_epochs(record), scene, tool_version, folder)


def with_recorded_epochs(record: AbortRecord) -> str:
    """The abort with the recorded epochs, as one that is typed without the script's checks."""
    (words,) = _FOUR_FIELDS.findall(commands([record]))
    return f"{TRANSACTIONS} {words}"


def _sh(script: str, scene: Scene, tool_version: str, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    put_tool(folder, tool_version)
    environment: dict[str, Any] = {
        **os.environ,
        "PATH": f"{folder}:{os.environ['PATH']}",
        "BROKERS": scene.cluster.bootstrap,
        "PAUSE_SECONDS": "0",
    }
    command = ["sh", "-e", "-c", script, "plan.sh", *words]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def put_tool(folder: Path, version: str, name: str = "kafka-transactions.sh") -> None:
    """One of Kafka's own tools of some version, in a folder for the PATH."""
    folder.mkdir(parents=True, exist_ok=True)
    tool = folder / name
    java = f'java -Xmx256m {" ".join(QUIET)} -cp "{class_path(version)}"'
    tool.write_text(f'#!/bin/sh\nexec {java} {_CLASSES[name]} "$@"\n')
    tool.chmod(0o755)
