"""The copy kit on brokers of the tests, with the tools that it calls."""

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.systems.e2e.broker import Cluster
from tests.tools.kafka_jars import class_path, dump_tool
from txn_analysis.cli.shell_verbs import SCRIPT

_TOOL = """#!/bin/sh
exec java -Xmx256m -XX:TieredStopAtLevel=1 -Dorg.slf4j.simpleLogger.defaultLogLevel=error -cp '{jars}' {main} "$@"
"""


def write_tools(folder: Path, version: str) -> Path:
    """The brokers' own `kafka-topics.sh` and `kafka-dump-log.sh`, in a folder."""
    folder.mkdir(exist_ok=True)
    for name, main in (
        ("kafka-topics.sh", "org.apache.kafka.tools.TopicCommand"),
        ("kafka-dump-log.sh", dump_tool(version)),
    ):
        tool = folder / name
        tool.write_text(_TOOL.format(jars=class_path(version), main=main))
        tool.chmod(0o755)
    return folder


def run_kit(
    cluster: Cluster, tools: Path, target: Path, *words: str, node: int = 0, asks: bool = True
) -> dict[str, Any]:
    """One call of the kit on one broker; its manifest.

    Args:
        cluster: of the broker.
        tools: see `write_tools`.
        target: of the copy.
        words: more of them.
        node: the broker.
        asks: the brokers for the leaders, before and after.
    """
    asking = ["--bootstrap-server", cluster.bootstrap] if asks else []
    kit = ["sh", str(SCRIPT), "--to", str(target), "--kafka-bin", str(tools)]
    command = [*kit, *words, *asking, str(cluster.log_dir(node))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    manifest: dict[str, Any] = json.loads((target / "txn-capture.json").read_text())
    return manifest
